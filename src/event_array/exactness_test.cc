// Our own event array under random load, with everybody killed now and then: every output is
// delivered or counted, on each CPU. exactness_run.h says how long and what else happens.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "event_array/exactness_run.h"
#include "event_array/user_map_fixture.h"
#include "ring/ring_writer.h"

namespace dwell {
inline namespace v0 {
namespace {

// How outputs end. Any other result is a fault.
enum Ending : uint32_t { kOk, kNoSpace, kBusy, kTooBig, kEndings };

// What each writer takes down for each CPU, in shared memory.
struct ProducerBooks {
  std::atomic<uint64_t> count[kStageWriters][kStageCpus][kEndings];
  std::atomic<uint32_t> under_way[kStageWriters];  // 0, or 1 + the CPU of the output that runs

  uint64_t sum(uint32_t cpu, Ending ending) const {
    uint64_t total = 0;
    for (const auto& writer : count) total += writer[cpu][ending];
    return total;
  }
};

struct Message {
  uint32_t writer;
  uint32_t cpu;
  uint64_t number;  // of the writer's published records in this CPU's ring: no gaps
  uint64_t size;
};

// Bytes behind the Message: a piece of this from `number` on.
constexpr size_t kPatternBytes = 128 << 10;
constexpr size_t kPatternStarts = 4093;

const std::byte* pattern() {
  static const Bytes bytes = pattern_bytes(kPatternBytes);
  return bytes.data();
}

// Mostly small; some larger than the ring, some larger than any record.
uint64_t random_extra(Dice& dice) {
  const uint64_t choice = dice.below(2000);
  if (choice == 0) return ring::kMaxPayload + 1;
  if (choice == 1) return 40'000;
  if (choice < 50) return dice.below(6000);
  return dice.below(400);
}

class UserSubject : public ExactnessSubject {
 public:
  UserSubject(Stage& stage, UserEventMap& map)
      : ExactnessSubject(stage),
        map_(map),
        books_(*new (mmap(nullptr, sizeof(ProducerBooks), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) ProducerBooks{}) {
    pattern();
  }
  ~UserSubject() override { munmap(&books_, sizeof books_); }

  void produce(uint32_t writer, Dice& dice) override;
  Result<std::unique_ptr<EventArray>> open() override { return UserEventArray::open(map_); }
  void take(uint32_t cpu, const Sample& sample, uint64_t lost) override;
  bool drained() override;
  void compare(const std::vector<bool>& dead) override;
  void print() const override;

  uint64_t produced(uint32_t cpu) const {
    uint64_t total = 0;
    for (uint32_t ending = kOk; ending < kEndings; ++ending)
      total += books_.sum(cpu, static_cast<Ending>(ending));
    return total;
  }

 private:
  int output(const Message& message, uint64_t extra);
  uint64_t counted(uint32_t cpu, Ending ending) const;
  void settle_delivered(uint32_t cpu, const std::vector<bool>& dead);
  void settle_refused(uint32_t cpu, Ending ending);

  UserEventMap& map_;
  ProducerBooks& books_;
  uint64_t finished_by_the_dead_ = 0;
  uint64_t never_happened_ = 0;
};

// The index is explicit: the result then says of which ring it is.
int UserSubject::output(const Message& message, uint64_t extra) {
  const std::byte* from = pattern() + message.number % kPatternStarts;
  const auto front = std::as_bytes(std::span(&message, 1));
  if (message.number % 2 == 0 && extra < 512) {
    std::byte whole[sizeof message + 512];
    std::memcpy(whole, &message, sizeof message);
    std::memcpy(whole + sizeof message, from, extra);
    return map_.output(message.cpu, std::span(whole, sizeof message + extra));
  }
  return map_.output(message.cpu | extra << ring::kCaptureShift, front, {from, from + extra});
}

void UserSubject::produce(uint32_t writer, Dice& dice) {
  const auto cpu = static_cast<uint32_t>(sched_getcpu());
  auto& counts = books_.count[writer][cpu];
  const uint64_t extra = random_extra(dice);
  const Message message{writer, cpu, counts[kOk], sizeof message + extra};
  books_.under_way[writer] = cpu + 1;
  switch (const int result = output(message, extra); result) {
    case 0:
      ++counts[kOk];
      break;
    case -ENOSPC:
      ++counts[kNoSpace];
      break;
    case -EBUSY:
      ++counts[kBusy];
      break;
    case -E2BIG:
      ++counts[kTooBig];
      break;
    case -EOPNOTSUPP:  // moved to another CPU: no ring was touched
      break;
    default:
      stage_.fault("an output ended with another error", static_cast<uint64_t>(-result));
  }
  books_.under_way[writer] = 0;
}

void UserSubject::take(uint32_t cpu, const Sample& sample, uint64_t lost) {
  const auto message = payload_as<Message>(sample);
  if (!message || message->cpu != cpu || message->writer >= kStageWriters ||
      message->size != sample.payload.size())
    return stage_.fault("a damaged record; CPU, size", cpu, sample.payload.size());
  const auto rest = sample.payload.subspan(sizeof *message);
  if (std::memcmp(rest.data(), pattern() + message->number % kPatternStarts, rest.size()) != 0)
    stage_.fault("damaged bytes; CPU, size", cpu, sample.payload.size());
  Journal& journal = stage_.journals[cpu];
  if (message->number > journal.next(message->writer))
    stage_.fault("a record is missing; expected, found", journal.next(message->writer),
                 message->number);
  if (!journal.take(message->writer, message->number, lost)) ++stage_.taken_again;
}

bool UserSubject::drained() {
  for (uint32_t cpu = 0; cpu < map_.rings(); ++cpu) {
    const ring::MetaPage& meta = *map_.ring(cpu).meta;
    if (__atomic_load_n(&meta.data_head, __ATOMIC_ACQUIRE) !=
        __atomic_load_n(&meta.data_tail, __ATOMIC_ACQUIRE))
      return false;
  }
  return true;
}

uint64_t UserSubject::counted(uint32_t cpu, Ending ending) const {
  const UserRingCounts counts = map_.counts(cpu);
  return ending == kNoSpace ? counts.lost
         : ending == kBusy  ? counts.drop_busy
                            : counts.drop_too_big;
}

// A producer that died between publishing and taking down: the record speaks for it.
void UserSubject::settle_delivered(uint32_t cpu, const std::vector<bool>& dead) {
  for (uint32_t writer = 0; writer < kStageWriters; ++writer) {
    auto& ok = books_.count[writer][cpu][kOk];
    const uint64_t arrived = stage_.journals[cpu].next(writer);
    if (arrived == ok) continue;
    ASSERT_TRUE(arrived == ok + 1 && dead[writer / 2] && books_.under_way[writer] == cpu + 1)
        << "CPU " << cpu << ", writer " << writer << ": " << ok << " published, " << arrived
        << " taken";
    ++ok;
    books_.under_way[writer] = 0;
    ++finished_by_the_dead_;
  }
}

// ... or between being refused and taking down: the ring's counter is ahead by its output.
void UserSubject::settle_refused(uint32_t cpu, Ending ending) {
  for (uint32_t writer = 0; writer < kStageWriters; ++writer) {
    if (counted(cpu, ending) == books_.sum(cpu, ending)) return;
    if (books_.under_way[writer] != cpu + 1) continue;
    ++books_.count[writer][cpu][ending];
    books_.under_way[writer] = 0;
    ++finished_by_the_dead_;
  }
}

void UserSubject::compare(const std::vector<bool>& dead) {
  for (uint32_t writer = 0; writer < kStageWriters; ++writer)
    ASSERT_TRUE(dead[writer / 2] || books_.under_way[writer] == 0) << "it parked inside an output";
  for (uint32_t cpu = 0; cpu < map_.rings(); ++cpu) {
    settle_delivered(cpu, dead);
    for (const Ending ending : {kNoSpace, kBusy, kTooBig}) {
      settle_refused(cpu, ending);
      ASSERT_EQ(counted(cpu, ending), books_.sum(cpu, ending)) << "CPU " << cpu << ", " << ending;
    }
    const Journal& journal = stage_.journals[cpu];
    ASSERT_EQ(journal.delivered(), books_.sum(cpu, kOk)) << "CPU " << cpu;
    const uint64_t pending = RingWriter(map_.ring(cpu), {}).pending_loss();
    ASSERT_EQ(journal.told() + pending, map_.counts(cpu).lost)
        << "told by LOST records, CPU " << cpu;
  }
  for (auto& cpu : books_.under_way) never_happened_ += cpu.exchange(0) != 0;
}

void UserSubject::print() const {
  for (uint32_t cpu = 0; cpu < map_.rings(); ++cpu)
    fmt::print("  CPU {}: produced {} = delivered {} + lost {} + busy {} + too big {}\n", cpu,
               produced(cpu), stage_.journals[cpu].delivered(), map_.counts(cpu).lost,
               map_.counts(cpu).drop_busy, map_.counts(cpu).drop_too_big);
  fmt::print("  of the killed inside an output: {} had published or been refused, {} had not\n",
             finished_by_the_dead_, never_happened_);
}

class UserExactnessTest : public UserMapTest {};
INSTANTIATE_TEST_SUITE_P(Producers, UserExactnessTest, testing::Bool(), producer_name);

TEST_P(UserExactnessTest, EveryOutputIsDeliveredOrCountedThoughAnybodyIsKilled) {
  const auto map = create({.ring_bytes = 32 << 10, .buffer_unread = true});
  if (map->rings() > kStageCpus) GTEST_SKIP() << "made for up to " << kStageCpus << " CPUs";
  Stage& stage = make_stage();
  UserSubject subject(stage, *map);
  {
    ExactnessRun run(stage, subject);
    run.run();
    EXPECT_GT(run.kills(), static_cast<uint64_t>(ExactnessRun::seconds().count()));
    EXPECT_GT(run.reader_ends(), 0u);
  }
  for (const uint32_t cpu : online_) {
    EXPECT_GT(stage.journals[cpu].delivered(), 0u);
    EXPECT_GT(map->counts(cpu).lost, 0u) << "the load was too low to show anything";
  }
  munmap(&stage, sizeof stage);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
