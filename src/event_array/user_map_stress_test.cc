// Many producers at once, interrupted, killed, without rseq: every output is read or counted.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kWriters = 64;

// What the producers count, in memory that all processes share and that outlives a killed one.
struct Books {
  std::atomic<uint64_t> ok[kWriters];
  std::atomic<uint64_t> no_space[kWriters];
  std::atomic<uint64_t> busy[kWriters];
  std::atomic<uint64_t> other[kWriters];
  std::atomic<uint64_t> slow;  // outputs above a millisecond of CPU time
  std::atomic<bool> stop;

  uint64_t sum(const std::atomic<uint64_t> (&counts)[kWriters]) const {
    uint64_t total = 0;
    for (const auto& n : counts) total += n;
    return total;
  }
};

// In seq: the writer is a handler that several threads may run at once.
constexpr uint64_t kUnordered = uint64_t{1} << 63;

struct Message {
  uint32_t writer;
  uint32_t size;
  uint64_t seq;
  uint64_t checksum;
};

uint64_t checksum_of(const Message& m, const std::byte* rest, size_t size) {
  uint64_t h = m.writer * 0x9e3779b97f4a7c15ull ^ m.seq ^ uint64_t { m.size } << 32;
  for (size_t i = 0; i < size; ++i) h = (h ^ static_cast<uint64_t>(rest[i])) * 0x100000001b3ull;
  return h;
}

// One output with a checksum over all of its bytes. Async-signal-safe.
int output_message(UserEventMap& map, Books& books, uint32_t writer, uint64_t seq, size_t extra) {
  alignas(8) std::byte bytes[sizeof(Message) + 512];
  Message m{writer, static_cast<uint32_t>(sizeof m + extra), seq, 0};
  for (size_t i = 0; i < extra; ++i) bytes[sizeof m + i] = static_cast<std::byte>(seq * 31 + i);
  m.checksum = checksum_of(m, bytes + sizeof m, extra);
  std::memcpy(bytes, &m, sizeof m);
  const int result = map.output(ring::kCurrentCpu, std::span(bytes, sizeof m + extra));
  auto& count = result == 0         ? books.ok
                : result == -ENOSPC ? books.no_space
                : result == -EBUSY  ? books.busy
                                    : books.other;
  ++count[writer];
  return result;
}

// Reads everything and checks each message; what it found per writer.
class Checker {
 public:
  explicit Checker(UserEventArray& array) : array_(array) {}

  void drain() {
    array_.drain({}, [this](uint32_t cpu, const Record& record) {
      if (const auto lost = lost_count(record)) {
        lost_ += *lost;
        return;
      }
      Sample sample;
      ASSERT_EQ(decode_sample(array_.format(), record, sample), SampleCheck::kOk);
      const auto m = payload_as<Message>(sample);
      ASSERT_TRUE(m.has_value());
      ASSERT_EQ(sample.payload.size(), m->size);
      ASSERT_EQ(m->checksum, checksum_of(*m, sample.payload.data() + sizeof *m,
                                         sample.payload.size() - sizeof *m));
      ++messages_;
      if ((m->seq & kUnordered) != 0) return;
      auto& next = next_[{m->writer, cpu}];
      ASSERT_GE(m->seq, next) << "one writer's messages stay in order within a ring";
      next = m->seq + 1;
    });
  }
  uint64_t messages() const { return messages_; }
  uint64_t lost() const { return lost_; }

 private:
  UserEventArray& array_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> next_;
  uint64_t messages_ = 0;
  uint64_t lost_ = 0;
};

class StressTest : public UserMapTest {
 protected:
  void SetUp() override {
    UserMapTest::SetUp();
    void* at =
        mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    books_ = new (at) Books{};
  }
  void TearDown() override {
    if (books_ != nullptr) munmap(books_, sizeof(Books));
  }
  uint64_t total_lost(const UserEventMap& map) const {
    uint64_t lost = 0;
    for (uint32_t i = 0; i < map.rings(); ++i) lost += map.counts(i).lost;
    return lost;
  }
  uint64_t total_busy(const UserEventMap& map) const {
    uint64_t busy = 0;
    for (uint32_t i = 0; i < map.rings(); ++i) busy += map.counts(i).drop_busy;
    return busy;
  }

