#include "runtime/hash_map.h"

#include <linux/bpf.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/frame.h"
#include "runtime/machine.h"

namespace dwell::runtime {

HashMap::HashMap(MapDefinition definition, Machine& machine, bool per_cpu)
    : Map(std::move(definition)),
      machine_(machine),
      per_cpu_(per_cpu),
      cpus_(per_cpu ? machine.cpu_count() : 1),
      value_stride_(round_up_8(this->definition().value_bytes)),
      buckets_(std::bit_ceil(std::max(this->definition().max_entries, kLockGroups))),
      store_(uint64_t{this->definition().max_entries} + machine.cpu_count() + 1,
             sizeof(Element) + round_up_8(this->definition().key_bytes) + value_stride_ * cpus_),
      busy_(machine.cpu_count()) {}

uint64_t HashMap::hash_of(const void* key) const {
  const auto* bytes = static_cast<const std::byte*>(key);
  uint64_t hash = 0x2545f4914f6cdd1d;
  for (size_t left = definition().key_bytes; left > 0;) {
    uint64_t word = 0;
    const size_t n = left < 8 ? left : 8;
    std::memcpy(&word, bytes, n);
    hash = (hash ^ word) * 0x9ddfea08eb382d69ull;
    hash ^= hash >> 43;
    bytes += n;
    left -= n;
  }
  return hash ^ (hash >> 29);
}

uint32_t HashMap::find(const void* key, uint64_t hash) {
  uint32_t at = bucket_of(hash).load(std::memory_order_relaxed);
  while (at != 0) {
    Element& e = element(at - 1);
    if (e.hash == hash && std::memcmp(e.key(), key, definition().key_bytes) == 0) return at;
    at = e.next;
  }
  return 0;
}

void* HashMap::lookup(Cpu& cpu, const void* key) {
  const uint64_t hash = hash_of(key);
  const std::lock_guard lock(lock_of(hash));
  const uint32_t at = find(key, hash);
  if (at == 0) return nullptr;
  return value_of(element(at - 1)) + (per_cpu_ ? value_stride_ * cpu.id : 0);
}

uint32_t HashMap::allocate() {
  const std::lock_guard lock(free_lock_);
  if (!free_.empty()) {
    const uint32_t index = free_.back();
    free_.pop_back();
    return index + 1;
  }
  return fresh_ < store_.count() ? ++fresh_ : 0;
}

void HashMap::release(uint32_t index) {
  const std::lock_guard lock(free_lock_);
  free_.push_back(index);
}

void HashMap::fill(Element& e, uint32_t cpu, const void* value, bool whole, bool fresh) {
  const size_t bytes = definition().value_bytes;
  std::byte* to = value_of(e);
  if (!per_cpu_) {
    std::memcpy(to, value, bytes);
  } else if (whole) {
    std::memcpy(to, value, value_stride_ * cpus_);
  } else {
    if (fresh) std::memset(to, 0, value_stride_ * cpus_);
    std::memcpy(to + value_stride_ * cpu, value, bytes);
  }
}

void HashMap::link(Element& e, uint32_t index, uint64_t hash) {
  __atomic_store_n(&e.hash, hash, __ATOMIC_RELAXED);
  e.live = 1;
  e.next = bucket_of(hash).load(std::memory_order_relaxed);
  bucket_of(hash).store(index + 1, std::memory_order_relaxed);
}

void HashMap::unlink(uint32_t index, uint64_t hash) {
  Element& e = element(index);
  e.live = 0;
  uint32_t at = bucket_of(hash).load(std::memory_order_relaxed);
  if (at == index + 1) {
    bucket_of(hash).store(e.next, std::memory_order_relaxed);
    return;
  }
  while (element(at - 1).next != index + 1) at = element(at - 1).next;
  element(at - 1).next = e.next;
}

int HashMap::put(uint32_t cpu, const void* key, const void* value, uint64_t flags, bool whole) {
  if ((flags & ~uint64_t{BPF_F_LOCK}) > BPF_EXIST) return -EINVAL;
  const uint64_t hash = hash_of(key);
  const std::lock_guard lock(lock_of(hash));
  const uint32_t old = find(key, hash);
  if (old != 0 && flags == BPF_NOEXIST) return -EEXIST;
  if (old == 0 && flags == BPF_EXIST) return -ENOENT;
  if (old != 0 && per_cpu_) {
    fill(element(old - 1), cpu, value, whole, false);
    return 0;
  }
  if (old == 0) {
    if (used_.fetch_add(1, std::memory_order_relaxed) >= definition().max_entries) {
      used_.fetch_sub(1, std::memory_order_relaxed);
      return -E2BIG;
    }
  }
  const uint32_t made = allocate();
  if (made == 0) {  // more threads than CPUs are replacing elements
    if (old == 0) used_.fetch_sub(1, std::memory_order_relaxed);
    return -ENOMEM;
  }
  Element& e = element(made - 1);
  std::memcpy(e.key(), key, definition().key_bytes);
  fill(e, cpu, value, whole, true);
  if (old != 0) unlink(old - 1, hash);
  link(e, made - 1, hash);
  if (old != 0) release(old - 1);
  return 0;
}

int HashMap::remove(const void* key) {
  const uint64_t hash = hash_of(key);
  const std::lock_guard lock(lock_of(hash));
  const uint32_t at = find(key, hash);
  if (at == 0) return -ENOENT;
  unlink(at - 1, hash);
  release(at - 1);
  used_.fetch_sub(1, std::memory_order_relaxed);
  return 0;
}

// Only the CPU itself reads and writes its marks.
bool HashMap::enter(Cpu& cpu, uint64_t hash) {
  uint8_t& busy = busy_[cpu.id][hash & (kBusyGroups - 1)];
  if (busy != 0) return false;
  busy = 1;
  machine_.interrupt(InterruptPoint::kInsideUpdate, cpu.id, running_program());
  return true;
}

void HashMap::leave(Cpu& cpu, uint64_t hash) { busy_[cpu.id][hash & (kBusyGroups - 1)] = 0; }

long HashMap::update(Cpu& cpu, const void* key, const void* value, uint64_t flags) {
  const uint64_t hash = hash_of(key);
  if (!enter(cpu, hash)) return -EBUSY;
  const int result = put(cpu.id, key, value, flags, false);
  leave(cpu, hash);
  return result;
}

long HashMap::erase(Cpu& cpu, const void* key) {
  const uint64_t hash = hash_of(key);
  if (!enter(cpu, hash)) return -EBUSY;
  const int result = remove(key);
  leave(cpu, hash);
  return result;
}

int HashMap::read(const void* key, void* value) {
  const uint64_t hash = hash_of(key);
  const std::lock_guard lock(lock_of(hash));
  const uint32_t at = find(key, hash);
  if (at == 0) return -ENOENT;
  const size_t bytes = per_cpu_ ? value_stride_ * cpus_ : definition().value_bytes;
  std::memcpy(value, value_of(element(at - 1)), bytes);
  return 0;
}

int HashMap::write(const void* key, const void* value, uint64_t flags) {
  return put(0, key, value, flags, true);
}

int HashMap::erase(const void* key) { return remove(key); }

int HashMap::next_key(const void* key, void* next) {
  uint32_t from = 0;
  if (key != nullptr) {
    const uint64_t hash = hash_of(key);
    const std::lock_guard lock(lock_of(hash));
    from = find(key, hash);
  }
  uint32_t end;
  {
    const std::lock_guard lock(free_lock_);
    end = fresh_;
  }
  for (uint32_t i = from; i < end; ++i) {
    Element& e = element(i);
    const uint64_t hash = __atomic_load_n(&e.hash, __ATOMIC_RELAXED);
    const std::lock_guard lock(lock_of(hash));
    if (e.hash != hash || e.live == 0) continue;
    std::memcpy(next, e.key(), definition().key_bytes);
    return 0;
  }
  return -ENOENT;
}

void HashMap::take_all(const std::function<void(const void*, const void*)>& take) {
  uint32_t end;
  {
    const std::lock_guard lock(free_lock_);
    end = fresh_;
  }
  for (uint32_t i = 0; i < end; ++i) {
    Element& e = element(i);
    const uint64_t hash = __atomic_load_n(&e.hash, __ATOMIC_RELAXED);
    const std::lock_guard lock(lock_of(hash));
    if (e.hash != hash || e.live == 0) continue;
    take(e.key(), value_of(e));
    unlink(i, hash);
    release(i);
    used_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace dwell::runtime
