// Where the scheduler's own functions (section .sched.text) lie in the kernel: the walker leaves
// them out.
#pragma once

#include "probe/signature.h"

namespace dwell::probe {

// {0, 0} where kallsyms does not tell: kernel.kptr_restrict, or no CAP_SYSLOG.
SchedulerText find_scheduler_text();

}  // namespace dwell::probe
