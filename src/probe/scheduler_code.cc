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
constexpr uint64_t kBranchBytes = 5;
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

bool SchedulerCode::calls(uint64_t return_address, const Function& function) const {
  const uint64_t target = branch_target(return_address - kBranchBytes, kCall);
  if (target == 0) return false;
  if (target <= function.start && function.start - target <= kPaddingBytes) return true;
  const Function* between = function_at(target);
  return between != nullptr && between->start == target && jumps_to(*between, function.start);
}

std::vector<uint64_t> SchedulerCode::frames_of(const dwell_kernel_stack_sample& sample) const {
  std::vector<uint64_t> frames;
  if (bytes_.empty() || sample.count == 0) return frames;
  const std::span<const uint64_t> words(sample.stack,
                                        std::min<size_t>(sample.words, DWELL_SIGNATURE_WORDS));
  if (words.size() <= DWELL_SAVED_FRAME_WORDS) return frames;
  const Function* callee = function_at(words[DWELL_SAVED_FRAME_WORDS] - 1);
  for (size_t i = DWELL_SAVED_FRAME_WORDS + 1; i < words.size() && callee != nullptr; ++i) {
    if (words[i] == sample.ips[0] || frames.size() == kFramesMax) return frames;
    if (!text_.contains(words[i]) || !calls(words[i], *callee)) continue;
    callee = function_at(words[i] - 1);
    if (!is_switch(words[i])) frames.push_back(words[i]);
  }
  return {};  // the first walked frame was not met: these words are not what they seem
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
