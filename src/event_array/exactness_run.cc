#include "event_array/exactness_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>

#include "event_array/cpu_list.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 60s;  // for what takes milliseconds on a machine with nothing else to do

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

void nap(std::chrono::microseconds time) { usleep(static_cast<useconds_t>(time.count())); }

template <typename Condition>
bool wait_for(Condition condition) {
  const auto end = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > end) return false;
    nap(100us);
  }
  return true;
}

void on_signal(int number, void (*act)(int)) {
  struct sigaction action = {};
  action.sa_handler = act;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);  // a handler is one writer: it does not interrupt itself
  sigaction(number, &action, nullptr);
}

// Blocked across a fork, until the child has its handlers.
void block_signals(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGALRM, SIGUSR1, SIGTERM}) sigaddset(&set, number);
  sigprocmask(how, &set, nullptr);
}

// Once. Handlers set it again at their end: where a signal costs more than the period (an emulated
// machine that others keep busy) a repeating timer would leave no time for anything else.
void set_timer(std::chrono::microseconds period) {
  const itimerval timer = {{0, 0}, {0, period.count()}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// What a producer's signal handler works with, and a reader's.
struct Self {
  Stage* stage = nullptr;
  ExactnessSubject* subject = nullptr;
  uint32_t handler_writer = 0;
  Dice handler_dice{1};
} self;
volatile sig_atomic_t leave = 0;

constexpr auto kProducerTimer = 200us, kReaderTimer = 500us;

// Not while the producer parks: it has then told that nothing of it is under way.
void produce_from_handler(int number) {
  if (self.stage->halt == 0) self.subject->produce(self.handler_writer, self.handler_dice);
  if (number == SIGALRM) set_timer(kProducerTimer);
}

void hop(Dice& dice) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const auto count = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
  const uint64_t choice = dice.below(count + 1);  // one CPU, or any
  for (uint64_t cpu = 0; cpu < count; ++cpu)
    if (choice == count || choice == cpu) CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);  // fails for one that is offline: stays where it is
}

[[noreturn]] void produce_for_ever(Stage& stage, ExactnessSubject& subject, uint32_t slot,
                                   uint64_t seed) {
  Dice dice(seed);
  self = {&stage, &subject, 2 * slot + 1, Dice(seed + 1)};
  on_signal(SIGALRM, produce_from_handler);
  on_signal(SIGUSR1, produce_from_handler);
  block_signals(SIG_UNBLOCK);
  set_timer(kProducerTimer);
  for (;;) {
    if (const uint32_t halt = stage.halt; halt != 0) {
      stage.parked[slot] = halt;
      while (stage.halt == halt) nap(100us);
    }
    subject.produce(2 * slot, dice);
    if (dice.below(500) == 0) hop(dice);
  }
}

// A batch is given back as a whole, and ends behind a sample: a LOST record and the sample behind
// it, which are published together, are also taken together.
void drain_some(EventArray& array, ExactnessSubject& subject, Stage& stage, uint64_t most) {
  std::array<uint64_t, kStageCpus> lost{};
  uint64_t taken = 0;
  array.drain({.hold = true}, [&](uint32_t cpu, const Record& record) {
    if (const auto count = lost_count(record)) {
      lost[cpu] += *count;
      return true;
    }
    Sample sample;
    if (decode_sample(array.format(), record, sample) != SampleCheck::kOk)
      stage.fault("no sound sample; CPU, type", cpu, record.type);
    else
      subject.take(cpu, sample, std::exchange(lost[cpu], 0));
    return ++taken < most;
  });
}

[[noreturn]] void read_for_ever(Stage& stage, ExactnessSubject& subject, uint64_t seed) {
  Dice dice(seed);
  on_signal(SIGALRM, [](int) { set_timer(kReaderTimer); });
  on_signal(SIGUSR1, [](int) {});
  on_signal(SIGTERM, [](int) { leave = 1; });
  block_signals(SIG_UNBLOCK);
  set_timer(kReaderTimer);
  for (Journal& journal : stage.journals) journal.resume();
  auto array = subject.open();
  if (!array) {
    stage.fault(array.error().message.c_str());
    _exit(1);
  }
  if (!(*array)->resume()) stage.fault("cannot resume what a reader before has paused");
  while (leave == 0) {
    if (const auto result = (*array)->wait(std::chrono::microseconds(dice.below(5000))); !result)
      stage.fault(result.error().message.c_str());
    drain_some(**array, subject, stage, dice.below(4) == 0 ? 1 + dice.below(100) : UINT64_MAX);
    if (const RingStats stats = (*array)->total_stats(); stats.corrupt + stats.unknown != 0)
      stage.fault("a reader met bytes that are no records");
    if (dice.below(16) == 0) nap(std::chrono::microseconds(dice.below(3000)));
  }
  // In order: refuse more, take all, let the supervisor look, close.
  if (!(*array)->pause()) stage.fault("cannot pause");
  while ((*array)->has_data()) drain_some(**array, subject, stage, UINT64_MAX);
  raise(SIGSTOP);
  array->reset();
  _exit(0);
}

}  // namespace

Stage& make_stage() {
  void* at =
      mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  return *new (at) Stage{};
}

std::chrono::seconds ExactnessRun::seconds() {
  return std::chrono::seconds(number_of("DWELL_TEST_SECONDS", 3));
}

ExactnessRun::ExactnessRun(Stage& stage, ExactnessSubject& subject)
    : stage_(stage), subject_(subject), dice_(number_of("DWELL_TEST_SEED", 1)) {
  block_signals(SIG_BLOCK);
  if (getenv("DWELL_TEST_HOTPLUG") == nullptr) return;
  const auto online = read_cpu_list("online");
  if (!online || online->size() < 2) return;
  const std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/online", online->back());
  cpu_online_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
}

