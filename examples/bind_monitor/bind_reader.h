// Prints the binds of a perf event array, the kernel's or one in user space: for each call a line
// with process, name and address. Losses go to standard error. The caller polls.
#pragma once

#include <memory>

#include "event_array/event_session.h"

// The session borrows the array.
dwell::Result<std::unique_ptr<dwell::EventSession>> print_binds(dwell::EventArray& array);
