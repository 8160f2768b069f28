// The inside of a .dwell file: Profile <-> protobuf message, without header and compression.
// Private to src/profile, its tests and the fuzzer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace dwell {

Result<std::string> encode_document(const Profile& profile);
// `message` is hostile; errors begin with "damaged".
Result<Profile> decode_document(std::string_view message);

// Elements of each table. An empty message takes two bytes in a file and hundreds in memory:
// without limits a small file could ask for all of it. Far above what a recording's own limits
// allow.
constexpr uint64_t kStringsMax = 1 << 24;
constexpr uint64_t kModulesMax = 1 << 20;
constexpr uint64_t kFramesMax = 1 << 24;
constexpr uint64_t kStacksMax = 1 << 24;
constexpr uint64_t kProcessesMax = 1 << 20;
constexpr uint64_t kThreadsMax = 1 << 22;
constexpr uint64_t kRowsMax = 1 << 25;
constexpr uint64_t kIntervalsMax = 1 << 24;
constexpr uint64_t kLossesMax = 1 << 12;
constexpr uint64_t kUnresolvedMax = 1 << 20;
constexpr uint64_t kOptionsMax = 1 << 12;
constexpr uint64_t kWarningsMax = 1 << 16;

// Whether every sum over the rows, the threads and the timeline fits into 63 bits, so that no
// output has to think about overflow. 292 years of thread time.
bool sums_fit(const Profile& profile);

// Whether decode will take what encode makes of this: a recording that nobody can read must not
// look saved.
Status check_encodable(const Profile& profile);

}  // namespace dwell
