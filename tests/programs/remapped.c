// Moves its own code to memory without a file, as programs do that want huge pages for it, then
// naps. usage: remapped [--waits N] [--gate]
#include <sys/mman.h>

#include "truth.h"

static NOINLINE void remapped_inner(struct truth* t) {
  TIMED(t, nap(10000000));
  KEEP_FRAME();
}
static NOINLINE void remapped_outer(struct truth* t) {
  remapped_inner(t);
  KEEP_FRAME();
}

// The mapping that holds main().
static void find_code(uintptr_t* start, uintptr_t* end);

static void move_code(void) {
  uintptr_t start, end;
  find_code(&start, &end);
  const size_t bytes = end - start;
  char* copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) die("mmap");
  memcpy(copy, (const void*)start, bytes);
  if (mprotect(copy, bytes, PROT_READ | PROT_EXEC)) die("mprotect");
  if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)start) == MAP_FAILED)
    die("mremap");
}

int main(int argc, char** argv) {
  const long waits = option(argc, argv, "--waits", 20);
  struct truth t;
  move_code();
  gate(argc, argv, "ready");
  truth_start(&t, "clock_nanosleep");
  for (long i = 0; i < waits; i++) remapped_outer(&t);
  truth_print(&t);
  gate(argc, argv, "done");
  return 0;
}

static void find_code(uintptr_t* start, uintptr_t* end) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  if (!maps) die("/proc/self/maps");
  while (fgets(line, sizeof line, maps)) {
    char* rest;
    *start = strtoul(line, &rest, 16);
    *end = strtoul(rest + 1, NULL, 16);
    if ((uintptr_t)main >= *start && (uintptr_t)main < *end) break;
  }
  fclose(maps);
}
