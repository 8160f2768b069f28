#include "runtime/stack_map.h"

#include <linux/bpf.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace dwell::runtime {
namespace {

uint32_t id_of(const void* key) {
  uint32_t id;
  std::memcpy(&id, key, sizeof id);
  return id;
}

}  // namespace

StackMap::StackMap(MapDefinition definition)
    : Map(std::move(definition)), buckets_(std::bit_ceil(this->definition().max_entries)) {}

long StackMap::store(std::span<const uint64_t> stack, uint64_t flags) {
  constexpr uint64_t kKnown =
      BPF_F_SKIP_FIELD_MASK | BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP | BPF_F_REUSE_STACKID;
  if ((flags & ~kKnown) != 0) return -EINVAL;
  const uint64_t skip = flags & BPF_F_SKIP_FIELD_MASK;
  if (stack.size() <= skip) return -EFAULT;
  stack = stack.subspan(skip);
  stack = stack.first(std::min<size_t>(stack.size(), definition().value_bytes / sizeof(uint64_t)));
  uint64_t hash = stack.size();
  for (const uint64_t frame : stack) {
    hash = (hash ^ frame) * 0x9ddfea08eb382d69ull;
    hash ^= hash >> 43;
  }
  const std::lock_guard lock(lock_);
  const uint64_t id = hash & (buckets_.size() - 1);
  Bucket& bucket = buckets_[id];
  const bool taken = !bucket.frames.empty();
  if (taken && bucket.hash == hash &&
      ((flags & BPF_F_FAST_STACK_CMP) != 0 || std::ranges::equal(bucket.frames, stack)))
    return static_cast<long>(id);
  if (taken && (flags & BPF_F_REUSE_STACKID) == 0) return -EEXIST;
  bucket.hash = hash;
  bucket.frames.assign(stack.begin(), stack.end());
  return static_cast<long>(id);
}

int StackMap::read(const void* key, void* value) {
  const uint32_t id = id_of(key);
  const std::lock_guard lock(lock_);
  if (id >= buckets_.size() || buckets_[id].frames.empty()) return -ENOENT;
  std::memset(value, 0, definition().value_bytes);
  const std::vector<uint64_t>& frames = buckets_[id].frames;
  std::memcpy(value, frames.data(), frames.size() * sizeof(uint64_t));
  return 0;
}

int StackMap::erase(const void* key) {
  const uint32_t id = id_of(key);
  const std::lock_guard lock(lock_);
  if (id >= buckets_.size()) return -E2BIG;
  if (buckets_[id].frames.empty()) return -ENOENT;
  buckets_[id].frames.clear();
  return 0;
}

int StackMap::next_key(const void* key, void* next) {
  const std::lock_guard lock(lock_);
  uint64_t id = key == nullptr || id_of(key) >= buckets_.size() ? 0 : uint64_t{id_of(key)} + 1;
  while (id < buckets_.size() && buckets_[id].frames.empty()) ++id;
  if (id >= buckets_.size()) return -ENOENT;
  const auto found = static_cast<uint32_t>(id);
  std::memcpy(next, &found, sizeof found);
  return 0;
}

}  // namespace dwell::runtime
