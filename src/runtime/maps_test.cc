#include <cstring>
#include <thread>

#include "base/sanitizers.h"
#include "runtime/array_map.h"
#include "runtime/exercise_fixture.h"
#include "runtime/hash_map.h"
#include "runtime/ring_buffer_map.h"
#include "runtime/stack_map.h"
#include "runtime/task_storage.h"

namespace dwell::runtime {
namespace {

class MapsTest : public ExerciseTest {
 protected:
  long update(exercise_map map, uint32_t key, uint64_t value, uint64_t flags = BPF_ANY,
              uint32_t cpu = 0) {
    return call_on(cpu, "on_map", EXERCISE_UPDATE, map, key, value, flags);
  }
  long lookup(exercise_map map, uint32_t key, uint32_t cpu = 0) {
    return call_on(cpu, "on_map", EXERCISE_LOOKUP, map, key);
  }
  long erase(exercise_map map, uint32_t key) { return call("on_map", EXERCISE_DELETE, map, key); }
  uint64_t value() { return results().value; }
};

TEST_F(MapsTest, TakesDefinitionsFromTheSource) {
  const MapDefinition& d = object_->map("percpu_hash").definition();
  EXPECT_EQ(d.type, uint32_t{BPF_MAP_TYPE_PERCPU_HASH});
  EXPECT_EQ(d.key_bytes, 4u);
  EXPECT_EQ(d.value_bytes, 8u);
  EXPECT_EQ(d.max_entries, 4u);
  EXPECT_EQ(object_->map("storage").definition().flags, uint32_t{BPF_F_NO_PREALLOC});
  EXPECT_EQ(inner_definition_.type, uint32_t{BPF_MAP_TYPE_HASH});
}

TEST_F(MapsTest, HashInsertsReplacesDeletes) {
  EXPECT_EQ(lookup(EXERCISE_HASH, 1), -1);
  EXPECT_EQ(update(EXERCISE_HASH, 1, 10, BPF_EXIST), -ENOENT);
  EXPECT_EQ(update(EXERCISE_HASH, 1, 10, BPF_NOEXIST), 0);
  EXPECT_EQ(update(EXERCISE_HASH, 1, 11, BPF_NOEXIST), -EEXIST);
  EXPECT_EQ(update(EXERCISE_HASH, 1, 12, BPF_EXIST), 0);
  EXPECT_EQ(update(EXERCISE_HASH, 1, 12, 64), -EINVAL);
  EXPECT_EQ(lookup(EXERCISE_HASH, 1), 0);
  EXPECT_EQ(value(), 12u);
  EXPECT_EQ(erase(EXERCISE_HASH, 1), 0);
  EXPECT_EQ(erase(EXERCISE_HASH, 1), -ENOENT);
  EXPECT_EQ(lookup(EXERCISE_HASH, 1), -1);
}

TEST_F(MapsTest, HashHoldsExactlyMaxEntries) {
  for (uint32_t key = 0; key < 4; ++key) EXPECT_EQ(update(EXERCISE_HASH, key, key), 0);
  EXPECT_EQ(update(EXERCISE_HASH, 4, 4), -E2BIG);
  EXPECT_EQ(update(EXERCISE_HASH, 3, 33), 0) << "one that is there may still change";
  EXPECT_EQ(erase(EXERCISE_HASH, 0), 0);
  EXPECT_EQ(update(EXERCISE_HASH, 4, 4), 0);
}

TEST_F(MapsTest, PerCpuValuesAreEachCpusOwn) {
  for (const exercise_map map : {EXERCISE_PERCPU_HASH, EXERCISE_PERCPU_ARRAY}) {
    update(map, 2, 5, BPF_ANY, 0);
    update(map, 2, 7, BPF_ANY, 3);
    EXPECT_EQ(lookup(map, 2, 1), 0);
    EXPECT_EQ(value(), 0u);
    call_on(3, "on_map", EXERCISE_ADD, map, 2, 100);
    Map& seen = object_->map(map == EXERCISE_PERCPU_HASH ? "percpu_hash" : "percpu_array");
    uint64_t values[kCpus] = {};
    const uint32_t key = 2;
    EXPECT_EQ(seen.read(&key, values), 0);
    EXPECT_THAT(std::vector<uint64_t>(values, values + kCpus),
                testing::Eq(std::vector<uint64_t>{5, 0, 0, 107}));
  }
}

TEST_F(MapsTest, ArrayIsFullOfZerosAndKeepsItsElements) {
  EXPECT_EQ(lookup(EXERCISE_ARRAY, 3), 0);
  EXPECT_EQ(value(), 0u);
  EXPECT_EQ(lookup(EXERCISE_ARRAY, 4), -1);
  EXPECT_EQ(update(EXERCISE_ARRAY, 3, 9), 0);
  EXPECT_EQ(update(EXERCISE_ARRAY, 4, 9), -E2BIG);
  EXPECT_EQ(update(EXERCISE_ARRAY, 3, 9, BPF_NOEXIST), -EEXIST);
  EXPECT_EQ(erase(EXERCISE_ARRAY, 3), -EINVAL);
}

TEST_F(MapsTest, UserSpaceSeesWhatProgramsWroteAndTheOtherWayRound) {
  Map& hash = object_->map("hash");
  const uint32_t key = 5;
  uint64_t written = 50, read = 0;
  EXPECT_EQ(hash.write(&key, &written, BPF_ANY), 0);
  EXPECT_EQ(lookup(EXERCISE_HASH, 5), 0);
  EXPECT_EQ(value(), 50u);
  update(EXERCISE_HASH, 6, 60);
  uint64_t sum = 0;
  uint32_t at = 0;
  for (int more = hash.next_key(nullptr, &at); more == 0; more = hash.next_key(&at, &at)) {
    EXPECT_EQ(hash.read(&at, &read), 0);
    sum += read;
  }
  EXPECT_EQ(sum, 110u);
  uint64_t taken = 0;
  object_->map<HashMap>("hash").take_all(
      [&](const void*, const void* v) { taken += *static_cast<const uint64_t*>(v); });
  EXPECT_EQ(taken, 110u);
  EXPECT_EQ(hash.next_key(nullptr, &at), -ENOENT);
}

TEST_F(MapsTest, MapsInMapsAreReachedAndReplaced) {
  auto first = create_map(inner_definition_, machine_).value();
  auto second = create_map(inner_definition_, machine_).value();
  auto& outer = object_->map<MapOfMaps>("maps_in_array");
  const uint32_t zero = 0, two = 2, seven = 7;
  EXPECT_EQ(update(EXERCISE_INNER, 1, 1), -1) << "nothing there yet";
  EXPECT_EQ(outer.set_inner(&zero, *first), 0);
  EXPECT_EQ(update(EXERCISE_INNER, 1, 1), 0);
  EXPECT_EQ(outer.set_inner(&zero, *second), 0);
  EXPECT_EQ(lookup(EXERCISE_INNER, 1), -1);
  EXPECT_EQ(outer.set_inner(&two, *first), -E2BIG);
  EXPECT_EQ(outer.set_inner(&zero, object_->map("array")), -EINVAL) << "not like the declared one";
  EXPECT_EQ(object_->map<MapOfMaps>("maps_in_hash").set_inner(&seven, *first), 0);
  EXPECT_EQ(lookup(EXERCISE_INNER_BY_NAME, 1), 0);
  EXPECT_EQ(value(), 1u);
}

TEST_F(MapsTest, StacksGetIdsAndCollide) {
  auto& stacks = object_->map<StackMap>("stacks");
  Task& task = machine_.create_task(sizeof(task_struct));
  machine_.cpu(0).current = &task;
  const std::vector<uint64_t> kernel{0x10, 0x20, 0x30}, other{0x11, 0x21};
  EXPECT_EQ(call("on_stack", 0, 0), -EFAULT) << "no stack";
  task.kernel_stack = kernel;
  task.user_stack = other;
  const long id = call("on_stack", 0, 0);
  ASSERT_GE(id, 0);
  EXPECT_EQ(call("on_stack", 0, 0), id);
  EXPECT_EQ(call("on_stack", 0, 3), -EFAULT) << "all frames skipped";
  EXPECT_EQ(call("on_stack", 0, 1 << 20), -EINVAL);
  uint64_t frames[8];
  const auto key = static_cast<uint32_t>(id);
  EXPECT_EQ(stacks.read(&key, frames), 0);
  EXPECT_EQ(frames[2], 0x30u);
  EXPECT_EQ(frames[3], 0u);
  // Sixteen buckets: of many stacks some find theirs taken.
  int collisions = 0;
  for (uint64_t i = 1; i < 40; ++i) {
    const std::vector<uint64_t> stack{i * 0x1000};
    task.user_stack = stack;
    collisions += call("on_stack", 0, BPF_F_USER_STACK) == -EEXIST;
    EXPECT_GE(call("on_stack", 0, BPF_F_USER_STACK | BPF_F_REUSE_STACKID), 0);
  }
  EXPECT_GT(collisions, 0);
  EXPECT_EQ(stacks.erase(&key), 0);
}

TEST_F(MapsTest, StacksAreCopied) {
  Task& task = machine_.create_task(sizeof(task_struct));
  machine_.cpu(0).current = &task;
  const std::vector<uint64_t> deep{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  task.kernel_stack = deep;
  EXPECT_EQ(call("on_stack", 1, 1), 64);
  EXPECT_EQ(results().frames[0], 2u);
  task.kernel_stack = std::span(deep).first(2);
  EXPECT_EQ(call_on(1, "on_stack", 2, 0, task.kernel()), 16) << "of another task";
  EXPECT_EQ(results().frames[2], 0u) << "the rest is zero";
  EXPECT_EQ(call_on(1, "on_stack", 2, BPF_F_USER_STACK, task.kernel()), -EOPNOTSUPP);
}

TEST_F(MapsTest, StorageGoesWithItsTask) {
  Task& a = machine_.create_task(sizeof(task_struct));
  Task& b = machine_.create_task(sizeof(task_struct));
  EXPECT_EQ(call("on_storage", a.kernel(), 1, 0), -1);
  EXPECT_EQ(call("on_storage", a.kernel(), 1, 1), 0);
  EXPECT_EQ(value(), 101u);
  EXPECT_EQ(call("on_storage", a.kernel(), 1, 0), 0);
  EXPECT_EQ(value(), 102u);
  EXPECT_EQ(call("on_storage", b.kernel(), 5, 1), 0);
  EXPECT_EQ(value(), 105u);
  EXPECT_EQ(call("on_forget", a.kernel()), 0);
  EXPECT_EQ(call("on_forget", a.kernel()), -ENOENT);
  EXPECT_EQ(call("on_storage", a.kernel(), 1, 0), -1);
  auto& storage = object_->map<TaskStorageMap>("storage");
  storage.set_limit(2);
  EXPECT_EQ(call("on_storage", a.kernel(), 1, 1), -1) << "no memory";
  machine_.free_task(b);
}

TEST_F(MapsTest, RingBufferKeepsTheOrderOfReservations) {
  auto& ring = object_->map<RingBufferMap>("ring");
  std::vector<uint64_t> seen;
  const auto take = [&](std::span<const std::byte> bytes) {
    uint64_t number;
    std::memcpy(&number, bytes.data(), sizeof number);
    seen.push_back(number);
  };
  // While record 1 is reserved, an interrupt on the same CPU writes and reads.
  bool nested = false;
  machine_.set_interrupt_hook([&](const Interrupted& where) {
    if (nested || where.program->name() != "on_ring" || ring.query(BPF_RB_AVAIL_DATA) == 0) return;
    nested = true;
    results().bytes[0] = 2;
    call("on_ring_output", 8, 0);
    EXPECT_EQ(ring.consume(take), 0u) << "the first is not complete";
  });
  EXPECT_EQ(call("on_ring", 1, 1), 0);
  machine_.set_interrupt_hook({});
  EXPECT_EQ(call("on_ring", 3, 0), 0);
  EXPECT_EQ(ring.consume(take), 2u) << "one was discarded";
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2}));
}

