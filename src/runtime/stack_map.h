// Stack trace map: a stack's id is its bucket. Two stacks in one bucket collide, as in the kernel.
// Programs put stacks in (bpf_get_stackid); only user space reads them.
#pragma once

#include <span>
#include <vector>

#include "runtime/map.h"
#include "runtime/spin_lock.h"

namespace dwell::runtime {

class StackMap final : public Map {
 public:
  explicit StackMap(MapDefinition definition);

  // The id, -EEXIST (the bucket holds another), -EFAULT (no frame beyond those skipped), -EINVAL.
  long store(std::span<const uint64_t> stack, uint64_t flags);

  int read(const void* key, void* value) override;  // padded with zeros
  int erase(const void* key) override;
  int next_key(const void* key, void* next) override;

 private:
  struct Bucket {
    uint64_t hash = 0;
    std::vector<uint64_t> frames;  // empty: free
  };

  SpinLock lock_;
  std::vector<Bucket> buckets_;
};

}  // namespace dwell::runtime
