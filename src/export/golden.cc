#include "export/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fd.h"

namespace dwell {

void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(DWELL_GOLDEN_DIR) + "/" + name;
  if (std::getenv("DWELL_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, actual));
  }
  const Result<std::string> expected = read_file(path);
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_EQ(actual, *expected) << "DWELL_UPDATE_GOLDEN=1 rewrites " << path;
}

}  // namespace dwell
