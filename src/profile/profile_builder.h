// Builds a Profile: every table is interned by content, so that a name, frame or stack seen a
// million times is stored once, and rows with equal keys are merged.
//
// Invariant: every index handed out stays valid in the finished profile, and every index handed in
// must come from the same builder. Used by src/cli/record.cc when the window has closed, and by
// select.cc; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "profile/index_table.h"
#include "profile/profile.h"

namespace dwell {

class ProfileBuilder {
 public:
  ProfileBuilder();

  // Optional: sizes known beforehand save rehashing.
  void reserve(size_t rows, size_t stacks);

  StringId string(std::string_view text);
  uint32_t module(std::string_view path, std::string_view build_id, ModuleKind kind);
  uint32_t frame(const Frame& frame);
  // A frame that is no address: says in `text` what is missing, "[user stack lost: store full]".
  uint32_t placeholder(std::string_view text);
  // Leaf first, kernel frames before user frames. Equal stacks that were walked in different ways
  // are one; the walk by more unwind data stands.
  uint32_t stack(std::span<const uint32_t> frames, bool user_complete, bool truncated,
                 const Walk& walk = {});
  // Equal (pid, exec_id, start) is one process; a field that was 0 takes the later value. What
  // stands for no real process has pid 0 and is told apart by its name.
  uint32_t process(const Process& process);
  // Not interned: each call is one life of a thread, with its own books.
  uint32_t thread(const Thread& thread);
  // Adds to the row of the same thread, stack, cause, class, state and flags. A histogram bucket
  // saturates.
  void add(const Row& row);

  // The fields that are no tables: versions, host, window, losses, warnings, cost.
  Profile& facts() { return profile_; }
  const Profile& so_far() const { return profile_; }

  // Rows sorted by total, longest first. The builder is empty afterwards.
  Profile finish() &&;

 private:
  uint64_t hash(const void* data, size_t bytes) const;

  // Random: the names come from other processes, which must not be able to choose collisions.
  uint64_t seed_;
  Profile profile_;
  IndexTable strings_;
  IndexTable modules_;
  IndexTable frames_;
  IndexTable stacks_;
  IndexTable processes_;
  IndexTable rows_;
};

// Longest first; equal totals in a fixed order, so that equal recordings give equal bytes.
void sort_rows(std::vector<Row>& rows);

}  // namespace dwell