TEST_F(MapsTest, RingBufferIsFullAtItsSize) {
  auto& ring = object_->map<RingBufferMap>("ring");
  int written = 0;
  while (call("on_ring_output", 8, 0) == 0) ++written;
  EXPECT_EQ(results().result, -EAGAIN);
  EXPECT_EQ(written, 4096 / 16 - 1);
  EXPECT_EQ(call("on_ring_output", 8, 16), -EINVAL);
  EXPECT_EQ(ring.consume([](std::span<const std::byte>) {}), static_cast<uint64_t>(written));
  EXPECT_EQ(call("on_ring_output", 8, 0), 0);
  EXPECT_GT(ring.wakeups(), 0u);
}

TEST_F(MapsTest, AWriteBehindAValueIsCaught) {
#if DWELL_ASAN
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  update(EXERCISE_HASH, 1, 1);
  EXPECT_DEATH(call("on_overrun", EXERCISE_HASH), "use-after-poison");
  EXPECT_DEATH(call("on_overrun", EXERCISE_ARRAY), "use-after-poison");
#else
  GTEST_SKIP() << "SKIP: only AddressSanitizer sees it (preset asan)";
#endif
}

TEST_F(MapsTest, ManyCpusShareMaps) {
  std::vector<std::thread> threads;
  std::atomic<int> refused = 0;
  uint64_t sum = 0;
  auto ring = RingBufferMap::create({.name = "ring", .max_entries = 1 << 16}).value();
  HashMap hash({.name = "shared",
                .type = BPF_MAP_TYPE_HASH,
                .key_bytes = 8,
                .value_bytes = 8,
                .max_entries = 64},
               machine_, false);
  for (uint32_t cpu = 0; cpu < kCpus; ++cpu)
    threads.emplace_back([&, cpu] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        const uint64_t key = i % 100;
        if (hash.update(machine_.cpu(cpu), &key, &i, BPF_ANY) != 0) ++refused;
        if (i % 3 == 0) hash.erase(machine_.cpu(cpu), &key);
        hash.lookup(machine_.cpu(cpu), &key);
        const uint64_t one = 1;
        while (ring->output(&one, sizeof one, 0) != 0) std::this_thread::yield();
      }
    });
  const auto take = [&](std::span<const std::byte> bytes) {
    sum += std::to_integer<uint64_t>(bytes[0]);
  };
  while (sum < kCpus * 20'000) ring->consume(take);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(hash.size(), 64u);
  uint64_t left = 0;
  hash.take_all([&](const void*, const void*) { ++left; });
  EXPECT_EQ(hash.size(), 0u);
  EXPECT_GT(left, 0u);
}

