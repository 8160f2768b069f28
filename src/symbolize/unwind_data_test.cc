#include "symbolize/unwind_data.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

// Written by hand, so that every rule is known. `bare` has no unwind data; `tail` ends in a call.
constexpr const char* kAssembly = R"(
  .text
  .globl _start, framed, bare, tail, restored
  .type framed, @function
framed:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register rbp
  pop %rbp
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
bare:
  ret
restored:
  .cfi_startproc
  sub $24, %rsp
  .cfi_def_cfa_offset 32
  test %edi, %edi
  je 1f
  .cfi_remember_state
  add $24, %rsp
  .cfi_def_cfa_offset 8
  ret
1:
  .cfi_restore_state
  add $24, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
tail:
  .cfi_startproc
  call _start
  .cfi_endproc
_start:
  .cfi_startproc
  .cfi_undefined rip
  call framed
  hlt
  .cfi_endproc
  .section .note.GNU-stack
)";

// One function of Go 1.18, without a frame: `bare`.
constexpr const char* kGoFunctions = R"(
go_table:
  .long 0xfffffff0
  .byte 0, 0, 1, 8
  .quad 1, 0, bare, go_names - go_table, 0, 0, go_sizes - go_table, go_functions - go_table
go_names: .asciz "main.bare"
go_sizes: .byte 2, 1, 0
go_functions: .long 0, go_record - go_functions, 1
go_record: .long 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
)";

class UnwindDataTest : public testing::Test {
 protected:
  void build(const std::string& flags) {
    shop_.write("p.s", kAssembly);
    ASSERT_TRUE(shop_.run("gcc -nostdlib -static -no-pie " + flags + " -o p p.s"))
        << shop_.read("log");
    bytes_ = shop_.read("p");
    for (const char* name : {"framed", "bare", "restored", "tail", "_start"})
      at_[name] = std::stoull(
          "0" + shop_.output(std::string("nm p | grep ' ") + name + "$' | cut -d' ' -f1"), nullptr,
          16);
  }
  void compile() {
    auto table = compile_unwind_table(FileBytes::of_memory(bytes_));
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::move(*table);
  }
  int cfa(const char* name, uint64_t offset) const {
    const auto* rule = table_.find(at_.at(name) + offset);
    return rule == nullptr ? -1 : rule->cfa_offset;
  }
  void expect_the_rules_of_the_source() {
    EXPECT_EQ(cfa("framed", 0), 8);
    EXPECT_EQ(cfa("framed", 1), 16);
    EXPECT_EQ(table_.find(at_["framed"] + 4)->cfa_register, DWELL_REGISTER_RBP);
    EXPECT_EQ(cfa("framed", 5), 8);
    EXPECT_EQ(cfa("bare", 0), -1);
    EXPECT_EQ(cfa("restored", 4), 32);
    EXPECT_EQ(cfa("restored", 12), 8) << "the early return";
    EXPECT_EQ(cfa("restored", 13), 32) << "behind it as before";
    EXPECT_EQ(cfa("tail", 4), 8) << "the last byte of a call that never returns";
    EXPECT_EQ(table_.find(at_["_start"])->cfa_kind, DWELL_CFA_ROOT);
  }

  Workshop shop_;
  std::string bytes_;
  std::map<std::string, uint64_t> at_;
  unwind::Table table_;
};

TEST_F(UnwindDataTest, ReadsEhFrame) {
  build("");
  compile();
  expect_the_rules_of_the_source();
}

TEST_F(UnwindDataTest, FindsEhFrameWithoutSectionHeaders) {
  build("-Wl,--eh-frame-hdr");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes_.data(), sizeof header);
  header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
  std::memcpy(bytes_.data(), &header, sizeof header);
  compile();
  expect_the_rules_of_the_source();
}

