#include "python/code_object.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace dwell::python {
namespace {

constexpr uint32_t kVersion = 0x030b02f0;  // 3.11.2
const ObjectOffsets kOffsets = find_layout(kVersion, "")->objects;

// Pieces of memory at addresses of our choice.
class MadeUpMemory {
 public:
  template <typename Value>
  void put(uint64_t address, Value value) {
    for (size_t i = 0; i < sizeof(value); ++i)
      bytes_[address + i] = reinterpret_cast<const char*>(&value)[i];
  }
  void put_text(uint64_t address, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) bytes_[address + i] = text[i];
  }
  void put_string(uint64_t address, unsigned width, bool ascii, std::string_view characters,
                  bool compact = true) {
    put<uint64_t>(address + kOffsets.string_length, characters.size() / width);
    put<uint32_t>(address + kOffsets.string_state,
                  width << 2 | (compact ? 1u << 5 : 0) | (ascii ? 1u << 6 : 0));
    put_text(address + (ascii ? kOffsets.string_ascii_data : kOffsets.string_other_data),
             characters);
  }
  ReadMemory reader() {
    return [this](uint64_t address, void* to, size_t bytes) {
      for (size_t i = 0; i < bytes; ++i) {
        const auto at = bytes_.find(address + i);
        if (at == bytes_.end()) return false;
        static_cast<char*>(to)[i] = at->second;
      }
      return true;
    };
  }

 private:
  std::map<uint64_t, char> bytes_;
};

constexpr uint64_t kCode = 0x10000, kType = 0x20000, kTypeName = 0x21000, kName = 0x30000,
                   kFile = 0x40000, kLines = 0x50000;

class CodeObjectTest : public testing::Test {
 protected:
  CodeObjectTest() {
    for (uint64_t at = 0; at < 256; ++at) memory_.put<char>(kCode + at, 0);
    memory_.put(kCode + kOffsets.type, kType);
    memory_.put(kCode + kOffsets.code_name, kName);
    memory_.put(kCode + kOffsets.code_filename, kFile);
    memory_.put(kCode + kOffsets.code_line_table, kLines);
    memory_.put<uint32_t>(kCode + kOffsets.code_first_line, 12);
    memory_.put(kType + kOffsets.type_name, kTypeName);
    memory_.put_text(kTypeName, std::string_view("code\0", 5));
    memory_.put_string(kName, 1, true, "Worker.run.<locals>.poll");
    memory_.put_string(kFile, 1, true, "/srv/app/worker.py");
    memory_.put<uint64_t>(kLines + kOffsets.bytes_length, 3);
    memory_.put_text(kLines + kOffsets.bytes_data, "\x80\x01\x02");
  }
  std::optional<CodeObject> read() {
    const auto identity = read_identity(memory_.reader(), kOffsets, kCode);
    return identity ? read_code(memory_.reader(), kOffsets, *identity) : std::nullopt;
  }

  MadeUpMemory memory_;
};

TEST_F(CodeObjectTest, TellsNameFileAndLines) {
  const auto code = read();
  ASSERT_TRUE(code);
  EXPECT_EQ(code->name, "Worker.run.<locals>.poll");
  EXPECT_EQ(code->filename, "/srv/app/worker.py");
  EXPECT_EQ(code->line_table, "\x80\x01\x02");
  EXPECT_EQ(code->identity.first_line, 12u);
}

TEST_F(CodeObjectTest, ReadsEachWidthOfCharacters) {
  memory_.put_string(kName, 1, false, "caf\xe9");
  EXPECT_EQ(read()->name, "caf\xc3\xa9");
  memory_.put_string(kName, 2, false, std::string_view("\xac\x20\x3a\xd8", 4));
  EXPECT_EQ(read()->name, "\xe2\x82\xac\xef\xbf\xbd") << "the euro sign, and half a surrogate pair";
  memory_.put_string(kName, 4, false, std::string_view("\x0d\xf4\x01\x00\x00\x00\x11\x00", 8));
  EXPECT_EQ(read()->name, "\xf0\x9f\x90\x8d\xef\xbf\xbd") << "a snake, and what is no character";
}

TEST_F(CodeObjectTest, KnowsTheWiderFieldsOfLaterStrings) {
  memory_.put<uint32_t>(kName + kOffsets.string_state, (1u | 1u << 3 | 1u << 4) << 16 | 1);
  EXPECT_EQ(read()->name, "Worker.run.<locals>.poll");
}

TEST_F(CodeObjectTest, GivesFileNamesTheirBytesBack) {
  memory_.put_string(kFile, 2, false, std::string_view("/\0x\0\xff\xdc", 6));
  EXPECT_EQ(read()->filename, "/x\xff") << "os.fsdecode hides a byte that is no UTF-8 like this";
}

TEST_F(CodeObjectTest, CutsLongNamesAndLeavesOutLongTables) {
  memory_.put_string(kName, 1, true, std::string(kNameCharactersMax + 10, 'x'));
  memory_.put<uint64_t>(kLines + kOffsets.bytes_length, uint64_t{1} << 40);
  const auto code = read();
  ASSERT_TRUE(code);
  EXPECT_EQ(code->name.size(), kNameCharactersMax);
  EXPECT_EQ(code->line_table, "");
}

TEST_F(CodeObjectTest, RefusesWhatIsNoCodeObject) {
  memory_.put_text(kTypeName, std::string_view("codec", 5));
  EXPECT_FALSE(read());
  memory_.put<uint64_t>(kCode + kOffsets.type, 0x999);
  EXPECT_FALSE(read());
}

TEST_F(CodeObjectTest, RefusesStringsItCannotRead) {
  memory_.put_string(kName, 1, true, "x", false);
  EXPECT_FALSE(read()) << "the characters are elsewhere";
  memory_.put_string(kName, 3, true, "xxx");
  EXPECT_FALSE(read()) << "characters of three bytes";
  memory_.put_string(kName, 1, true, "x");
  memory_.put<uint64_t>(kName + kOffsets.string_length, 100);
  EXPECT_FALSE(read()) << "longer than the memory that is there";
}

TEST_F(CodeObjectTest, RefusesAddressesWithoutMemory) {
  EXPECT_FALSE(read_identity(memory_.reader(), kOffsets, 0));
  EXPECT_FALSE(read_identity(memory_.reader(), kOffsets, 0x7000));
  memory_.put<uint64_t>(kCode + kOffsets.code_filename, ~uint64_t{0} - 8);
  EXPECT_FALSE(read());
}

TEST_F(CodeObjectTest, TellsAnotherObjectAtTheSameAddress) {
  const auto before = read_identity(memory_.reader(), kOffsets, kCode);
  memory_.put<uint32_t>(kCode + kOffsets.code_first_line, 13);
  EXPECT_NE(*read_identity(memory_.reader(), kOffsets, kCode), *before);
}

}  // namespace
}  // namespace dwell::python
