#include "scheduler.h"

#include <algorithm>

namespace dwell::simulation {
namespace {

constexpr uint64_t kFirstClock = 1'000'000'000'000;
constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSyscallYield = 24;
constexpr uint64_t kKernelStackBytes = 16384;
constexpr uint32_t kStepsOfLoadShift = 14;
constexpr uint32_t kStacksPerThread = 4;
constexpr uint32_t kKernelThreads = 16;  // one in so many

// A way to block: what the kernel's task says, and what the probe must call it.
struct WaitKind {
  uint32_t state;
  bool in_iowait;
  uint8_t wait_class;
  uint64_t syscall;
};
constexpr WaitKind kWaits[] = {
    {TASK_INTERRUPTIBLE, false, DWELL_CLASS_INTERRUPTIBLE, 202},
    {TASK_INTERRUPTIBLE | TASK_FREEZABLE, false, DWELL_CLASS_INTERRUPTIBLE, 232},
    {TASK_INTERRUPTIBLE, true, DWELL_CLASS_IO, 17},
    {TASK_UNINTERRUPTIBLE, true, DWELL_CLASS_IO, 0},
    {TASK_UNINTERRUPTIBLE, false, DWELL_CLASS_UNINTERRUPTIBLE, 1},
    {TASK_UNINTERRUPTIBLE | TASK_WAKEKILL, false, DWELL_CLASS_KILLABLE, 257},
    {TASK_UNINTERRUPTIBLE | TASK_NOLOAD, false, DWELL_CLASS_IDLE_KTHREAD, 0},
    {TASK_STOPPED_BIT | TASK_WAKEKILL, false, DWELL_CLASS_STOPPED, 34},
    {TASK_TRACED_BIT | TASK_WAKEKILL, false, DWELL_CLASS_TRACED, 34},
    {TASK_PARKED, false, DWELL_CLASS_PARKED, 0},
    {TASK_FROZEN, false, DWELL_CLASS_FROZEN, 202},
    {TASK_RTLOCK_WAIT, false, DWELL_CLASS_RTLOCK, 202},
};

}  // namespace

Scheduler::Scheduler(runtime::Machine& machine, NativeProbe* probe, const SchedulerOptions& options)
    : machine_(machine),
      probe_(probe),
      options_(options),
      random_(options.seed),
      queues_(options.cpus) {
  machine_.set_clock(kFirstClock);
  machine_.set_missing({"struct fred_ss"});
  for (uint32_t cpu = 0; cpu < options_.cpus; ++cpu) {
    runtime::Task& idle = machine_.create_task(sizeof(task_struct));
    idle.as<task_struct>().flags = PF_IDLE | PF_KTHREAD;
    idle.as<task_struct>().group_leader = idle.as<task_struct>().real_parent =
        &idle.as<task_struct>();
    queues_[cpu].idle = machine_.cpu(cpu).current = &idle;
    if (options_.backward_ns != 0)
      machine_.cpu(cpu).clock_offset_ns = static_cast<int64_t>(random_.below(options_.backward_ns));
  }
  for (uint32_t i = 0; i < options_.threads; ++i) {
    Thread& thread = *create_thread(static_cast<uint32_t>(random_.below(options_.cpus)));
    place_at_start(thread);
  }
  if (options_.interrupts != 0)
    machine_.set_interrupt_hook([this](const runtime::Interrupted& where) { interrupted(where); });
}

Scheduler::~Scheduler() { machine_.set_interrupt_hook({}); }

Thread* Scheduler::create_thread(uint32_t cpu) {
  if (unused_.empty()) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->pid = static_cast<uint32_t>(threads_.size());
    unused_.push_back(threads_.back().get());
  }
  Thread* thread = unused_.back();
  unused_.pop_back();
  thread->lives = 0;
  thread->cpu = cpu;
  thread->registers = {};
  thread->task = &machine_.create_task(sizeof(task_struct));
  runtime::Task& task = *thread->task;
  task.pid = task.tgid = thread->pid;  // used again after an exit, with another start
  task.user_registers = &thread->registers;
  task.user_memory = &memory_;
  task_struct& fields = task.as<task_struct>();
  fields.pid = fields.tgid = static_cast<int>(thread->pid);
  fields.flags = random_.below(kKernelThreads) == 0 ? PF_KTHREAD : 0;
  // No two are created at the same time, but for those that were there before all.
  fields.start_boottime =
      started_ >= options_.threads ? machine_.clock() : kFirstClock - options_.threads + started_++;
  fields.group_leader = &fields;
  fields.real_parent = &queues_[0].idle->as<task_struct>();
  fields.__state = TASK_NEW;
  // Where the raw build looks for the registers: at the top of the kernel stack.
  fields.stack = reinterpret_cast<std::byte*>(&thread->registers + 1) - kKernelStackBytes;
  choose_stack(*thread);
  return thread;
}

