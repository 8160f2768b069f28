// A symbolizer without files or processes, for the tests of what is built from its answers.
#pragma once

#include <fmt/format.h>

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "abi/python.h"
#include "symbolize/symbolizer.h"

namespace dwell::cli {

constexpr uint64_t kNowhere = 0x666;  // an address in no mapping

constexpr uint64_t kEvalCall = 0x777;  // in CPython's eval function

// Knows every address but kNowhere: "f40" lies at 0x40 in /bin/app, "k40" in the kernel.
class NamingByAddress : public symbolize::Symbolizer {
 public:
  void poll() override {}
  symbolize::LocationId locate_user(const ProcessKey&, uint64_t ip, bool, uint64_t) override {
    return location(ip, FrameKind::kUser);
  }
  symbolize::LocationId locate_kernel(uint64_t ip, bool) override {
    return location(ip, FrameKind::kKernel);
  }
  // The code object at 0x50 is "p50", the line is the number of the instruction; none lies at 0.
  std::vector<symbolize::LocationId> locate_python(const ProcessKey&, uint32_t,
                                                   std::span<const uint64_t> words, uint64_t,
                                                   uint64_t& unread) override {
    std::vector<symbolize::LocationId> locations;
    for (const uint64_t word : words) {
      unread += DWELL_PYTHON_CODE(word) == 0 ? 1 : 0;
      locations.push_back(location(word, FrameKind::kUser));
      python_.insert(locations.back());
    }
    return locations;
  }
  void notice_process(const ProcessKey&) override {}
  symbolize::ProcessInfo process_info(const ProcessKey& key) const override {
    return {fmt::format("/bin/app{}", key.pid), "app --fast"};
  }
  symbolize::FrameInfo describe(symbolize::LocationId location) override {
    const auto [ip, kind] = addresses_.at(location);
    symbolize::FrameInfo info;
    if (python_.contains(location)) return describe_python(ip);
    info.address = ip;
    info.kind = kind;
    if (ip == kNowhere) return info;
    const bool user = kind == FrameKind::kUser;
    info.function = info.symbol = fmt::format("{}{:x}", user ? "f" : "k", ip);
    if (ip == kEvalCall) info.function = info.symbol = "_PyEval_EvalFrameDefault";
    info.object = user ? 1 : 2;
    info.how = Resolution::kSymtab;
    return info;
  }
  const symbolize::ObjectInfo& object(symbolize::ObjectId object) const override {
    static const symbolize::ObjectInfo kObjects[] = {
        {"", "", ModuleKind::kUnknown},
        {"/bin/app", "ab12", ModuleKind::kFile},
        {"[kernel]", "", ModuleKind::kKernel},
        {"/srv/app.py", "", ModuleKind::kFile},
    };
    return kObjects[object];
  }
  std::vector<symbolize::Unresolved> unresolved() const override {
    return {{1, 3, "stripped", "install symbols"}};
  }
  std::vector<std::string> warnings() const override { return {"a warning"}; }

 private:
  static symbolize::FrameInfo describe_python(uint64_t word) {
    symbolize::FrameInfo info;
    const bool is_read = DWELL_PYTHON_CODE(word) != 0;
    info.kind = is_read ? FrameKind::kUser : FrameKind::kPlaceholder;
    info.how = is_read ? Resolution::kPython : Resolution::kPlaceholder;
    info.function = is_read ? fmt::format("p{:x}", DWELL_PYTHON_CODE(word)) : "[not read]";
    info.object = is_read ? 3 : 0;
    info.line = DWELL_PYTHON_INSTRUCTION(word);
    return info;
  }
  symbolize::LocationId location(uint64_t ip, FrameKind kind) {
    addresses_.emplace_back(ip, kind);
    return static_cast<symbolize::LocationId>(addresses_.size() - 1);
  }
  std::vector<std::pair<uint64_t, FrameKind>> addresses_;
  std::set<symbolize::LocationId> python_;
};

}  // namespace dwell::cli
