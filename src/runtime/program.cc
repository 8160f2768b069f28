#include "runtime/program.h"

#include <cstdio>
#include <cstdlib>

#include "runtime/packet.h"

namespace dwell::runtime {
namespace {

constinit thread_local Frame* innermost = nullptr;

}  // namespace

Frame* frame_or_null() { return innermost; }

Frame& frame() {
  if (innermost == nullptr) {
    std::fprintf(stderr,
                 "dwell runtime: a BPF call was made outside a program: use Program::run\n");
    std::abort();
  }
  return *innermost;
}

void push_frame(Frame& f) {
  f.outer = innermost;
  innermost = &f;
}

void pop_frame() { innermost = innermost->outer; }

const Program* running_program() { return innermost == nullptr ? nullptr : innermost->program; }

ProgramKind kind_of_section(std::string_view section) {
  if (section.starts_with("?")) section.remove_prefix(1);  // "do not load by itself"
  for (const std::string_view prefix : {"kprobe", "kretprobe", "ksyscall", "kretsyscall", "uprobe",
                                        "uretprobe", "usdt", "tp/", "tracepoint", "perf_event"})
    if (section.starts_with(prefix)) return ProgramKind::kPerf;
  for (const std::string_view prefix :
       {"raw_tp", "raw_tracepoint", "tp_btf", "fentry", "fexit", "fmod_ret"})
    if (section.starts_with(prefix)) return ProgramKind::kTraced;
  for (const std::string_view prefix :
       {"xdp", "tc", "classifier", "action", "socket", "cgroup_skb", "sk_skb", "lwt", "tcx"})
    if (section.starts_with(prefix)) return ProgramKind::kData;
  return ProgramKind::kUnguarded;
}

Program::Program(const dwell_native_program& native, Machine& machine)
    : name_(native.name),
      section_(native.section),
      kind_(kind_of_section(section_)),
      run_(native.run),
      machine_(machine),
      active_(machine.cpu_count()) {}

bool Program::enter(Cpu& cpu) {
  if (kind_ == ProgramKind::kPerf) return cpu.perf_programs++ == 0;
  if (kind_ == ProgramKind::kTraced) return active_[cpu.id]++ == 0;
  return true;
}

void Program::leave(Cpu& cpu) {
  if (kind_ == ProgramKind::kPerf) --cpu.perf_programs;
  if (kind_ == ProgramKind::kTraced) --active_[cpu.id];
}

RunResult Program::run(uint32_t cpu, void* context) { return run(cpu, context, nullptr); }

RunResult Program::run(uint32_t cpu, Packet& packet) {
  const DataContext data = packet.data();
  return run(cpu,
             kind_ == ProgramKind::kData && section_.starts_with("xdp")
                 ? static_cast<void*>(packet.xdp())
                 : static_cast<void*>(packet.skb()),
             &data);
}

RunResult Program::run(uint32_t cpu_id, void* context, const DataContext* data) {
  Cpu& cpu = machine_.cpu(cpu_id);
  RunResult result;
  if (enter(cpu)) {
    Frame f{machine_, cpu, this, kind_, data, nullptr};
    std::jmp_buf left_by_tail_call;
    f.unwind = &left_by_tail_call;
    push_frame(f);
    result.ran = true;
    if (_setjmp(left_by_tail_call) == 0)
      result.value = run_(context);
    else
      result.value = f.tail_result;
    pop_frame();
  } else {
    misses_.fetch_add(1, std::memory_order_relaxed);
  }
  leave(cpu);
  return result;
}

}  // namespace dwell::runtime