void Scheduler::choose_stack(Thread& thread) {
  thread.stack =
      static_cast<uint8_t>((thread.pid + random_.below(kStacksPerThread)) % kStackVariants);
  thread.registers.bp = user_frame_pointer(thread.stack);
  thread.registers.sp = user_stack_pointer(thread.stack);
  thread.registers.ip = user_ip(thread.stack);
  thread.task->kernel_stack = kernel_frames(thread.stack);
}

// As if it had been there for ever.
void Scheduler::place_at_start(Thread& thread) {
  RunQueue& queue = queues_[thread.cpu];
  task_struct& fields = kernel(thread);
  fields.__state = TASK_RUNNING;
  if (queue.current == nullptr) {
    queue.current = &thread;
    machine_.cpu(thread.cpu).current = thread.task;
    fields.on_cpu = 1;
    thread.place = Thread::Place::kRunning;
    thread.came_on_ns = now(thread.cpu);
    thread.truth.begin_on_cpu(0, now(thread.cpu));
  } else if (random_.below(4) == 0) {
    thread.truth.begin_off_cpu(0, now(thread.cpu), DWELL_CLASS_RUNNABLE, false);
    enqueue(thread, thread.cpu);
  } else {
    const WaitKind& kind = kWaits[random_.below(std::size(kWaits))];
    fields.__state = kind.state;
    fields.in_iowait = kind.in_iowait;
    thread.registers.orig_ax = kind.syscall;
    thread.truth.begin_off_cpu(0, now(thread.cpu), kind.wait_class, true);
    thread.place = Thread::Place::kBlocked;
    add_to(blocked_, thread);
  }
}

void Scheduler::add_to(std::vector<Thread*>& list, Thread& thread) {
  thread.position = static_cast<uint32_t>(list.size());
  list.push_back(&thread);
}

void Scheduler::remove_from(std::vector<Thread*>& list, Thread& thread) {
  list[thread.position] = list.back();
  list[thread.position]->position = thread.position;
  list.pop_back();
}

void Scheduler::enqueue(Thread& thread, uint32_t cpu) {
  thread.cpu = cpu;
  thread.place = Thread::Place::kQueued;
  add_to(queues_[cpu].waiting, thread);
}

// -- time and steps ------------------------------------------------------------------------------

void Scheduler::pass_time() {
  uint64_t ns = 50 + random_.below(2000);
  if (random_.chance(options_.clock_jumps)) ns += random_.below(1000 * kMillisecond);
  machine_.set_clock(machine_.clock() + ns);
}

void Scheduler::step() {
  pass_time();
  const auto cpu = static_cast<uint32_t>(random_.below(options_.cpus));
  // For some time more are woken than block, then fewer: queues and idle CPUs take turns.
  const bool busy = (steps_++ >> kStepsOfLoadShift) % 2 == 0;
  if (random_.below(100) < (busy ? 62 : 45)) wake_someone(cpu);
  if (random_.chance(options_.migrations)) migrate(cpu);
  if (queues_[cpu].current != nullptr) {
    if (random_.chance(options_.execs)) exec(cpu);
    if (random_.chance(options_.renames)) rename(cpu);
    if (random_.chance(options_.cancelled_sleeps)) cancel_sleep(cpu);
    if (threads_.size() - unused_.size() < options_.threads) fork(cpu);
  }
  reschedule(cpu);
  if (depth_ == 0) bury();
}

void Scheduler::run_until(uint64_t switches) {
  while (switches_ < switches) step();
}

void Scheduler::bury() {
  for (runtime::Task* task : graveyard_) machine_.free_task(*task);
  graveyard_.clear();
}

// -- scheduling ----------------------------------------------------------------------------------