  Books* books_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Producers, StressTest, testing::Bool(), producer_name);

// For the signal handler, which has no arguments of its own.
UserEventMap* handler_map;
Books* handler_books;
uint32_t handler_writer;
std::atomic<uint64_t> handler_seq;

void write_from_handler(int) {
  output_message(*handler_map, *handler_books, handler_writer, kUnordered | handler_seq++, 100);
}

// One process: threads that write, and a timer whose handler writes between their instructions.
void run_producers(UserEventMap& map, Books& books, uint32_t first_writer, int threads) {
  handler_map = &map;
  handler_books = &books;
  handler_writer = first_writer + static_cast<uint32_t>(threads);
  handler_seq = 0;
  struct sigaction action = {};
  action.sa_handler = write_from_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  std::vector<std::thread> writers;
  for (int t = 0; t < threads; ++t)
    writers.emplace_back([&, t] {
      const uint32_t writer = first_writer + static_cast<uint32_t>(t);
      std::mt19937 random(writer);
      for (uint64_t seq = 0; !books.stop; ++seq) {
        output_message(map, books, writer, seq, random() % 400);
        if (random() % 256 == 0) std::this_thread::yield();
      }
    });
  for (std::thread& t : writers) t.join();
  setitimer(ITIMER_REAL, &never, nullptr);
}

// How long producers run; DWELL_TEST_SECONDS for long runs.
std::chrono::seconds load_seconds() {
  const char* text = getenv("DWELL_TEST_SECONDS");
  return std::chrono::seconds(text != nullptr ? atoi(text) : 10);
}

TEST_P(StressTest, TwoProcessesOfFourThreadsAndSignalHandlersAddUp) {
  const auto map = create({.ring_bytes = 256 << 10});
  const auto array = attach(*map);
  std::vector<pid_t> children;
  for (uint32_t process = 0; process < 2; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      run_producers(*map, *books_, process * 5, 4);
      _exit(0);
    }
    children.push_back(child);
  }
  Checker checker(*array);
  const auto end = Clock::now() + load_seconds();
  while (Clock::now() < end && !HasFatalFailure()) {
    (void)array->wait(10ms);
    checker.drain();
  }
  books_->stop = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  checker.drain();
  EXPECT_GT(books_->sum(books_->ok), 5'000u * static_cast<uint64_t>(load_seconds().count()));
  EXPECT_EQ(checker.messages(), books_->sum(books_->ok));
  EXPECT_EQ(total_lost(*map), books_->sum(books_->no_space));
  EXPECT_EQ(total_busy(*map), books_->sum(books_->busy));
  EXPECT_EQ(books_->sum(books_->other), 0u);
  EXPECT_EQ(array->total_stats().corrupt, 0u);
  if (!GetParam()) {
    EXPECT_EQ(books_->sum(books_->busy), 0u) << "restartable producers are never busy";
  }
}

// How often: DWELL_TEST_KILLS, for long runs.
int kills() {
  const char* text = getenv("DWELL_TEST_KILLS");
  return text != nullptr ? atoi(text) : 1000;
}

