#include "symbolize/python_frames.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "abi/python.h"
#include "base/fd.h"
#include "python/line_table.h"

namespace dwell::symbolize {
namespace {

// A code object that is wanted, and what is known of it.
struct Wanted {
  uint64_t address = 0;
  std::optional<python::CodeIdentity> known;
};

struct Answer {
  uint64_t address = 0;
  bool is_same = false;                      // it is the one that is known
  std::optional<python::CodeObject> object;  // else what is there now
};

// Runs on the worker's thread, and owns all that it touches.
std::vector<Answer> read_all(const std::string& memory_path, const python::ObjectOffsets& offsets,
                             const std::vector<Wanted>& wanted) {
  const auto memory = open_for_reading(memory_path);
  if (!memory) return {};
  const python::ReadMemory read = [&](uint64_t address, void* to, size_t bytes) {
    return pread(memory->get(), to, bytes, static_cast<off_t>(address)) ==
           static_cast<ssize_t>(bytes);
  };
  std::vector<Answer> answers;
  for (const Wanted& code : wanted) {
    Answer& answer = answers.emplace_back();
    answer.address = code.address;
    const auto identity = python::read_identity(read, offsets, code.address);
    answer.is_same = identity && identity == code.known;
    if (identity && !answer.is_same) answer.object = python::read_code(read, offsets, *identity);
  }
  return answers;
}

}  // namespace

uint32_t PythonFrames::function_of(const python::CodeObject& object) {
  const auto next = static_cast<uint32_t>(functions_.size());
  if (next >= kFunctionsMax) return kUnread;
  const auto [at, is_new] = ids_.try_emplace(std::pair(object.name, object.filename), next);
  if (is_new) functions_.push_back({object.name, object.filename});
  return at->second;
}

PythonFrames::Code PythonFrames::take(python::CodeObject&& object) {
  const uint32_t function = function_of(object);
  line_bytes_ += object.line_table.size();
  return {object.identity, function, std::move(object.line_table)};
}

// What is thrown away is read again if it is met again.
void PythonFrames::make_room(size_t codes) {
  if (codes_ + codes <= kCodesMax && line_bytes_ < kLineBytesMax) return;
  processes_.clear();
  codes_ = line_bytes_ = 0;
}

void PythonFrames::read_codes(Codes& codes, const LiveProcess& live,
                              const python::ObjectOffsets& offsets,
                              std::span<const uint64_t> words) {
  std::vector<Wanted> wanted;
  for (const uint64_t word : words) {
    const uint64_t address = DWELL_PYTHON_CODE(word);
    if (std::ranges::find(wanted, address, &Wanted::address) != wanted.end()) continue;
    const auto known = codes.find(address);
    wanted.push_back(
        {address, known == codes.end() ? std::nullopt : std::optional(known->second.identity)});
  }
  auto answers =
      worker_.run([path = live.directory() + "/mem", offsets, wanted = std::move(wanted)] {
        return read_all(path, offsets, wanted);
      });
  if (!answers) return;
  for (Answer& answer : *answers) {
    if (answer.is_same) continue;
    if (answer.object)
      codes.insert_or_assign(answer.address, take(std::move(*answer.object)));
    else
      codes.erase(answer.address);
  }
}

std::vector<PythonFrames::Position> PythonFrames::locate(const ProcessKey& process,
                                                         const LiveProcess* live,
                                                         const python::ObjectOffsets& offsets,
                                                         std::span<const uint64_t> words) {
  make_room(words.size());
  Codes& codes = processes_[process];
  const size_t before = codes.size();
  if (live != nullptr) read_codes(codes, *live, offsets, words);
  codes_ = codes_ - before + codes.size();
  std::vector<Position> positions;
  for (const uint64_t word : words) {
    Position& position = positions.emplace_back();
    const auto code = codes.find(DWELL_PYTHON_CODE(word));
    if (code == codes.end()) continue;
    const uint32_t instruction = DWELL_PYTHON_INSTRUCTION(word);
    position.function = code->second.function;
    if (instruction != DWELL_PYTHON_NO_INSTRUCTION)
      position.line =
          python::line_of(code->second.line_table, code->second.identity.first_line, instruction);
  }
  return positions;
}

}  // namespace dwell::symbolize
