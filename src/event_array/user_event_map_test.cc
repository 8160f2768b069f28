// A map in user space as a program sees it: results, bytes, loss.
#include "event_array/user_event_map.h"

#include <unistd.h>

#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr uint64_t kCurrent = ring::kCurrentCpu;

INSTANTIATE_TEST_SUITE_P(Producers, UserMapTest, testing::Bool(), producer_name);

TEST_P(UserMapTest, IsCreatedWithAPowerOfTwoPagesOnly) {
  for (const uint64_t bytes : {0u, 1u, 4095u, 5000u, 12288u}) {
    const auto map = UserEventMap::create({.ring_bytes = bytes, .force_lock = GetParam()});
    ASSERT_FALSE(map) << bytes;
    EXPECT_EQ(map.error().code, EINVAL);
  }
  EXPECT_NE(create({.ring_bytes = 4096}), nullptr);
  EXPECT_NE(create({.ring_bytes = 65536}), nullptr);
  EXPECT_EQ(create()->slots(), read_cpu_list("possible")->back() + 1);
}

TEST_P(UserMapTest, HasTheKernelsMetadata) {
  const auto map = create();
  const ring::MetaPage& meta = *map->ring(0).meta;
  EXPECT_EQ(meta.version, 0u);
  EXPECT_EQ(meta.compat_version, 0u);
  EXPECT_EQ(meta.capabilities, 2u);
  EXPECT_EQ(meta.data_offset, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(meta.data_size, 4096u);
}

TEST_P(UserMapTest, AnswersMapOperationsAsTheKernel) {
  const auto map = create();
  const auto array = attach(*map);
  EXPECT_EQ(map->lookup(0), -524);
  EXPECT_EQ(map->push(), -EOPNOTSUPP);
  EXPECT_EQ(map->pop(), -EOPNOTSUPP);
  EXPECT_EQ(map->peek(), -EOPNOTSUPP);
  EXPECT_EQ(map->clear_slot(0), 0);
  EXPECT_EQ(map->clear_slot(0), -ENOENT);
  EXPECT_EQ(map->clear_slot(map->slots()), -E2BIG);
  EXPECT_EQ(map->set_slot(0), 0);
  EXPECT_EQ(map->set_slot(map->slots()), -E2BIG);
  uint32_t key = 0, next = 99, steps = 1;
  EXPECT_EQ(map->next_key(nullptr, next), 0);
  EXPECT_EQ(next, 0u);
  while (map->next_key(&key, next) == 0) key = next, ++steps;
  EXPECT_EQ(steps, map->slots());
}

TEST_P(UserMapTest, PutsAnOutputIntoTheRingOfItsCpuOnly) {
  const auto map = create();
  const auto array = attach(*map);
  for (const uint32_t cpu : online_) {
    PinToCpu pin(cpu);
    EXPECT_EQ(map->output(kCurrent, numbered(100 + cpu)), 0);
    EXPECT_EQ(map->write(numbered(200 + cpu)), 0);
  }
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 2 * online_.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].cpu, online_[i / 2]);
    EXPECT_EQ(got[i].id(), (i % 2 == 0 ? 100 : 200) + got[i].cpu);
  }
}

TEST_P(UserMapTest, ChecksTheIndexAsTheKernel) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  EXPECT_EQ(map->output(online_[0], numbered(1)), 0);
  if (online_.size() > 1) {
    EXPECT_EQ(map->output(online_[1], numbered(1)), -EOPNOTSUPP);
  }
  EXPECT_EQ(map->output(map->slots(), numbered(1)), -E2BIG);
  EXPECT_EQ(map->output(0xfffffffe, numbered(1)), -E2BIG);
  EXPECT_EQ(map->output(0xffffffff, numbered(1)), 0);
  EXPECT_EQ(drain_all(*array).size(), 2u);
}

TEST_P(UserMapTest, CoversAsManyCpusAsItHasSlots) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto map = create({.ring_bytes = 4096, .max_entries = 1});
  const auto array = attach(*map);
  PinToCpu pin(online_[1]);
  EXPECT_EQ(map->output(kCurrent, numbered(1)), -E2BIG);
  const auto large = create({.ring_bytes = 4096, .max_entries = 1000});
  EXPECT_EQ(large->slots(), 1000u);
  EXPECT_EQ(large->output(999, numbered(1)), -ENOENT);
}

TEST_P(UserMapTest, HasRingsForPretendedCpus) {
  const uint32_t cpus = online_.back() + 5;  // more than there are
  const auto map = create({.ring_bytes = 4096, .simulated_cpus = cpus});
  const auto array = attach(*map);
  EXPECT_EQ(map->rings(), cpus);
  EXPECT_EQ(map->output_on(cpus - 1, kCurrent, numbered(1)), 0);
  EXPECT_EQ(map->output_on(cpus - 1, cpus - 1, numbered(2)), 0);
  EXPECT_EQ(map->output_on(cpus - 1, 0, numbered(3)), -EOPNOTSUPP);
  EXPECT_EQ(map->output_on(cpus, kCurrent, numbered(4)), -E2BIG);
  EXPECT_EQ(map->output_on(0, 1ull << 40 | kCurrent, numbered(5)), -EINVAL);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].cpu, cpus - 1);
  EXPECT_EQ(got[1].id(), 2u);
}

