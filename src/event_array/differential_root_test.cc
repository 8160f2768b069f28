// The kernel's ring and ours under the same random operations: same results, same bytes, but for
// the improvements that docs/ring-abi.md lists. DWELL_TEST_OPERATIONS sets how many (1,000,000).
#include <random>

#include "event_array/kernel_fixture.h"
#include "event_array/user_event_map.h"

namespace dwell {
inline namespace v0 {
namespace {

class DifferentialTest : public KernelArrayTest {
 protected:
  static constexpr uint64_t kRingBytes = 16 << 10;

  void SetUp() override {
    KernelArrayTest::SetUp();
    if (generator_ == nullptr) return;
    load(static_cast<uint32_t>(read_cpu_list("possible")->back() + 1));
    if (generator_ == nullptr) return;
    cpu_ = online_[0];
    // Both without padding counts, so that the bytes can be the same.
    map_ = std::move(*UserEventMap::create(
        {.ring_bytes = kRingBytes, .exact_length = false, .buffer_unread = true}));
    ring_ = std::move(*PerfRing::open(PerfKernel::real(), cpu_, {.data_bytes = kRingBytes}));
    other_ = std::move(*PerfRing::open(PerfKernel::real(), online_.back(), {.data_bytes = 4096}));
    ASSERT_TRUE(set_map_slot(generator_->map_fd(), online_.back(), other_->fd()));
    ASSERT_TRUE(set_map_slot(generator_->map_fd(), cpu_, ring_->fd()));
    reader_ = std::make_unique<RingReader>(std::move(*RingReader::create(map_->ring(cpu_))));
  }

  std::span<const std::byte> payload(uint64_t size) const {
    return std::span(Generator::pattern()).first(size);
  }

  // Sizes of all kinds, but for those at which the two are meant to differ: above 64 KiB, and so
  // near to the ring's size that a loss wedges the kernel's.
  uint64_t random_size() {
    switch (random_() % 10) {
      case 0:
        return 0;
      case 1:
        return random_() % (kRingBytes - 32 - 12 - 250);
      case 2:
        return kRingBytes - 12 + random_() % 30'000;  // never fits
      default:
        return random_() % 300;
    }
  }
  uint64_t random_index() {
    switch (random_() % 16) {
      case 0:
        return random_() & ring::kIndexMask;
      case 1:
        return online_.back();
      case 2:
        return cpu_;
      case 3:
        return map_->slots();
      default:
        return ring::kCurrentCpu;
    }
  }
  uint64_t random_upper_flags() { return random_() % 32 == 0 ? random_() << 32 : 0; }

  void output_from_tracepoint() {
    const uint64_t size = random_size();
    const uint64_t flags = random_index() | random_upper_flags();
    const long kernel = generator_->output(size, flags, true);
    const int ours = map_->output(flags, payload(size));
    ASSERT_EQ(ours, kernel) << "tracepoint, size " << size << ", flags " << std::hex << flags;
    if (ours == 0) expected_.push_back({size, 0});
  }

  void output_from_packet() {
    const uint64_t size = random_size();
    packet_.resize(14 + random_() % 200);
    const uint64_t capture = random_() % 3 == 0 ? random_() % 250 : 0;
    const uint64_t flags =
        random_index() | capture << 32 | (random_() % 32 == 0 ? random_() << 52 : 0);
    const long kernel = generator_->output_xdp(packet_, size, flags);
    const int ours = map_->output(flags, payload(size),
                                  DataContext{packet_.data(), packet_.data() + packet_.size()});
    ASSERT_EQ(ours, kernel) << "packet, size " << size << ", flags " << std::hex << flags;
    if (ours == 0) expected_.push_back({size, capture});
  }

  // The same number of records from both, compared field by field and byte by byte.
  void drain(uint64_t most) {
    struct Copy {
      Record record;
      std::vector<std::byte> body;
    };
    const auto collect = [&](RingReader& reader) {
      std::vector<Copy> all;
      reader.drain({.max_records = most}, [&](const Record& r) {
        all.push_back({r, {r.body.begin(), r.body.end()}});
      });
      return all;
    };
    const std::vector<Copy> kernel = collect(ring_->reader()), ours = collect(*reader_);
    ASSERT_EQ(ours.size(), kernel.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].record.type, kernel[i].record.type);
      ASSERT_EQ(ours[i].record.misc, kernel[i].record.misc);
      ASSERT_EQ(ours[i].record.size, kernel[i].record.size);
      ++records_;
      if (ours[i].record.type == ring::kRecordLost) {
        // The id is the ring's, not the event's; the number is the same.
        ASSERT_TRUE(
            std::equal(ours[i].body.begin() + 8, ours[i].body.end(), kernel[i].body.begin() + 8));
        continue;
      }
      ASSERT_FALSE(expected_.empty());
      const auto [size, capture] = expected_.front();
      expected_.erase(expected_.begin());
      const size_t exact = 4 + size + capture;
      ASSERT_TRUE(std::equal(ours[i].body.begin(), ours[i].body.begin() + static_cast<long>(exact),
                             kernel[i].body.begin()))
          << "size " << size << " capture " << capture;
      for (size_t k = exact; k < ours[i].body.size(); ++k)
        ASSERT_EQ(ours[i].body[k], std::byte{0}) << "padding";
    }
    ASSERT_EQ(reader_->position(), ring_->reader().position());
    ASSERT_EQ(reader_->head(), ring_->reader().head());
  }

  void pause(bool paused) {
    ASSERT_TRUE(ring_->pause(paused));
    ASSERT_EQ(map_->set_paused(cpu_, paused), 0);
  }
  void slot(bool filled) {
    if (filled) {
      ASSERT_TRUE(set_map_slot(generator_->map_fd(), cpu_, ring_->fd()));
      ASSERT_EQ(map_->set_slot(cpu_), 0);
    } else {
      ASSERT_TRUE(clear_map_slot(generator_->map_fd(), cpu_));
      map_->clear_slot(cpu_);
    }
  }
  void compare_loss() { ASSERT_EQ(map_->counts(cpu_).lost, ring_->exact_lost()); }

  void step() {
    const uint64_t pick = random_() % 1000;
    if (pick < 700) return output_from_tracepoint();
    if (pick < 900) return output_from_packet();
    if (pick < 980) return drain(random_() % 60);
    if (pick < 985) return pause(true);
    if (pick < 991) return pause(false);
    if (pick < 993) return slot(false);
    if (pick < 997) return slot(true);
    compare_loss();
  }

  uint32_t cpu_ = 0;
  std::unique_ptr<UserEventMap> map_;
  std::unique_ptr<PerfRing> ring_, other_;
  std::unique_ptr<RingReader> reader_;
  std::vector<std::byte> packet_;
  std::vector<std::pair<uint64_t, uint64_t>> expected_;  // size and capture of unread samples
  uint64_t records_ = 0;
  std::mt19937_64 random_{20261130};
};

TEST_F(DifferentialTest, TheKernelAndWeAgree) {
  const char* text = getenv("DWELL_TEST_OPERATIONS");
  const uint64_t operations = text != nullptr ? strtoull(text, nullptr, 10) : 1'000'000;
  PinToCpu pin(cpu_);
  for (uint64_t i = 0; i < operations; ++i) {
    step();
    if (HasFatalFailure()) FAIL() << "at operation " << i;
  }
  compare_loss();
  EXPECT_GT(records_, operations / 20) << "rings were refused too often to compare anything";
  printf("%lu operations, %lu records compared, %lu lost on both sides\n", operations, records_,
         map_->counts(cpu_).lost);
}

// The rules that random operations avoid, each with its documented difference.
TEST_F(DifferentialTest, OursIsBetterWhereTheDocumentSaysSo) {
  PinToCpu pin(cpu_);
  const uint64_t alone = kRingBytes - 8 - 12;
  EXPECT_EQ(generator_->output(alone, ring::kCurrentCpu, true), 0);
  EXPECT_EQ(map_->output(ring::kCurrentCpu, payload(alone)), 0);
  EXPECT_EQ(generator_->output(alone, ring::kCurrentCpu, true), -ENOSPC);
  EXPECT_EQ(map_->output(ring::kCurrentCpu, payload(alone)), -ENOSPC);
  ring_->reader().drain({}, [](const Record&) {});
  reader_->drain({}, [](const Record&) {});
  EXPECT_EQ(generator_->output(alone, ring::kCurrentCpu, true), -ENOSPC) << "wedged";
  EXPECT_EQ(map_->output(ring::kCurrentCpu, payload(alone)), 0);
  EXPECT_EQ(map_->output(ring::kCurrentCpu, payload(65517)), -E2BIG);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
