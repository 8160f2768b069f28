// Language runtimes that make code while they run: how to know one, and the flags that give its
// code names and frame pointers. Used by stack_health.cc.
#pragma once

#include <string>
#include <string_view>

namespace dwell {

struct Runtime {
  std::string_view name;          // "Node.js"
  std::string_view map_remedy;    // makes it write /tmp/perf-PID.map
  std::string_view pointer_flag;  // makes its code keep frame pointers; "" if it does anyway
  // The function that is seen in place of each interpreted one; "": none, or nothing helps.
  std::string_view interpreter = "";
  std::string_view interpreter_remedy = "";  // the map included
  std::string_view interpreted_prefix = "";  // of their names in the map, with that remedy only
};

struct RuntimeFaults {
  bool lacks_map = false;
  bool lacks_pointers = false;
  bool interprets = false;
};

// By the file that a process runs or maps: "/usr/bin/node", "/opt/jdk/lib/server/libjvm.so". Null:
// none that is known.
const Runtime* runtime_of(std::string_view path);

// The one sentence; "" if nothing helps. `runtime` may be null.
std::string runtime_remedy(const Runtime* runtime, const RuntimeFaults& faults);

}  // namespace dwell