TEST_P(UserMapTest, CapturesContextBehindTheData) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  Bytes context(64);
  for (size_t i = 0; i < context.size(); ++i) context[i] = static_cast<std::byte>(i * 3);
  const DataContext packet{context.data(), context.data() + context.size()};
  EXPECT_EQ(map->output(kCurrent | 10ull << 32, numbered(7), packet), 0);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(got[0].payload.size(), 18u);
  EXPECT_EQ(got[0].id(), 7u);
  EXPECT_TRUE(std::equal(context.begin(), context.begin() + 10, got[0].payload.begin() + 8));

  EXPECT_EQ(map->output(kCurrent | 64ull << 32, numbered(7), packet), 0);
  EXPECT_EQ(map->output(kCurrent | 65ull << 32, numbered(7), packet), -EFAULT);
  EXPECT_EQ(map->output(kCurrent | 1ull << 32, numbered(7), DataContext{}), -EFAULT);
  EXPECT_EQ(map->output(kCurrent | 1ull << 32, numbered(7)), -EINVAL) << "a tracing context";
  EXPECT_EQ(map->output(kCurrent | 1ull << 52, numbered(7), packet), -EINVAL) << "reserved";
  EXPECT_EQ(map->output(1ull << 52 | 1ull << 32 | 99999, numbered(7), packet), -EINVAL)
      << "flags before capture before index";
  EXPECT_EQ(map->output(65ull << 32 | 99999, numbered(7), packet), -EFAULT);
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

TEST_P(UserMapTest, TellsWhyItRefuses) {
  const auto map = create();
  PinToCpu pin(online_[0]);
  const uint32_t cpu = online_[0];
  EXPECT_EQ(map->output(kCurrent, numbered(1)), -ENOSPC) << "nobody reads";
  EXPECT_EQ(map->counts(cpu).lost, 0u) << "and that is not counted, as without a mapping";
  const auto array = attach(*map);
  ASSERT_EQ(map->clear_slot(cpu), 0);
  EXPECT_EQ(map->output(kCurrent, numbered(1)), -ENOENT);
  ASSERT_EQ(map->set_slot(cpu), 0);
  ASSERT_EQ(map->set_enabled(cpu, false), 0);
  EXPECT_EQ(map->output(kCurrent, numbered(1)), -EOPNOTSUPP);
  ASSERT_EQ(map->set_enabled(cpu, true), 0);
  ASSERT_TRUE(array->pause());
  EXPECT_EQ(map->output(kCurrent, numbered(1)), -ENOSPC);
  EXPECT_EQ(map->counts(cpu).lost, 1u);
  ASSERT_TRUE(array->resume());
  EXPECT_EQ(map->output(kCurrent, numbered(2)), 0);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].lost, 1u) << "LOST comes first";
  array->close();
  EXPECT_EQ(map->output(kCurrent, numbered(1)), -ENOSPC);
  EXPECT_EQ(map->counts(cpu).lost, 1u);
}

TEST_P(UserMapTest, KeepsOutputsForALaterReaderIfAsked) {
  const auto map = create({.ring_bytes = 4096, .buffer_unread = true});
  PinToCpu pin(online_[0]);
  EXPECT_EQ(map->output(kCurrent, numbered(1)), 0);
  EXPECT_EQ(drain_all(*attach(*map)).size(), 1u);
  EXPECT_EQ(map->output(kCurrent, numbered(2)), 0) << "the reader is gone again";
  EXPECT_EQ(drain_all(*attach(*map)).at(0).id(), 2u);
}

TEST_P(UserMapTest, Holds31OutputsOf512BytesIn16KiB) {
  const auto map = create({.ring_bytes = 16 << 10});
  const auto array = attach(*map);
  const Bytes payload(500);  // 512 in the ring
  for (const uint32_t cpu : online_) {
    PinToCpu pin(cpu);
    uint64_t ok = 0, refused = 0;
    for (int i = 0; i < 64; ++i) {
      const int result = map->output(kCurrent, payload);
      ok += result == 0;
      refused += result == -ENOSPC;
    }
    EXPECT_EQ(ok, 31u);
    EXPECT_EQ(refused, 33u);
    EXPECT_EQ(map->counts(cpu).lost, 33u);
    EXPECT_EQ(array->stats(cpu).lost_exact, 33u);
    EXPECT_EQ(array->stats(cpu).lost_pending, 33u);
  }
  EXPECT_EQ(drain_all(*array).size(), 31 * online_.size());
}

