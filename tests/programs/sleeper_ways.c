// The ways to block. Each wait_* function waits in a way that its name says; an end_* function is
// the other thread that ends these waits. A way's thread does nothing else that blocks, so that its
// voluntary switches are its waits.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sleeper.h"

static NOINLINE void wait_nanosleep(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) TIMED(t, nap(sleeper_wait_ns));
  KEEP_FRAME();
}

static int wait_ms(void) { return (int)(sleeper_wait_ns / 1000000) ?: 1; }

static NOINLINE void wait_poll(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) TIMED(t, poll(NULL, 0, wait_ms()));
  KEEP_FRAME();
}

static NOINLINE void wait_epoll(struct truth* t) {
  struct epoll_event event;
  int epoll = epoll_create1(0);
  if (epoll < 0) die("epoll_create1");
  for (long i = 0; i < sleeper_waits; i++) TIMED(t, epoll_wait(epoll, &event, 1, wait_ms()));
  close(epoll);
}

// A condition variable signalled with its mutex free, so that the waiter blocks once per signal.
static pthread_mutex_t condition_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long signalled;
static NOINLINE void wait_condition(struct truth* t) {
  pthread_mutex_lock(&condition_mutex);
  for (long i = 0; i < sleeper_waits; i++)
    while (signalled <= i) TIMED(t, pthread_cond_wait(&condition, &condition_mutex));
  pthread_mutex_unlock(&condition_mutex);
}
static NOINLINE void end_condition(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) {
    TIMED(t, nap(sleeper_wait_ns));
    pthread_mutex_lock(&condition_mutex);
    signalled++;
    pthread_mutex_unlock(&condition_mutex);
    pthread_cond_signal(&condition);
  }
}

// The holder takes the mutex and says so in `held`; the waiter watches that word without sleeping,
// then blocks on the mutex until the holder's nap is over.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic long held, passed;
static NOINLINE void wait_mutex(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) {
    while (atomic_load(&held) <= i) continue;
    TIMED(t, pthread_mutex_lock(&mutex));
    pthread_mutex_unlock(&mutex);
    atomic_store(&passed, i + 1);
  }
}
static NOINLINE void end_mutex(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) {
    while (atomic_load(&passed) < i) continue;
    pthread_mutex_lock(&mutex);
    atomic_store(&held, i + 1);
    TIMED(t, nap(sleeper_wait_ns));
    pthread_mutex_unlock(&mutex);
  }
}

static int pipe_ends[2], socket_ends[2];
static int prepare_pipe(void) { return pipe(pipe_ends) == 0; }
static int prepare_socket(void) { return socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends) == 0; }

static NOINLINE void wait_pipe(struct truth* t) {
  char byte;
  for (long i = 0; i < sleeper_waits; i++)
    TIMED(t, if (read(pipe_ends[0], &byte, 1) != 1) die("read pipe"));
}
static NOINLINE void end_pipe(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) {
    TIMED(t, nap(sleeper_wait_ns));
    if (write(pipe_ends[1], "p", 1) != 1) die("write pipe");
  }
}
static NOINLINE void wait_socket(struct truth* t) {
  char byte;
  for (long i = 0; i < sleeper_waits; i++)
    TIMED(t, if (recv(socket_ends[0], &byte, 1, 0) != 1) die("recv"));
}
static NOINLINE void end_socket(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) {
    TIMED(t, nap(sleeper_wait_ns));
    if (send(socket_ends[1], "s", 1, 0) != 1) die("send");
  }
}

// A page written and synced each time: blocks for as long as the disk takes. At most 64 times.
static int file = -1;
static int prepare_fsync(void) {
  char name[] = "./dwell_sleeper.XXXXXX";
  file = mkstemp(name);
  return file >= 0 && unlink(name) == 0;
}
static NOINLINE void wait_fsync(struct truth* t) {
  static char page[4096];
  for (long i = 0; i < sleeper_waits && i < 64; i++) {
    page[0]++;
    if (pwrite(file, page, sizeof page, i * 4096) != sizeof page) die("pwrite");
    TIMED(t, if (fsync(file)) die("fsync"));
  }
  close(file);
}

// Pages that only another thread can fill (userfaultfd): touching one blocks until it does.
static int faults = -1;
static char* pages;
static int prepare_fault(void) {
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range;
  size_t bytes = (size_t)sleeper_waits * 4096;
  faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api)) return 0;
  pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 0;
  range = (struct uffdio_register){.range = {(uintptr_t)pages, bytes},
                                   .mode = UFFDIO_REGISTER_MODE_MISSING};
  return ioctl(faults, UFFDIO_REGISTER, &range) == 0;
}
static NOINLINE void wait_fault(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) TIMED(t, *(volatile char*)(pages + i * 4096));
}
static NOINLINE void end_fault(struct truth* t) {
  static char page[4096] __attribute__((aligned(4096)));
  for (long i = 0; i < sleeper_waits; i++) {
    struct uffd_msg message;
    TIMED(t, if (read(faults, &message, sizeof message) != sizeof message) die("read userfaultfd"));
    TIMED(t, nap(sleeper_wait_ns));
    struct uffdio_copy copy = {
        .dst = message.arg.pagefault.address & ~4095ull, .src = (uintptr_t)page, .len = 4096};
    if (ioctl(faults, UFFDIO_COPY, &copy)) die("UFFDIO_COPY");
  }
}

// The parent of a vfork sleeps until the child is gone. Reaping the child does not block: it is a
// zombie by then.
static NOINLINE pid_t vfork_and_nap(void) {
  pid_t child = vfork();
  if (child != 0) return child;
  nap(sleeper_wait_ns);
  _exit(0);
}
static NOINLINE void wait_vfork(struct truth* t) {
  for (long i = 0; i < sleeper_waits; i++) {
    pid_t child;
    TIMED(t, child = vfork_and_nap());
    if (child < 0) die("vfork");
    while (waitpid(child, NULL, WNOHANG) == 0) continue;
  }
}

// Two threads that want one CPU all the time: what keeps them off it is each other.
static NOINLINE void spin(struct truth* t) {
  pin_to_cpu((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
  uint64_t until_ns = t->start_ns + (uint64_t)sleeper_waits * sleeper_wait_ns;
  while (now_ns() < until_ns)
    for (volatile int i = 0; i < 1000; i++) continue;
}

const struct way kWays[] = {
    {"nanosleep", wait_nanosleep, NULL, NULL},
    {"poll", wait_poll, NULL, NULL},
    {"epoll", wait_epoll, NULL, NULL},
    {"condition", wait_condition, end_condition, NULL},
    {"mutex", wait_mutex, end_mutex, NULL},
    {"pipe", wait_pipe, end_pipe, prepare_pipe},
    {"socket", wait_socket, end_socket, prepare_socket},
    {"fsync", wait_fsync, NULL, prepare_fsync},
    {"fault", wait_fault, end_fault, prepare_fault},
    {"vfork", wait_vfork, NULL, NULL},
    {"preempted", spin, spin, NULL},
    {NULL, NULL, NULL, NULL},
};
