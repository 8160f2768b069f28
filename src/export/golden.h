// Golden files: outputs of small_profile() kept in tests/golden/. A change of format shows as a
// changed file in review. DWELL_UPDATE_GOLDEN=1 in the environment rewrites them.
#pragma once

#include <string>

namespace dwell {

// Fails the running test if `actual` is not the content of tests/golden/`name`.
void expect_golden(const std::string& name, const std::string& actual);

}  // namespace dwell
