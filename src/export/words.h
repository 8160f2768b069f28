// The words that several outputs share: how a frame, a module kind, a thread's end are written.
// Stable: scripts compare them. Used by the exporters; no state.
#pragma once

#include <string>
#include <string_view>

#include "export/export.h"
#include "profile/profile.h"

namespace dwell {

// What a frame is called, never empty: its function, or module+0xaddress. Raw bytes: the caller
// escapes.
std::string frame_name(const Profile& profile, const Frame& frame);
// Text to show for it: its name and, where it is known, "(file.c:12)" with the last part of the
// path.
std::string frame_text(const Profile& profile, const Frame& frame);
// Last component of the path; "" if there is no module.
std::string_view module_text(const Profile& profile, const Module& module);

const char* module_kind_name(ModuleKind kind);
const char* resolution_name(Resolution how);
const char* frame_kind_name(FrameKind kind);
const char* thread_end_name(ThreadEnd end);
const char* censored_name(bool left, bool right);  // "no", "left", "right", "both"
const char* view_name(View view);                  // "off_cpu", "blocked", "run_queue"

uint64_t time_of(const Row& row, View view);

// What stands at the root of a stack whose outer frames are missing, and for a stack without any.
constexpr std::string_view kTruncatedRoot = "[truncated]";
constexpr std::string_view kNoStack = "[no stack]";
// Whether an exporter has to add kTruncatedRoot: the stack is cut and does not say so itself.
bool lacks_truncated_root(const Profile& profile, const Stack& stack);
constexpr std::string_view kUnnamed = "[unnamed]";  // a process or thread without a name

// "2026-11-30T11:41:47.123456789Z"
std::string format_time(uint64_t unix_ns);

}  // namespace dwell
