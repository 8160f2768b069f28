#include "unwind/table.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "unwind/cfi_program.h"
#include "unwind/go_functions.h"

namespace dwell::unwind {
namespace {

constexpr uint64_t kPageBytes = uint64_t{1} << DWELL_UNWIND_PAGE_SHIFT;

uint64_t page_of(uint64_t address) { return address >> DWELL_UNWIND_PAGE_SHIFT; }

Rule rule_of_root() {
  Rule rule{};
  rule.cfa_kind = DWELL_CFA_ROOT;
  return rule;
}

// Takes rules for ascending addresses and lays out pages.
class Rows {
 public:
  Rows(Table& table, const TableLimits& limits) : table_(table), limits_(limits) {}

  // `rule` holds from `address` on. False if a limit is reached; then nothing may follow.
  bool append(uint64_t address, uint16_t rule) {
    if (!turn_to(page_of(address))) return false;
    if (rule == rule_) return true;
    auto& page = table_.pages.back();
    const dwell_unwind_row row = DWELL_UNWIND_ROW(address, rule);
    rule_ = rule;
    // The row that the page began with was in force for no byte.
    if (page.rows > 0 && table_.rows.back() >> 16 == row >> 16) {
      table_.rows.back() = row;
      return true;
    }
    if (page.rows == 0) begin_page(page, address);
    return add(page, row);
  }

  // After a limit was reached: what the last row says would hold too far.
  void close() {
    if (!table_.pages.empty() && table_.pages.back().rows > 0)
      table_.rows.back() = (table_.rows.back() & 0xffff0000) | RuleTable::kNoData;
  }

 private:
  bool add(dwell_unwind_page& page, dwell_unwind_row row) {
    if (table_.rows.size() >= limits_.rows_max) return false;
    table_.rows.push_back(row);
    ++page.rows;
    return true;
  }

  // Pages without unwind data have no rows; others begin with what was in force before.
  void begin_page(dwell_unwind_page& page, uint64_t address) {
    page.first_row = static_cast<uint32_t>(table_.rows.size());
    if (address % kPageBytes != 0) add(page, DWELL_UNWIND_ROW(0, RuleTable::kNoData));
  }

  bool turn_to(uint64_t number) {
    if (table_.pages.empty()) {
      table_.first_page = number;
      table_.pages.push_back({});
    }
    if (number - table_.first_page >= limits_.pages_max) return false;
    while (table_.first_page + table_.pages.size() <= number) {
      table_.pages.push_back({});
      auto& page = table_.pages.back();
      if (rule_ == RuleTable::kNoData) continue;
      page.first_row = static_cast<uint32_t>(table_.rows.size());
      if (!add(page, DWELL_UNWIND_ROW(0, rule_))) return false;
    }
    return true;
  }

  Table& table_;
  const TableLimits& limits_;
  uint16_t rule_ = RuleTable::kNoData;
};

class Compiler {
 public:
  Compiler(const CfiSource& source, const TableLimits& limits, Table& table)
      : source_(source), code_(source.code), table_(table), rows_(table, limits) {
    std::ranges::sort(code_, {}, &CodeRange::start);
  }

  void run();

 private:
  bool trim_to_code(Fde& fde) const;
  std::vector<Fde> select();
  bool add(const Fde& fde, uint64_t from);
  bool add_cfi(const Fde& fde, uint64_t from);
  bool add_go_function(const Fde& fde, uint64_t from);
  bool add_frame_sizes(const GoFunction& function, const Fde& fde, uint64_t from);
  void take_go_functions();
  bool add_all(const std::vector<Fde>& fdes);
  const FrameState* initial_state(uint32_t cie);
  void count(Fault fault) { ++table_.faults[static_cast<size_t>(fault)]; }

