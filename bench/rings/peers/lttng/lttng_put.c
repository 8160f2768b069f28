/* LTTng-UST: for each line "N" on stdin, N tracepoints with 64 bytes; prints how many nanoseconds
 * they took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_put.h"

int main(void) {
  char line[64];
  unsigned long words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const long n = atol(line);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < n; ++i) {
      words[0] = (unsigned long)i;
      lttng_ust_tracepoint(dwell_bench, put, words);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld 0\n", (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec);
    fflush(stdout);
  }
  return 0;
}
