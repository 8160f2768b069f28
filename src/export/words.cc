#include "export/words.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

namespace dwell {
namespace {

// The decoder and the builder let only known values in; the fallback is for a cast gone wrong.
template <size_t N>
const char* word(const std::array<const char*, N>& words, auto value) {
  const auto index = static_cast<size_t>(value);
  return index < N ? words[index] : "unknown";
}

constexpr std::array kModuleKinds = {"unknown",   "file", "deleted", "memfd",         "vdso",
                                     "anonymous", "jit",  "kernel",  "kernel-module", "bpf"};
constexpr std::array kResolutions = {"none",       "symtab",      "dynsym",   "minidebuginfo",
                                     "debug-file", "perf-map",    "kallsyms", "plt",
                                     "gopclntab",  "placeholder", "jitdump",  "python"};
constexpr std::array kFrameKinds = {"user", "kernel", "placeholder"};
constexpr std::array kThreadEnds = {"alive", "exited", "executed", "renamed"};
constexpr std::array kViews = {"off_cpu", "blocked", "run_queue"};

}  // namespace

const char* module_kind_name(ModuleKind kind) { return word(kModuleKinds, kind); }
const char* resolution_name(Resolution how) { return word(kResolutions, how); }
const char* frame_kind_name(FrameKind kind) { return word(kFrameKinds, kind); }
const char* thread_end_name(ThreadEnd end) { return word(kThreadEnds, end); }
const char* view_name(View view) { return word(kViews, view); }

const char* censored_name(bool left, bool right) {
  if (left) return right ? "both" : "left";
  return right ? "right" : "no";
}

std::string_view module_text(const Profile& profile, const Module& module) {
  const std::string_view path = profile.text(module.path);
  if (path.empty() || path.back() == '/' || path.front() != '/') return path;
  return path.substr(path.rfind('/') + 1);
}

std::string frame_text(const Profile& profile, const Frame& frame) {
  std::string text = frame_name(profile, frame);
  if (frame.line == 0) return text;
  const std::string_view path = profile.text(frame.file);
  text += fmt::format(" ({}:{})", path.substr(path.rfind('/') + 1), frame.line);
  return text;
}

std::string frame_name(const Profile& profile, const Frame& frame) {
  const std::string& function = profile.text(frame.function);
  if (!function.empty()) return function;
  if (frame.kind == FrameKind::kPlaceholder) return "[unknown]";
  const std::string_view module = module_text(profile, profile.modules[frame.module]);
  return fmt::format("{}+{:#x}", module.empty() ? "[unknown]" : module, frame.address);
}

bool lacks_truncated_root(const Profile& profile, const Stack& stack) {
  if (!stack.truncated) return false;
  if (stack.frames.empty()) return true;
  const Frame& root = profile.frames[stack.frames.back()];
  return root.kind != FrameKind::kPlaceholder || profile.text(root.function) != kTruncatedRoot;
}

uint64_t time_of(const Row& row, View view) {
  switch (view) {
    case View::kBlocked:
      return row.blocked_ns;
    case View::kRunQueue:
      return row.run_queue_ns;
    case View::kOffCpu:
      break;
  }
  return row.total_ns();
}

std::string format_time(uint64_t unix_ns) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  struct tm utc {};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     unix_ns % kNsPerSecond);
}

}  // namespace dwell