TEST(MapCreateTest, RefusesWhatTheKernelRefuses) {
  Machine machine(2);
  const auto code = [&](MapDefinition d) {
    const auto made = create_map(d, machine);
    return made ? 0 : made.error().code;
  };
  EXPECT_EQ(code({.name = "a", .type = BPF_MAP_TYPE_HASH, .key_bytes = 4, .value_bytes = 4}),
            EINVAL);
  EXPECT_EQ(code({.name = "a",
                  .type = BPF_MAP_TYPE_ARRAY,
                  .key_bytes = 8,
                  .value_bytes = 8,
                  .max_entries = 1}),
            EINVAL);
  EXPECT_EQ(code({.name = "a", .type = BPF_MAP_TYPE_RINGBUF, .max_entries = 5000}), EINVAL);
  EXPECT_EQ(code({.name = "a",
                  .type = BPF_MAP_TYPE_STACK_TRACE,
                  .key_bytes = 4,
                  .value_bytes = 12,
                  .max_entries = 1}),
            EINVAL);
  EXPECT_EQ(code({.name = "a",
                  .type = BPF_MAP_TYPE_LPM_TRIE,
                  .key_bytes = 8,
                  .value_bytes = 8,
                  .max_entries = 1}),
            EINVAL);
}

}  // namespace
}  // namespace dwell::runtime
