// A process with children: each of `--children` children naps 20 x 10 ms in child_work(), one of
// them as another thread, one after a second fork; the parent waits for all. usage: family
// [--children N] [--gate]
#include <sys/wait.h>

#include "truth.h"

static NOINLINE void child_work(struct truth* t) {
  for (int i = 0; i < 20; i++) TIMED(t, nap(10000000));
  KEEP_FRAME();
}
static void* run(void* what) {
  struct truth t;
  name_thread(what);
  truth_start(&t, what);
  child_work(&t);
  truth_print(&t);
  return NULL;
}

static void be_child(int index) {
  if (index == 0) pthread_join(start_thread(run, "child_thread"), NULL);
  if (index == 1) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      run("grandchild");
      _exit(0);
    }
    waitpid(grandchild, NULL, 0);
  }
  run("child");
  _exit(0);
}

int main(int argc, char** argv) {
  long children = option(argc, argv, "--children", 3);
  gate(argc, argv, "ready");
  for (int i = 0; i < children; i++) {
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) be_child(i);
  }
  while (wait(NULL) > 0) continue;
  gate(argc, argv, "done");
  return 0;
}
