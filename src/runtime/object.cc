#include "runtime/object.h"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "runtime/map_of_maps.h"

namespace dwell::runtime {
namespace {

// Which objects are open, and what their variables were when they were opened first.
struct Known {
  bool open = false;
  std::vector<std::vector<std::byte>> variables;
};
std::mutex known_mutex;
std::map<const dwell_native_object*, Known>& known_objects() {
  static std::map<const dwell_native_object*, Known> known;
  return known;
}

[[noreturn]] void no_such(const char* what, std::string_view name, const char* object) {
  std::fprintf(stderr, "dwell runtime: object %s has no %s \"%.*s\"\n", object, what,
               static_cast<int>(name.size()), name.data());
  std::abort();
}

bool is_map_of_maps(uint32_t type) {
  return type == BPF_MAP_TYPE_ARRAY_OF_MAPS || type == BPF_MAP_TYPE_HASH_OF_MAPS;
}

MapDefinition definition_of(const dwell_native_map& native) {
  MapDefinition d;
  d.name = native.name;
  d.type = native.type;
  d.key_bytes = native.key_bytes;
  d.value_bytes = native.value_bytes;
  d.max_entries = native.max_entries;
  d.flags = native.flags;
  return d;
}

// Constants lie in pages that the loader made read-only.
Status make_writable(const dwell_native_variable& variable) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(variable.address) & ~(page - 1);
  const auto end = reinterpret_cast<uintptr_t>(variable.address) + variable.bytes;
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) != 0)
    return errno_error(errno, fmt::format("cannot make the constant {} writable", variable.name));
  return {};
}

}  // namespace

Result<std::unique_ptr<Object>> Object::open(const dwell_native_object& native) {
  {
    const std::lock_guard lock(known_mutex);
    Known& known = known_objects()[&native];
    if (known.open)
      return usage_error(fmt::format(
          "object {} is open already: its variables exist once per process", native.name));
    known.open = true;
  }
  std::unique_ptr<Object> object(new Object(native));
  DWELL_TRY(object->restore_variables());
  for (unsigned i = 0; i < native.map_count; ++i) {
    const dwell_native_map& map = native.maps[i];
    object->maps_.push_back({&map, definition_of(map),
                             map.inner != nullptr ? definition_of(*map.inner) : MapDefinition{},
                             nullptr});
  }
  return object;
}

Object::~Object() {
  for (const Declared& declared : maps_) std::memset(declared.native->variable, 0, sizeof(void*));
  const std::lock_guard lock(known_mutex);
  known_objects()[&native_].open = false;
}

Status Object::restore_variables() {
  const std::lock_guard lock(known_mutex);
  std::vector<std::vector<std::byte>>& saved = known_objects()[&native_].variables;
  const bool first = saved.empty();
  for (unsigned i = 0; i < native_.variable_count; ++i) {
    const dwell_native_variable& variable = native_.variables[i];
    auto* bytes = static_cast<std::byte*>(variable.address);
    if (variable.read_only != 0) DWELL_TRY(make_writable(variable));
    if (first)
      saved.emplace_back(bytes, bytes + variable.bytes);
    else
      std::memcpy(bytes, saved[i].data(), variable.bytes);
  }
  return {};
}

Object::Declared& Object::find_declared(std::string_view name) {
  for (Declared& declared : maps_)
    if (declared.native->name == name) return declared;
  no_such("map", name, native_.name);
}

MapDefinition& Object::definition(std::string_view map) { return find_declared(map).definition; }
MapDefinition& Object::inner_definition(std::string_view map) { return find_declared(map).inner; }

Status Object::load(Machine& machine) {
  if (!programs_.empty()) return usage_error(fmt::format("object {} is loaded", native_.name));
  for (Declared& declared : maps_) {
    if (is_map_of_maps(declared.definition.type)) {
      declared.map =
          std::make_unique<MapOfMaps>(declared.definition, declared.inner,
                                      declared.definition.type == BPF_MAP_TYPE_ARRAY_OF_MAPS);
    } else {
      DWELL_ASSIGN(declared.map, create_map(declared.definition, machine));
    }
    Map* map = declared.map.get();
    std::memcpy(declared.native->variable, &map, sizeof map);
  }
  for (unsigned i = 0; i < native_.program_count; ++i)
    programs_.push_back(std::make_unique<Program>(native_.programs[i], machine));
  return {};
}

Map& Object::find_map(std::string_view name) {
  Map* map = find_declared(name).map.get();
  if (map == nullptr) no_such("loaded map", name, native_.name);
  return *map;
}

Program& Object::program(std::string_view name) {
  for (const std::unique_ptr<Program>& program : programs_)
    if (program->name() == name) return *program;
  no_such("loaded program", name, native_.name);
}

void* Object::find_variable(std::string_view name, size_t bytes) {
  for (unsigned i = 0; i < native_.variable_count; ++i) {
    const dwell_native_variable& variable = native_.variables[i];
    if (variable.name == name && variable.bytes == bytes) return variable.address;
  }
  no_such("variable of that size", name, native_.name);
}

}  // namespace dwell::runtime
