// The files that hold a CPython interpreter, and the layouts by which the probe and we read it.
//
// A file is looked into once, if its name says that it may hold one; layouts are numbered from 1 as
// they are met, and told to the probe before a process names them. Called by the table loader, on
// the recording thread.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "python/layout.h"
#include "symbolize/file_worker.h"
#include "symbolize/object_table.h"
#include "symbolize/python_file.h"
#include "unwind/loaded_tables.h"

namespace dwell::symbolize {

class PythonPrograms {
 public:
  static constexpr int kReadPatience = 5;  // of a file worker
  static constexpr size_t kWarningsMax = 8;

  PythonPrograms(ObjectTable& objects, FileWorker& worker) : objects_(objects), worker_(worker) {}

  // Of a process that maps the object with that bias; layout 0: there is no interpreter in it.
  unwind::PythonPlace place(ObjectId object, uint64_t bias, unwind::LoadedTables& tables);
  // By the number of the layout; null: there is no such.
  const python::ObjectOffsets* offsets(uint32_t layout) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Program {
    uint64_t runtime = 0;
    uint32_t layout = 0;
  };
  Program look_into(ObjectId object, unwind::LoadedTables& tables);
  uint32_t number_of(const python::Layout& layout, unwind::LoadedTables& tables);
  void warn(ObjectId object, const std::string& reason);

  ObjectTable& objects_;
  FileWorker& worker_;
  std::unordered_map<ObjectId, Program> programs_;  // those whose name fits
  std::vector<python::Layout> layouts_;             // number 1 first
  std::vector<std::string> warnings_;
};

}  // namespace dwell::symbolize