ExactnessRun::~ExactnessRun() {
  for (const pid_t child : producers_) kill(child, SIGKILL);
  if (reader_ > 0) kill(reader_, SIGKILL);
  for (const pid_t child : producers_) waitpid(child, nullptr, 0);
  if (reader_ > 0) waitpid(reader_, nullptr, 0);
  if (last_cpu_is_off_) move_cpu();
  if (cpu_online_ >= 0) close(cpu_online_);
  block_signals(SIG_UNBLOCK);
}

void ExactnessRun::run() {
  producers_.resize(kStageProducers);
  start_reader();
  for (uint32_t slot = 0; slot < kStageProducers; ++slot) start_producer(slot);
  const auto end = Clock::now() + seconds();
  next_move_ = Clock::now() + 300ms;
  while (Clock::now() < end && !testing::Test::HasFailure()) {
    nap(std::chrono::microseconds(dice_.below(12'000)));
    act();
  }
  if (last_cpu_is_off_) move_cpu();
  settle(std::vector<bool>(kStageProducers));
  expect_all_alive();
  fmt::print(
      "{} s: {} producers killed, {} readers killed, {} closed, {} storms of signals, {} times a "
      "CPU went or came, {} records came again to the next reader\n",
      seconds().count(), producer_kills_, reader_kills_, reader_exits_, storms_, cpu_moves_,
      stage_.taken_again.load());
  subject_.print();
}

void ExactnessRun::act() {
  if (cpu_online_ >= 0 && Clock::now() >= next_move_) return move_cpu();
  const uint64_t choice = dice_.below(100);
  if (choice < 75) return kill_producers();
  if (choice < 90) return end_reader(/*kill_it=*/choice < 87);
  storm();
}

void ExactnessRun::start_producer(uint32_t slot) {
  const uint64_t seed = dice_.below(UINT64_MAX);
  stage_.parked[slot] = 0;
  const pid_t child = fork();
  if (child == 0) produce_for_ever(stage_, subject_, slot, seed);
  ASSERT_GT(child, 0) << "fork";
  producers_[slot] = child;
}

void ExactnessRun::start_reader() {
  const uint64_t seed = dice_.below(UINT64_MAX);
  reader_ = fork();
  if (reader_ == 0) read_for_ever(stage_, subject_, seed);
  ASSERT_GT(reader_, 0) << "fork";
}

void ExactnessRun::kill_producers() {
  std::vector<bool> dead(kStageProducers);
  const bool all = dice_.below(10) == 0;
  for (uint32_t slot = 0; slot < kStageProducers; ++slot)
    dead[slot] = all || slot == producer_kills_ % kStageProducers;
  for (uint32_t slot = 0; slot < kStageProducers; ++slot)
    if (dead[slot]) kill(producers_[slot], SIGKILL);
  for (uint32_t slot = 0; slot < kStageProducers; ++slot) {
    if (!dead[slot]) continue;
    int status = 0;
    ASSERT_EQ(waitpid(producers_[slot], &status, 0), producers_[slot]);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it died by itself";
    ++producer_kills_;
  }
  settle(dead);
  for (uint32_t slot = 0; slot < kStageProducers; ++slot)
    if (dead[slot]) start_producer(slot);
}

// Stopped first: what it has opened so far is then known to the subject, and stays so.
void ExactnessRun::end_reader(bool kill_it) {
  int status = 0;
  kill(reader_, kill_it ? SIGSTOP : SIGTERM);
  ASSERT_EQ(waitpid(reader_, &status, WUNTRACED), reader_);
  ASSERT_TRUE(WIFSTOPPED(status)) << "a reader died by itself: " << stage_.first_fault.data();
  subject_.reader_stopped();
  kill(reader_, kill_it ? SIGKILL : SIGCONT);
  ASSERT_EQ(waitpid(reader_, &status, 0), reader_);
  EXPECT_TRUE(kill_it ? WIFSIGNALED(status) : WIFEXITED(status)) << status;
  ++(kill_it ? reader_kills_ : reader_exits_);
  for (Journal& journal : stage_.journals) journal.resume();
  subject_.reader_dead();
  start_reader();
}

void ExactnessRun::storm() {
  for (int i = 0; i < 200; ++i) {
    for (const pid_t child : producers_) kill(child, SIGUSR1);
    kill(reader_, SIGUSR1);
  }
  ++storms_;
}

// Offline for a tenth of a second, so that others on this machine are not held up for long.
void ExactnessRun::move_cpu() {
  const char* state = last_cpu_is_off_ ? "1" : "0";
  if (write(cpu_online_, state, 1) != 1) return;  // busy: next time
  last_cpu_is_off_ = !last_cpu_is_off_;
  ++cpu_moves_;
  next_move_ = Clock::now() + (last_cpu_is_off_ ? 100ms : 4000ms);
}

void ExactnessRun::settle(const std::vector<bool>& dead) {
  stage_.halt = ++halts_;
  for (uint32_t slot = 0; slot < kStageProducers; ++slot)
    EXPECT_TRUE(dead[slot] || wait_for([&] { return stage_.parked[slot] == halts_; }))
        << "producer " << slot << " hangs";
  EXPECT_TRUE(wait_for([&] { return subject_.drained(); })) << "the reader does not take all";
  subject_.compare(dead);
  EXPECT_EQ(stage_.faults, 0u) << stage_.first_fault.data();
  stage_.halt = 0;
}

void ExactnessRun::expect_all_alive() {
  int status = 0;
  for (const pid_t child : producers_)
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "a producer died by itself";
  EXPECT_EQ(waitpid(reader_, &status, WNOHANG), 0) << "the reader died by itself";
}

}  // namespace v0
}  // namespace dwell
