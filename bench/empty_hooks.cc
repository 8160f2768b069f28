// Empty BPF programs on the hooks of the probe, until it is interrupted: what the hooks themselves
// cost. bench/overhead starts it.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>

int main() {
  const bpf_insn nothing[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                              {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  for (const char* hook : {"sched_switch", "sched_waking", "sched_wakeup_new", "sched_process_exec",
                           "task_newtask", "task_rename"}) {
    const int id = libbpf_find_vmlinux_btf_id(hook, BPF_TRACE_RAW_TP);
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);
    options.attach_btf_id = static_cast<uint32_t>(id);
    const int program = id < 0 ? -1
                               : bpf_prog_load(BPF_PROG_TYPE_TRACING, "empty", "GPL", nothing,
                                               std::size(nothing), &options);
    if (program < 0 || bpf_raw_tracepoint_open(nullptr, program) < 0) {
      std::fprintf(stderr, "empty_hooks: cannot attach to %s: %s\n", hook, std::strerror(errno));
      return 1;
    }
  }
  pause();
  return 0;
}
