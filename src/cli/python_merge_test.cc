#include "cli/python_merge.h"

#include <gtest/gtest.h>

namespace dwell::cli {
namespace {

constexpr uint32_t kEval = 100;  // and above: eval frames; below 10: Python's

// `python`: the frames of each eval call, leaf first.
MergedFrames merge(const std::vector<uint32_t>& native,
                   const std::vector<std::vector<uint32_t>>& python, bool native_complete = true,
                   bool python_complete = true) {
  NativeFrames of_native = {native, {}, native_complete};
  for (const uint32_t frame : native) of_native.is_eval.push_back(frame >= kEval);
  std::vector<uint32_t> frames;
  std::vector<uint8_t> begins;
  for (const auto& call : python)
    for (const uint32_t& frame : call) {
      begins.push_back(&frame == &call.front());
      frames.push_back(frame);
    }
  return merge_python(of_native, {frames, begins, python_complete});
}
using Frames = std::vector<uint32_t>;

TEST(PythonMerge, PutsTheFramesOfEachCallBeforeItsEvalFrame) {
  const auto merged = merge({50, 100, 51, 52, 101, 53}, {{1, 2}, {3, 4, 5}});
  EXPECT_EQ(merged.frames, (Frames{50, 1, 2, 100, 51, 52, 3, 4, 5, 101, 53}));
  EXPECT_FALSE(merged.unmatched);
}

TEST(PythonMerge, LeavesAnEvalCallThatHasJustBegunWithoutFrames) {
  const auto merged = merge({100, 50, 101, 51}, {{1, 2}});
  EXPECT_EQ(merged.frames, (Frames{100, 50, 1, 2, 101, 51}));
  EXPECT_TRUE(merged.unmatched);
}

TEST(PythonMerge, LosesNoFrameWhereAnEvalFrameIsMissing) {
  const auto merged = merge({50, 100, 51, 101, 52}, {{1}, {2}, {3}, {4}});
  EXPECT_EQ(merged.frames, (Frames{50, 1, 2, 3, 100, 51, 4, 101, 52})) << "the root is in common";
  EXPECT_TRUE(merged.unmatched);
}

TEST(PythonMerge, GoesFromTheLeafWhereARootIsMissing) {
  const auto cut = merge({50, 100, 51}, {{1}, {2}, {3}}, false);
  EXPECT_EQ(cut.frames, (Frames{50, 1, 2, 3, 100, 51}));
  EXPECT_FALSE(cut.unmatched) << "that the stack is cut is said elsewhere";
  const auto deep = merge({50, 100, 51, 101, 52}, {{1}}, true, false);
  EXPECT_EQ(deep.frames, (Frames{50, 1, 100, 51, 101, 52}));
  EXPECT_FALSE(deep.unmatched);
}

TEST(PythonMerge, LeavesOldFramesOut) {
  const auto left = merge({50, 51}, {{1, 2}});
  EXPECT_EQ(left.frames, (Frames{50, 51}));
  EXPECT_TRUE(left.unmatched);
  EXPECT_EQ(merge({50}, {{1, 2}}, false).frames, (Frames{50, 1, 2})) << "the interpreter is behind";
  EXPECT_EQ(merge({}, {}).frames, Frames{});
}

TEST(PythonMerge, KnowsThePartsOfTheEvalFunction) {
  EXPECT_TRUE(is_eval_function("_PyEval_EvalFrameDefault"));
  EXPECT_TRUE(is_eval_function("_PyEval_EvalFrameDefault.cold"));
  EXPECT_TRUE(is_eval_function("_PyEval_EvalFrameDefault.lto_priv.0"));
  EXPECT_FALSE(is_eval_function("_PyEval_EvalFrame"));
  EXPECT_FALSE(is_eval_function("_PyEval_EvalFrameDefaultHook"));
  EXPECT_FALSE(is_eval_function(""));
}

}  // namespace
}  // namespace dwell::cli
