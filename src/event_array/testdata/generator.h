/* Between generator.bpf.c and the tests that load it. */
#ifndef DWELL_EVENT_ARRAY_TESTDATA_GENERATOR_H
#define DWELL_EVENT_ARRAY_TESTDATA_GENERATOR_H

#define GENERATOR_SYSCALL \
  999 /* no such system call: the tracepoint sees it, nothing else happens */
#define GENERATOR_CPUS 64
#define GENERATOR_PAYLOAD_BYTES 262144

/* Front of each payload that is large enough for it. */
struct generated {
  unsigned long long seq; /* per CPU, counts every call */
  unsigned int cpu;
  unsigned int size;
  unsigned long long ktime_ns;
};

struct generator_shared {
  /* Written by the test. */
  unsigned int target_pid;
  unsigned int counting;    /* seq counts over all CPUs */
  unsigned int any_process; /* not only target_pid */
  unsigned long long xdp_size, xdp_flags, xdp_raw;
  /* Written by the program, indexed by CPU. */
  unsigned long long calls[GENERATOR_CPUS];
  unsigned long long ok[GENERATOR_CPUS];
  unsigned long long no_space[GENERATOR_CPUS]; /* -ENOSPC */
  unsigned long long no_slot[GENERATOR_CPUS];  /* -ENOENT */
  unsigned long long other[GENERATOR_CPUS];
  long long last_result[GENERATOR_CPUS];
  unsigned long long counted;
};

#endif
