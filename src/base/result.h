// Errors are values. A function that can fail returns Result<T>; nothing throws across our
// functions. An Error carries a sentence for a person (action, object, cause, remedy) and the
// errno, if any.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace dwell {
inline namespace v0 {

struct Error {
  // What the caller can do about it; decides the exit code (docs/exit-codes.md).
  enum class Kind {
    kRuntime,    // something outside failed: a file, a disk, the kernel
    kUsage,      // the options or ids given cannot work
    kPrivilege,  // this machine does not allow it: capability, kernel feature, lockdown
  };
  Kind kind = Kind::kRuntime;
  std::string message;
  int code = 0;  // errno, 0 if none
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

// "cannot open /x: No such file or directory (ENOENT)". `action` names the action and the object.
std::unexpected<Error> errno_error(int code, std::string action);
std::unexpected<Error> usage_error(std::string message);
std::unexpected<Error> privilege_error(std::string message);
std::unexpected<Error> runtime_error(std::string message);

}  // namespace v0
}  // namespace dwell

// Returns the error of `expression` from the calling function, else goes on.
#define DWELL_TRY(expression)                                      \
  do {                                                             \
    if (auto dwell_try_result = (expression); !dwell_try_result)   \
      return std::unexpected(std::move(dwell_try_result.error())); \
  } while (false)

#define DWELL_CONCAT_(a, b) a##b
#define DWELL_CONCAT(a, b) DWELL_CONCAT_(a, b)
// Declares `declaration` with the value of `expression`, or returns its error.
#define DWELL_ASSIGN(declaration, expression)                                         \
  auto DWELL_CONCAT(dwell_assign_, __LINE__) = (expression);                          \
  if (!DWELL_CONCAT(dwell_assign_, __LINE__))                                         \
    return std::unexpected(std::move(DWELL_CONCAT(dwell_assign_, __LINE__).error())); \
  declaration = std::move(*DWELL_CONCAT(dwell_assign_, __LINE__))
