// The words for why a thread waits: system calls by name, and what is none.
#pragma once

#include <cstdint>
#include <string>

namespace dwell::cli {

// `cause` as in dwell_row_key: "futex", "page fault", "preempted", "syscall 999".
std::string cause_name(uint16_t cause);

}  // namespace dwell::cli
