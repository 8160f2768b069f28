// The parts of an ELF file that symbolizing needs: loadable segments, build id, section headers.
//
// The file belongs to somebody else: every offset, count and size is checked against the file and
// against a named limit before use, and nothing is trusted to be terminated, sorted or consistent.
// 32-bit and 64-bit, little endian. Borrows the FileBytes' file for its lifetime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbolize/file_bytes.h"

namespace dwell::symbolize {

struct LoadSegment {
  uint64_t offset = 0;
  uint64_t address = 0;
  uint64_t file_bytes = 0;
  bool executable = false;

  bool holds_offset(uint64_t at) const { return at >= offset && at - offset < file_bytes; }
  bool holds_address(uint64_t at) const { return at >= address && at - address < file_bytes; }
};

// File offset -> ELF virtual address. `page_offset` is the mapping's and decides where two segments
// share a file page. Nothing if no segment holds the offset.
std::optional<uint64_t> to_virtual_address(const std::vector<LoadSegment>& segments,
                                           uint64_t file_offset, uint64_t page_offset);

// The GNU build id in the bytes of a note section with 4-byte alignment, lowercase hex, "" if none.
std::string build_id_in_notes(std::string_view notes, uint64_t alignment = 4);

struct Section {
  std::string_view name;  // into the ElfFile
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t link = 0;
  uint64_t entry_bytes = 0;
};

class ElfFile {
 public:
  static constexpr uint32_t kSegmentsMax = 4096;
  static constexpr uint32_t kSectionsMax = 1 << 18;
  static constexpr uint64_t kSectionNamesMax = uint64_t{8} << 20;
  static constexpr size_t kSectionNameMax = 128;
  static constexpr uint64_t kNotesMax = uint64_t{64} << 10;
  static constexpr size_t kBuildIdMax = 64;

  // Reads the file header, the segments and the build id: a few hundred bytes.
  static Result<ElfFile> read(FileBytes bytes);

  ElfFile(ElfFile&&) = default;
  ElfFile& operator=(ElfFile&&) = default;

  const FileBytes& bytes() const { return bytes_; }
  bool is_64() const { return is_64_; }
  uint16_t machine() const { return machine_; }
  const std::vector<LoadSegment>& segments() const { return segments_; }
  // Where PT_GNU_EH_FRAME lies in the file: the way to .eh_frame without section headers. Empty if
  // there is none.
  const LoadSegment& eh_frame_header() const { return eh_frame_header_; }
  // Lowercase hex, "" if none. From the segments; once sections are read, from sections as well.
  const std::string& build_id() const { return build_id_; }

  // Section headers are at the far end of the file and often not needed: read on demand.
  Status read_sections();
  const std::vector<Section>& sections() const { return sections_; }
  const Section* section(std::string_view name) const;
  const Section* section_of_type(uint32_t type) const;
  Result<std::string> section_bytes(const Section& section, uint64_t limit) const;

 private:
  explicit ElfFile(FileBytes bytes) : bytes_(bytes) {}
  template <typename Types>
  Status read_headers();
  template <typename Types>
  Status read_section_headers();
  template <typename Types>
  Status read_segments(uint32_t count);
  Status name_sections(uint32_t names_index);
  void read_build_id(uint64_t offset, uint64_t bytes, uint64_t alignment);

  FileBytes bytes_;
  bool is_64_ = true;
  uint16_t machine_ = 0;
  uint64_t program_headers_ = 0;
  uint64_t section_headers_ = 0;
  uint32_t section_count_ = 0;
  uint32_t section_names_index_ = 0;
  uint16_t section_header_bytes_ = 0;
  std::vector<LoadSegment> segments_;
  LoadSegment eh_frame_header_;
  std::vector<Section> sections_;
  std::vector<uint32_t> name_offsets_;
  std::string section_names_;  // moving an ElfFile must keep it on the heap: see name_sections()
  std::string build_id_;
};

}  // namespace dwell::symbolize
