// Where names come from when a file is stripped, with files made by the machine's own tools.
#include "symbolize/symbol_loader.h"

#include <fcntl.h>

#include "symbolize/debug_file.h"
#include "symbolize/mini_debug.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

constexpr size_t kMemory = size_t{64} << 20;

class SymbolLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    shop_.write("p.c", speaking_program());
    ASSERT_TRUE(
        shop_.run("gcc -g -O1 -no-pie -Wl,--build-id=0xabcdef01 -o full p.c && "
                  "objcopy --only-keep-debug full full.debug && strip -s -o p full"))
        << shop_.read("log");
    inner_ = shop_.address_of("full", "inner");
    ASSERT_NE(inner_, 0u);
    root_ = Fd(open("/", O_PATH | O_DIRECTORY));
  }
  LoadedSymbols load(const std::string& name) const {
    const auto fd = open_for_reading(shop_.path(name));
    const auto bytes = FileBytes::of_file(fd->get(), name);
    return load_symbols(*bytes, shop_.path(name), {-1, root_.get(), shop_.path("debug")}, kMemory);
  }
  // "NAME how" or "".
  std::string name_in(const std::string& file, uint64_t address) const {
    const auto loaded = load(file);
    reason_ = loaded.reason;
    if (!loaded.table) return "";
    const auto match = loaded.table->find(address);
    if (!match) return "";
    return std::string(match->name) + " " + std::to_string(static_cast<int>(match->how));
  }
  static std::string how(const std::string& name, Resolution how) {
    return name + " " + std::to_string(static_cast<int>(how));
  }
  Workshop shop_;
  uint64_t inner_ = 0;
  Fd root_;
  mutable std::string reason_;
};

TEST_F(SymbolLoaderTest, ReadsTheSymbolTableOfTheFile) {
  EXPECT_EQ(name_in("full", inner_), how("inner", Resolution::kSymtab));
  EXPECT_EQ(reason_, "");
}

TEST_F(SymbolLoaderTest, GivesNoNameToCodeThatAStrippedFileDoesNotName) {
  // An exported function far before: "the nearest one" would be wrong.
  ASSERT_TRUE(shop_.run("gcc -O1 -no-pie -rdynamic -Wl,--build-id=0x01 -o e p.c && strip -s e"));
  const uint64_t outer = shop_.address_of("full", "outer");
  EXPECT_NE(name_in("p", outer), "outer");
  EXPECT_EQ(name_in("e", outer), how("outer", Resolution::kDynsym));
  EXPECT_EQ(name_in("e", inner_), "");
  EXPECT_EQ(reason_, "no symbol table in the file");
}

TEST_F(SymbolLoaderTest, NamesUnsizedAssemblerFunctionsOnlyWhereThatIsSafe) {
  shop_.write("a.s",
              ".globl unsized\n.type unsized,@function\nunsized: nop;nop;nop;ret\n"
              ".globl untyped\nuntyped: nop;nop;ret\n.Llocal: nop\n"
              ".section .note.GNU-stack,\"\",@progbits\n");
  ASSERT_TRUE(
      shop_.run("gcc -O1 -no-pie -rdynamic -Wl,--build-id=0x02 -o u p.c a.s && "
                "strip -s -o us u"));
  const uint64_t at = shop_.address_of("u", "unsized");
  EXPECT_EQ(name_in("u", at + 2), how("unsized", Resolution::kSymtab));
  EXPECT_EQ(name_in("u", shop_.address_of("u", "untyped") + 1),
            how("untyped", Resolution::kSymtab));
  EXPECT_EQ(name_in("us", at), how("unsized", Resolution::kDynsym));
  EXPECT_EQ(name_in("us", at + 2), "");
}

TEST_F(SymbolLoaderTest, NamesPltStubsAfterTheirTarget) {
  shop_.write("c.c",
              "#include <stdio.h>\n#include <unistd.h>\n"
              "int main(void) { puts(\"x\"); return getppid(); }\n");
  for (const char* flags : {"-Wl,-z,lazy", "-fcf-protection=none -Wl,-z,lazy",
                            "-fcf-protection -Wl,-z,lazy,-z,ibtplt"}) {
    ASSERT_TRUE(shop_.run(std::string("gcc -O1 -no-pie ") + flags + " -o plt c.c"));
    const std::string stub =
        shop_.output("objdump -d plt | sed -n 's/^0*\\([0-9a-f]*\\) <getppid@plt>:.*/\\1/p'");
    ASSERT_FALSE(stub.empty()) << flags;
    EXPECT_EQ(name_in("plt", std::stoull(stub, nullptr, 16) + 4),
              how("getppid@plt", Resolution::kPlt))
        << flags;
  }
}

TEST_F(SymbolLoaderTest, ReadsMiniDebugInfo) {
  if (!Workshop::has("xz")) GTEST_SKIP() << "xz is not installed";
  ASSERT_TRUE(
      shop_.run("objcopy -S --remove-section .comment full mini && "
                "objcopy --keep-symbol=inner --strip-all full inner_only; "
                "cp full.debug m && objcopy --strip-debug m && xz -kf m && "
                "objcopy --add-section .gnu_debugdata=m.xz mini with_mini"))
      << shop_.read("log");
  EXPECT_EQ(name_in("mini", inner_), "");
  EXPECT_EQ(name_in("with_mini", inner_), how("inner", Resolution::kMiniDebugInfo));
}

