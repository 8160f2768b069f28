// The ways to block that the sleeper program knows: a table that ends with a null name.
#ifndef DWELL_TESTS_SLEEPER_H
#define DWELL_TESTS_SLEEPER_H

#include <errno.h>

#include "truth.h"

extern long sleeper_waits;        // how often each way waits
extern uint64_t sleeper_wait_ns;  // about how long each wait lasts

struct way {
  const char* name;                  // of the way and of its thread
  void (*wait)(struct truth*);       // waits sleeper_waits times, timing each wait
  void (*other_end)(struct truth*);  // ends these waits, in a thread of its own; or null
  int (*prepare)(void);              // 0 and errno: this machine cannot; or null
};
extern const struct way kWays[];

#endif
