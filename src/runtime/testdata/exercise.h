/* Between exercise.bpf.c and the tests that run it. */
#ifndef DWELL_RUNTIME_TESTDATA_EXERCISE_H
#define DWELL_RUNTIME_TESTDATA_EXERCISE_H

/* What on_map is asked to do: args[0] which, args[1] map, args[2] key, args[3] value, args[4]
 * flags. */
enum exercise_operation { EXERCISE_LOOKUP, EXERCISE_UPDATE, EXERCISE_DELETE, EXERCISE_ADD };
enum exercise_map {
  EXERCISE_HASH,
  EXERCISE_PERCPU_HASH,
  EXERCISE_ARRAY,
  EXERCISE_PERCPU_ARRAY,
  EXERCISE_INNER,         /* of maps_in_array[0] */
  EXERCISE_INNER_BY_NAME, /* of maps_in_hash[7] */
};

struct exercise_facts {
  unsigned long long ktime_ns, boot_ns, pid_tgid, uid_gid, task, task_btf;
  unsigned int cpu, random;
  char comm[16];
};

struct exercise_results {
  long result;              /* of the last call */
  unsigned long long value; /* what it read */
  unsigned long long runs;  /* of the counting programs */
  unsigned long long deepest;
  unsigned long long depth;
  struct exercise_facts facts;
  unsigned long long frames[8];
  char text[16];
  unsigned char bytes[16];
};

struct exercise_leaf {
  int number;
};
/* A kernel struct of the program's own. */
struct task_struct {
  int pid;
  unsigned int lazy : 3;
  unsigned int ready : 2;
  struct exercise_leaf* leaf;
  struct task_struct* parent;
};

#endif
