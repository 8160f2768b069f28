#include "symbolize/python_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "symbolize/elf_file.h"

namespace dwell::symbolize {
namespace {

struct PythonSymbols {
  uint64_t runtime = 0;
  uint64_t version = 0;  // of the variable Py_Version, since 3.11
};

bool has_name(std::string_view names, uint32_t at, std::string_view name) {
  // The bytes behind the last one are read as its end.
  return at < names.size() && names.substr(at).starts_with(name) &&
         (at + name.size() == names.size() || names[at + name.size()] == '\0');
}

Result<PythonSymbols> find_symbols(const ElfFile& elf, uint32_t table_type) {
  PythonSymbols found;
  const Section* table = elf.section_of_type(table_type);
  if (table == nullptr || table->link >= elf.sections().size()) return found;
  DWELL_ASSIGN(const std::string symbols, elf.section_bytes(*table, kPythonSymbolsMax));
  DWELL_ASSIGN(const std::string names,
               elf.section_bytes(elf.sections()[table->link], kPythonSymbolsMax));
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols.data() + at, sizeof(symbol));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
    if (has_name(names, symbol.st_name, "_PyRuntime")) found.runtime = symbol.st_value;
    if (has_name(names, symbol.st_name, "Py_Version")) found.version = symbol.st_value;
  }
  return found;
}

// Of initialised data, up to the end of its segment.
std::string read_data(const ElfFile& elf, uint64_t address, uint64_t bytes) {
  for (const LoadSegment& segment : elf.segments()) {
    if (!segment.holds_address(address)) continue;
    const uint64_t offset = address - segment.address;
    auto data = elf.bytes().read_range(segment.offset + offset,
                                       std::min(bytes, segment.file_bytes - offset), bytes);
    return data ? std::move(*data) : std::string();
  }
  return {};
}

}  // namespace

Result<std::optional<PythonFile>> find_python(FileBytes bytes) {
  DWELL_ASSIGN(ElfFile elf, ElfFile::read(bytes));
  if (!elf.is_64() || elf.machine() != EM_X86_64) return std::nullopt;
  DWELL_TRY(elf.read_sections());
  DWELL_ASSIGN(PythonSymbols symbols, find_symbols(elf, SHT_DYNSYM));
  if (symbols.runtime == 0) {
    DWELL_ASSIGN(symbols, find_symbols(elf, SHT_SYMTAB));
  }
  if (symbols.runtime == 0) return std::nullopt;
  if (symbols.version == 0)
    return runtime_error("its CPython is older than 3.11, whose frames cannot be read");
  const std::string version = read_data(elf, symbols.version, sizeof(uint32_t));
  if (version.size() < sizeof(uint32_t)) return runtime_error("its Py_Version cannot be read");
  uint32_t hex = 0;
  std::memcpy(&hex, version.data(), sizeof(hex));
  const std::string runtime = read_data(elf, symbols.runtime, python::kDebugOffsetsBytes);
  DWELL_ASSIGN(const python::Layout layout, python::find_layout(hex, runtime));
  return PythonFile{symbols.runtime, layout};
}

}  // namespace dwell::symbolize
