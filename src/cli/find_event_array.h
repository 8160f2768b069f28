// The perf event array that a person named: by id, by the path of a pin, or by name.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/events_options.h"
#include "event_array/bpf_map.h"

namespace dwell::cli {

// All that this machine has, in the order of their ids.
Result<std::vector<BpfMapInfo>> list_event_arrays();

// Its descriptor. The errors say what is wrong with the choice and what would be right.
Result<Fd> find_event_array(const EventsOptions& choice);

// For errors of bpf(2) and perf_event_open(2): EPERM and EACCES become Error::Kind::kPrivilege,
// with the remedy.
Error explain_refusal(Error error);

}  // namespace dwell::cli