TEST_F(SymbolLoaderTest, RefusesMiniDebugInfoThatIsDamagedOrEndless) {
  EXPECT_FALSE(decompress_mini_debug(""));
  EXPECT_FALSE(decompress_mini_debug("not xz at all"));
  if (!Workshop::has("xz")) GTEST_SKIP() << "xz is not installed";
  ASSERT_TRUE(shop_.run("head -c 200000000 /dev/zero | xz -0 > bomb.xz && xz -k -c p > p.xz"));
  EXPECT_FALSE(decompress_mini_debug(shop_.read("bomb.xz")));
  const std::string good = shop_.read("p.xz");
  EXPECT_EQ(decompress_mini_debug(good).value(), shop_.read("p"));
  EXPECT_FALSE(decompress_mini_debug(good.substr(0, good.size() / 2)));
  std::string bad = good;
  bad[bad.size() / 2] ^= 0x55;
  EXPECT_FALSE(decompress_mini_debug(bad));
}

TEST_F(SymbolLoaderTest, FindsADebugFileByBuildId) {
  EXPECT_EQ(name_in("p", inner_), "");
  ASSERT_TRUE(
      shop_.run("mkdir -p debug/.build-id/ab && "
                "cp full.debug debug/.build-id/ab/cdef01.debug"));
  EXPECT_EQ(name_in("p", inner_), how("inner", Resolution::kDebugFile));
}

TEST_F(SymbolLoaderTest, RefusesADebugFileOfAnotherBuild) {
  ASSERT_TRUE(
      shop_.run("gcc -g -O1 -no-pie -Wl,--build-id=0xffff -o other p.c && "
                "mkdir -p debug/.build-id/ab && "
                "objcopy --only-keep-debug other debug/.build-id/ab/cdef01.debug"));
  EXPECT_EQ(name_in("p", inner_), "");
  EXPECT_NE(reason_.find("another build id"), std::string::npos) << reason_;
}

TEST_F(SymbolLoaderTest, FollowsADebugLinkInEachOfItsPlaces) {
  ASSERT_TRUE(
      shop_.run("strip -s -R .note.gnu.build-id -o q full && "
                "objcopy --add-gnu-debuglink=full.debug q"));
  EXPECT_EQ(name_in("q", inner_), how("inner", Resolution::kDebugFile));
  ASSERT_TRUE(shop_.run("mkdir -p .debug && mv full.debug .debug/"));
  EXPECT_EQ(name_in("q", inner_), how("inner", Resolution::kDebugFile));
  ASSERT_TRUE(shop_.run("mkdir -p debug$PWD && mv .debug/full.debug debug$PWD/"));
  EXPECT_EQ(name_in("q", inner_), how("inner", Resolution::kDebugFile));
  ASSERT_TRUE(shop_.run("mkdir -p debug/usr$PWD && mv debug$PWD/full.debug debug/usr$PWD/"));
  EXPECT_EQ(name_in("q", inner_), how("inner", Resolution::kDebugFile));
  ASSERT_TRUE(shop_.run("echo >> debug/usr$PWD/full.debug"));
  EXPECT_EQ(name_in("q", inner_), "");
  EXPECT_NE(reason_.find("another checksum"), std::string::npos) << reason_;
}

TEST_F(SymbolLoaderTest, IgnoresADebugLinkToTheFileItselfOrToNonsense) {
  ASSERT_TRUE(
      shop_.run("strip -s -R .note.gnu.build-id -o self full && "
                "objcopy --add-gnu-debuglink=full.debug self named && "
                "mv full.debug kept && cp named full.debug"));
  EXPECT_EQ(name_in("named", inner_), "");
  shop_.write("junk", "no end and no checksum");
  ASSERT_TRUE(shop_.run("objcopy --add-section .gnu_debuglink=junk self junked"));
  EXPECT_EQ(name_in("junked", inner_), "");
  EXPECT_NE(reason_.find("malformed"), std::string::npos) << reason_;
  EXPECT_FALSE(parse_debug_link(std::string("../x\0\0\0\0abcd", 12)));
  EXPECT_FALSE(parse_debug_link(std::string("\0\0\0\0abcd", 8)));
  EXPECT_FALSE(parse_debug_link("abc"));
  ASSERT_TRUE(parse_debug_link(std::string("abc\0wxyz", 8)));
}

TEST_F(SymbolLoaderTest, DoesNotHangOnAFifoInPlaceOfADebugFile) {
  ASSERT_TRUE(shop_.run("mkdir -p debug/.build-id/ab && mkfifo debug/.build-id/ab/cdef01.debug"));
  EXPECT_EQ(name_in("p", inner_), "");
}

TEST_F(SymbolLoaderTest, StaysWithinItsMemory) {
  const auto fd = open_for_reading(shop_.path("full"));
  const auto bytes = FileBytes::of_file(fd->get(), "full");
  const auto loaded = load_symbols(*bytes, "/full", {}, 100);
  EXPECT_NE(loaded.reason.find("limit of 100 bytes"), std::string::npos) << loaded.reason;
}

TEST_F(SymbolLoaderTest, KeepsNamesWithAnyCharacter) {
  ASSERT_TRUE(shop_.run("objcopy --redefine-sym \"inner=$(printf 'a;b c\\nd')\" full odd"))
      << shop_.read("log");
  EXPECT_EQ(name_in("odd", inner_), how("a;b c\nd", Resolution::kSymtab));
}

}  // namespace
}  // namespace dwell::symbolize