// Writes until it is told to stop, and counts the outputs that took long.
void write_as_survivor(UserEventMap& map, Books& books) {
  std::mt19937 random(1);
  for (uint64_t seq = 0; !books.stop; ++seq) {
    // CPU time: what the scheduler takes from us is not the ring's doing.
    timespec before = {}, after = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    output_message(map, books, 63, seq, random() % 200);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const int64_t ns =
        (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
    books.slow += ns > 1'000'000;
    if (seq % 8 == 0) std::this_thread::yield();
  }
}

TEST_P(StressTest, ProducersKilledAnywhereHarmNobody) {
  // Small, so that it is full most of the time and losses are being told.
  const auto map = create({.ring_bytes = 16 << 10});
  const auto array = attach(*map);
  Checker checker(*array);
  // A process of its own: a thread here would pay for the pages that each fork below has it copy.
  const pid_t survivor = fork();
  if (survivor == 0) {
    write_as_survivor(*map, *books_);
    _exit(0);
  }
  std::mt19937 random(7);
  for (int i = 0; i < kills() && !HasFatalFailure(); ++i) {
    const pid_t victim = fork();
    if (victim == 0) {
      for (uint64_t seq = 0;; ++seq)
        output_message(*map, *books_, static_cast<uint32_t>(i) % 60, uint64_t(i) << 32 | seq,
                       seq % 300);
    }
    const auto end = Clock::now() + std::chrono::microseconds(200 + random() % 800);
    while (Clock::now() < end) {
      if (random() % 4 == 0) checker.drain();
    }
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    checker.drain();
  }
  books_->stop = true;
  int status = 0;
  waitpid(survivor, &status, 0);
  EXPECT_EQ(status, 0);
  checker.drain();
  EXPECT_EQ(array->total_stats().corrupt, 0u);
  // Each killed producer may have published or lost one output that its books do not have yet.
  const auto most = static_cast<uint64_t>(kills());
  EXPECT_GE(checker.messages(), books_->sum(books_->ok));
  EXPECT_LE(checker.messages(), books_->sum(books_->ok) + most);
  EXPECT_GE(total_lost(*map), books_->sum(books_->no_space));
  EXPECT_LE(total_lost(*map), books_->sum(books_->no_space) + most);
  EXPECT_LE(checker.lost(), total_lost(*map)) << "told, never more than lost";
  EXPECT_GT(checker.lost(), 0u);
  EXPECT_EQ(books_->sum(books_->other), 0u);
  // A virtual machine books what its host takes as ours.
  EXPECT_LE(books_->slow, 3u) << "nobody waits for the dead";
  // And the next LOST record brings the two together.
  for (const uint32_t cpu : online_) {
    PinToCpu pin(cpu);
    ASSERT_EQ(map->write(numbered(1)), 0);
  }
  uint64_t told = checker.lost();
  for (const UserGot& got : drain_all(*array)) told += got.lost;
  EXPECT_EQ(told, total_lost(*map));
}

TEST_P(StressTest, ReadersKilledAnywhereLoseNothing) {
  const auto map = create({.ring_bytes = 64 << 10});
  const auto keep_attached = attach(*map);  // so that outputs are counted while no reader lives
  auto* read = new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
      std::atomic<uint64_t>[2] {};
  std::thread producer([&] {
    for (uint64_t seq = 0; !books_->stop; ++seq) output_message(*map, *books_, 0, seq, seq % 100);
  });
  std::mt19937 random(9);
  for (int i = 0; i < 100; ++i) {
    const pid_t reader = fork();
    if (reader == 0) {
      auto array = UserEventArray::open(*map);
      if ((*array)->total_stats().corrupt != 0) ++read[1];
      for (;;)
        (*array)->drain({.max_records = 100}, [&](uint32_t, const Record& record) {
          Sample sample;
          if (!record.is_sample()) return;
          decode_sample({.pad_in_misc = true}, record, sample);
          const auto m = payload_as<Message>(sample);
          if (!m || m->checksum != checksum_of(*m, sample.payload.data() + sizeof *m,
                                               sample.payload.size() - sizeof *m))
            ++read[1];
          ++read[0];
        });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    kill(reader, SIGKILL);
    waitpid(reader, nullptr, 0);
  }
  books_->stop = true;
  producer.join();
  const auto last = attach(*map);
  Checker checker(*last);
  checker.drain();
  EXPECT_EQ(read[1], 0u) << "damaged records";
  // A batch that was read but not yet given back comes again: twice at most, never missing.
  EXPECT_GE(read[0] + checker.messages(), books_->sum(books_->ok));
  EXPECT_LE(read[0] + checker.messages(), books_->sum(books_->ok) + 100 * 100);
  EXPECT_EQ(total_lost(*map), books_->sum(books_->no_space));
}

}  // namespace
}  // namespace v0
}  // namespace dwell
