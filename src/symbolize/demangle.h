// Symbol names for people: C++ (Itanium ABI), Rust legacy and Rust v0.
//
// Mangled names come from files of other processes. Demanglers are recursive and their output can
// be exponential in the input, so both sides are bounded and a name over a bound stays mangled.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dwell::symbolize {

constexpr size_t kDemangleInputMax = 4096;
constexpr size_t kDemangleOutputMax = 8192;
constexpr size_t kFunctionNameMax = 8192;

// The demangled name, or `symbol` itself (cut at kFunctionNameMax) if it is not mangled, malformed
// or over a bound. A symbol version ("@@GLIBC_2.2.5") is left out, "@plt" is kept.
std::string demangle(std::string_view symbol);

}  // namespace dwell::symbolize