TEST_F(UnwindDataTest, ReadsDebugFrameWhereThereIsNoOther) {
  shop_.write("kept.s", "  .cfi_sections .debug_frame\n" + std::string(kAssembly));
  build("");
  ASSERT_TRUE(shop_.run("gcc -nostdlib -static -no-pie -o p kept.s")) << shop_.read("log");
  bytes_ = shop_.read("p");
  const auto data = read_unwind_data(FileBytes::of_memory(bytes_));
  ASSERT_TRUE(data);
  EXPECT_FALSE(data->debug_frame.empty());
  for (auto& [name, address] : at_)
    address = std::stoull("0" + shop_.output("nm p | grep ' " + name + "$' | cut -d' ' -f1"),
                          nullptr, 16);
  compile();
  expect_the_rules_of_the_source();
}

// Linkers compress debug sections, and stripping takes them to another file.
class MovedDebugFrameTest : public UnwindDataTest {
 protected:
  void SetUp() override {
    std::string source = "  .cfi_sections .debug_frame\n" + std::string(kAssembly);
    for (int i = 0; i < 200; ++i) source += "  .cfi_startproc\n  nop\n  .cfi_endproc\n";
    shop_.write("kept.s", source + "  .section .debug_info\n");  // else there is no room to win
    ASSERT_TRUE(
        shop_.run("gcc -nostdlib -static -no-pie -Wl,--build-id=0xabcdef01 -o whole kept.s"
                  " && strip -g -o bare whole && mkdir -p debug/.build-id/ab .debug"))
        << shop_.read("log");
    for (const char* name : {"framed", "bare", "restored", "tail", "_start"})
      at_[name] = shop_.address_of("whole", name);
    root_ = Fd(open("/", O_PATH | O_DIRECTORY));
  }
  void compile_file(const std::string& name) {
    bytes_ = shop_.read(name);
    const UnwindPlaces places{shop_.path(name), {-1, root_.get(), shop_.path("debug")}};
    auto table = compile_unwind_table(FileBytes::of_memory(bytes_), nullptr, places);
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::move(*table);
  }
  bool keep_debug(const std::string& as) const {
    return shop_.run("objcopy --only-keep-debug whole " + as);
  }
  const std::string by_id_ = "debug/.build-id/ab/cdef01.debug";
  Fd root_;
};

TEST_F(MovedDebugFrameTest, IsReadInEachCompression) {
  for (const char* way : {"zlib", "zlib-gnu", "zstd"}) {
    if (!shop_.run(std::string("objcopy --compress-debug-sections=") + way + " whole packed")) {
      printf("this objcopy knows no %s\n", way);
      continue;
    }
    auto elf = ElfFile::read(FileBytes::of_memory(bytes_ = shop_.read("packed")));
    ASSERT_TRUE(elf && elf->read_sections());
    const Section* section = elf->section(".debug_frame");
    ASSERT_TRUE(section == nullptr || (section->flags & SHF_COMPRESSED) != 0) << way;
    compile_file("packed");
    expect_the_rules_of_the_source();
  }
}

TEST_F(MovedDebugFrameTest, IsFoundByBuildId) {
  compile_file("bare");
  EXPECT_EQ(cfa("framed", 1), -1) << "nothing without its debug file";
  ASSERT_TRUE(keep_debug(by_id_));
  compile_file("bare");
  expect_the_rules_of_the_source();
  ASSERT_TRUE(shop_.run("objcopy --compress-debug-sections=zlib " + by_id_));
  compile_file("bare");
  expect_the_rules_of_the_source();
}

TEST_F(MovedDebugFrameTest, IsFoundByDebugLink) {
  ASSERT_TRUE(keep_debug(".debug/whole.debug") &&
              shop_.run("objcopy --add-gnu-debuglink=.debug/whole.debug bare"));
  compile_file("bare");
  expect_the_rules_of_the_source();
}

TEST_F(MovedDebugFrameTest, IsNotBelievedOfAnotherBuild) {
  ASSERT_TRUE(shop_.run("gcc -nostdlib -static -no-pie -Wl,--build-id=0x99 -o whole kept.s"));
  ASSERT_TRUE(keep_debug(by_id_));
  compile_file("bare");
  EXPECT_EQ(cfa("framed", 1), -1);
}