  const CfiSource& source_;
  std::vector<CodeRange> code_;  // sorted
  Table& table_;
  Rows rows_;
  RuleTable rules_;
  CfiEntries entries_;
  std::vector<GoFunction> go_functions_;
  size_t go_budget_ = GoFunctions::kDecodedBytesMax;
  std::vector<std::optional<FrameState>> initial_;  // by CIE, once it was run
  std::vector<bool> tried_;
};

// Cuts off what lies outside its segment; false if nothing is left.
bool Compiler::trim_to_code(Fde& fde) const {
  if (fde.start == 0) return false;  // where linkers put the functions that they drop
  const auto behind = std::ranges::upper_bound(code_, fde.start, {}, &CodeRange::start);
  if (behind == code_.begin()) return false;
  const CodeRange& range = *(behind - 1);
  fde.end = std::min(fde.end, range.end);
  return fde.start < range.end;
}

// In order of address: an entry ends where one begins that wins over it.
std::vector<Fde> Compiler::select() {
  std::vector<Fde> all;
  for (Fde& fde : entries_.fdes) {
    if (trim_to_code(fde))
      all.push_back(fde);
    else
      count(Fault::kOutsideCode);
  }
  std::ranges::stable_sort(all, [](const Fde& a, const Fde& b) {
    return std::tuple(a.start, a.origin) < std::tuple(b.start, b.origin);
  });
  uint64_t next_eh_frame = UINT64_MAX, next_go_function = UINT64_MAX;
  for (auto fde = all.rbegin(); fde != all.rend(); ++fde) {
    if (fde->origin != Origin::kEhFrame) fde->end = std::min(fde->end, next_eh_frame);
    if (fde->origin == Origin::kDebugFrame) fde->end = std::min(fde->end, next_go_function);
    if (fde->origin == Origin::kEhFrame) next_eh_frame = fde->start;
    if (fde->origin == Origin::kGoFunctions) next_go_function = fde->start;
  }
  return all;
}

const FrameState* Compiler::initial_state(uint32_t cie) {
  if (!tried_[cie]) {
    tried_[cie] = true;
    FrameState state;
    if (CfiProgram::run_cie(entries_.cies[cie], state)) initial_[cie] = state;
  }
  return initial_[cie] ? &*initial_[cie] : nullptr;
}

// Rows for the part of `fde` that begins at `from`. False if a limit was reached.
bool Compiler::add(const Fde& fde, uint64_t from) {
  if (fde.origin == Origin::kGoFunctions) return add_go_function(fde, from);
  return add_cfi(fde, from);
}

bool Compiler::add_cfi(const Fde& fde, uint64_t from) {
  const Cie& cie = entries_.cies[fde.cie];
  const FrameState* initial = initial_state(fde.cie);
  if (initial == nullptr) {
    count(Fault::kInstruction);
    return rows_.append(from, RuleTable::kNoData);  // or its neighbour's rule would go on
  }
  bool fits = true;
  const auto on_range = [&](uint64_t start, uint64_t end, const FrameState& state) {
    if (end <= from || !fits) return;
    fits =
        rows_.append(std::max(start, from), rules_.number_of(to_rule(state, cie.is_signal_frame)));
  };
  uint64_t reached = fde.start;
  if (!CfiProgram::run_fde(cie, *initial, fde, on_range, reached)) {
    count(Fault::kInstruction);
    const Rule unsupported = to_rule({}, false);
    if (fits && reached < fde.end)
      fits = rows_.append(std::max(reached, from), rules_.number_of(unsupported));
  }
  if (!fits) return false;
  ++table_.entries;
  table_.covered_bytes += fde.end - from;
  return true;
}

bool Compiler::add_go_function(const Fde& fde, uint64_t from) {
  const GoFunction& function = go_functions_[fde.cie];
  bool fits = true;
  if (function.caller == GoFunction::Caller::kNone)
    fits = rows_.append(from, rules_.number_of(rule_of_root()));
  else if (function.caller == GoFunction::Caller::kByPointer)
    return rows_.append(from, RuleTable::kNoData);
  else
    fits = add_frame_sizes(function, fde, from);
  if (!fits) return false;
  ++table_.entries;
  table_.covered_bytes += fde.end - from;
  return true;
}

bool Compiler::add_frame_sizes(const GoFunction& function, const Fde& fde, uint64_t from) {
  bool fits = true;
  uint64_t reached = from;
  const auto on_range = [&](uint64_t start, uint64_t end, const Rule& rule) {
    if (end <= from || start >= fde.end || !fits) return;
    fits = rows_.append(std::max(start, from), rules_.number_of(rule));
    reached = std::min(end, fde.end);
  };
  if (!GoFunctions::tell(function, go_budget_, on_range)) count(Fault::kInstruction);
  return fits && (reached == fde.end || rows_.append(reached, RuleTable::kNoData));
}

void Compiler::take_go_functions() {
  go_functions_ = GoFunctions::read(source_.go_functions, source_.go_text_start);
  for (const GoFunction& function : go_functions_) {
    const auto number = static_cast<uint32_t>(&function - go_functions_.data());
    entries_.fdes.push_back(
        {function.start, function.end, number, Origin::kGoFunctions, SectionBytes{}});
  }
}

// False if a limit was reached.
bool Compiler::add_all(const std::vector<Fde>& fdes) {
  uint64_t covered = 0;  // up to here
  for (const Fde& fde : fdes) {
    const uint64_t from = std::max(fde.start, covered);
    if (from >= fde.end) {
      count(Fault::kOverlap);
      continue;
    }
    if (covered > 0 && from > covered && !rows_.append(covered, RuleTable::kNoData)) return false;
    if (!add(fde, from)) return false;
    covered = fde.end;
  }
  return covered == 0 || rows_.append(covered, RuleTable::kNoData);
}

void Compiler::run() {
  using Kind = CfiSection::Kind;
  CfiSection(source_.eh_frame, Kind::kEhFrame, entries_, table_.faults).read();
  CfiSection(source_.debug_frame, Kind::kDebugFrame, entries_, table_.faults).read();
  take_go_functions();
  initial_.resize(entries_.cies.size());
  tried_.resize(entries_.cies.size());
  if (!add_all(select())) {
    count(Fault::kTooMany);
    rows_.close();
  }
  table_.rules = rules_.rules();
}

}  // namespace

const Rule* Table::find(uint64_t address) const {
  const uint64_t number = page_of(address) - first_page;
  if (page_of(address) < first_page || number >= pages.size()) return nullptr;
  const dwell_unwind_page& page = pages[number];
  const auto begin = rows.begin() + page.first_row, end = begin + page.rows;
  const auto behind = std::upper_bound(begin, end, DWELL_UNWIND_ROW(address, 0xffff));
  if (behind == begin) return nullptr;
  const Rule& rule = rules[*(behind - 1) & 0xffff];
  return rule.cfa_kind == DWELL_CFA_NONE ? nullptr : &rule;
}

Table compile(const CfiSource& source, const TableLimits& limits) {
  Table table;
  Compiler(source, limits, table).run();
  return table;
}

}  // namespace dwell::unwind
