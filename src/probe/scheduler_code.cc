#include "probe/scheduler_code.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace dwell::probe {
namespace {

constexpr uint8_t kCall = 0xe8, kJump = 0xe9;
// Calls may lead into the padding before a function, where some mitigations keep code.
constexpr uint64_t kPaddingBytes = 16;
constexpr size_t kFramesMax = 16;

struct Symbol {
  uint64_t address = 0;
  std::string_view name;
};

// "ADDRESS TYPE NAME"; nothing for data, modules and lines that are none.
std::optional<Symbol> read_symbol(std::string_view line) {
  Symbol symbol;
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), symbol.address, 16);
  const size_t at = static_cast<size_t>(end - line.data());
  if (error != std::errc() || line.size() < at + 4 || !std::strchr("tTwW", line[at + 1]))
    return std::nullopt;
  symbol.name = line.substr(at + 3);
  if (symbol.name.find('\t') != std::string_view::npos) return std::nullopt;
  return symbol;
}

template <typename Take>
void for_each_symbol(std::string_view kallsyms, const Take& take) {
  while (!kallsyms.empty()) {
    const size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    if (const auto symbol = read_symbol(kallsyms.substr(0, end))) take(*symbol);
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
  }
}

}  // namespace

const SchedulerCode::Function* SchedulerCode::function_at(uint64_t address) const {
  const auto above = std::ranges::upper_bound(functions_, address, {}, &Function::start);
  return above == functions_.begin() || !text_.contains(address) ? nullptr : &*std::prev(above);
}

bool SchedulerCode::is_switch(uint64_t return_address) const {
  const Function* function = function_at(return_address - 1);
  if (function == nullptr) return false;
  const std::string_view name =
      std::string_view(function->name).substr(0, function->name.find('.'));
  return name == "schedule" || name == "__schedule" || name == "schedule_preempt_disabled" ||
         name == "schedule_rtlock" || name == "schedule_idle" || name == "__schedule_loop" ||
         name == "__cond_resched" || name.starts_with("preempt_schedule");
}

uint64_t SchedulerCode::branch_target(uint64_t at, uint8_t opcode) const {
  const uint64_t offset = at - text_.start;
  if (at < text_.start || offset + kBranchBytes > bytes_.size() || bytes_[offset] != opcode)
    return 0;
  int32_t distance = 0;
  std::memcpy(&distance, &bytes_[offset + 1], sizeof distance);
  return at + kBranchBytes + static_cast<uint64_t>(int64_t{distance});
}

bool SchedulerCode::jumps_to(const Function& from, uint64_t target) const {
  const Function* next = &from + 1;
  const uint64_t end = next == functions_.data() + functions_.size() ? text_.end : next->start;
  for (uint64_t at = from.start; at + kBranchBytes <= end; ++at)
    if (branch_target(at, kJump) == target) return true;
  return false;
}

bool SchedulerCode::leads_to(uint64_t target, const Function& function) const {
  if (target <= function.start && function.start - target <= kPaddingBytes) return true;
  const Function* between = function_at(target);
  return between != nullptr && between->start == target && jumps_to(*between, function.start);
}

bool SchedulerCode::calls(uint64_t return_address, const Function& function) const {
  const uint64_t target = branch_target(return_address - kBranchBytes, kCall);
  return target != 0 && leads_to(target, function);
}

bool SchedulerCode::enters(std::span<const uint8_t> call, uint64_t return_address,
                           const Function& function) const {
  if (call.size() < kBranchBytes || call[0] != kCall) return false;
  int32_t distance = 0;
  std::memcpy(&distance, &call[1], sizeof distance);
  return leads_to(return_address + static_cast<uint64_t>(int64_t{distance}), function);
}

// Through a register, or through a thunk outside this code.
bool SchedulerCode::is_indirect_call(uint64_t return_address) const {
  const uint64_t offset = return_address - text_.start;
  if (offset < kBranchBytes || offset > bytes_.size()) return false;
  if (bytes_[offset - 2] == 0xff && (bytes_[offset - 1] & 0xf8) == 0xd0) return true;
  const uint64_t target = branch_target(return_address - kBranchBytes, kCall);
  return target != 0 && function_at(target + 1) == nullptr;
}

const SchedulerCode::Function* SchedulerCode::follow(const dwell_kernel_stack_sample& sample,
                                                     size_t at, const Function* callee,
                                                     std::vector<uint64_t>& frames) const {
  const size_t words = std::min<size_t>(sample.words, DWELL_SIGNATURE_WORDS);
  for (; at < words && callee != nullptr; ++at) {
    const uint64_t word = sample.stack[at];
    if (word == sample.ips[0] || frames.size() == kFramesMax) return callee;
    if (!text_.contains(word) || !calls(word, *callee)) continue;
    callee = function_at(word - 1);
    if (!is_switch(word)) frames.push_back(word);
  }
  return nullptr;
}

std::vector<uint64_t> SchedulerCode::frames_of(const dwell_kernel_stack_sample& sample,
                                               std::span<const uint8_t> before_walked) const {
  std::vector<uint64_t> frames;
  if (bytes_.empty() || sample.count == 0 || sample.words <= DWELL_SAVED_FRAME_WORDS) return frames;
  const size_t first = DWELL_SAVED_FRAME_WORDS + 1;
  const Function* outermost =
      follow(sample, first, function_at(sample.stack[DWELL_SAVED_FRAME_WORDS] - 1), frames);
  if (outermost == nullptr) return {};  // these words are not what they seem
  if (before_walked.empty() || enters(before_walked, sample.ips[0], *outermost)) return frames;
  // Something lies between: a frame that was entered by an indirect call. It must lead to the
  // walked address.
  const size_t known = frames.size();
  const size_t words = std::min<size_t>(sample.words, DWELL_SIGNATURE_WORDS);
  size_t at = first;
  if (known > 0)
    at = static_cast<size_t>(std::find(sample.stack + first, sample.stack + words, frames.back()) -
                             sample.stack) +
         1;
  for (; at < words && sample.stack[at] != sample.ips[0]; ++at) {
    const uint64_t word = sample.stack[at];
    if (!text_.contains(word) || !is_indirect_call(word)) continue;
    frames.push_back(word);
    const Function* next = follow(sample, at + 1, function_at(word - 1), frames);
    if (next != nullptr && enters(before_walked, sample.ips[0], *next)) return frames;
    frames.resize(known);
  }
  return frames;
}

SchedulerCode find_scheduler_code() {
  const auto kallsyms = read_file("/proc/kallsyms", size_t{256} << 20);
  if (!kallsyms) return {};
  SchedulerText text;
  for_each_symbol(*kallsyms, [&](const Symbol& symbol) {
    if (symbol.name == "__sched_text_start") text.start = symbol.address;
    if (symbol.name == "__sched_text_end") text.end = symbol.address;
  });
  if (text.start >= text.end) return {};
  std::vector<SchedulerCode::Function> functions;
  for_each_symbol(*kallsyms, [&](const Symbol& symbol) {
    if (symbol.address >= text.start && symbol.address < text.end &&
        !symbol.name.starts_with("__pfx_") && !symbol.name.starts_with("__sched_text_"))
      functions.push_back({symbol.address, std::string(symbol.name)});
  });
  std::ranges::sort(functions, {}, [](const auto& f) { return std::pair(f.start, f.name); });
  return {text, std::move(functions), {}};
}

}  // namespace dwell::probe
