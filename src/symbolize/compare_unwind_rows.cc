// Compares compiled unwind rows with libdw, which reads the same unwind data by code of its own: at
// every address where either changes its mind, and one byte before.
//
//   compare_unwind_rows [--sample N] [--verbose] PATH...   files, or folders to search
//
// Prints the share of code bytes with a rule that the walker can follow, and every disagreement.
// Exit 0: all agree. --sample N looks at every Nth file only.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "symbolize/unwind_data.h"

namespace {

using namespace dwell;
using unwind::Rule;

struct Totals {
  uint64_t files = 0, rows = 0, pages = 0, rules_most = 0, entries = 0, addresses = 0;
  uint64_t code_bytes = 0, described_bytes = 0, followed_bytes = 0;
  uint64_t disagreements = 0;
  double compile_seconds = 0;
  std::map<std::string, uint64_t> kinds;  // of disagreement
  unwind::FaultCounts faults = {};
};

// What libdw says at an address, in the terms of a rule; operations as libdw decodes them.
class Expected {
 public:
  Expected(Dwarf_CFI* main, uint64_t main_bias, Dwarf_CFI* other)
      : main_(main), main_bias_(main_bias), other_(other) {}

  // Null if libdw has no unwind data there.
  bool at(uint64_t address, Rule& rule, uint64_t& end) {
    Dwarf_Frame* frame = nullptr;
    const bool is_main = main_ && dwarf_cfi_addrframe(main_, address - main_bias_, &frame) == 0;
    if (!is_main && (!other_ || dwarf_cfi_addrframe(other_, address, &frame) != 0)) return false;
    const std::unique_ptr<Dwarf_Frame, void (*)(void*)> owner(frame, free);
    Dwarf_Addr from, to;
    bool is_signal = false;
    return_register_ = dwarf_frame_info(frame, &from, &to, &is_signal);
    end = to + (is_main ? main_bias_ : 0);
    rule = rule_of(frame, is_signal);
    return true;
  }

 private:
  static Rule only(uint8_t kind) {
    Rule rule = {};
    rule.cfa_kind = kind;
    rule.return_register = DWELL_RETURN_AT_CFA;
    return rule;
  }

  Rule rule_of(Dwarf_Frame* frame, bool is_signal) const {
    Dwarf_Op memory[3], *ops = nullptr;
    size_t count = 0;
    const int got = dwarf_frame_register(frame, return_register_, memory, &ops, &count);
    if (got == 0 && count == 0 && ops == memory) return only(DWELL_CFA_ROOT);  // undefined
    Rule rule = {};
    const bool return_found = got == 0 && set_return(ops, count, rule);
    Dwarf_Op* cfa = nullptr;
    size_t cfa_count = 0;
    if (dwarf_frame_cfa(frame, &cfa, &cfa_count) != 0 || !set_cfa(cfa, cfa_count, rule))
      return only(DWELL_CFA_UNSUPPORTED);
    if (is_signal && rule.cfa_kind == DWELL_CFA_MEMORY && rule.cfa_register == 7 &&
        rule.cfa_offset == 160)
      return only(DWELL_CFA_SIGNAL);
    if (!return_found) return only(DWELL_CFA_UNSUPPORTED);
    rule.flags = is_signal ? DWELL_RULE_EXACT_IP : 0;
    set_saved(frame, DWELL_REGISTER_RBP, rule.frame_kind, rule.frame_offset);
    set_saved(frame, DWELL_REGISTER_RBX, rule.rbx_kind, rule.rbx_offset);
    return rule;
  }

  static bool set_return(const Dwarf_Op* ops, size_t count, Rule& rule) {
    rule.return_register = DWELL_RETURN_AT_CFA;
    if (count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst)
      return static_cast<int64_t>(ops[1].number) == -8;
    if (count == 1 && ops[0].atom == DW_OP_regx && ops[0].number < 16) {
      rule.return_register = static_cast<uint8_t>(ops[0].number);
      return true;
    }
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom < DW_OP_reg16) {
      rule.return_register = static_cast<uint8_t>(ops[0].atom - DW_OP_reg0);
      return true;
    }
    return false;
  }

  // DW_OP_bregN and DW_OP_bregx as register and offset.
  static bool based(const Dwarf_Op& op, uint64_t& number, int64_t& offset) {
    if (op.atom == DW_OP_bregx) {
      number = op.number;
      offset = static_cast<int64_t>(op.number2);
      return true;
    }
    if (op.atom < DW_OP_breg0 || op.atom > DW_OP_breg31) return false;
    number = op.atom - DW_OP_breg0;
    offset = static_cast<int64_t>(op.number);
    return true;
  }