void Scheduler::reschedule(uint32_t cpu) {
  RunQueue& queue = queues_[cpu];
  Thread* prev = queue.current;
  leaving_ = {};
  if (prev != nullptr) decide_leaving(cpu, *prev);
  Thread* next = nullptr;
  if (!queue.waiting.empty()) {
    next = queue.waiting[random_.below(queue.waiting.size())];
    remove_from(queue.waiting, *next);
  }
  if (next == nullptr && (prev == nullptr || !(leaving_.blocks || leaving_.dies))) {
    if (prev != nullptr) kernel(*prev).__state = TASK_RUNNING;  // nobody else wants the CPU
    return;
  }
  switch_threads(cpu, prev, next);
}

void Scheduler::decide_leaving(uint32_t cpu, Thread& thread) {
  task_struct& fields = kernel(thread);
  choose_stack(thread);
  thread.registers.orig_ax = kWaits[random_.below(std::size(kWaits))].syscall;
  if (random_.chance(options_.exits)) {
    fields.exit_state = 16;
    fields.__state = leaving_.prev_state = TASK_DEAD;
    leaving_.dies = true;
    return;
  }
  const uint64_t way = random_.below(100);
  if (way < 60)
    decide_blocking(cpu, thread);
  else
    decide_staying(way, thread);
}

void Scheduler::decide_blocking(uint32_t cpu, Thread& thread) {
  task_struct& fields = kernel(thread);
  const WaitKind& kind = kWaits[random_.below(std::size(kWaits))];
  leaving_.blocks = true;
  leaving_.wait_class = kind.wait_class;
  leaving_.prev_state = fields.__state = kind.state;
  fields.in_iowait = kind.in_iowait;
  thread.registers.orig_ax = kind.syscall;
  if (!random_.chance(options_.early_wakings)) return;
  tell_waking(other_cpu(cpu), thread);
  machine_.set_clock(machine_.clock() + random_.below(kMillisecond / 2));
  fields.__state = TASK_WAKING;
  leaving_.woken_early = true;
}

// It loses the CPU, or gives it up, and stays on the run queue.
void Scheduler::decide_staying(uint64_t way, Thread& thread) {
  task_struct& fields = kernel(thread);
  if (way < 75) {
    leaving_.wait_class = DWELL_CLASS_PREEMPTED;
    thread.registers.orig_ax = ~0ul;
  } else if (way < 88) {
    leaving_.preempt = true;
    leaving_.wait_class = DWELL_CLASS_PREEMPTED_KERNEL;
    // It may have been about to sleep.
    if (recording_ && random_.below(8) == 0)
      leaving_.prev_state = fields.__state = TASK_INTERRUPTIBLE;
  } else if (way < 95) {
    const bool kernel_thread = (fields.flags & PF_KTHREAD) != 0;
    leaving_.wait_class = kernel_thread ? DWELL_CLASS_PREEMPTED : DWELL_CLASS_YIELDED;
    thread.registers.orig_ax = kSyscallYield;
  } else {
    leaving_.wait_class = DWELL_CLASS_SIGNAL;
    leaving_.prev_state = TASK_INTERRUPTIBLE;
    fields.__state = TASK_RUNNING;
  }
}

uint32_t Scheduler::other_cpu(uint32_t cpu) {
  const auto chosen = static_cast<uint32_t>(random_.below(options_.cpus));
  return chosen == cpu && options_.cpus > 1 ? (cpu + 1) % options_.cpus : chosen;
}

// Null: the idle task.
void Scheduler::switch_threads(uint32_t cpu, Thread* prev, Thread* next) {
  ++switches_;
  const uint64_t at = now(cpu);
  runtime::Task& prev_task = prev != nullptr ? *prev->task : *queues_[cpu].idle;
  runtime::Task& next_task = next != nullptr ? *next->task : *queues_[cpu].idle;
  if (prev != nullptr) {
    kernel(*prev).se.sum_exec_runtime += at - prev->came_on_ns;
    ++kernel(*prev).nvcsw;
  }
  if (random_.chance(options_.hidden_switches)) {
    ++hidden_;
    if (leaving_.dies) ++hidden_exits_;
  } else if (probe_ != nullptr) {
    leaving_.thread = prev;
    probe_->sched_switch(cpu, leaving_.preempt, prev_task, next_task, leaving_.prev_state);
    leaving_.thread = nullptr;
  }
  queues_[cpu].current = next;
  machine_.cpu(cpu).current = &next_task;
  if (prev != nullptr) put_away(*prev, cpu, at);
  if (next == nullptr) return;
  note(next->truth.come_on_cpu(window_, at), *next);
  kernel(*next).on_cpu = 1;
  kernel(*next).__state = TASK_RUNNING;
  next->came_on_ns = at;
  next->place = Thread::Place::kRunning;
}

