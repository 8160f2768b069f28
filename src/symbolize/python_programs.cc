#include "symbolize/python_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace dwell::symbolize {
namespace {

// python3.11, libpython3.11.so.1.0, python3-custom: what else would have the variable?
bool may_hold_python(std::string_view path) {
  return path.substr(path.rfind('/') + 1).find("python") != std::string_view::npos;
}

}  // namespace

unwind::PythonPlace PythonPrograms::place(ObjectId object, uint64_t bias,
                                          unwind::LoadedTables& tables) {
  if (!may_hold_python(objects_.info(object).path)) return {};
  auto known = programs_.find(object);
  if (known == programs_.end()) known = programs_.emplace(object, look_into(object, tables)).first;
  const Program& program = known->second;
  if (program.layout == 0) return {};
  return {program.layout, bias + program.runtime};
}

const python::ObjectOffsets* PythonPrograms::offsets(uint32_t layout) const {
  return layout == 0 || layout > layouts_.size() ? nullptr : &layouts_[layout - 1].objects;
}

PythonPrograms::Program PythonPrograms::look_into(ObjectId object, unwind::LoadedTables& tables) {
  auto file = objects_.duplicate_file(object);
  if (!file) return {};
  using Found = Result<std::optional<PythonFile>>;
  auto task = [file = std::make_shared<Fd>(std::move(file)),
               path = objects_.info(object).path]() -> Found {
    DWELL_ASSIGN(const FileBytes bytes, FileBytes::of_file(file->get(), path));
    return find_python(bytes);
  };
  const std::optional<Found> answer = worker_.run(std::move(task), kReadPatience);
  if (!answer) return {};  // the worker says so
  if (!*answer) {
    warn(object, answer->error().message);
    return {};
  }
  const std::optional<PythonFile>& found = **answer;
  if (!found) return {};
  const uint32_t number = number_of(found->layout, tables);
  if (number == 0) warn(object, "it is of too many different builds of CPython");
  return {found->runtime, number};
}

uint32_t PythonPrograms::number_of(const python::Layout& layout, unwind::LoadedTables& tables) {
  const auto known = std::ranges::find(layouts_, layout);
  const auto number = static_cast<uint32_t>(known - layouts_.begin() + 1);
  if (known != layouts_.end()) return number;
  if (number >= DWELL_PYTHON_LAYOUTS || !tables.set_python_layout(number, layout.frames)) return 0;
  layouts_.push_back(layout);
  return number;
}

void PythonPrograms::warn(ObjectId object, const std::string& reason) {
  if (warnings_.size() >= kWarningsMax) return;
  warnings_.push_back(
      fmt::format("no Python frames of {}: {}", objects_.info(object).path, reason));
}

}  // namespace dwell::symbolize
