// Files that hold an interpreter by their symbols alone: built here.
#include "symbolize/python_file.h"

#include <gtest/gtest.h>

#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kPython311 = R"(
const unsigned long Py_Version = 0x030b02f0;
long _PyRuntime[128] = {1};
int not_Py_Version;
int main(void) { return 0; }
)";
// "xdebugpy" as a number, the version, and nothing that could be an offset.
constexpr const char* kPython313 = R"(
const unsigned long Py_Version = 0x030d01f0;
long _PyRuntime[128] = {0x7970677562656478, 0x030d01f0};
int main(void) { return 0; }
)";

class PythonFileTest : public testing::Test {
 protected:
  std::string build(const std::string& source, const std::string& flags) {
    shop_.write("made.c", source);
    EXPECT_TRUE(shop_.run("cc made.c -o made " + flags)) << shop_.read("log");
    bytes_ = shop_.read("made");
    return bytes_;
  }
  Result<std::optional<PythonFile>> find(std::string_view bytes) const {
    return find_python(FileBytes::of_memory(bytes));
  }

  Workshop shop_;
  std::string bytes_;
};

TEST_F(PythonFileTest, FindsTheInterpreterInAProgramAndInALibrary) {
  for (const char* flags :
       {"-rdynamic", "-rdynamic -static-pie", "-no-pie -rdynamic", "-shared -fPIC"}) {
    const auto found = find(build(kPython311, flags));
    ASSERT_TRUE(found) << flags << ": " << found.error().message;
    ASSERT_TRUE(*found) << flags;
    EXPECT_EQ((*found)->runtime, shop_.address_of("made", "_PyRuntime")) << flags;
    EXPECT_TRUE((*found)->layout == *python::find_layout(0x030b02f0, "")) << flags;
  }
}

TEST_F(PythonFileTest, FindsItWhereOnlyTheSymbolTableNamesIt) {
  const auto found = find(build(kPython311, ""));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->runtime, shop_.address_of("made", "_PyRuntime"));
  EXPECT_TRUE(shop_.run("strip made"));
  EXPECT_FALSE(*find(shop_.read("made"))) << "nothing names it any more";
}

TEST_F(PythonFileTest, SaysWhyAnInterpreterCannotBeRead) {
  EXPECT_EQ(
      find(build("int _PyRuntime[9] = {1}; int main(void) { return 0; }", "")).error().message,
      "its CPython is older than 3.11, whose frames cannot be read");
  EXPECT_EQ(find(build(kPython313, "")).error().message,
            "the offsets for debuggers in it make no sense");
}

TEST_F(PythonFileTest, FindsNoneInOtherFiles) {
  const auto found = find(build("int main(void) { return 0; }", ""));
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
  EXPECT_FALSE(find("no ELF file at all"));
}

TEST_F(PythonFileTest, SurvivesFilesThatAreCutOrDamaged) {
  const std::string good = build(kPython311, "-shared -fPIC");
  for (size_t bytes = 0; bytes < good.size(); bytes += 101)
    find(std::string_view(good).substr(0, bytes));
  for (size_t at = 0; at < good.size(); at += 37) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(~damaged[at]);
    find(damaged);
  }
}

}  // namespace
}  // namespace dwell::symbolize