TEST_F(MovedDebugFrameTest, GivesWayToEhFrame) {
  std::string other = kAssembly;  // another rule for the same code
  const std::string rule = ".cfi_def_cfa_offset 16";
  other.replace(other.find(rule), rule.size(), ".cfi_def_cfa_offset 48");
  shop_.write("kept.s", "  .cfi_sections .debug_frame\n" + other);
  ASSERT_TRUE(shop_.run("gcc -nostdlib -static -no-pie -Wl,--build-id=0xabcdef01 -o whole kept.s"));
  ASSERT_TRUE(keep_debug(by_id_));
  build("-Wl,--build-id=0xabcdef01");
  compile_file("p");
  expect_the_rules_of_the_source();
}

// Go's linker gives the table another name in executables that may lie anywhere.
TEST_F(UnwindDataTest, FindsTheTableOfGosFunctions) {
  shop_.write("go.s", std::string(kAssembly) + "  .section .gopclntab,\"a\"\n" + kGoFunctions);
  build("");
  ASSERT_TRUE(
      shop_.run("gcc -nostdlib -static -no-pie -o p go.s && objcopy --rename-section "
                ".gopclntab=.data.rel.ro.gopclntab p q"))
      << shop_.read("log");
  at_["bare"] =
      std::stoull("0" + shop_.output("nm p | grep ' bare$' | cut -d' ' -f1"), nullptr, 16);
  for (const char* file : {"p", "q"}) {
    bytes_ = shop_.read(file);
    compile();
    EXPECT_EQ(cfa("bare", 0), 8) << file;
  }
}

// As the system's linker leaves it in executables that may lie anywhere: among other data, and the
// start of the text is left to the dynamic linker.
TEST_F(UnwindDataTest, FindsGosTableAmongOtherDataAndItsTextByRelocation) {
  const auto source_with = [](const std::string& mark) {
    return std::string(kAssembly) + mark +
           "  .section .data.rel.ro,\"aw\"\n  .balign 8\n  .quad 0xfffffff0, 1, 2\n" + kGoFunctions;
  };
  const auto build_from = [&](const std::string& text, const std::string& flags) {
    shop_.write("go.s", text);
    ASSERT_TRUE(shop_.run("gcc -nostdlib " + flags + " -o p go.s")) << shop_.read("log");
    bytes_ = shop_.read("p");
    at_["bare"] = shop_.address_of("p", "bare");
    compile();
  };
  const std::string mark = "  .section .go.buildinfo,\"aw\"\n  .quad 1\n";
  build_from(source_with(mark), "-static -no-pie");
  EXPECT_EQ(cfa("bare", 0), 8);
  build_from(source_with(mark), "-static-pie");
  const size_t table_at = bytes_.find(std::string("\xf0\xff\xff\xff\0\0\1\x08", 8));
  ASSERT_NE(table_at, std::string::npos);
  bytes_.replace(table_at + 24, 8, 8, '\0');  // some linkers write there what is relocated, too
  compile();
  EXPECT_EQ(read_unwind_data(FileBytes::of_memory(bytes_))->go_text_start, at_["bare"]);
  EXPECT_EQ(cfa("bare", 0), 8);
  build_from(source_with(""), "-static-pie");
  EXPECT_EQ(cfa("bare", 0), -1) << "other programs are not searched";
}

TEST_F(UnwindDataTest, RefusesOtherMachines) {
  build("");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes_.data(), sizeof header);
  header.e_machine = EM_AARCH64;
  std::memcpy(bytes_.data(), &header, sizeof header);
  EXPECT_FALSE(compile_unwind_table(FileBytes::of_memory(bytes_)));
  EXPECT_FALSE(compile_unwind_table(FileBytes::of_memory("not ELF")));
}

TEST_F(UnwindDataTest, SurvivesFilesThatAreCutOff) {
  build("-Wl,--eh-frame-hdr");
  const std::string whole = bytes_;
  for (size_t size = 0; size < whole.size(); size += 37) {
    const auto table = compile_unwind_table(FileBytes::of_memory(whole.substr(0, size)));
    EXPECT_TRUE(!table || table->entries <= 4u);
  }
}

}  // namespace
}  // namespace dwell::symbolize
