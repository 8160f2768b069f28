#include "collect/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"

namespace dwell::collect {
namespace {

using testing::ElementsAre;

// A line of the table in docs/losses.md.
struct Entry {
  std::string kind, ns, meaning, remedy;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const size_t begin = cell.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    cells.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
  }
  return cells;
}

std::map<std::string, Entry> read_document() {
  std::map<std::string, Entry> entries;
  std::istringstream in(read_file(DWELL_LOSSES_DOCUMENT).value());
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| `")) continue;
    const auto cells = cells_of(line);
    EXPECT_EQ(cells.size(), 5u) << line;
    if (cells.size() != 5) continue;
    const std::string name = cells[0].substr(1, cells[0].size() - 2);
    EXPECT_TRUE(entries.try_emplace(name, Entry{cells[1], cells[2], cells[3], cells[4]}).second)
        << name << " stands there twice";
  }
  return entries;
}

TEST(Loss, GivesEveryCounterOneMeaning) {
  std::set<dwell_counter> counters;
  for (const CounterMeaning& meaning : counter_meanings()) {
    EXPECT_LT(meaning.counter, DWELL_COUNTER_COUNT);
    EXPECT_TRUE(counters.insert(meaning.counter).second) << meaning.name;
    EXPECT_FALSE(meaning.meaning.empty()) << meaning.name;
  }
  EXPECT_EQ(counters.size(), size_t{DWELL_COUNTER_COUNT});
}

// Scripts of users look for these words: add to them, never change one.
TEST(Loss, KeepsItsNames) {
  std::vector<std::string> names(DWELL_COUNTER_COUNT);
  for (const CounterMeaning& meaning : counter_meanings()) names[meaning.counter] = meaning.name;
  EXPECT_THAT(
      names,
      ElementsAre("switches", "rows", "state_full", "rows_full", "user_stacks_full",
                  "kernel_stacks_full", "stack_ring_full", "kernel_stack_fault", "stack_truncated",
                  "stack_incomplete", "missed_wakeup", "early_wakeup", "clock_anomaly",
                  "missed_switch_in", "missed_switch_out", "filtered", "thread_records",
                  "targets_full", "kernel_stack_hit", "kernel_stack_walk", "kernel_stack_verified",
                  "kernel_stack_mismatch", "timeline_intervals", "timeline_ring_full",
                  "timeline_limit", "frames_by_row", "frames_by_pointer", "stack_walk_repeated",
                  "stack_walk_verified", "stack_walk_mismatch", "python_stacks", "python_no_thread",
                  "python_cut", "python_unmatched", "python_names", "walk_root", "walk_root_zero",
                  "walk_root_pointer", "walk_truncated", "walk_no_tables", "walk_no_mapping",
                  "walk_bad_pointer", "walk_unsupported", "walk_rules_full", "walk_register_lost",
                  "walk_fault", "walk_bad_stack", "walk_bad_ip", "walk_compat"));
}

TEST(Loss, IsDocumentedByName) {
  const auto document = read_document();
  for (const CounterMeaning& meaning : counter_meanings()) {
    const auto found = document.find(std::string(meaning.name));
    ASSERT_NE(found, document.end()) << "docs/losses.md says nothing of " << meaning.name;
    EXPECT_EQ(found->second.kind, meaning.is_loss ? "loss" : "information") << meaning.name;
    EXPECT_EQ(found->second.ns, meaning.has_ns ? "yes" : "no") << meaning.name;
    EXPECT_FALSE(found->second.remedy.empty()) << meaning.name;
  }
  EXPECT_EQ(document.size(), counter_meanings().size()) << "and of nothing that there is not";
}

}  // namespace
}  // namespace dwell::collect
