#include "symbolize/demangle.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <optional>

namespace dwell::symbolize {
namespace {

// The demanglers print through a callback and cannot be told to stop, yet a hundred bytes of
// substitutions can print for years. They hold no heap memory while printing, so jumping out is
// safe.
struct Output {
  char text[kDemangleOutputMax];
  size_t bytes = 0;
  std::jmp_buf overflow;
};

void take_output(const char* text, size_t bytes, void* opaque) {
  auto* output = static_cast<Output*>(opaque);
  if (bytes > kDemangleOutputMax - output->bytes) std::longjmp(output->overflow, 1);
  std::copy_n(text, bytes, output->text + output->bytes);
  output->bytes += bytes;
}

// Only the callback entry points of libiberty: those two files carry the linking exception.
using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

bool run(Demangler demangler, const char* mangled, Output& output) {
  // Without this flag names over 1024 bytes are refused; kDemangleInputMax bounds the stack.
  constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT;
  output.bytes = 0;
  if (setjmp(output.overflow) != 0) return false;
  return demangler(mangled, kOptions, take_output, &output) != 0;
}

bool looks_mangled(std::string_view symbol) {
  const size_t first = symbol.find_first_not_of('_');
  if (first == std::string_view::npos || first == 0 || first > 3) return false;
  return symbol[first] == 'Z' || symbol[first] == 'R';
}

// Older Rust's names look like those of C++ but for the hash at their end, of 17 characters.
bool may_be_rust(std::string_view mangled) {
  return mangled.starts_with("_R") || mangled.find("17h") != std::string_view::npos;
}

std::optional<std::string> demangle_bare(std::string_view symbol) {
  if (symbol.size() > kDemangleInputMax || !looks_mangled(symbol)) return std::nullopt;
  // "__Z" and "___Z" are "_Z" with the prefix of other systems.
  const std::string mangled(symbol.substr(symbol.find_first_not_of('_') - 1));
  Output output;
  const bool rust = may_be_rust(mangled) && run(rust_demangle_callback, mangled.c_str(), output);
  if (!rust && !run(cplus_demangle_v3_callback, mangled.c_str(), output)) return std::nullopt;
  if (output.bytes == 0) return std::nullopt;
  return std::string(output.text, output.bytes);
}

}  // namespace

std::string demangle(std::string_view symbol) {
  // Names of the Microsoft scheme begin with '?' and hold '@' as a separator.
  const size_t at = symbol.starts_with('?') ? std::string_view::npos : symbol.find('@', 1);
  const std::string_view suffix = at == std::string_view::npos ? "" : symbol.substr(at);
  const std::string_view bare = symbol.substr(0, at);
  std::string name = demangle_bare(bare).value_or(std::string(bare.substr(0, kFunctionNameMax)));
  if (suffix == "@plt") name += suffix;
  return name;
}

}  // namespace dwell::symbolize
