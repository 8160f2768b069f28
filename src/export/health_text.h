// The health of user stacks as text: a short block of the table, and the whole of it for
// `dwell report --stacks-health` (export.h). Called by table.cc.
#pragma once

#include <string>

#include "export/export.h"

namespace dwell {

// "User stacks: ...": one line, and one for each thing worth doing.
std::string health_section(const Profile& profile, const TableOptions& options);

}  // namespace dwell
