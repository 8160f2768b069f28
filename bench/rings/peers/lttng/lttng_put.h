/* The tracepoint dwell_bench:put, in the form that LTTng's headers want; includes itself through
 * them. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER dwell_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_put.h"

#if !defined(DWELL_BENCH_LTTNG_PUT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DWELL_BENCH_LTTNG_PUT_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
  dwell_bench, put,
  LTTNG_UST_TP_ARGS(unsigned long*, words),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_array(unsigned long, words, words, 8)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