void Scheduler::put_away(Thread& thread, uint32_t cpu, uint64_t at) {
  kernel(thread).on_cpu = 0;
  if (leaving_.dies) {
    end_life(thread, at);
    thread.place = Thread::Place::kNowhere;
    graveyard_.push_back(thread.task);
    thread.task = nullptr;
    unused_.push_back(&thread);
    return;
  }
  thread.truth.leave_cpu(window_, at, leaving_.wait_class, leaving_.blocks);
  if (leaving_.woken_early) {
    thread.truth.wake(at);
    kernel(thread).__state = TASK_RUNNING;
    enqueue(thread, other_cpu(cpu));
  } else if (leaving_.blocks) {
    thread.place = Thread::Place::kBlocked;
    add_to(blocked_, thread);
  } else {
    enqueue(thread, cpu);
  }
}

void Scheduler::end_life(Thread& thread, uint64_t at) {
  if (!recording_) return;
  if (const auto life = thread.truth.end_life(window_, at, kernel(thread).start_boottime))
    lives_.push_back(*life);
}

void Scheduler::note(const std::optional<ClosedInterval>& interval, const Thread& thread) {
  if (!interval) return;
  RowSums& sums = by_class_[interval->wait_class];
  sums.blocked_ns += interval->blocked_ns;
  sums.run_queue_ns += interval->run_queue_ns;
  ++sums.count;
  if (interval->wait_class >= DWELL_CLASS_PREEMPTED) return;
  ++sums.blocked_count;
  ++stack_counts_[thread.stack];
}

// -- what else threads do ------------------------------------------------------------------------

void Scheduler::tell_waking(uint32_t cpu, Thread& thread) {
  if (probe_ == nullptr || random_.chance(options_.missed_wakings)) return;
  probe_->sched_waking(cpu, *thread.task);
}

void Scheduler::wake_someone(uint32_t cpu) {
  if (blocked_.empty()) return;
  Thread& thread = *blocked_[random_.below(blocked_.size())];
  remove_from(blocked_, thread);
  tell_waking(cpu, thread);
  thread.truth.wake(now(cpu));
  kernel(thread).__state = TASK_RUNNING;
  kernel(thread).in_iowait = 0;
  enqueue(thread, static_cast<uint32_t>(random_.below(options_.cpus)));
}

// It was about to sleep; it is woken before it does, and goes on.
void Scheduler::cancel_sleep(uint32_t cpu) {
  tell_waking(other_cpu(cpu), *queues_[cpu].current);
  pass_time();
}

void Scheduler::fork(uint32_t cpu) {
  Thread& child = *create_thread(cpu);
  if (probe_ != nullptr) probe_->task_newtask(cpu, *child.task);
  pass_time();
  kernel(child).__state = TASK_RUNNING;
  const uint64_t at = now(cpu);
  child.truth.begin_off_cpu(at, at, start_set_ ? DWELL_CLASS_NEW : DWELL_CLASS_RUNNABLE, false);
  if (probe_ != nullptr) probe_->sched_wakeup_new(cpu, *child.task);
  enqueue(child, cpu);
}

// The kernel counts the exec and changes the name before it tells.
void Scheduler::exec(uint32_t cpu) {
  Thread& thread = *queues_[cpu].current;
  kernel(thread).self_exec_id++;
  if (probe_ != nullptr) probe_->sched_process_exec(cpu, *thread.task);
  if (!start_set_ || now(cpu) >= window_.end_ns) return;
  ++executed_;
  ++thread.lives;
  end_life(thread, now(cpu));
}

void Scheduler::rename(uint32_t cpu) {
  Thread& thread = *queues_[cpu].current;
  if (probe_ != nullptr) probe_->task_rename(cpu, *thread.task, "renamed");
  if (!start_set_ || now(cpu) >= window_.end_ns || thread.lives >= options_.renames_max) return;
  ++renamed_;
  ++thread.lives;
  end_life(thread, now(cpu));
}

void Scheduler::migrate(uint32_t cpu) {
  std::vector<Thread*>& waiting = queues_[cpu].waiting;
  if (waiting.empty()) return;
  Thread& thread = *waiting[random_.below(waiting.size())];
  remove_from(waiting, thread);
  enqueue(thread, other_cpu(cpu));
}

}  // namespace dwell::simulation
