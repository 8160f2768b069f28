#include <algorithm>

#include "scheduler.h"

namespace dwell::simulation {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kDeepestInterrupt = 2;

}  // namespace

std::vector<runtime::Task*> Scheduler::all_tasks() {
  std::vector<runtime::Task*> tasks;
  for (const std::unique_ptr<Thread>& thread : threads_)
    if (thread->task != nullptr) tasks.push_back(thread->task);
  return tasks;
}

void Scheduler::steps(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) step();
}

void Scheduler::open_window() {
  ++depth_;  // nobody is buried while an iterator is under way
  const uint32_t some = std::min(options_.cpus * 4, 4000u);
  if (probe_ != nullptr) probe_->prepare(0, all_tasks());
  steps(some);
  window_.start_ns = machine_.clock() + 2 * kMillisecond;
  recording_ = start_set_ = true;
  for (RunQueue& queue : queues_)
    for (Thread* thread : queue.waiting) thread->truth.forget_reason(DWELL_CLASS_RUNNABLE);
  if (probe_ != nullptr) probe_->set_start(window_.start_ns);
  steps(some);
  if (probe_ != nullptr) probe_->seed(0, all_tasks(), options_.seed % 2 == 0);
  --depth_;
  while (machine_.clock() <= window_.start_ns) step();
}

void Scheduler::close_window(Told& told) {
  window_.end_ns = machine_.clock() + options_.backward_ns + kMillisecond;
  if (probe_ != nullptr) probe_->set_end(window_.end_ns);
  while (machine_.clock() <= window_.end_ns) step();
  steps(options_.cpus * 2);
  ++depth_;
  for (int run = 0; run < 2 && probe_ != nullptr; ++run) {
    probe_->close_window(0, all_tasks(), told);
    steps(options_.cpus);
  }
  --depth_;
  machine_.set_interrupt_hook({});
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread->task == nullptr) continue;
    if (!thread->truth.on_cpu()) note(thread->truth.close(window_), *thread);
    end_life(*thread, window_.end_ns + 1);
  }
}

// In the middle of an iterator anything may happen, on this CPU too. A tracepoint of a thread's
// life runs with interrupts on: somebody may be woken from one, and other CPUs go on.
void Scheduler::interrupted(const runtime::Interrupted& where) {
  if (depth_ > kDeepestInterrupt || !random_.chance(options_.interrupts)) return;
  const std::string& name = where.program->name();
  ++depth_;
  if (name == "prepare" || name.starts_with("seed") || name == "close_window")
    step();
  else if (name == "on_task_newtask" || name == "on_sched_process_exec" || name == "on_task_rename")
    wake_someone(where.cpu);
  else if (name == "on_sched_switch")
    wake_while_leaving(where.cpu);
  --depth_;
}

void Scheduler::wake_while_leaving(uint32_t cpu) {
  if (leaving_.thread == nullptr || !leaving_.blocks || leaving_.woken_early) return;
  if (options_.cpus == 1) return;
  tell_waking(other_cpu(cpu), *leaving_.thread);
  kernel(*leaving_.thread).__state = TASK_WAKING;
  leaving_.woken_early = true;
}

}  // namespace dwell::simulation