  static bool set_cfa(const Dwarf_Op* ops, size_t count, Rule& rule) {
    uint64_t number;
    int64_t offset;
    if (count == 0 || !based(ops[0], number, offset)) return false;
    if (number > 15 || offset != static_cast<int32_t>(offset)) return false;
    rule.cfa_register = static_cast<uint8_t>(number);
    rule.cfa_offset = static_cast<int32_t>(offset);
    rule.cfa_kind = DWELL_CFA_REGISTER;
    if (count == 1) return true;
    if (ops[1].atom == DW_OP_breg16 && count == 9 && ops[2].atom == DW_OP_lit15 &&
        ops[3].atom == DW_OP_and && ops[5].atom == DW_OP_ge && ops[6].atom == DW_OP_lit3 &&
        ops[7].atom == DW_OP_shl && ops[8].atom == DW_OP_plus && number == 7 && offset == 8 &&
        ops[4].atom >= DW_OP_lit0 && ops[4].atom <= DW_OP_lit15) {
      rule.cfa_kind = DWELL_CFA_PLT;
      rule.cfa_add = static_cast<int16_t>(ops[4].atom - DW_OP_lit0);
      return true;
    }
    if (ops[1].atom != DW_OP_deref) return false;
    rule.cfa_kind = DWELL_CFA_MEMORY;
    if (count == 2) return true;
    if (count != 3 || ops[2].atom != DW_OP_plus_uconst || ops[2].number > INT16_MAX) return false;
    rule.cfa_add = static_cast<int16_t>(ops[2].number);
    return true;
  }

  static void set_saved(Dwarf_Frame* frame, int number, uint8_t& kind, int16_t& offset) {
    Dwarf_Op memory[3], *ops = nullptr;
    size_t count = 0;
    kind = DWELL_SAVED_LOST;
    if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0) return;
    if (count == 0) {
      kind = ops == nullptr ? DWELL_SAVED_SAME : DWELL_SAVED_LOST;
      return;
    }
    uint64_t base;
    int64_t value = 0;
    if (ops[0].atom != DW_OP_call_frame_cfa || count > 2) return;
    if (count == 1 || ops[1].atom == DW_OP_plus_uconst) {
      value = count == 2 ? static_cast<int64_t>(ops[1].number) : 0;
      kind = DWELL_SAVED_AT_CFA;
    } else if (based(ops[1], base, value) && base == DWELL_REGISTER_RBP) {
      kind = DWELL_SAVED_AT_FRAME;  // an expression, which begins with the CFA on its stack
    }
    offset = static_cast<int16_t>(value);
    if (offset != value) kind = DWELL_SAVED_LOST;
    if (kind == DWELL_SAVED_LOST) offset = 0;
  }

  Dwarf_CFI* main_;
  uint64_t main_bias_;
  Dwarf_CFI* other_;
  int return_register_ = 16;
};

bool can_follow(const Rule* rule) {
  return rule != nullptr && rule->cfa_kind != DWELL_CFA_UNSUPPORTED &&
         rule->cfa_kind != DWELL_CFA_RULES_FULL;
}

std::string text(const Rule* rule) {
  if (rule == nullptr) return "none";
  return fmt::format("cfa {}:{}{:+}{:+} ra {} bp {}:{} bx {}:{} flags {}", rule->cfa_kind,
                     rule->cfa_register, rule->cfa_offset, rule->cfa_add, rule->return_register,
                     rule->frame_kind, rule->frame_offset, rule->rbx_kind, rule->rbx_offset,
                     rule->flags);
}

class Comparison {
 public:
  Comparison(bool verbose, Totals& totals) : verbose_(verbose), totals_(totals) {}
  void compare(const std::string& path);

 private:
  void measure(const unwind::Table& table, const std::vector<unwind::CodeRange>& code);
  void compare_at(uint64_t address, const unwind::Table& table, Expected& expected);
  void disagree(uint64_t address, const Rule* ours, const Rule* theirs);

  bool verbose_;
  Totals& totals_;
  std::string path_;
};

void Comparison::disagree(uint64_t address, const Rule* ours, const Rule* theirs) {
  ++totals_.disagreements;
  const std::string kind = fmt::format("{} instead of {}", ours ? int{ours->cfa_kind} : -1,
                                       theirs ? int{theirs->cfa_kind} : -1);
  if (++totals_.kinds[path_ + ": " + kind] <= 3 || verbose_)
    fmt::print("{} {:#x}: rows say {}, libdw says {}\n", path_, address, text(ours), text(theirs));
}

void Comparison::compare_at(uint64_t address, const unwind::Table& table, Expected& expected) {
  ++totals_.addresses;
  Rule theirs;
  uint64_t end;
  const bool known = expected.at(address, theirs, end);
  const Rule* ours = table.find(address);
  if (known != (ours != nullptr)) return disagree(address, ours, known ? &theirs : nullptr);
  if (!known) return;
  // libdw 0.188 lacks rbx among the registers that a callee preserves unless it says otherwise.
  if (theirs.rbx_kind == DWELL_SAVED_LOST && ours->rbx_kind == DWELL_SAVED_SAME)
    theirs.rbx_kind = DWELL_SAVED_SAME;
  if (!unwind::equal(*ours, theirs)) disagree(address, ours, &theirs);
}

