// Which sanitizers this code is built with: g++ defines macros for it, clang has features.
#pragma once

#if defined(__has_feature)
#define DWELL_BUILT_WITH(feature) __has_feature(feature)
#else
#define DWELL_BUILT_WITH(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || DWELL_BUILT_WITH(address_sanitizer)
#define DWELL_ASAN 1
#else
#define DWELL_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || DWELL_BUILT_WITH(thread_sanitizer)
#define DWELL_TSAN 1
#else
#define DWELL_TSAN 0
#endif
