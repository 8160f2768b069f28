// Puts Python frames in their place among the frames of compiled code.
//
// Each call of the interpreter's eval function runs one Python function and those that it calls,
// until C code calls the interpreter again. So the frames of the i-th call stand on the leaf's side
// of the i-th eval frame. Used by build_profile.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dwell::cli {

// `_PyEval_EvalFrameDefault`, or a part of it that the compiler put elsewhere.
bool is_eval_function(std::string_view function);

struct NativeFrames {
  std::span<const uint32_t> frames;  // leaf first
  std::vector<bool> is_eval;
  bool complete = false;
};
struct PythonStack {
  std::span<const uint32_t> frames;  // leaf first
  std::span<const uint8_t> begins;   // 1: the leaf of an eval call
  bool complete = false;
};

struct MergedFrames {
  std::vector<uint32_t> frames;
  // Both stacks are whole, and yet there are more calls in one than in the other.
  bool unmatched = false;
};
MergedFrames merge_python(const NativeFrames& native, const PythonStack& python);

}  // namespace dwell::cli
