#include "export/runtimes.h"

#include <fmt/format.h>

namespace dwell {
namespace {

constexpr Runtime kJava{"Java",
                        "run `jcmd PID Compiler.perfmap` while it is recorded, or start it with "
                        "-XX:+DumpPerfMapAtExit (JDK 17 or newer; older: attach perf-map-agent)",
                        "-XX:+PreserveFramePointer"};
constexpr Runtime kNode{"Node.js",
                        "start it with --perf-basic-prof (and --interpreted-frames-native-stack "
                        "for functions that are interpreted)",
                        ""};
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

std::string runtime_remedy(const Runtime* runtime, bool lacks_map, bool lacks_pointers) {
  const std::string_view map = runtime != nullptr ? runtime->map_flag : kAnyMap;
  const std::string_view pointer = runtime != nullptr ? runtime->pointer_flag : kAnyPointer;
  // A runtime that always keeps frame pointers: the code is somebody else's.
  if (!lacks_pointers || pointer.empty()) return lacks_map ? std::string(map) : "";
  const std::string start =
      runtime != nullptr ? fmt::format("start it with {}", pointer) : std::string(pointer);
  return lacks_map ? fmt::format("{}; for names {}", start, map) : start;
}

}  // namespace dwell