// The bytes between two rows count for the rule of the first.
void Comparison::measure(const unwind::Table& table, const std::vector<unwind::CodeRange>&) {
  for (size_t p = 0; p < table.pages.size(); ++p) {
    const auto& page = table.pages[p];
    for (uint32_t i = 0; i < page.rows; ++i) {
      const uint64_t row = table.rows[page.first_row + i];
      const uint64_t next =
          i + 1 < page.rows ? table.rows[page.first_row + i + 1] >> 16 : uint64_t{1} << 16;
      const Rule& rule = table.rules[row & 0xffff];
      if (rule.cfa_kind == DWELL_CFA_NONE) continue;
      totals_.described_bytes += next - (row >> 16);
      if (can_follow(&rule)) totals_.followed_bytes += next - (row >> 16);
    }
  }
}

void Comparison::compare(const std::string& path) {
  path_ = path;
  const auto file = open_for_reading(path);
  if (!file) return;
  const auto bytes = symbolize::FileBytes::of_file(file->get(), path);
  if (!bytes) return;
  const auto began = std::chrono::steady_clock::now();
  auto data = symbolize::read_unwind_data(*bytes);
  if (!data || data->code.empty()) return;
  data->go_functions.clear();  // of which libdw knows nothing
  const unwind::Table table = unwind::compile(data->source());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  totals_.compile_seconds += took.count();
  if (verbose_)
    fmt::print("{}: {} rows, {} rules, {:.1f} ms\n", path, table.rows.size(), table.rules.size(),
               took.count() * 1e3);
  ++totals_.files;
  totals_.rows += table.rows.size();
  totals_.pages += table.pages.size();
  totals_.entries += table.entries;
  totals_.rules_most = std::max<uint64_t>(totals_.rules_most, table.rules.size());
  for (size_t i = 0; i < table.faults.size(); ++i) totals_.faults[i] += table.faults[i];
  for (const auto& range : data->code) totals_.code_bytes += range.end - range.start;
  measure(table, data->code);

  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(file->get(), ELF_C_READ_MMAP, nullptr);
  Dwarf* dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  Dwarf_CFI* main = data->eh_frame.empty() ? nullptr : dwarf_getcfi_elf(elf);
  Dwarf_CFI* other = dwarf && !data->debug_frame.empty() ? dwarf_getcfi(dwarf) : nullptr;
  Expected expected(main, 0, other);
  for (size_t p = 0; p < table.pages.size(); ++p) {
    const uint64_t page_start = (table.first_page + p) << DWELL_UNWIND_PAGE_SHIFT;
    for (uint32_t i = 0; i < table.pages[p].rows; ++i) {
      const uint64_t address = page_start + (table.rows[table.pages[p].first_row + i] >> 16);
      compare_at(address, table, expected);
      if (address > 0) compare_at(address - 1, table, expected);
    }
  }
  if (dwarf) dwarf_end(dwarf);
  if (main) dwarf_cfi_end(main);
  elf_end(elf);
}

// Regular ELF files, each once, in order of their names.
std::vector<std::string> find_files(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::set<std::string> found;
  const auto consider = [&](const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(fs::symlink_status(path, ignored))) return;
    const auto file = open_for_reading(path.string());
    char magic[4] = {};
    if (file && pread(file->get(), magic, 4, 0) == 4 && std::string_view(magic, 4) == "\177ELF")
      found.insert(path.string());
  };
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!fs::is_directory(path))
      consider(fs::canonical(path, failed));
    else
      for (auto at = fs::recursive_directory_iterator(
               path, fs::directory_options::skip_permission_denied, failed);
           !failed && at != fs::recursive_directory_iterator(); at.increment(failed))
        consider(at->path());
  }
  return {found.begin(), found.end()};
}

void print(const Totals& totals) {
  fmt::print("{} files, {} FDEs, {} rows, {} pages, at most {} rules in a file\n", totals.files,
             totals.entries, totals.rows, totals.pages, totals.rules_most);
  const auto share = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  fmt::print(
      "{} code bytes in segments, {:.2f} % with unwind data; of those {:.4f} % with a rule "
      "that can be followed\n",
      totals.code_bytes, share(totals.described_bytes, totals.code_bytes),
      share(totals.followed_bytes, totals.described_bytes));
  for (size_t i = 0; i < totals.faults.size(); ++i)
    if (totals.faults[i] > 0)
      fmt::print("  {} {}\n", totals.faults[i], unwind::describe(static_cast<unwind::Fault>(i)));
  fmt::print("compiled in {:.3f} s\n", totals.compile_seconds);
  for (const auto& [kind, count] : totals.kinds) fmt::print("  {} times {}\n", count, kind);
  fmt::print("{} addresses compared, {} disagreements\n", totals.addresses, totals.disagreements);
}

}  // namespace

int main(int argc, char** argv) {
  size_t sample = 1;
  bool verbose = false;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--verbose")
      verbose = true;
    else if (argument == "--sample" && i + 1 < argc)
      sample = std::strtoul(argv[++i], nullptr, 10);
    else
      paths.push_back(argument);
  }
  Totals totals;
  Comparison comparison(verbose, totals);
  const auto files = find_files(paths);
  for (size_t i = 0; i < files.size(); i += std::max<size_t>(sample, 1))
    comparison.compare(files[i]);
  print(totals);
  return totals.files > 0 && totals.disagreements == 0 ? 0 : 1;
}
