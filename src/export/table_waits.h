// The lists of waits in the table: by cause, and by process, cause, class and stack.
// Called by table.cc.
#pragma once

#include <cstdint>
#include <string>

#include "export/export.h"

namespace dwell {

// "Waits by cause": one line each.
std::string causes_section(const Profile& profile, const TableOptions& options, uint64_t alive_ns);
// "Longest waits": each with its stack, leaf first, one frame per line; k marks kernel frames.
std::string waits_section(const Profile& profile, const TableOptions& options, uint64_t alive_ns);

// "nginx [1234]"
std::string process_text(const Profile& profile, uint32_t process, size_t columns);
std::string heading(const TableOptions& options, const std::string& text);

}  // namespace dwell
