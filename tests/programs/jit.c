// Code without a file: a page of machine code that naps, named in /tmp/perf-PID.map as JIT
// compilers do. Two threads run it. `--map TEXT` writes TEXT after the address and size instead of
// `jit blob::run(int)`; `--map-kind` makes the map a fifo, a symlink, an endless file or none at
// all, or a jitdump (`dump`, `dump-endless`).
// usage: jit [--waits N] [--map TEXT] [--map-kind KIND] [--gate]
#include <sys/mman.h>
#include <sys/stat.h>

#include "truth.h"

// push rbp; mov rbp,rsp; call rdx (with rdi as it came); pop rbp; ret. A frame of its own, then the
// function given.
static const unsigned char kStub[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3};

static long waits;
static void (*blob)(struct truth*, void*, void (*)(struct truth*));

static NOINLINE void called_by_blob(struct truth* t) {
  TIMED(t, nap(10000000));
  KEEP_FRAME();
}
static NOINLINE void call_blob(struct truth* t) {
  for (long i = 0; i < waits; i++) blob(t, NULL, called_by_blob);
  KEEP_FRAME();
}
static void* run(void* name) {
  struct truth t;
  name_thread(name);
  truth_start(&t, "jit");
  call_blob(&t);
  truth_print(&t);
  return NULL;
}

// A jit-PID.dump: the code is loaded elsewhere under the given name, then moved to where it runs.
// One page of the file stays mapped executable, by which profilers find it.
static void write_dump(const char* kind, const char* text) {
  char path[64];
  uint32_t pid = (uint32_t)getpid(), size = (uint32_t)(strlen(text) + 1 + sizeof kStub);
  uint64_t at = (uintptr_t)blob, elsewhere = at + (1 << 20), index = 7;
  uint32_t header[] = {0x4a695444, 1, 40, 62 /* x86-64 */, 0, pid, 0, 0, 0, 0};
  uint32_t load[] = {0, 16 + 40 + size, 0, 0, pid, pid};
  uint64_t load_places[] = {elsewhere, elsewhere, sizeof kStub, index};
  uint32_t move[] = {1, 16 + 48, 0, 0, pid, pid};
  uint64_t move_places[] = {at, elsewhere, at, sizeof kStub, index};
  snprintf(path, sizeof path, "/tmp/jit-%d.dump", getpid());
  unlink(path);
  FILE* dump = fopen(path, "w+");
  if (!dump) die(path);
  fwrite(header, sizeof header, 1, dump);
  fwrite(load, sizeof load, 1, dump);
  fwrite(load_places, sizeof load_places, 1, dump);
  fwrite(text, strlen(text) + 1, 1, dump);
  fwrite(kStub, sizeof kStub, 1, dump);
  fwrite(move, sizeof move, 1, dump);
  fwrite(move_places, sizeof move_places, 1, dump);
  fflush(dump);
  if (!strcmp(kind, "dump-endless") && truncate(path, 1L << 40) && truncate(path, 1L << 33))
    die("truncate");
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
    die("mmap");
  unlink(path);  // what is mapped can be read all the same
}

static void write_map(const char* path, const char* kind, const char* text) {
  FILE* map;
  if (!strcmp(kind, "none")) return;
  if (!strncmp(kind, "dump", 4)) return write_dump(kind, text);
  if (!strcmp(kind, "fifo")) {
    if (mkfifo(path, 0600)) die(path);
    return;
  }
  if (!strcmp(kind, "symlink")) {
    if (symlink("/dev/zero", path)) die(path);
    return;
  }
  map = fopen(path, "w");
  if (!map) die(path);
  fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)blob, sizeof kStub, text);
  fclose(map);
  // Sparse: a terabyte of zero bytes after the first line, on a file system that allows it, or what
  // it allows.
  if (!strcmp(kind, "endless") && truncate(path, 1L << 40) && truncate(path, 1L << 33))
    die("truncate");
}

int main(int argc, char** argv) {
  char path[64];
  const char *text = "jit blob::run(int)", *kind = "file";
  for (int i = 1; i + 1 < argc; i++) {
    if (!strcmp(argv[i], "--map")) text = argv[i + 1];
    if (!strcmp(argv[i], "--map-kind")) kind = argv[i + 1];
  }
  waits = option(argc, argv, "--waits", 20);
  void* page =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) die("mmap");
  memcpy(page, kStub, sizeof kStub);
  blob = page;
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  unlink(path);
  write_map(path, kind, text);
  gate(argc, argv, "ready");
  pthread_t other = start_thread(run, "jit_thread");
  run("jit_main");
  pthread_join(other, NULL);
  gate(argc, argv, "done");
  return 0;
}
