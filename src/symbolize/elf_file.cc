#include "symbolize/elf_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dwell::symbolize {
namespace {

struct Elf32 {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
};
struct Elf64 {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
};

constexpr uint64_t kPageBytes = 4096;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// The description of the first note (name, type) in `notes`, "" if there is none.
std::string_view find_note(std::string_view notes, uint64_t alignment, std::string_view name,
                           uint32_t type) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const uint64_t name_end = sizeof(header) + uint64_t{header.n_namesz};
    const uint64_t text_start = align_up(name_end, alignment);
    const uint64_t text_end = text_start + header.n_descsz;
    if (text_end > notes.size()) return {};
    const std::string_view note_name = notes.substr(sizeof(header), header.n_namesz);
    if (header.n_type == type && note_name == name)
      return notes.substr(text_start, header.n_descsz);
    const uint64_t next = align_up(text_end, alignment);
    if (next > notes.size()) return {};
    notes.remove_prefix(next);
  }
  return {};
}

}  // namespace

std::optional<uint64_t> to_virtual_address(const std::vector<LoadSegment>& segments,
                                           uint64_t file_offset, uint64_t page_offset) {
  const LoadSegment* best = nullptr;
  int best_rank = -1;
  for (const LoadSegment& segment : segments) {
    if (!segment.holds_offset(file_offset)) continue;
    const bool starts_here = (segment.offset & ~(kPageBytes - 1)) == page_offset;
    const int rank = (segment.executable ? 2 : 0) + (starts_here ? 1 : 0);
    if (rank > best_rank) {
      best = &segment;
      best_rank = rank;
    }
  }
  if (best == nullptr) return std::nullopt;
  return file_offset - best->offset + best->address;
}

std::string build_id_in_notes(std::string_view notes, uint64_t alignment) {
  constexpr std::string_view kOwner("GNU\0", 4);
  const std::string_view id = find_note(notes, alignment, kOwner, NT_GNU_BUILD_ID);
  return id.size() <= ElfFile::kBuildIdMax ? hex(id) : std::string();
}

Result<ElfFile> ElfFile::read(FileBytes bytes) {
  ElfFile elf(bytes);
  unsigned char ident[EI_NIDENT];
  if (!bytes.read(0, ident, sizeof(ident)) || std::memcmp(ident, ELFMAG, SELFMAG) != 0)
    return runtime_error("not an ELF file");
  if (ident[EI_DATA] != ELFDATA2LSB) return runtime_error("a big-endian ELF file");
  if (ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32)
    return runtime_error("an ELF file of unknown class");
  elf.is_64_ = ident[EI_CLASS] == ELFCLASS64;
  DWELL_TRY(elf.is_64_ ? elf.read_headers<Elf64>() : elf.read_headers<Elf32>());
  return elf;
}

template <typename Types>
Status ElfFile::read_headers() {
  typename Types::Ehdr header;
  if (!bytes_.read(0, &header, sizeof(header))) return runtime_error("the ELF header is cut off");
  machine_ = header.e_machine;
  program_headers_ = header.e_phoff;
  section_headers_ = header.e_shoff;
  section_header_bytes_ = header.e_shentsize;
  section_count_ = header.e_shnum;
  section_names_index_ = header.e_shstrndx;
  uint32_t segment_count = header.e_phnum;

  // Counts that do not fit into the header stand in section 0.
  typename Types::Shdr first{};
  const bool has_first = section_headers_ != 0 && section_header_bytes_ == sizeof(first) &&
                         bytes_.read(section_headers_, &first, sizeof(first));
  if (has_first && section_count_ == 0)
    section_count_ = static_cast<uint32_t>(std::min<uint64_t>(first.sh_size, UINT32_MAX));
  if (has_first && section_names_index_ == SHN_XINDEX) section_names_index_ = first.sh_link;
  if (has_first && segment_count == PN_XNUM) segment_count = first.sh_info;

  if (segment_count > 0 && header.e_phentsize != sizeof(typename Types::Phdr))
    return runtime_error("the ELF file has program headers of unknown size");
  return read_segments<Types>(segment_count);
}