TEST_P(UserMapTest, BlockedReaderLosesExactlyWhatFailed) {
  const auto map = create({.ring_bytes = 16 << 10});
  const auto array = attach(*map);
  const Bytes payload(500);
  PinToCpu pin(online_[0]);
  uint64_t events = 0, told = 0, written = 0, failed = 0;
  const auto drain = [&] {
    for (const UserGot& got : drain_all(*array))
      got.type == ring::kRecordLost ? void(told += got.lost) : void(++events);
  };
  const auto burst = [&](int n, bool draining) {
    for (int i = 0; i < n; ++i) {
      ++written;
      failed += map->output(kCurrent, payload) != 0;
      if (draining) drain();
    }
  };
  burst(32, true);
  EXPECT_EQ(failed, 0u) << "a reader that keeps up";
  burst(31, false);
  EXPECT_EQ(failed, 0u) << "a blocked reader and a ring that holds the burst";
  burst(33, false);
  EXPECT_EQ(failed, 33u) << "and one that does not";
  drain();
  burst(32, true);
  EXPECT_EQ(failed, 33u) << "recovered";
  EXPECT_EQ(events + failed, written);
  EXPECT_EQ(told, failed);
}

TEST_P(UserMapTest, TellsExactLengthsAndZeroesPadding) {
  const auto map = create({.ring_bytes = 16 << 10});
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  // A lap of 0xaa first, so that padding would show it.
  for (int i = 0; i < 20; ++i) {
    map->output(kCurrent, Bytes(1000, std::byte{0xaa}));
    drain_all(*array);
  }
  for (size_t n = 0; n <= 64; ++n) {
    ASSERT_EQ(map->output(kCurrent, pattern_bytes(n)), 0);
    uint64_t seen = 0;
    array->drain({}, [&](uint32_t, const Record& record) {
      Sample sample;
      ASSERT_EQ(decode_sample(array->format(), record, sample), SampleCheck::kOk);
      EXPECT_EQ(Bytes(sample.payload.begin(), sample.payload.end()), pattern_bytes(n));
      ASSERT_EQ(decode_sample({}, record, sample), SampleCheck::kOk);
      EXPECT_EQ(sample.payload.size(), (n + 4 + 7) / 8 * 8 - 4) << "as the kernel pads";
      for (size_t i = n; i < sample.payload.size(); ++i) EXPECT_EQ(sample.payload[i], std::byte{0});
      ++seen;
    });
    ASSERT_EQ(seen, 1u);
  }
}

TEST_P(UserMapTest, RefusesPayloadsAbove64KiB) {
  const auto map = create({.ring_bytes = 128 << 10});
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  const Bytes bytes = pattern_bytes(65517);
  EXPECT_EQ(map->output(kCurrent, std::span(bytes).first(65516)), 0);
  const uint64_t head = map->ring(online_[0]).meta->data_head;
  EXPECT_EQ(map->output(kCurrent, bytes), -E2BIG);
  EXPECT_EQ(map->ring(online_[0]).meta->data_head, head);
  EXPECT_EQ(map->counts(online_[0]).drop_too_big, 1u);
  EXPECT_EQ(map->counts(online_[0]).lost, 0u);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end() - 1, got[0].payload.begin(), got[0].payload.end()));
}

TEST_P(UserMapTest, KeepsBytesOfEverySizeAtEveryPlace) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  for (uint32_t round = 0; round < 2000; ++round) {
    const size_t n = round % 7 == 0 ? 3000 + round % 900 : round % 300;
    const size_t captured = round % 3 == 0 ? round % 90 : 0;
    const Bytes context = pattern_bytes(captured, round + 1);
    Bytes expected = pattern_bytes(n, round);
    ASSERT_EQ(map->output(kCurrent | uint64_t{captured} << 32, expected,
                          DataContext{context.data(), context.data() + captured}),
              0);
    expected.insert(expected.end(), context.begin(), context.end());
    const auto got = drain_all(*array);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].payload, expected) << round;
  }
}

TEST_P(UserMapTest, ShowsAWrappedRecordInOnePiece) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  const RingMemory& ring = map->ring(online_[0]);
  ASSERT_EQ(map->output(kCurrent, Bytes(3000)), 0);
  drain_all(*array);
  ASSERT_EQ(map->output(kCurrent, pattern_bytes(2000)), 0);
  uint64_t seen = 0;
  array->drain({}, [&](uint32_t, const Record& record) {
    ++seen;
    EXPECT_GE(record.body.data(), ring.data) << "a view of the ring, not of a scratch";
    EXPECT_LT(record.body.data(), ring.data + 4096);
    EXPECT_GT(record.body.data() + record.body.size(), ring.data + 4096) << "beyond its end";
  });
  EXPECT_EQ(seen, 1u);
}

TEST_P(UserMapTest, IsNotWedgedByALoss) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  const Bytes large(4076);
  ASSERT_EQ(map->output(kCurrent, large), 0);
  ASSERT_EQ(map->output(kCurrent, large), -ENOSPC);
  for (int i = 0; i < 5; ++i) {
    drain_all(*array);
    ASSERT_EQ(map->output(kCurrent, large), 0);
  }
  drain_all(*array);
  ASSERT_EQ(map->output(kCurrent, numbered(1)), 0);
  EXPECT_EQ(drain_all(*array).at(0).lost, 1u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
