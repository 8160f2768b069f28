#include "profile/profile_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <tuple>

namespace dwell {
namespace {

uint32_t size_of(const auto& table) { return static_cast<uint32_t>(table.size()); }

auto key_of(const Row& row) {
  return std::tuple(row.thread, row.stack, row.cause, row.wait_class, row.state, row.censored_left,
                    row.censored_right, row.overflow);
}

auto key_of(const Frame& frame) {
  return std::tuple(frame.function, frame.symbol, frame.module, frame.address, frame.offset,
                    frame.how, frame.kind, frame.inlined, frame.line, frame.file);
}

// A total order, so that equal recordings give equal bytes.
bool tells_more(const Walk& walk, const Walk& than) {
  const auto rank = [](const Walk& w) {
    return std::tuple(w.end == WalkEnd::kNotWalked,
                      std::popcount(w.pointer_steps[0]) + std::popcount(w.pointer_steps[1]), w.end,
                      w.pointer_steps);
  };
  return rank(walk) < rank(than);
}

void merge(Row& into, const Row& row) {
  into.count += row.count;
  into.blocked_ns += row.blocked_ns;
  into.run_queue_ns += row.run_queue_ns;
  into.max_ns = std::max(into.max_ns, row.max_ns);
  for (int i = 0; i < kHistogramBuckets; ++i) {
    const uint64_t sum = uint64_t{into.histogram[i]} + row.histogram[i];
    into.histogram[i] =
        static_cast<uint32_t>(std::min<uint64_t>(sum, std::numeric_limits<uint32_t>::max()));
  }
}

}  // namespace

ProfileBuilder::ProfileBuilder() : seed_(std::random_device{}()) {
  profile_.strings.clear();
  string("");  // StringId 0
}

uint64_t ProfileBuilder::hash(const void* data, size_t bytes) const {
  return XXH3_64bits_withSeed(data, bytes, seed_);
}

void ProfileBuilder::reserve(size_t rows, size_t stacks) {
  profile_.rows.reserve(rows);
  profile_.stacks.reserve(stacks);
  rows_.reserve(rows);
  stacks_.reserve(stacks);
}

StringId ProfileBuilder::string(std::string_view text) {
  const uint32_t next = size_of(profile_.strings);
  const uint32_t id =
      strings_.find_or_insert(hash(text.data(), text.size()), next,
                              [&](uint32_t i) { return profile_.strings[i] == text; });
  if (id == next) profile_.strings.emplace_back(text);
  return id;
}

uint32_t ProfileBuilder::module(std::string_view path, std::string_view build_id, ModuleKind kind) {
  const Module module{string(path), string(build_id), kind};
  const uint32_t words[] = {module.path, module.build_id, static_cast<uint32_t>(kind)};
  const uint32_t next = size_of(profile_.modules);
  const uint32_t index = modules_.find_or_insert(hash(words, sizeof words), next, [&](uint32_t i) {
    const Module& other = profile_.modules[i];
    return other.path == module.path && other.build_id == module.build_id && other.kind == kind;
  });
  if (index == next) profile_.modules.push_back(module);
  return index;
}

uint32_t ProfileBuilder::frame(const Frame& frame) {
  const uint64_t words[] = {uint64_t{frame.function} << 32 | frame.symbol,
                            uint64_t{frame.module} << 32 | static_cast<uint64_t>(frame.how) << 16 |
                                static_cast<uint64_t>(frame.kind) << 8 | uint64_t{frame.inlined},
                            uint64_t{frame.file} << 32 | frame.line, frame.address, frame.offset};
  const uint32_t next = size_of(profile_.frames);
  const uint32_t index = frames_.find_or_insert(hash(words, sizeof words), next, [&](uint32_t i) {
    return key_of(profile_.frames[i]) == key_of(frame);
  });
  if (index == next) profile_.frames.push_back(frame);
  return index;
}

uint32_t ProfileBuilder::placeholder(std::string_view text) {
  return frame({.function = string(text),
                .module = module("", "", ModuleKind::kUnknown),
                .how = Resolution::kPlaceholder,
                .kind = FrameKind::kPlaceholder});
}

uint32_t ProfileBuilder::stack(std::span<const uint32_t> frames, bool user_complete, bool truncated,
                               const Walk& walk) {
  const uint32_t next = size_of(profile_.stacks);
  const uint64_t content = hash(frames.data(), frames.size_bytes());
  const uint32_t index = stacks_.find_or_insert(content, next, [&](uint32_t i) {
    const Stack& other = profile_.stacks[i];
    return other.user_complete == user_complete && other.truncated == truncated &&
           std::ranges::equal(other.frames, frames);
  });
  if (index == next)
    profile_.stacks.push_back({{frames.begin(), frames.end()}, user_complete, truncated, walk});
  else if (tells_more(walk, profile_.stacks[index].walk))
    profile_.stacks[index].walk = walk;
  return index;
}

uint32_t ProfileBuilder::process(const Process& process) {
  const StringId name_if_unreal = process.pid == 0 ? process.comm : 0;
  const uint64_t words[] = {uint64_t{process.pid} << 32 | process.exec_id,
                            process.start_boottime_ns, name_if_unreal};
  const uint32_t next = size_of(profile_.processes);
  const uint32_t index =
      processes_.find_or_insert(hash(words, sizeof words), next, [&](uint32_t i) {
        const Process& other = profile_.processes[i];
        return other.pid == process.pid && other.exec_id == process.exec_id &&
               other.start_boottime_ns == process.start_boottime_ns &&
               (process.pid != 0 || other.comm == process.comm);
      });
  if (index == next) {
    profile_.processes.push_back(process);
    return index;
  }
  Process& known = profile_.processes[index];
  if (known.parent_pid == 0) known.parent_pid = process.parent_pid;
  if (known.comm == 0) known.comm = process.comm;
  if (known.executable == 0) known.executable = process.executable;
  if (known.command_line == 0) known.command_line = process.command_line;
  return index;
}

uint32_t ProfileBuilder::thread(const Thread& thread) {
  profile_.threads.push_back(thread);
  return size_of(profile_.threads) - 1;
}

void ProfileBuilder::add(const Row& row) {
  const uint32_t flags = static_cast<uint32_t>(row.wait_class) << 8 |
                         uint32_t{row.censored_left} << 2 | uint32_t{row.censored_right} << 1 |
                         uint32_t{row.overflow};
  const uint32_t words[] = {row.thread, row.stack, row.cause, row.state, flags};
  const uint32_t next = size_of(profile_.rows);
  const uint32_t index = rows_.find_or_insert(hash(words, sizeof words), next, [&](uint32_t i) {
    return key_of(profile_.rows[i]) == key_of(row);
  });
  if (index == next) {
    profile_.rows.push_back(row);
  } else {
    merge(profile_.rows[index], row);
  }
}

Profile ProfileBuilder::finish() && {
  sort_rows(profile_.rows);
  Profile finished = std::move(profile_);
  *this = ProfileBuilder();
  return finished;
}

void sort_rows(std::vector<Row>& rows) {
  struct Place {
    uint64_t total_ns;
    uint32_t row;
  };
  std::vector<Place> order;  // sorting these moves 16 bytes at a time, not a whole row
  order.reserve(rows.size());
  for (uint32_t i = 0; i < rows.size(); ++i) order.push_back({rows[i].total_ns(), i});
  std::ranges::sort(order, [&](const Place& a, const Place& b) {
    if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    return key_of(rows[a.row]) < key_of(rows[b.row]);
  });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const Place& place : order) sorted.push_back(rows[place.row]);
  rows = std::move(sorted);
}

}  // namespace dwell
