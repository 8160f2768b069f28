#include "export/wait_groups.h"

#include <xxhash.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "export/words.h"
#include "profile/index_table.h"

namespace dwell {
namespace {

auto key_of(const WaitGroup& group) {
  return std::tuple(group.process, group.stack, group.cause, group.wait_class);
}

void add(WaitGroup& group, const Row& row, View view) {
  group.count += row.count;
  group.time_ns += time_of(row, view);
  group.total_ns += row.total_ns();
  group.run_queue_ns += row.run_queue_ns;
  group.max_ns = std::max(group.max_ns, row.max_ns);
}

// Threads that have a row in each group, each counted once.
void count_threads(std::vector<std::pair<uint32_t, uint32_t>>& group_and_thread,
                   std::vector<WaitGroup>& groups) {
  std::ranges::sort(group_and_thread);
  const auto repeated = std::ranges::unique(group_and_thread);
  group_and_thread.erase(repeated.begin(), repeated.end());
  for (const auto& [group, thread] : group_and_thread) ++groups[group].threads;
}

bool is_sleep_of_kernel_thread(const Profile& profile, const Row& row) {
  return profile.threads[row.thread].kernel_thread &&
         (row.wait_class == WaitClass::kInterruptible || row.wait_class == WaitClass::kIdleKthread);
}

// `key(row)` gives an empty group with the fields that rows are compared by.
template <typename Key>
std::vector<WaitGroup> group_rows(const Profile& profile, View view, Key key) {
  std::vector<WaitGroup> groups;
  std::vector<std::pair<uint32_t, uint32_t>> group_and_thread;
  group_and_thread.reserve(profile.rows.size());
  IndexTable index;
  for (const Row& row : profile.rows) {
    if (time_of(row, view) == 0) continue;
    const WaitGroup wanted = key(row);
    const uint32_t words[] = {wanted.process, wanted.stack, wanted.cause,
                              static_cast<uint32_t>(wanted.wait_class)};
    const auto next = static_cast<uint32_t>(groups.size());
    const uint32_t found =
        index.find_or_insert(XXH3_64bits(words, sizeof words), next,
                             [&](uint32_t i) { return key_of(groups[i]) == key_of(wanted); });
    if (found == next) groups.push_back(wanted);
    add(groups[found], row, view);
    group_and_thread.emplace_back(found, row.thread);
  }
  count_threads(group_and_thread, groups);
  std::ranges::sort(groups, [](const WaitGroup& a, const WaitGroup& b) {
    return std::tuple(a.waits_for_work, b.time_ns, key_of(a)) <
           std::tuple(b.waits_for_work, a.time_ns, key_of(b));
  });
  return groups;
}

}  // namespace

std::vector<WaitGroup> group_by_wait(const Profile& profile, View view) {
  return group_rows(profile, view, [&](const Row& row) {
    WaitGroup group;
    group.process = profile.threads[row.thread].process;
    group.stack = row.stack;
    group.cause = row.cause;
    group.wait_class = row.wait_class;
    group.waits_for_work = is_sleep_of_kernel_thread(profile, row);
    return group;
  });
}

std::vector<WaitGroup> group_by_cause(const Profile& profile, View view) {
  return group_rows(profile, view, [&](const Row& row) {
    WaitGroup group;
    group.cause = row.cause;
    group.wait_class = row.wait_class;
    group.waits_for_work = is_sleep_of_kernel_thread(profile, row);
    return group;
  });
}

}  // namespace dwell
