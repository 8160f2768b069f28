// The frames of a Go program as its own run time knows them, out of its pclntab: where each
// function begins, and how large its frame is at each instruction. Go writes no .eh_frame, and
// frame pointers lead astray where its run time switches stacks.
//
// Of Go 1.18 and newer, on x86-64. Called by the table compiler. The bytes are a hostile file's:
// what makes no sense is left out, time and memory are linear in the size of the table.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "unwind/rule.h"

namespace dwell::unwind {

struct GoFunction {
  enum class Caller : uint8_t {
    kAboveFrame,  // the return address lies above the frame
    kByPointer,   // the function switches stacks; rbp is still that of its caller
    kNone,        // the outermost of a stack
  };
  uint64_t start = 0;
  uint64_t end = 0;
  Caller caller = Caller::kAboveFrame;
  std::string_view frame_sizes;  // encoded; from there to the end of the table
};

class GoFunctions {
 public:
  static constexpr size_t kSizesBytesMax = 1 << 16;            // of one function
  static constexpr size_t kDecodedBytesMax = size_t{1} << 26;  // of all: they may share them
  // The rule holds from `start` to `end`, which is never empty.
  using OnRange = std::function<void(uint64_t start, uint64_t end, const Rule& rule)>;

  // None if the table is of another version of Go, makes no sense or does not say where the text
  // begins. `text_start` is for one that leaves it open.
  static std::vector<GoFunction> read(std::string_view table, uint64_t text_start = 0);

  // Tells every range of the function that has a rule, in order, and takes what it decoded from
  // `budget`. False from the first step on that makes no sense.
  static bool tell(const GoFunction& function, size_t& budget, const OnRange& on_range);
};

}  // namespace dwell::unwind
