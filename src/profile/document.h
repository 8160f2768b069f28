// The inside of a .dwell file: Profile <-> protobuf message, without header and compression.
// Private to src/profile, its tests and the fuzzer.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace dwell {

Result<std::string> encode_document(const Profile& profile);
// `message` is hostile; errors begin with "damaged".
Result<Profile> decode_document(std::string_view message);

// Whether every sum over the rows and over the threads fits into 63 bits, so that no output has to
// think about overflow. 292 years of thread time.
bool sums_fit(const Profile& profile);

}  // namespace dwell
