#include "symbolize/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "symbolize/symbol_loader.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

TEST(Translation, UsesTheExactOffsetWhereTwoSegmentsShareAPage) {
  // As lld lays files out: everything within one page, each segment one page further in memory.
  const std::vector<LoadSegment> segments{
      {0x0, 0x0, 0x670, false}, {0x670, 0x1670, 0x200, true}, {0x870, 0x2870, 0x100, false}};
  EXPECT_EQ(to_virtual_address(segments, 0x760, 0), 0x1760u);
  EXPECT_EQ(to_virtual_address(segments, 0x880, 0), 0x2880u);
  EXPECT_EQ(to_virtual_address(segments, 0x970, 0), std::nullopt);
}

TEST(Translation, PrefersTheExecutableOfTwoSegmentsThatOverlap) {
  const std::vector<LoadSegment> segments{{0x0, 0x100000, 0x3000, false},
                                          {0x1000, 0x401000, 0x1000, true}};
  EXPECT_EQ(to_virtual_address(segments, 0x1010, 0x1000), 0x401010u);
}

class ElfFileTest : public testing::Test {
 protected:
  void SetUp() override {
    shop_.write("p.c", speaking_program());
    ASSERT_TRUE(shop_.run("gcc -O1 -no-pie -Wl,--build-id=0xfeedc0de -o p p.c"))
        << shop_.read("log");
    bytes_ = shop_.read("p");
  }
  Elf64_Ehdr header() const {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes_.data(), sizeof(header));
    return header;
  }
  void set_header(const Elf64_Ehdr& header) { std::memcpy(bytes_.data(), &header, sizeof(header)); }
  template <typename Change>
  void change_section(size_t index, Change change) {
    Elf64_Shdr section;
    char* at = bytes_.data() + header().e_shoff + index * sizeof(section);
    std::memcpy(&section, at, sizeof(section));
    change(section);
    std::memcpy(at, &section, sizeof(section));
  }
  Result<ElfFile> read() const {
    auto elf = ElfFile::read(FileBytes::of_memory(bytes_));
    if (elf)
      if (const Status sections = elf->read_sections(); !sections)
        return std::unexpected(sections.error());
    return elf;
  }
  std::string name_at(uint64_t address) const {
    const auto loaded = load_symbols(FileBytes::of_memory(bytes_), "/p", {}, size_t{64} << 20);
    if (!loaded.table) return "no table: " + loaded.reason;
    const auto match = loaded.table->find(address);
    return match ? std::string(match->name) : "none";
  }
  Workshop shop_;
  std::string bytes_;
};

TEST_F(ElfFileTest, ReadsBuildIdSegmentsAndSections) {
  const auto elf = read();
  ASSERT_TRUE(elf) << elf.error().message;
  EXPECT_EQ(elf->build_id(), "feedc0de");
  EXPECT_TRUE(elf->is_64());
  ASSERT_NE(elf->section(".text"), nullptr);
  EXPECT_EQ(elf->section(".nonsense"), nullptr);
  EXPECT_GE(elf->segments().size(), 2u);
}

TEST_F(ElfFileTest, ReadsCountsThatStandInSectionZero) {
  Elf64_Ehdr changed = header();
  const Elf64_Ehdr old = changed;
  changed.e_phnum = PN_XNUM;
  changed.e_shnum = 0;
  changed.e_shstrndx = SHN_XINDEX;
  set_header(changed);
  change_section(0, [&](Elf64_Shdr& section) {
    section.sh_info = old.e_phnum;
    section.sh_size = old.e_shnum;
    section.sh_link = old.e_shstrndx;
  });
  const auto elf = read();
  ASSERT_TRUE(elf) << elf.error().message;
  EXPECT_EQ(elf->sections().size(), old.e_shnum);
  EXPECT_NE(elf->section(".text"), nullptr);
  EXPECT_EQ(name_at(shop_.address_of("p", "inner")), "inner");
}

TEST_F(ElfFileTest, GoesByTheFileSizeOfASegmentNotItsMemorySize) {
  // A data segment whose memory size covers the text's file offsets.
  Elf64_Ehdr changed = header();
  for (int i = 0; i < changed.e_phnum; ++i) {
    Elf64_Phdr segment;
    char* at = bytes_.data() + changed.e_phoff + static_cast<size_t>(i) * sizeof(segment);
    std::memcpy(&segment, at, sizeof(segment));
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) == 0) segment.p_memsz += 0x100000;
    std::memcpy(at, &segment, sizeof(segment));
  }
  const auto elf = read();
  ASSERT_TRUE(elf);
  const Section* text = elf->section(".text");
  EXPECT_EQ(to_virtual_address(elf->segments(), text->offset, text->offset & ~0xfffull),
            text->address);
}

TEST_F(ElfFileTest, RefusesHeadersThatCannotBe) {
  const std::string good = bytes_;
  const auto refuses = [&](auto change) {
    bytes_ = good;
    Elf64_Ehdr changed = header();
    change(changed);
    set_header(changed);
    return !read();
  };
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_shentsize = 0; }));
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_phentsize = 1; }));
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_shoff = UINT64_MAX - 8; }));
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_phoff = UINT64_MAX - 8; }));
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_shoff = 0; }));
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }));
  EXPECT_TRUE(refuses([](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = 9; }));
  EXPECT_FALSE(refuses([](Elf64_Ehdr&) {}));
}

TEST_F(ElfFileTest, RefusesASymbolTableOfFourGigabytes) {
  const auto elf = read();
  ASSERT_TRUE(elf);
  const auto index = static_cast<size_t>(elf->section_of_type(SHT_SYMTAB) - &elf->sections()[0]);
  change_section(index, [](Elf64_Shdr& section) { section.sh_size = uint64_t{4} << 30; });
  EXPECT_EQ(name_at(shop_.address_of("p", "inner")), "none");
  change_section(index, [](Elf64_Shdr& section) { section.sh_entsize = 0; });
  EXPECT_EQ(name_at(shop_.address_of("p", "inner")), "none");
}

TEST_F(ElfFileTest, SurvivesAFileThatIsCutOffAnywhere) {
  const std::string good = bytes_;
  for (size_t size = 0; size < good.size(); size += 97) {
    bytes_ = good.substr(0, size);
    name_at(0x401136);
  }
}

TEST_F(ElfFileTest, SurvivesTenThousandMutations) {
  const std::string good = bytes_;
  std::mt19937 random(1);
  for (int round = 0; round < 10'000; ++round) {
    bytes_ = good;
    for (int i = 0; i < 6; ++i) {
      // Headers and tables, where damage matters, and now and then anything.
      const size_t place = random() % 4 == 0   ? random() % bytes_.size()
                           : random() % 2 == 0 ? random() % 1024
                                               : header().e_shoff % bytes_.size() + random() % 2048;
      if (place < bytes_.size()) bytes_[place] = static_cast<char>(random());
    }
    name_at(0x401136);
  }
}

TEST(Notes, OfAnyShapeAreHarmless) {
  EXPECT_EQ(build_id_in_notes(""), "");
  EXPECT_EQ(build_id_in_notes(std::string(11, '\xff')), "");
  EXPECT_EQ(build_id_in_notes(std::string(64, '\xff')), "");
  const std::string gnu("\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xab\xcd\0\0", 20);
  EXPECT_EQ(build_id_in_notes(gnu), "abcd");
  EXPECT_EQ(build_id_in_notes(gnu.substr(0, 17)), "");
}

}  // namespace
}  // namespace dwell::symbolize
