#include "export/runtimes.h"

#include <fmt/format.h>

namespace dwell {
namespace {

constexpr Runtime kJava{"Java",
                        "run `jcmd PID Compiler.perfmap` while it is recorded, or start it with "
                        "-XX:+DumpPerfMapAtExit (JDK 17 or newer; older: attach perf-map-agent)",
                        "-XX:+PreserveFramePointer"};
constexpr Runtime kNode{"Node.js",
                        "start it with --perf-basic-prof",
                        "",
                        "Builtins_InterpreterEntryTrampoline",
                        "start it with --perf-basic-prof --interpreted-frames-native-stack",
                        "JS:~"};
constexpr Runtime kDotNet{".NET", "set DOTNET_PerfMapEnabled=1 in its environment", ""};

struct Mark {
  std::string_view file;  // the whole name, or its beginning before '.'
  const Runtime* runtime;
};
constexpr Mark kMarks[] = {{"libjvm", &kJava},      {"java", &kJava},    {"node", &kNode},
                           {"nodejs", &kNode},      {"libnode", &kNode}, {"libcoreclr", &kDotNet},
                           {"libclrjit", &kDotNet}, {"dotnet", &kDotNet}};

constexpr std::string_view kAnyMap =
    "let its runtime write /tmp/perf-PID.map (an option of most compilers at run time)";
constexpr std::string_view kAnyPointer = "let its runtime keep frame pointers";

}  // namespace

const Runtime* runtime_of(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const Mark& mark : kMarks)
    if (file.starts_with(mark.file) &&
        (file.size() == mark.file.size() || file[mark.file.size()] == '.'))
      return mark.runtime;
  return nullptr;
}

std::string runtime_remedy(const Runtime* runtime, const RuntimeFaults& faults) {
  std::string_view names;
  if (faults.lacks_map) names = runtime != nullptr ? runtime->map_remedy : kAnyMap;
  if (faults.interprets && runtime != nullptr) names = runtime->interpreter_remedy;
  const std::string_view pointer = runtime != nullptr ? runtime->pointer_flag : kAnyPointer;
  // A runtime that always keeps frame pointers: the code is somebody else's.
  if (!faults.lacks_pointers || pointer.empty()) return std::string(names);
  const std::string start =
      runtime != nullptr ? fmt::format("start it with {}", pointer) : std::string(pointer);
  return names.empty() ? start : fmt::format("{}; for names {}", start, names);
}

}  // namespace dwell
