#include "cli/profile_stacks.h"

#include "cli/python_merge.h"

namespace dwell::cli {
namespace {

const char* placeholder_text(uint64_t id, bool user) {
  switch (id) {
    case DWELL_STACK_LOST_FULL:
      return user ? "[user stack lost: store full]" : "[kernel stack lost: store full]";
    case DWELL_STACK_LOST_FAULT:
      return user ? "[user stack unreadable]" : "[kernel stack unreadable]";
    case DWELL_STACK_BEFORE_START:
      return "[user stack unknown: blocked before the start]";
    case DWELL_STACK_MISSED:
      return "[kernel stack unknown: the switch was not seen]";
    default:
      return user ? "[user stack lost: ring full]" : "[kernel stack lost: ring full]";
  }
}

}  // namespace

uint32_t ProfileStacks::frame_of(symbolize::LocationId location) {
  if (location < frame_ids_.size() && frame_ids_[location] != 0) return frame_ids_[location] - 1;
  const symbolize::FrameInfo info = symbolizer_.describe(location);
  const uint32_t id =
      info.kind == FrameKind::kPlaceholder ? builder_.placeholder(info.function) : add_frame(info);
  if (location >= frame_ids_.size()) frame_ids_.resize(location + 1);
  frame_ids_[location] = id + 1;
  return id;
}

uint32_t ProfileStacks::add_frame(const symbolize::FrameInfo& info) {
  Frame frame;
  frame.function = builder_.string(info.function);
  if (info.symbol != info.function) frame.symbol = builder_.string(info.symbol);
  frame.module = module_of(info.object);
  frame.address = info.address;
  frame.offset = info.offset;
  frame.how = info.how;
  frame.kind = info.kind;
  frame.line = info.line;
  if (info.how == Resolution::kPython)
    frame.file = builder_.string(symbolizer_.object(info.object).path);
  return builder_.frame(frame);
}

uint32_t ProfileStacks::module_of(symbolize::ObjectId object) {
  const symbolize::ObjectInfo& info = symbolizer_.object(object);
  return builder_.module(info.path, info.build_id, info.kind);
}

bool ProfileStacks::is_unknown(uint32_t frame) const {
  const Profile& profile = builder_.so_far();
  return profile.frames[frame].kind == FrameKind::kUser &&
         profile.modules[profile.frames[frame].module].kind == ModuleKind::kUnknown;
}

// Appends the frames of one side. After the first address that lies in no mapping nothing can be
// trusted, not even that the walk reached a root frame.
ProfileStacks::Side ProfileStacks::append(uint64_t id, bool user, std::vector<uint32_t>& frames) {
  if (id == DWELL_STACK_NONE || id == DWELL_STACK_NOT_TAKEN) return {};
  const LocatedStack* stack = recorded_.find(id);
  if (stack == nullptr) {
    frames.push_back(builder_.placeholder(placeholder_text(id, user)));
    return {};
  }
  if (stack->native != 0) return append_with_python(id, *stack, frames);
  bool astray = false;
  for (auto at = stack->locations.begin(); at != stack->locations.end() && !astray; ++at) {
    frames.push_back(frame_of(*at));
    astray = user && is_unknown(frames.back());
  }
  if (stack->truncated) frames.push_back(builder_.placeholder("[truncated]"));
  Walk walk = stack->walk;
  if (astray) walk.end = WalkEnd::kNoMapping;
  return {stack->complete && !astray, stack->truncated, walk};
}

// A pair of a user stack, which is none itself, and of the Python frames in it.
ProfileStacks::Side ProfileStacks::append_with_python(uint64_t id, const LocatedStack& pair,
                                                      std::vector<uint32_t>& frames) {
  std::vector<uint32_t> native, python;
  const LocatedStack* of_native = recorded_.find(pair.native);
  const LocatedStack* of_python = recorded_.find(pair.python);
  const bool is_nested = of_native != nullptr && of_native->native != 0;
  const Side side = append(is_nested ? uint64_t{DWELL_STACK_NONE} : pair.native, true, native);
  PythonStack python_stack;
  if (of_python != nullptr && of_python->begins.size() == of_python->locations.size()) {
    for (const symbolize::LocationId location : of_python->locations)
      python.push_back(frame_of(location));
    python_stack = {python, of_python->begins, !of_python->truncated};
  }
  NativeFrames native_frames = {native, {}, side.complete};
  const Profile& profile = builder_.so_far();
  for (const uint32_t frame : native)
    native_frames.is_eval.push_back(is_eval_function(profile.text(profile.frames[frame].function)));
  const MergedFrames merged = merge_python(native_frames, python_stack);
  if (merged.unmatched) unmatched_python_.insert(id);
  frames.insert(frames.end(), merged.frames.begin(), merged.frames.end());
  return side;
}

uint32_t ProfileStacks::id_of(const dwell_row_key& key) {
  const bool new_thread = key.wait_class == DWELL_CLASS_NEW;
  auto& ids = new_thread ? new_thread_stack_ids_ : stack_ids_;
  const auto [at, is_new] = ids.try_emplace(std::pair(key.kernel_stack, key.user_stack));
  if (!is_new) return at->second;
  std::vector<uint32_t> frames;
  append(key.kernel_stack, false, frames);
  const Side user = append(key.user_stack, true, frames);
  if (new_thread) frames.push_back(builder_.placeholder("(new thread)"));
  return at->second = builder_.stack(frames, user.complete, user.truncated, user.walk);
}

}  // namespace dwell::cli
