// A part of a profile as a profile of its own: the rows of some processes, threads, classes or
// causes, and only the tables they need. Called by src/cli/report.cc; pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace dwell {

// Each list: any of these; empty: all. The lists together: every one of them.
struct Selection {
  std::vector<std::string> processes{};  // name or pid
  std::vector<std::string> threads{};    // name or tid
  std::vector<std::string> classes{};    // wait_class_name()
  std::vector<std::string> causes{};     // as in the rows

  bool empty() const {
    return processes.empty() && threads.empty() && classes.empty() && causes.empty();
  }
};

// Threads that are not selected go, with their books. Rows left out for their class or cause add
// to filtered_ns of their thread, whose books stay whole. Error::kUsage if a name matches nothing:
// a typing error must not look like an idle program.
Result<Profile> select(const Profile& profile, const Selection& selection);

}  // namespace dwell