template <typename Types>
Status ElfFile::read_segments(uint32_t count) {
  if (count > kSegmentsMax)
    return runtime_error(
        fmt::format("the ELF file has {} segments, limit {}", count, kSegmentsMax));
  std::vector<typename Types::Phdr> headers(count);
  if (count > 0 &&
      !bytes_.read(program_headers_, headers.data(), headers.size() * sizeof(headers[0])))
    return runtime_error("the ELF program headers are cut off");
  for (const auto& header : headers) {
    if (header.p_type == PT_LOAD && header.p_filesz > 0)
      segments_.push_back(
          {header.p_offset, header.p_vaddr, header.p_filesz, (header.p_flags & PF_X) != 0});
    if (header.p_type == PT_GNU_EH_FRAME)
      eh_frame_header_ = {header.p_offset, header.p_vaddr, header.p_filesz, false};
    if (header.p_type == PT_NOTE && build_id_.empty())
      read_build_id(header.p_offset, header.p_filesz, header.p_align);
  }
  return {};
}

void ElfFile::read_build_id(uint64_t offset, uint64_t bytes, uint64_t alignment) {
  const auto notes = bytes_.read_range(offset, bytes, kNotesMax);
  if (!notes) return;  // a file with a broken note has no build id
  build_id_ = build_id_in_notes(*notes, alignment == 8 ? 8 : 4);
}

Status ElfFile::read_sections() {
  if (!sections_.empty()) return {};
  DWELL_TRY(is_64_ ? read_section_headers<Elf64>() : read_section_headers<Elf32>());
  DWELL_TRY(name_sections(section_names_index_));
  for (const Section& section : sections_)
    if (section.type == SHT_NOTE && build_id_.empty())
      read_build_id(section.offset, section.bytes, 4);
  return {};
}

template <typename Types>
Status ElfFile::read_section_headers() {
  if (section_headers_ == 0 || section_count_ == 0)
    return runtime_error("the ELF file has no sections");
  if (section_header_bytes_ != sizeof(typename Types::Shdr))
    return runtime_error("the ELF file has section headers of unknown size");
  if (section_count_ > kSectionsMax)
    return runtime_error(
        fmt::format("the ELF file has {} sections, limit {}", section_count_, kSectionsMax));
  const uint64_t bytes = uint64_t{section_count_} * sizeof(typename Types::Shdr);
  if (section_headers_ > bytes_.size() || bytes > bytes_.size() - section_headers_)
    return runtime_error("the ELF section headers are cut off");
  std::vector<typename Types::Shdr> headers(section_count_);
  if (!bytes_.read(section_headers_, headers.data(), bytes))
    return runtime_error("the ELF section headers are cut off");
  for (const auto& header : headers) {
    name_offsets_.push_back(header.sh_name);
    sections_.push_back({{},
                         header.sh_type,
                         header.sh_flags,
                         header.sh_addr,
                         header.sh_offset,
                         header.sh_size,
                         header.sh_link,
                         header.sh_entsize});
  }
  return {};
}

Status ElfFile::name_sections(uint32_t names_index) {
  if (names_index == 0 || names_index >= sections_.size()) return {};  // nameless is legal
  const Section& names = sections_[names_index];
  if (names.type == SHT_NOBITS) return {};
  const auto text = bytes_.read_range(names.offset, names.bytes, kSectionNamesMax);
  if (!text) return {};
  // A final zero of our own ends the last name; reserving beyond the small-string size keeps the
  // bytes in place when the ElfFile moves.
  section_names_.reserve(std::max<size_t>(text->size() + 1, 64));
  section_names_ = *text;
  section_names_.push_back('\0');
  for (size_t i = 0; i < sections_.size(); ++i) {
    if (name_offsets_[i] >= section_names_.size()) continue;
    // Bounded: many sections sharing one endless name must not cost a scan of it each.
    const char* name = section_names_.c_str() + name_offsets_[i];
    sections_[i].name = std::string_view(name, strnlen(name, kSectionNameMax));
  }
  return {};
}

const Section* ElfFile::section(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  return found == sections_.end() ? nullptr : &*found;
}

const Section* ElfFile::section_of_type(uint32_t type) const {
  const auto found = std::ranges::find(sections_, type, &Section::type);
  return found == sections_.end() ? nullptr : &*found;
}

Result<std::string> ElfFile::section_bytes(const Section& section, uint64_t limit) const {
  if (section.type == SHT_NOBITS) return runtime_error("the section has no bytes in this file");
  if ((section.flags & SHF_COMPRESSED) != 0) return runtime_error("the section is compressed");
  return bytes_.read_range(section.offset, section.bytes, limit);
}

}  // namespace dwell::symbolize
