// The profile of the golden files: small enough to check its outputs by hand.
#pragma once

#include "profile/profile.h"

namespace dwell {

// A web server with two idle workers, one of them also waiting for a disk and once preempted, and a
// kernel thread. 10 s window, books that balance.
Profile small_profile();

}  // namespace dwell
