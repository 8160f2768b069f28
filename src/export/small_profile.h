// The profile of the golden files: small enough to check its outputs by hand.
#pragma once

#include "profile/profile.h"

namespace dwell {

// A web server with two idle workers, one of them also waiting for a disk and once preempted, and a
// kernel thread. 10 s window, books that balance.
Profile small_profile();

// The same after `dwell report --lines --inline`: the server's event loop is known by file and
// line, and two functions were inlined into it.
Profile small_profile_with_source();

}  // namespace dwell
