#include <fmt/format.h>

#include <cstring>

#include "base/result.h"

namespace dwell {
inline namespace v0 {

std::unexpected<Error> errno_error(int code, std::string action) {
  const char* name = strerrorname_np(code);
  return std::unexpected(
      Error{Error::Kind::kRuntime,
            fmt::format("{}: {} ({})", action, strerrordesc_np(code) ?: "unknown error",
                        name != nullptr ? name : std::to_string(code)),
            code});
}

std::unexpected<Error> usage_error(std::string message) {
  return std::unexpected(Error{Error::Kind::kUsage, std::move(message), 0});
}

std::unexpected<Error> privilege_error(std::string message) {
  return std::unexpected(Error{Error::Kind::kPrivilege, std::move(message), 0});
}

std::unexpected<Error> runtime_error(std::string message) {
  return std::unexpected(Error{Error::Kind::kRuntime, std::move(message), 0});
}

}  // namespace v0
}  // namespace dwell
