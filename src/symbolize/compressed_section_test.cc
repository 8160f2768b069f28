// Sections of one small ELF file, compressed by the libraries themselves, then damaged.
#include "symbolize/compressed_section.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <random>

namespace dwell::symbolize {
namespace {

constexpr uint64_t kLimit = uint64_t{1} << 20;
constexpr uint32_t kZstd = 2;

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A file of three sections: none, `content` under `name`, and the names.
std::string elf_with(const std::string& name, uint64_t flags, const std::string& content) {
  const std::string names = std::string("\0", 1) + name + std::string("\0", 1);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_shoff = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  Elf64_Shdr section = {}, section_names = {};
  section.sh_name = 1;
  section.sh_type = section_names.sh_type = SHT_PROGBITS;
  section.sh_flags = flags;
  section.sh_offset = sizeof(header) + 3 * sizeof(Elf64_Shdr);
  section.sh_size = content.size();
  section_names.sh_offset = section.sh_offset + content.size();
  section_names.sh_size = names.size();
  return bytes_of(header) + bytes_of(Elf64_Shdr{}) + bytes_of(section) + bytes_of(section_names) +
         content + names;
}

Result<std::string> read(const std::string& file, uint64_t limit = kLimit) {
  auto elf = ElfFile::read(FileBytes::of_memory(file));
  EXPECT_TRUE(elf && elf->read_sections());
  return read_debug_section(*elf, ".debug_frame", limit);
}

std::string zlib(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
           text.size());
  out.resize(size);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string flagged(uint32_t type, uint64_t claimed, const std::string& compressed) {
  Elf64_Chdr header = {};
  header.ch_type = type;
  header.ch_size = claimed;
  return elf_with(".debug_frame", SHF_COMPRESSED, bytes_of(header) + compressed);
}

std::string old_way(uint64_t claimed, const std::string& compressed) {
  return elf_with(".zdebug_frame", 0, "ZLIB" + bytes_of(__builtin_bswap64(claimed)) + compressed);
}

// Neither all alike nor without pattern.
std::string text_of(size_t size) {
  std::string text;
  for (size_t i = 0; text.size() < size; ++i) text += std::to_string(i * i);
  text.resize(size);
  return text;
}

TEST(CompressedSection, IsReadInEachOfItsForms) {
  for (const size_t size : {1, 1000, 65535, 65536, 65537, 700'000}) {
    const std::string text = text_of(size);
    EXPECT_EQ(read(elf_with(".debug_frame", 0, text)).value_or("-"), text) << size;
    EXPECT_EQ(read(flagged(ELFCOMPRESS_ZLIB, size, zlib(text))).value_or("-"), text) << size;
    EXPECT_EQ(read(flagged(kZstd, size, zstd(text))).value_or("-"), text) << size;
    EXPECT_EQ(read(old_way(size, zlib(text))).value_or("-"), text) << size;
  }
  EXPECT_EQ(read(elf_with(".debug_info", 0, "x")).value_or("-"), "") << "no such section";
}

TEST(CompressedSection, HasToHoldWhatItClaims) {
  const std::string text = text_of(100'000);
  for (const uint64_t claimed : {0, 1, 99'999, 100'001, 200'000}) {
    EXPECT_FALSE(read(flagged(ELFCOMPRESS_ZLIB, claimed, zlib(text)))) << claimed;
    EXPECT_FALSE(read(flagged(kZstd, claimed, zstd(text)))) << claimed;
    EXPECT_FALSE(read(old_way(claimed, zlib(text)))) << claimed;
  }
}

TEST(CompressedSection, IsRefusedIfItClaimsMoreThanTheLimit) {
  const std::string zeros(kLimit + 1, '\0');  // a thousandth of that in the file
  EXPECT_FALSE(read(flagged(ELFCOMPRESS_ZLIB, zeros.size(), zlib(zeros))));
  EXPECT_FALSE(read(flagged(kZstd, UINT64_MAX, zstd(zeros))));
  EXPECT_FALSE(read(old_way(UINT64_MAX, zlib(zeros))));
  EXPECT_TRUE(read(flagged(kZstd, zeros.size(), zstd(zeros)), zeros.size()));
}

TEST(CompressedSection, OfAnUnknownKindOrWithoutAHeaderIsRefused) {
  EXPECT_FALSE(read(flagged(77, 4, "text")));
  EXPECT_FALSE(read(elf_with(".debug_frame", SHF_COMPRESSED, "short")));
  EXPECT_FALSE(read(elf_with(".zdebug_frame", 0, "ZLIB")));
  EXPECT_FALSE(read(elf_with(".zdebug_frame", 0, "GARBAGE-AND-MORE")));
}

TEST(CompressedSection, SurvivesAnyDamage) {
  const std::string text = text_of(20'000);
  std::mt19937_64 random(1);
  for (const bool with_zstd : {false, true}) {
    const std::string packed = with_zstd ? zstd(text) : zlib(text);
    const uint32_t type = with_zstd ? kZstd : uint32_t{ELFCOMPRESS_ZLIB};
    for (size_t size = 0; size < packed.size(); size += 97)
      EXPECT_FALSE(read(flagged(type, text.size(), packed.substr(0, size)))) << size;
    for (int i = 0; i < 3000; ++i) {
      std::string damaged = packed;
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      const auto result = read(flagged(type, text.size(), damaged));
      EXPECT_TRUE(!result || result->size() == text.size());
    }
  }
}

}  // namespace
}  // namespace dwell::symbolize
