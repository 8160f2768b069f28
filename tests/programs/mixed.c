// One thread that naps 2 ms x 100 in f2, 20 ms x 50 in f20 and 200 ms x 10 in f200: what --min and
// --max cut. usage: mixed
#include "truth.h"

static NOINLINE void f2(struct truth* t) {
  for (int i = 0; i < 100; i++) TIMED(t, nap(2000000));
  KEEP_FRAME();
}
static NOINLINE void f20(struct truth* t) {
  for (int i = 0; i < 50; i++) TIMED(t, nap(20000000));
  KEEP_FRAME();
}
static NOINLINE void f200(struct truth* t) {
  for (int i = 0; i < 10; i++) TIMED(t, nap(200000000));
  KEEP_FRAME();
}

int main(void) {
  static const struct {
    const char* what;
    void (*run)(struct truth*);
  } kParts[] = {{"f2", f2}, {"f20", f20}, {"f200", f200}};
  for (int i = 0; i < 3; i++) {
    struct truth t;
    truth_start(&t, kParts[i].what);
    kParts[i].run(&t);
    truth_print(&t);
  }
  return 0;
}
