#include "export/json_health.h"

#include "export/stack_health.h"

namespace dwell {
namespace {

void write_share(JsonWriter& out, const char* name, const FramesShare& share) {
  out.key(name);
  out.begin_object();
  out.field("frames", share.frames);
  out.field("off_cpu_ns", share.time_ns);
  out.end_object();
}

void write_ends(JsonWriter& out, const StackHealth& health) {
  out.key("walk_ends");
  out.begin_array();
  for (size_t i = 0; i < kWalkEndCount; ++i) {
    if (health.ends[i].stacks == 0) continue;
    const auto end = static_cast<WalkEnd>(i);
    out.begin_object();
    out.field("walk_end", walk_end_name(end));
    out.field("meaning", walk_end_text(end));
    out.field("stacks", health.ends[i].stacks);
    out.field("off_cpu_ns", health.ends[i].time_ns);
    out.end_object();
  }
  out.end_array();
}

void write_module(JsonWriter& out, const ModuleHealth& module) {
  out.break_line();
  out.begin_object();
  out.field("module", module.module);
  write_share(out, "all", module.all);
  write_share(out, "unwind_data", module.by_unwind_data);
  write_share(out, "frame_pointer", module.by_pointer);
  write_share(out, "cut", module.cut);
  out.field("cut_walk_end", walk_end_name(module.cut_end));
  out.field("cut_remedy", module.cut_remedy);
  write_share(out, "no_name", module.unnamed);
  out.field("no_name_remedy", module.unnamed_remedy);
  out.end_object();
}

void write_hint(JsonWriter& out, const RuntimeHint& hint) {
  out.break_line();
  out.begin_object();
  out.field("process", hint.process);
  out.field("runtime", hint.runtime);
  out.field("no_name_ns", hint.unnamed_ns);
  out.field("cut_ns", hint.cut_ns);
  out.field("remedy", hint.remedy);
  out.end_object();
}

}  // namespace

void write_walk(JsonWriter& out, const Profile& profile, const Stack& stack) {
  out.field("walk_end", walk_end_name(stack.walk.end));
  out.key("by_pointer");
  out.begin_array();
  size_t user_frame = 0;
  for (size_t i = 0; i < stack.frames.size(); ++i) {
    if (!is_walked(profile.frames[stack.frames[i]])) continue;
    if (stack.walk.followed_pointer(user_frame++)) out.value(i);
  }
  out.end_array();
}

void write_stack_health(JsonWriter& out, const Profile& profile) {
  const StackHealth health = stack_health(profile);
  out.break_line();
  out.key("stack_health");
  out.begin_object();
  out.field("off_cpu_ns", health.user_time_ns);
  out.field("whole_ns", health.whole_ns);
  out.field("cut_ns", health.cut_ns());
  out.field("lost_ns", health.lost_ns);
  out.field("by_pointer_ns", health.by_pointer_ns);
  out.field("no_name_ns", health.unnamed_ns);
  write_ends(out, health);
  out.break_line();
  out.key("modules");
  out.begin_array();
  for (const ModuleHealth& module : health.modules) write_module(out, module);
  out.end_array();
  out.break_line();
  out.key("hints");
  out.begin_array();
  for (const RuntimeHint& hint : health.hints) write_hint(out, hint);
  out.end_array();
  out.end_object();
}

}  // namespace dwell
