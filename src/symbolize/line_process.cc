#include "symbolize/line_process.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "symbolize/debug_names.h"
#include "symbolize/work_apart.h"

namespace dwell::symbolize {
namespace {

enum Answer : char { kChains = 'c', kFailure = 'f' };

// The child's side of the pipe, in pieces of some size.
class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}
  void number(uint32_t value) { bytes(&value, sizeof(value)); }
  void text(std::string_view text) {
    text = text.substr(0, LineLimits::kTextMax);
    number(static_cast<uint32_t>(text.size()));
    bytes(text.data(), text.size());
  }
  void bytes(const void* data, size_t size) {
    buffer_.append(static_cast<const char*>(data), size);
    if (buffer_.size() >= kPieceBytes) flush();
  }
  void flush() {
    write_or_end(fd_, buffer_.data(), buffer_.size());
    buffer_.clear();
  }

 private:
  static constexpr size_t kPieceBytes = 64 << 10;
  int fd_;
  std::string buffer_;
};

void answer(const DebugInfo& files, std::span<const uint64_t> addresses, int fd) {
  set_hard_limit(RLIMIT_NOFILE, 0);  // the data may name other files: none of them is opened
  Writer out(fd);
  auto lines = DwarfLines::open(files.file.get(), files.alternate.get());
  const char kind = lines ? kChains : kFailure;
  out.bytes(&kind, 1);
  if (!lines) out.text(lines.error().message);
  DebugNames names(files.file.get(), addresses);
  for (size_t i = 0; lines && i < addresses.size(); ++i) {
    SourceChain chain = lines->find(addresses[i]);
    names.complete(addresses[i], chain);
    out.number(static_cast<uint32_t>(chain.size()));
    for (const SourceFrame& frame : chain) {
      out.text(frame.function);
      out.text(frame.file);
      out.number(frame.line);
    }
  }
  out.flush();
}

// The answer, checked: the child may have gone astray.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::optional<uint32_t> number() {
    uint32_t value;
    if (rest_.size() < sizeof(value)) return std::nullopt;
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  std::optional<std::string> text() {
    const auto size = number();
    if (!size || *size > rest_.size()) return std::nullopt;
    std::string out(rest_.substr(0, *size));
    rest_.remove_prefix(*size);
    return out;
  }
  std::optional<SourceChain> chain() {
    const auto size = number();
    if (!size || *size > LineLimits::kFramesMax) return std::nullopt;
    SourceChain chain;
    for (uint32_t i = 0; i < *size; ++i) {
      auto function = text(), file = text();
      const auto line = number();
      if (!function || !file || !line) return std::nullopt;
      chain.push_back({std::move(*function), std::move(*file), *line});
    }
    return chain;
  }

 private:
  std::string_view rest_;
};

Result<std::vector<SourceChain>> parse(std::string_view bytes, size_t addresses) {
  Reader in(bytes.substr(std::min<size_t>(1, bytes.size())));
  if (bytes.starts_with(kFailure)) return runtime_error(in.text().value_or("unreadable"));
  std::vector<SourceChain> chains;
  for (size_t i = 0; i < addresses; ++i) {
    auto chain = in.chain();
    if (!chain) return runtime_error("the debug information is damaged");
    chains.push_back(std::move(*chain));
  }
  return chains;
}

}  // namespace

Result<std::vector<SourceChain>> look_up_lines(const DebugInfo& files,
                                               std::span<const uint64_t> addresses,
                                               const LineLimits& limits) {
  const ApartLimits apart{limits.patience, limits.memory_bytes, limits.answer_bytes, true};
  DWELL_ASSIGN(const ApartAnswer found,
               work_apart(apart, [&](int fd) { answer(files, addresses, fd); }));
  if (found.end == ApartAnswer::End::kTooMuch)
    return runtime_error(fmt::format("reading the debug information took more than {} s or {} MiB",
                                     limits.patience.count(), limits.answer_bytes >> 20));
  if (found.end == ApartAnswer::End::kDied)
    return runtime_error(
        fmt::format("the debug information could not be followed ({})", found.death));
  return parse(found.bytes, addresses.size());
}

}  // namespace dwell::symbolize
