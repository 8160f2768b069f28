// The kernel's types as the probe sees them, for C++: bpf/core_types.h against the runtime's shim.
#pragma once

extern "C" {
#include "bpf/core_types.h"
}
