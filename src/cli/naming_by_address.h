// A symbolizer without files or processes, for the tests of what is built from its answers.
#pragma once

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "symbolize/symbolizer.h"

namespace dwell::cli {

constexpr uint64_t kNowhere = 0x666;  // an address in no mapping

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
  void notice_process(const ProcessKey&) override {}
  symbolize::ProcessInfo process_info(const ProcessKey& key) const override {
    return {fmt::format("/bin/app{}", key.pid), "app --fast"};
  }
  symbolize::FrameInfo describe(symbolize::LocationId location) override {
    const auto [ip, kind] = addresses_.at(location);
    symbolize::FrameInfo info;
    info.address = ip;
    info.kind = kind;
    if (ip == kNowhere) return info;
    const bool user = kind == FrameKind::kUser;
    info.function = info.symbol = fmt::format("{}{:x}", user ? "f" : "k", ip);
    info.object = user ? 1 : 2;
    info.how = Resolution::kSymtab;
    return info;
  }
  const symbolize::ObjectInfo& object(symbolize::ObjectId object) const override {
    static const symbolize::ObjectInfo kObjects[] = {
        {"", "", ModuleKind::kUnknown},
        {"/bin/app", "ab12", ModuleKind::kFile},
        {"[kernel]", "", ModuleKind::kKernel},
    };
    return kObjects[object];
  }
  std::vector<symbolize::Unresolved> unresolved() const override {
    return {{1, 3, "stripped", "install symbols"}};
  }
  std::vector<std::string> warnings() const override { return {"a warning"}; }

 private:
  symbolize::LocationId location(uint64_t ip, FrameKind kind) {
    addresses_.emplace_back(ip, kind);
    return static_cast<symbolize::LocationId>(addresses_.size() - 1);
  }
  std::vector<std::pair<uint64_t, FrameKind>> addresses_;
};

}  // namespace dwell::cli
