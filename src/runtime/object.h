// A natively compiled BPF object: open, set sizes and constants, load onto a machine, run. As with
// libbpf, maps get their definition from the source and may be resized before load().
//
// The program's global variables and map variables exist once per process, so that an object can be
// open once at a time; opening it again gives fresh maps, and variables as in the source.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/machine.h"
#include "runtime/map.h"
#include "runtime/native_object.h"
#include "runtime/program.h"

namespace dwell::runtime {

class Object {
 public:
  static Result<std::unique_ptr<Object>> open(const dwell_native_object& native);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Before load(): the definition of a map, to be changed. Aborts on a name that is not there, as
  // do the others below: that is a mistake in the test.
  MapDefinition& definition(std::string_view map);
  MapDefinition& inner_definition(std::string_view map);

  Status load(Machine& machine);  // the machine must outlive the object

  template <typename MapType = Map>
  MapType& map(std::string_view name) {
    return dynamic_cast<MapType&>(find_map(name));
  }
  Program& program(std::string_view name);
  // A global variable of the source; constants are to be written before load() only.
  template <typename T>
  T& variable(std::string_view name) {
    return *static_cast<T*>(find_variable(name, sizeof(T)));
  }

 private:
  struct Declared {
    const dwell_native_map* native;
    MapDefinition definition;
    MapDefinition inner;
    std::unique_ptr<Map> map;
  };

  explicit Object(const dwell_native_object& native) : native_(native) {}

  Map& find_map(std::string_view name);
  void* find_variable(std::string_view name, size_t bytes);
  Declared& find_declared(std::string_view name);
  Status restore_variables();

  const dwell_native_object& native_;
  std::vector<Declared> maps_;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace dwell::runtime
