// The offsets of 3.13 and 3.14 come from a made-up _PyRuntime; those of 3.11 are held to a running
// interpreter by tests/e2e/python_test.py.
#include "python/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace dwell::python {
namespace {

constexpr uint32_t kPython313 = 0x030d01f0, kPython314 = 0x030e00f0;

// Sections of the struct as CPython's headers list them: how many words each has, its size first.
struct Sections {
  size_t interpreter, frame, set;
};
constexpr Sections k313 = {13, 6, 0}, k314 = {14, 7, 4};

// Writes words by section and place in it.
class MadeUpRuntime {
 public:
  MadeUpRuntime(const Sections& sections, uint32_t version)
      : counts_{
            3, 3, sections.interpreter, 9, sections.frame, 10, 2, 4, 3, 3, sections.set, 3, 2, 3,
            3, 4} {
    size_t words = 0;
    for (const size_t count : counts_) words += count;
    words_.assign(words, 0);
    std::memcpy(&words_[0], "xdebugpy", 8);
    words_[1] = version;
  }
  enum Section {
    kHead,
    kRuntime,
    kInterpreter,
    kThread,
    kFrame,
    kCode,
    kObject,
    kType,
    kTuple,
    kList,
    kSet,
    kDict,
    kFloat,
    kLong,
    kBytes,
    kString
  };
  uint64_t& at(Section section, size_t index) {
    size_t first = 0;
    for (size_t i = 0; i < section; ++i) first += counts_[i];
    return words_[first + index];
  }
  std::string bytes() const {
    return {reinterpret_cast<const char*>(words_.data()), words_.size() * 8};
  }

