// Code objects of 3.11, made up in our own memory and read back through /proc.
#include "symbolize/python_frames.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "python/layout.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

const python::ObjectOffsets kOffsets = python::find_layout(0x030b02f0, "")->objects;

template <typename Value>
void put(std::string& bytes, uint32_t offset, Value value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}
uint64_t address(const void* at) { return reinterpret_cast<uint64_t>(at); }

// A function whose first instruction is in its first line, and the second in the next.
class MadeUpFunction {
 public:
  MadeUpFunction(const std::string& name, const std::string& file, uint32_t first_line)
      : name_(string(name)), file_(string(file)) {
    put(type_, kOffsets.type_name, address("code"));
    put<uint64_t>(lines_, kOffsets.bytes_length, 6);
    std::memcpy(lines_.data() + kOffsets.bytes_data, "\xd0\x01\x02\xd8\x01\x02", 6);
    put(code_, kOffsets.type, address(type_.data()));
    put(code_, kOffsets.code_name, address(name_.data()));
    put(code_, kOffsets.code_filename, address(file_.data()));
    put(code_, kOffsets.code_line_table, address(lines_.data()));
    put(code_, kOffsets.code_first_line, first_line);
  }
  MadeUpFunction(const MadeUpFunction&) = delete;
  MadeUpFunction& operator=(const MadeUpFunction&) = delete;

  uint64_t at(uint64_t instruction) const { return address(code_.data()) | instruction << 48; }
  void rename(const std::string& name) {
    name_ = string(name);
    put(code_, kOffsets.code_name, address(name_.data()));
  }
  void destroy() { put<uint64_t>(code_, kOffsets.type, 0); }

 private:
  static std::string string(const std::string& text) {
    std::string bytes(kOffsets.string_ascii_data, '\0');
    put<uint64_t>(bytes, kOffsets.string_length, text.size());
    put<uint32_t>(bytes, kOffsets.string_state, 1u << 2 | 1u << 5 | 1u << 6);
    return bytes + text;
  }
  std::string name_, file_;
  std::string type_ = std::string(64, '\0'), lines_ = std::string(64, '\0'),
              code_ = std::string(256, '\0');
};

class PythonFramesTest : public testing::Test {
 protected:
  std::vector<PythonFrames::Position> locate(std::vector<uint64_t> words, bool alive = true) {
    const auto live = LiveProcess::find(static_cast<uint32_t>(getpid()));
    return frames_.locate(self_, alive ? &*live : nullptr, kOffsets, words);
  }
  std::string name(const PythonFrames::Position& position) {
    if (position.function == PythonFrames::kUnread) return "unread";
    const PythonFunction& function = frames_.function(position.function);
    return function.name + " " + function.filename + ":" + std::to_string(position.line);
  }

  FileWorker worker_;
  PythonFrames frames_{worker_};
  const ProcessKey self_ = Target::key_of(static_cast<uint32_t>(getpid()));
  MadeUpFunction inner_{"Inner.work", "/srv/inner.py", 7}, outer_{"outer", "/srv/outer.py", 30};
};

TEST_F(PythonFramesTest, NamesEachFrameWithItsLine) {
  const auto found = locate({inner_.at(0), inner_.at(1), outer_.at(1), outer_.at(9)});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(name(found[0]), "Inner.work /srv/inner.py:7");
  EXPECT_EQ(name(found[1]), "Inner.work /srv/inner.py:8");
  EXPECT_EQ(name(found[2]), "outer /srv/outer.py:31");
  EXPECT_EQ(name(found[3]), "outer /srv/outer.py:0") << "behind the end of the table";
  EXPECT_EQ(found[0].function, found[1].function);
  EXPECT_EQ(name(locate({inner_.at(DWELL_PYTHON_NO_INSTRUCTION)})[0]),
            "Inner.work /srv/inner.py:0");
}

TEST_F(PythonFramesTest, NoticesAnotherObjectAtTheSamePlace) {
  locate({inner_.at(0)});
  inner_.rename("usurper");
  EXPECT_EQ(name(locate({inner_.at(0)})[0]), "usurper /srv/inner.py:7");
  inner_.destroy();
  EXPECT_EQ(name(locate({inner_.at(0)})[0]), "unread") << "no code object any more";
}

TEST_F(PythonFramesTest, KeepsWhatItKnowsOfAProcessThatHasEnded) {
  locate({inner_.at(0)});
  const auto found = locate({inner_.at(1), outer_.at(0)}, false);
  EXPECT_EQ(name(found[0]), "Inner.work /srv/inner.py:8");
  EXPECT_EQ(name(found[1]), "unread") << "never read while it lived";
}

TEST_F(PythonFramesTest, TakesNothingForAFunctionThatIsNone) {
  const uint64_t wild[] = {0, 8, address(this) & ~7ull, 0x7fffffffffff, ~0ull};
  for (const uint64_t word : wild) EXPECT_EQ(name(locate({word})[0]), "unread") << word;
}

}  // namespace
}  // namespace dwell::symbolize
