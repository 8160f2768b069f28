// The entries of one .eh_frame or .debug_frame section: CIEs, which say what FDEs have in common,
// and FDEs, each of which describes one range of code. Called by the table compiler.
//
// Nothing is trusted: what makes no sense is left out and counted, and time and memory are linear
// in the size of the section. The entries refer to the section's bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "unwind/cfi_reader.h"

namespace dwell::unwind {

// Why some of the unwind data gave no rows.
enum class Fault : uint8_t {
  kCutOff,       // an entry is longer than the section
  kNoCie,        // an FDE refers to no CIE that can be read
  kPointer,      // a pointer in a form that code of one file does not need
  kOutsideCode,  // a range outside executable segments: functions that the linker dropped
  kOverlap,      // a range that another entry covers
  kInstruction,  // an instruction that is unknown, cut off or makes no sense
  kTooMany,      // more entries, pages or rows than the limits allow
  kCount,
};
const char* describe(Fault fault);
using FaultCounts = std::array<uint64_t, static_cast<size_t>(Fault::kCount)>;

struct SectionBytes {
  std::string_view bytes;
  uint64_t address = 0;  // of the first byte, as the file says
};

struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint64_t return_register = 0;
  uint8_t pointer_encoding = kPointerAbsolute;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  bool usable = false;
  SectionBytes instructions;
};

// Where an entry comes from. Where two cover the same code, the first of these wins.
enum class Origin : uint8_t { kEhFrame, kGoFunctions, kDebugFrame };

struct Fde {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t cie = 0;  // of kGoFunctions: which function
  Origin origin = Origin::kEhFrame;
  SectionBytes instructions;
};

struct CfiEntries {
  std::vector<Cie> cies;
  std::vector<Fde> fdes;  // in the order of the file
};

class CfiSection {
 public:
  static constexpr size_t kCiesMax = 1 << 16;
  static constexpr size_t kFdesMax = 1 << 22;
  static constexpr size_t kAugmentationMax = 16;
  // Of a CIE: any number of FDEs may refer to overlapping ones, and each would cost its length.
  static constexpr size_t kCieInstructionsMax = 512;

  enum class Kind { kEhFrame, kDebugFrame };
  CfiSection(SectionBytes section, Kind kind, CfiEntries& entries, FaultCounts& faults)
      : section_(section), kind_(kind), entries_(entries), faults_(faults) {}

  // Appends what the section holds.
  void read();

 private:
  struct Entry {
    size_t id_at = 0;  // offset of the field that tells a CIE from an FDE
    uint64_t id = 0;
    size_t body = 0;  // offset behind it
    size_t end = 0;
    bool is_64 = false;
  };
  bool read_entry(size_t at, Entry& entry) const;
  bool is_cie(const Entry& entry) const;
  void read_fde(const Entry& entry);
  uint32_t cie_at(uint64_t offset);
  bool read_cie(uint64_t offset, Cie& cie) const;
  bool read_augmentation(std::string_view letters, CfiReader& reader, Cie& cie) const;
  CfiReader reader(size_t from, size_t to) const;
  void count(Fault fault) { ++faults_[static_cast<size_t>(fault)]; }

  SectionBytes section_;
  Kind kind_;
  CfiEntries& entries_;
  FaultCounts& faults_;
  std::unordered_map<uint64_t, uint32_t> cies_;  // by offset
};

}  // namespace dwell::unwind
