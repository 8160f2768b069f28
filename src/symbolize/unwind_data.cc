#include "symbolize/unwind_data.h"

#include <elf.h>

#include <algorithm>

#include "symbolize/compressed_section.h"
#include "symbolize/debug_file.h"
#include "symbolize/go_table.h"
#include "symbolize/table_cache.h"
#include "unwind/cfi_reader.h"

namespace dwell::symbolize {
namespace {

constexpr uint64_t kEhFrameHeaderBytes = 16;  // as many as its first pointer may need
constexpr uint8_t kEhFrameHeaderVersion = 1;

const LoadSegment* segment_at(const ElfFile& elf, uint64_t address) {
  const auto holds = [&](const LoadSegment& s) { return s.holds_address(address); };
  const auto found = std::ranges::find_if(elf.segments(), holds);
  return found == elf.segments().end() ? nullptr : &*found;
}

// From where .eh_frame begins to the end of its segment: what follows it there is read as entries
// that make no sense, and counted.
void read_by_header(const ElfFile& elf, UnwindData& data) {
  const LoadSegment& place = elf.eh_frame_header();
  const uint64_t bytes = std::min(place.file_bytes, kEhFrameHeaderBytes);
  const auto head = elf.bytes().read_range(place.offset, bytes, kEhFrameHeaderBytes);
  if (!head || bytes == 0) return;
  unwind::CfiReader reader(*head, place.address);
  const uint8_t version = reader.u8(), encoding = reader.u8();
  reader.take(2);  // the encodings of the search table, which is not needed
  const uint64_t address = reader.pointer(encoding);
  const LoadSegment* segment = segment_at(elf, address);
  if (reader.failed() || version != kEhFrameHeaderVersion || segment == nullptr) return;
  const uint64_t skip = address - segment->address;
  auto section =
      elf.bytes().read_range(segment->offset + skip, segment->file_bytes - skip, kUnwindSectionMax);
  if (!section) return;
  data.eh_frame = std::move(*section);
  data.eh_frame_address = address;
}

std::string read_section(const ElfFile& elf, std::string_view name) {
  const Section* section = elf.section(name);
  if (section == nullptr) return {};
  return elf.section_bytes(*section, kUnwindSectionMax).value_or(std::string());
}

std::string read_debug_frame(const ElfFile& elf) {
  return read_debug_section(elf, ".debug_frame", kUnwindSectionMax).value_or(std::string());
}

// Stripping takes .debug_frame to where the symbols go.
std::string read_debug_frame_beside(const ElfFile& elf, const UnwindPlaces& places) {
  const DebugSearch search = find_debug_file(elf, places.path, places.debug);
  if (!search.found) return {};
  const auto bytes = FileBytes::of_file(search.found->fd.get(), search.found->path);
  auto debug = bytes ? ElfFile::read(*bytes) : std::unexpected(bytes.error());
  const bool readable = debug && debug->machine() == elf.machine() && debug->read_sections();
  return readable ? read_debug_frame(*debug) : std::string();
}

void read_by_sections(const ElfFile& elf, const UnwindPlaces& places, UnwindData& data) {
  data.eh_frame = read_section(elf, ".eh_frame");
  if (!data.eh_frame.empty()) data.eh_frame_address = elf.section(".eh_frame")->address;
  data.debug_frame = read_debug_frame(elf);
  if (data.debug_frame.empty()) data.debug_frame = read_debug_frame_beside(elf, places);
  if (auto go = find_go_table(elf)) {
    data.go_functions = std::move(go->bytes);
    data.go_text_start = go->text_start;
  }
}

}  // namespace

Result<UnwindData> read_unwind_data(FileBytes bytes, const UnwindPlaces& places) {
  DWELL_ASSIGN(ElfFile elf, ElfFile::read(bytes));
  if (!elf.is_64() || elf.machine() != EM_X86_64)
    return runtime_error("unwind data is read for x86-64 only");
  UnwindData data;
  for (const LoadSegment& segment : elf.segments())
    if (segment.executable && segment.address + segment.file_bytes > segment.address)
      data.code.push_back({segment.address, segment.address + segment.file_bytes});
  if (elf.read_sections()) read_by_sections(elf, places, data);
  if (data.eh_frame.empty()) read_by_header(elf, data);
  data.build_id = elf.build_id();
  return data;
}

Result<unwind::Table> compile_unwind_table(FileBytes bytes, TableCache* cache,
                                           const UnwindPlaces& places) {
  DWELL_ASSIGN(const UnwindData data, read_unwind_data(bytes, places));
  if (cache == nullptr) return unwind::compile(data.source());
  if (auto cached = cache->find(data)) return std::move(*cached);
  unwind::Table table = unwind::compile(data.source());
  cache->store(data, table);
  return table;
}

}  // namespace dwell::symbolize
