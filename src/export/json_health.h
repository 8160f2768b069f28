// The parts of the JSON document that tell how user stacks were found. Called by json.cc.
#pragma once

#include "export/json_writer.h"
#include "profile/profile.h"

namespace dwell {

// The fields `walk_end` and `by_pointer` of a stack.
void write_walk(JsonWriter& out, const Profile& profile, const Stack& stack);
// The field `stack_health` of the document.
void write_stack_health(JsonWriter& out, const Profile& profile);

}  // namespace dwell
