#include "unwind/go_functions.h"

#include <algorithm>

#include "unwind/cfi_reader.h"
#include "unwind/pclntab.h"

namespace dwell::unwind {
namespace {

constexpr uint8_t kOutermost = 1;         // funcFlag_TOPFRAME
constexpr uint8_t kWritesPointer = 2;     // funcFlag_SPWRITE
constexpr int64_t kFrameMax = 1 << 30;    // bytes
constexpr int16_t kFramePointerAt = -16;  // from the CFA: below the return address

// Leaves the goroutine that called it for good: what its frame pointer leads to is another story.
constexpr std::string_view kLeavesForGood = "runtime.mcall";
// Marked as outermost, but the kernel called it for the function that a signal interrupted.
constexpr std::string_view kSignalHandler = "runtime.sigtramp";
// Signal handlers return to it: the walker knows it by its bytes.
constexpr std::string_view kRestorer = "runtime.sigreturn";

GoFunction::Caller caller_of(std::string_view name, uint8_t flags) {
  using Caller = GoFunction::Caller;
  name = name.substr(0, name.find(".abi0"));
  if (name == kLeavesForGood) return Caller::kNone;
  if (name.starts_with(kRestorer)) return Caller::kByPointer;
  if ((flags & kOutermost) != 0 && name != kSignalHandler) return Caller::kNone;
  return (flags & kWritesPointer) != 0 ? Caller::kByPointer : Caller::kAboveFrame;
}

Rule rule_of_frame(int64_t frame_bytes) {
  Rule rule{};
  rule.cfa_kind = DWELL_CFA_REGISTER;
  rule.cfa_register = DWELL_REGISTER_RSP;
  rule.return_register = DWELL_RETURN_AT_CFA;
  rule.cfa_offset = static_cast<int32_t>(frame_bytes) + 8;
  rule.frame_kind = frame_bytes > 0 ? DWELL_SAVED_AT_CFA : DWELL_SAVED_SAME;
  rule.frame_offset = frame_bytes > 0 ? kFramePointerAt : int16_t{0};
  rule.rbx_kind = DWELL_SAVED_LOST;  // Go's functions save no registers
  return rule;
}

}  // namespace

std::vector<GoFunction> GoFunctions::read(std::string_view table, uint64_t text_start) {
  std::vector<GoFunction> functions;
  const auto read = Pclntab::read(table, text_start);
  if (!read || !read->is_of_x86_64() || !read->counts_from_text() || read->lacks_text_start())
    return functions;
  for (uint64_t i = 0; i < read->size(); ++i)
    if (const auto function = read->function(i))
      functions.push_back({function->start, function->end,
                           caller_of(function->name, function->flags),
                           function->frame_sizes.substr(0, kSizesBytesMax)});
  return functions;
}

// Steps: how much the size changes (zigzag; 0 is the end), and for how many bytes of code it holds.
bool GoFunctions::tell(const GoFunction& function, size_t& budget, const OnRange& on_range) {
  CfiReader reader(function.frame_sizes.substr(0, budget), 0);
  uint64_t address = function.start;
  int64_t size = -1;
  while (address < function.end) {
    const uint64_t change = reader.uleb();
    if (change == 0 && address != function.start) break;
    const uint64_t bytes = reader.uleb();
    // Unsigned, for a hostile step may be as large as it likes.
    size = static_cast<int64_t>(static_cast<uint64_t>(size) + ((change >> 1) ^ -(change & 1)));
    if (reader.failed() || bytes == 0 || size < 0 || size > kFrameMax || size % 8 != 0) break;
    const uint64_t end = std::min(function.end, address + std::min(bytes, function.end - address));
    on_range(address, end, rule_of_frame(size));
    address = end;
  }
  budget -= std::min(budget, reader.position());
  return address == function.end;
}

}  // namespace dwell::unwind
