// Prints the samples of a perf event array, the kernel's or one in user space: for each packet a
// line with its length and its first bytes. Losses go to standard error. The caller polls.
#pragma once

#include <memory>

#include "event_array/event_session.h"

// The session borrows the array.
dwell::Result<std::unique_ptr<dwell::EventSession>> print_samples(dwell::EventArray& array);
