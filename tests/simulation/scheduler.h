// A scheduler that schedules at random: threads run, wait for a CPU, block, wake each other up,
// move between CPUs, are created, execute and rename themselves, and exit. Each thing that happens
// is told to the probe as the kernel would tell it, and entered into the simulator's own books.
//
// One host thread. Time passes only in step(); the order of events is the only concurrency, but
// steps may also happen in the middle of a program (interrupts, iterators).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernel_types.h"
#include "native_probe.h"
#include "random.h"
#include "stacks.h"
#include "truth.h"

namespace dwell::simulation {

struct SchedulerOptions {
  uint32_t cpus = 1;
  uint32_t threads = 2;  // at the start, and about as many all the time
  uint64_t seed = 1;
  // How often, per million steps or blocks:
  uint32_t exits = 2000;
  uint32_t execs = 500;
  uint32_t renames = 500;
  uint32_t migrations = 20000;
  uint32_t early_wakings = 20000;     // the waker is faster than the sleeper
  uint32_t cancelled_sleeps = 10000;  // a waking for a thread that has not gone to sleep
  uint32_t clock_jumps = 20;          // forward, up to a second
  uint32_t hidden_switches = 0;       // no program runs at them
  uint32_t missed_wakings = 0;        // nor at these
  uint32_t backward_ns = 0;           // CPUs' clocks differ by up to so much
  uint32_t interrupts = 0;            // in programs that can be interrupted: something happens
  uint32_t renames_max = 16;          // as the probe's
};

struct Thread {
  enum class Place : uint8_t { kNowhere, kRunning, kQueued, kBlocked };

  runtime::Task* task = nullptr;
  ThreadTruth truth;
  pt_regs___x86 registers = {};
  Place place = Place::kNowhere;
  uint32_t pid = 0;
  uint32_t lives = 0;
  uint32_t cpu = 0;
  uint32_t position = 0;  // in its list: queue or blocked
  uint64_t came_on_ns = 0;
  uint8_t stack = 0;  // variant of user and kernel stack
};

class Scheduler {
 public:
  Scheduler(runtime::Machine& machine, NativeProbe* probe, const SchedulerOptions& options);
  ~Scheduler();

  void step();
  void run_until(uint64_t switches);

  // Recording, as src/probe does it: states, start, seeds; ends; what is open is closed.
  void open_window();
  void close_window(Told& told);

  uint64_t switches() const { return switches_; }
  uint64_t hidden_switches() const { return hidden_; }
  uint64_t hidden_exits() const { return hidden_exits_; }
  const Window& window() const { return window_; }
  const std::vector<Life>& lives() const { return lives_; }
  const RowSums& truth_of_class(uint8_t wait_class) const { return by_class_[wait_class]; }
  const std::vector<uint64_t>& stack_counts() const { return stack_counts_; }  // by variant
  uint64_t executed() const { return executed_; }
  uint64_t renamed() const { return renamed_; }

 private:
  struct RunQueue {
    Thread* current = nullptr;  // null: idle
    runtime::Task* idle = nullptr;
    std::vector<Thread*> waiting;
  };

  void pass_time();
  uint64_t now(uint32_t cpu) const { return machine_.clock(machine_.cpu(cpu)); }
  task_struct& kernel(Thread& thread) { return thread.task->as<task_struct>(); }

  Thread* create_thread(uint32_t cpu);
  void place_at_start(Thread& thread);
  void reschedule(uint32_t cpu);
  void switch_threads(uint32_t cpu, Thread* prev, Thread* next);
  void decide_leaving(uint32_t cpu, Thread& thread);
  void decide_blocking(uint32_t cpu, Thread& thread);
  void decide_staying(uint64_t way, Thread& thread);
  void choose_stack(Thread& thread);
  void put_away(Thread& thread, uint32_t cpu, uint64_t at);
  void end_life(Thread& thread, uint64_t at);
  uint32_t other_cpu(uint32_t cpu);
  void wake_someone(uint32_t cpu);
  void tell_waking(uint32_t cpu, Thread& thread);
  void cancel_sleep(uint32_t cpu);
  void fork(uint32_t cpu);
  void exec(uint32_t cpu);
  void rename(uint32_t cpu);
  void migrate(uint32_t cpu);
  void enqueue(Thread& thread, uint32_t cpu);
  void add_to(std::vector<Thread*>& list, Thread& thread);
  void remove_from(std::vector<Thread*>& list, Thread& thread);
  void note(const std::optional<ClosedInterval>& interval, const Thread& thread);
  void interrupted(const runtime::Interrupted& where);
  void wake_while_leaving(uint32_t cpu);
  void bury();
  void steps(uint32_t count);
  std::vector<runtime::Task*> all_tasks();

  runtime::Machine& machine_;
  NativeProbe* probe_;
  SchedulerOptions options_;
  Random random_;
  StackMemory memory_;
  Window window_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> unused_;
  std::vector<RunQueue> queues_;
  std::vector<Thread*> blocked_;
  std::vector<Life> lives_;
  std::vector<runtime::Task*> graveyard_;  // freed when no program runs
  RowSums by_class_[DWELL_CLASS_COUNT];
  std::vector<uint64_t> stack_counts_ = std::vector<uint64_t>(kStackVariants);
  uint64_t switches_ = 0;
  uint64_t hidden_ = 0;
  uint64_t hidden_exits_ = 0;
  uint64_t executed_ = 0;
  uint64_t renamed_ = 0;
  uint64_t started_ = 0;  // of the threads that were there before all
  uint64_t steps_ = 0;
  uint32_t depth_ = 0;      // of interrupts and iterators
  bool recording_ = false;  // lives are entered
  bool start_set_ = false;  // the probe knows the start

  // How the thread that is leaving its CPU does so.
  struct Leaving {
    Thread* thread = nullptr;  // while the probe is told
    uint32_t prev_state = 0;
    bool preempt = false;
    bool blocks = false;
    bool dies = false;
    bool woken_early = false;
    uint8_t wait_class = 0;
  } leaving_;
};

}  // namespace dwell::simulation
