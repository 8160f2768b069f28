// One thread that naps 2 ms x 100 in f2, 20 ms x 50 in f20 and 200 ms x 10 in f200: what --min and
// --max cut. Prints beside the truth of each {"naps": function, "ns": what each of its naps took}.
// usage: mixed
#include "truth.h"

#define MOST 100
static uint64_t took_ns[MOST];

static void nap_often(struct truth* t, int count, uint64_t ns) {
  for (int i = 0; i < count; i++) {
    uint64_t before = t->sum_ns;
    TIMED(t, nap(ns));
    took_ns[i] = t->sum_ns - before;
  }
}

static NOINLINE void f2(struct truth* t) {
  nap_often(t, 100, 2000000);
  KEEP_FRAME();
}
static NOINLINE void f20(struct truth* t) {
  nap_often(t, 50, 20000000);
  KEEP_FRAME();
}
static NOINLINE void f200(struct truth* t) {
  nap_often(t, 10, 200000000);
  KEEP_FRAME();
}

static void print_naps(const struct truth* t) {
  printf("{\"naps\": \"%s\", \"ns\": [", t->what);
  for (uint64_t i = 0; i < t->waits; i++)
    printf("%s%llu", i ? ", " : "", (unsigned long long)took_ns[i]);
  printf("]}\n");
  fflush(stdout);
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
    print_naps(&t);
  }
  return 0;
}