 private:
  std::vector<size_t> counts_;
  std::vector<uint64_t> words_;
};

MadeUpRuntime plausible(const Sections& sections, uint32_t version, uint64_t frame_bytes) {
  using M = MadeUpRuntime;
  M runtime(sections, version);
  runtime.at(M::kRuntime, 2) = 632;  // interpreters_head
  runtime.at(M::kInterpreter, 2) = 7000;
  runtime.at(M::kInterpreter, 3) = 7344;
  runtime.at(M::kThread, 2) = 8;
  runtime.at(M::kThread, 4) = 72;
  runtime.at(M::kThread, 6) = 160;
  runtime.at(M::kFrame, 0) = frame_bytes;
  runtime.at(M::kFrame, 1) = 8;
  runtime.at(M::kFrame, 2) = 0;
  runtime.at(M::kFrame, 3) = 56;
  runtime.at(M::kFrame, 5) = frame_bytes - 10;
  const uint64_t code[] = {208, 112, 120, 128, 136, 68, 52, 96, 104, 200};
  for (size_t i = 0; i < 10; ++i) runtime.at(M::kCode, i) = code[i];
  runtime.at(M::kObject, 1) = 8;
  runtime.at(M::kType, 1) = 24;
  runtime.at(M::kBytes, 1) = 16;
  runtime.at(M::kBytes, 2) = 32;
  runtime.at(M::kString, 1) = 32;
  runtime.at(M::kString, 2) = 16;
  runtime.at(M::kString, 3) = 40;
  return runtime;
}

void expect_plausible(const Layout& layout, uint8_t frame_bytes) {
  EXPECT_EQ(layout.frames.runtime_interpreters, 632u);
  EXPECT_EQ(layout.frames.interpreter_next, 7000u);
  EXPECT_EQ(layout.frames.interpreter_threads, 7344u);
  EXPECT_EQ(layout.frames.thread_next, 8u);
  EXPECT_EQ(layout.frames.thread_frame, 72u);
  EXPECT_EQ(layout.frames.indirect_frame, uint32_t{DWELL_PYTHON_DIRECT});
  EXPECT_EQ(layout.frames.thread_native_id, 160u);
  EXPECT_EQ(layout.frames.code_instructions, 200u);
  EXPECT_EQ(layout.frames.frame_bytes, frame_bytes) << "without the one local variable";
  EXPECT_EQ(layout.frames.frame_previous, 8u);
  EXPECT_EQ(layout.frames.frame_instruction, 56u);
  EXPECT_EQ(layout.frames.frame_entry, frame_bytes - 2);
  EXPECT_EQ(layout.frames.entry_is_shim, 1u);
  EXPECT_EQ(layout.objects.type, 8u);
  EXPECT_EQ(layout.objects.type_name, 24u);
  EXPECT_EQ(layout.objects.code_filename, 112u);
  EXPECT_EQ(layout.objects.code_name, 128u);
  EXPECT_EQ(layout.objects.code_line_table, 136u);
  EXPECT_EQ(layout.objects.code_first_line, 68u);
  EXPECT_EQ(layout.objects.bytes_length, 16u);
  EXPECT_EQ(layout.objects.bytes_data, 32u);
  EXPECT_EQ(layout.objects.string_state, 32u);
  EXPECT_EQ(layout.objects.string_length, 16u);
  EXPECT_EQ(layout.objects.string_ascii_data, 40u);
  EXPECT_EQ(layout.objects.string_other_data, 56u);
}

TEST(PythonLayout, TakesTheInterpretersOwnOffsets) {
  const auto older = find_layout(kPython313, plausible(k313, kPython313, 80).bytes());
  ASSERT_TRUE(older) << older.error().message;
  expect_plausible(*older, 72);
  const auto newer = find_layout(kPython314, plausible(k314, kPython314, 88).bytes());
  ASSERT_TRUE(newer) << newer.error().message;
  expect_plausible(*newer, 80);
}

TEST(PythonLayout, KnowsTheVersionsThatTellNothing) {
  const auto python311 = find_layout(0x030b02f0, "");
  ASSERT_TRUE(python311);
  EXPECT_EQ(python311->frames.entry_is_shim, 0u) << "its entry frames are frames of the program";
  const auto python312 = find_layout(0x030c08f0, "");
  ASSERT_TRUE(python312);
  EXPECT_FALSE(*python311 == *python312);
  for (const Layout& layout : {*python311, *python312}) {
    EXPECT_LE(layout.frames.frame_bytes, DWELL_PYTHON_FRAME_BYTES);
    for (const uint8_t word : {layout.frames.frame_code, layout.frames.frame_previous,
                               layout.frames.frame_instruction}) {
      EXPECT_EQ(word % 8, 0);
      EXPECT_LE(word + 8, layout.frames.frame_bytes);
    }
    EXPECT_LT(layout.frames.frame_entry, layout.frames.frame_bytes);
  }
}

TEST(PythonLayout, RefusesVersionsItDoesNotKnow) {
  EXPECT_EQ(find_layout(0x030a0cf0, "").error().message,
            "CPython 3.10 is not supported: the frames of 3.11 to 3.14 can be read");
  EXPECT_FALSE(find_layout(0x030f00a1, plausible(k314, 0x030f00a1, 88).bytes()));
  EXPECT_FALSE(find_layout(0, ""));
}

TEST(PythonLayout, BelievesNoOffsetOutOfBounds) {
  using M = MadeUpRuntime;
  const auto is_refused = [](M::Section section, size_t index, uint64_t value) {
    auto runtime = plausible(k313, kPython313, 80);
    runtime.at(section, index) = value;
    return !find_layout(kPython313, runtime.bytes()).has_value();
  };
  EXPECT_TRUE(is_refused(M::kHead, 0, 0)) << "the cookie";
  EXPECT_TRUE(is_refused(M::kHead, 1, kPython314)) << "the version";
  EXPECT_TRUE(is_refused(M::kHead, 2, 1)) << "free threads";
  EXPECT_TRUE(is_refused(M::kRuntime, 2, uint64_t{1} << 40));
  EXPECT_TRUE(is_refused(M::kFrame, 0, 4096)) << "larger than what the probe reads";
  EXPECT_TRUE(is_refused(M::kFrame, 0, 0));
  EXPECT_TRUE(is_refused(M::kFrame, 1, 9)) << "a pointer is aligned";
  EXPECT_TRUE(is_refused(M::kFrame, 3, 72)) << "behind the frame";
  EXPECT_TRUE(is_refused(M::kFrame, 5, 72));
  EXPECT_TRUE(is_refused(M::kCode, 3, kCodeBytesMax));
  EXPECT_TRUE(is_refused(M::kString, 3, ~uint64_t{0}));
  const std::string whole = plausible(k313, kPython313, 80).bytes();
  for (size_t bytes = 0; bytes < whole.size(); bytes += 8)
    EXPECT_FALSE(find_layout(kPython313, std::string_view(whole).substr(0, bytes))) << bytes;
}

}  // namespace
}  // namespace dwell::python
