#include "cli/python_merge.h"

#include <algorithm>
#include <cstddef>

namespace dwell::cli {
namespace {

// The Python frames of one eval call.
using Calls = std::vector<std::span<const uint32_t>>;

Calls split(const PythonStack& python) {
  Calls calls;
  for (size_t i = 0; i < python.frames.size(); ++i) {
    if (calls.empty() || python.begins[i] != 0) calls.push_back(python.frames.subspan(i, 0));
    calls.back() = {calls.back().data(), calls.back().size() + 1};
  }
  return calls;
}

// To which eval frame the call belongs, both counted from the leaf. Whole stacks have their root in
// common: what one has more stands at the leaf, as where an eval call has just begun. If the root
// of one is missing, it is the leaf. Calls without an eval frame of theirs go to the one beside.
size_t eval_of(size_t call, size_t calls, size_t evals, bool from_root) {
  if (!from_root) return std::min(call, evals - 1);
  const size_t shift = std::max(evals, calls) - calls, missing = calls - std::min(evals, calls);
  return call + shift - std::min(call, missing);
}

void append(std::vector<uint32_t>& to, std::span<const uint32_t> frames) {
  to.insert(to.end(), frames.begin(), frames.end());
}

}  // namespace

bool is_eval_function(std::string_view function) {
  constexpr std::string_view kEval = "_PyEval_EvalFrameDefault";
  if (!function.starts_with(kEval)) return false;
  return function.size() == kEval.size() || function[kEval.size()] == '.';
}

MergedFrames merge_python(const NativeFrames& native, const PythonStack& python) {
  MergedFrames merged;
  const Calls calls = split(python);
  const auto evals = static_cast<size_t>(std::ranges::count(native.is_eval, true));
  const bool whole = native.complete && python.complete;
  merged.unmatched = whole && evals != calls.size();
  size_t call = 0, eval = 0;
  for (size_t i = 0; i < native.frames.size(); ++i) {
    if (native.is_eval[i]) {
      while (call < calls.size() && eval_of(call, calls.size(), evals, whole) == eval)
        append(merged.frames, calls[call++]);
      ++eval;
    }
    merged.frames.push_back(native.frames[i]);
  }
  // A whole stack without the interpreter is that of a thread which has left it: what is remembered
  // of its frames is old. Where the walk was cut, the interpreter lies behind.
  if (evals == 0 && !native.complete) append(merged.frames, python.frames);
  return merged;
}

}  // namespace dwell::cli
