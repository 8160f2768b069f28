#include "unwind/go_functions.h"

#include <algorithm>
#include <optional>

#include "unwind/cfi_reader.h"

namespace dwell::unwind {
namespace {

// The layouts are those of Go's runtime/symtab.go: pcHeader, functab, _func.
constexpr uint32_t kMagic1_18 = 0xfffffff0;
constexpr uint32_t kMagic1_20 = 0xfffffff1;
constexpr uint32_t kFunctionBytes1_18 = 36;  // of _func up to funcID; flag is the byte behind that
constexpr uint32_t kFunctionBytes1_20 = 40;
constexpr uint8_t kPointerBytes = 8;
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

struct Header {
  uint64_t functions = 0;
  uint64_t text = 0;  // address
  std::string_view names, sizes, table;
  uint32_t function_bytes = 0;
};

std::string_view behind(std::string_view bytes, uint64_t offset) {
  return offset < bytes.size() ? bytes.substr(offset) : std::string_view();
}

std::optional<Header> read_header(std::string_view section) {
  CfiReader reader(section, 0);
  Header header;
  const auto magic = reader.fixed<uint32_t>();
  reader.take(2);
  const uint8_t unit = reader.u8(), pointer_bytes = reader.u8();
  header.functions = reader.fixed<uint64_t>();
  reader.take(8);  // the number of files
  header.text = reader.fixed<uint64_t>();
  header.names = behind(section, reader.fixed<uint64_t>());
  reader.take(16);  // compilation units, files
  header.sizes = behind(section, reader.fixed<uint64_t>());
  header.table = behind(section, reader.fixed<uint64_t>());
  header.function_bytes = magic == kMagic1_18 ? kFunctionBytes1_18 : kFunctionBytes1_20;
  const bool is_known = magic == kMagic1_18 || magic == kMagic1_20;
  if (reader.failed() || !is_known || unit != 1 || pointer_bytes != kPointerBytes ||
      header.text == 0)
    return {};
  return header;
}

GoFunction::Caller caller_of(std::string_view name, uint8_t flags) {
  using Caller = GoFunction::Caller;
  name = name.substr(0, name.find(".abi0"));
  if (name == kLeavesForGood) return Caller::kNone;
  if (name.starts_with(kRestorer)) return Caller::kByPointer;
  if ((flags & kOutermost) != 0 && name != kSignalHandler) return Caller::kNone;
  return (flags & kWritesPointer) != 0 ? Caller::kByPointer : Caller::kAboveFrame;
}

// What _func says, at `offset` in the table. False if it does not lie there.
bool describe(const Header& header, uint64_t offset, GoFunction& function) {
  const std::string_view record = behind(header.table, offset);
  CfiReader reader(record, 0);
  reader.take(4);  // where it begins, once more
  const auto name_offset = reader.fixed<uint32_t>();
  reader.take(8);  // arguments, deferred calls
  const auto sizes_offset = reader.fixed<uint32_t>();
  CfiReader flags(behind(record, header.function_bytes + 1), 0);
  const uint8_t flag = flags.u8();
  if (reader.failed() || flags.failed()) return false;
  const std::string_view name = behind(header.names, name_offset).substr(0, GoFunctions::kNameMax);
  function.caller = caller_of(name.substr(0, name.find('\0')), flag);
  function.frame_sizes = behind(header.sizes, sizes_offset).substr(0, GoFunctions::kSizesBytesMax);
  return true;
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

std::vector<GoFunction> GoFunctions::read(std::string_view section) {
  std::vector<GoFunction> functions;
  const auto header = read_header(section);
  if (!header) return functions;
  CfiReader table(header->table, 0);
  auto start = table.fixed<uint32_t>();
  for (uint64_t i = 0; i < header->functions && functions.size() < kFunctionsMax; ++i) {
    const auto offset = table.fixed<uint32_t>();
    const auto next = table.fixed<uint32_t>();
    if (table.failed()) break;
    GoFunction function;
    function.start = header->text + start;
    function.end = header->text + next;
    if (next > start && describe(*header, offset, function)) functions.push_back(function);
    start = next;
  }
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
    size += static_cast<int64_t>(change >> 1) ^ -static_cast<int64_t>(change & 1);
    if (reader.failed() || bytes == 0 || size < 0 || size > kFrameMax || size % 8 != 0) break;
    const uint64_t end = std::min(function.end, address + std::min(bytes, function.end - address));
    on_range(address, end, rule_of_frame(size));
    address = end;
  }
  budget -= std::min(budget, reader.position());
  return address == function.end;
}

}  // namespace dwell::unwind
