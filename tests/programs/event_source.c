/*
 * The owner of a perf event array: loads a BPF program that outputs on demand, pins its map, and
 * obeys the lines of standard input. Every answer is one JSON line, by the program's own counters.
 *
 *   event_source OBJECT NAME PIN SLOTS
 *   output CPU COUNT BYTES    COUNT outputs of BYTES bytes each from this CPU
 *   quit                      (or the end of the input)
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/event_array/testdata/generator.h"

static struct bpf_object* object;
static struct generator_shared* shared;

static void fail(const char* what, int error) {
  fprintf(stderr, "event_source: %s: %s\n", what, strerror(error));
  exit(error == EPERM ? 77 : 1);
}

/* Under a name of its own: others may have maps of the name in the object. */
static int create_map(const char* name, unsigned slots) {
  const int fd = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, name, 4, 4, slots, NULL);
  if (fd < 0) fail("cannot create a perf event array", errno);
  const int error = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, "events"), fd);
  if (error) fail("cannot use the map", -error);
  return fd;
}

static unsigned id_of(int fd) {
  struct bpf_map_info info = {0};
  unsigned size = sizeof info;
  if (bpf_obj_get_info_by_fd(fd, &info, &size)) fail("cannot query the map", errno);
  return info.id;
}

static void load(const char* path, const char* name, const char* pin, unsigned slots) {
  object = bpf_object__open_file(path, NULL);
  if (!object) fail("cannot open the object", errno);
  const int map = create_map(name, slots);
  const int error = bpf_object__load(object);
  if (error) fail("cannot load the BPF programs", -error);
  const int bss = bpf_object__find_map_fd_by_name(object, ".bss");
  shared =
      mmap(NULL, (sizeof *shared + 4095) / 4096 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, bss, 0);
  if (shared == MAP_FAILED) fail("cannot map the counters", errno);
  shared->target_pid = (unsigned)getpid();
  if (!bpf_program__attach(bpf_object__find_program_by_name(object, "on_syscall")))
    fail("cannot attach to sys_enter", errno);
  if (bpf_obj_pin(map, pin)) fail("cannot pin the map", errno);
  printf("{\"id\":%u,\"other_id\":%u}\n", id_of(map), id_of(bss));
}

static void output(unsigned cpu, unsigned long count, unsigned long bytes) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one)) fail("cannot run on this CPU", errno);
  for (unsigned long i = 0; i < count; ++i) syscall(GENERATOR_SYSCALL, bytes, 0xffffffffUL, 0UL);
  printf("{\"cpu\":%u,\"ok\":%llu,\"no_space\":%llu,\"no_slot\":%llu,\"other\":%llu}\n", cpu,
         shared->ok[cpu], shared->no_space[cpu], shared->no_slot[cpu], shared->other[cpu]);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  load(argv[1], argv[2], argv[3], (unsigned)atoi(argv[4]));
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    unsigned cpu;
    unsigned long count, bytes;
    if (sscanf(line, "output %u %lu %lu", &cpu, &count, &bytes) == 3)
      output(cpu, count, bytes);
    else
      break;
  }
  unlink(argv[3]);
  return 0;
}
