#include "unwind/cfi_section.h"

#include <algorithm>

namespace dwell::unwind {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kIs64Bit = 0xffffffff;
constexpr uint64_t kAddressBytes = 8;  // of x86-64

}  // namespace

const char* describe(Fault fault) {
  switch (fault) {
    case Fault::kCutOff:
      return "entries that are longer than their section";
    case Fault::kNoCie:
      return "entries without a readable CIE";
    case Fault::kPointer:
      return "entries with pointers of an unknown form";
    case Fault::kOutsideCode:
      return "entries for code outside executable segments";
    case Fault::kOverlap:
      return "entries for code that another entry covers";
    case Fault::kInstruction:
      return "entries with instructions that make no sense";
    case Fault::kTooMany:
      return "entries beyond the limits";
    case Fault::kCount:
      break;
  }
  return "";
}

CfiReader CfiSection::reader(size_t from, size_t to) const {
  return CfiReader(section_.bytes.substr(from, to - from), section_.address + from);
}

// False if no entry fits there. A length of 0 is an entry without a body.
bool CfiSection::read_entry(size_t at, Entry& entry) const {
  CfiReader head = reader(at, section_.bytes.size());
  uint64_t length = head.fixed<uint32_t>();
  entry.is_64 = length == kIs64Bit;
  if (entry.is_64) length = head.fixed<uint64_t>();
  if (head.failed() || length > head.remaining()) return false;
  entry.id_at = at + head.position();
  entry.end = entry.id_at + length;
  entry.body = entry.end;
  if (length == 0) return true;
  // .eh_frame has 32 bits here in both formats, .debug_frame as many as its offsets.
  const bool wide = entry.is_64 && kind_ == Kind::kDebugFrame;
  if (length < (wide ? 8u : 4u)) return false;
  entry.id = wide ? head.fixed<uint64_t>() : head.fixed<uint32_t>();
  entry.body = at + head.position();
  return true;
}

bool CfiSection::is_cie(const Entry& entry) const {
  if (kind_ == Kind::kEhFrame) return entry.id == 0;
  return entry.id == (entry.is_64 ? UINT64_MAX : UINT32_MAX);
}

void CfiSection::read() {
  size_t at = 0;
  while (at + sizeof(uint32_t) <= section_.bytes.size()) {
    Entry entry;
    if (!read_entry(at, entry)) return count(Fault::kCutOff);
    // Length 0 ends the section for the C run time, but linkers leave such words in the middle too.
    if (entry.body < entry.end && !is_cie(entry)) {
      if (entries_.fdes.size() >= kFdesMax) return count(Fault::kTooMany);
      read_fde(entry);
    }
    at = entry.end;
  }
}

void CfiSection::read_fde(const Entry& entry) {
  const bool is_relative = kind_ == Kind::kEhFrame;
  if (is_relative && entry.id > entry.id_at) return count(Fault::kNoCie);
  const uint32_t index = cie_at(is_relative ? entry.id_at - entry.id : entry.id);
  if (index == kNone) return count(Fault::kNoCie);
  const Cie& cie = entries_.cies[index];
  CfiReader body = reader(entry.body, entry.end);
  Fde fde;
  fde.start = body.pointer(cie.pointer_encoding);
  const uint64_t bytes = body.unbased(cie.pointer_encoding & 0x0f);
  if (cie.has_augmentation_data) body.take(body.uleb());
  if (body.failed()) return count(Fault::kPointer);
  if (bytes == 0) return;
  fde.end = fde.start + bytes;
  if (fde.end < fde.start) return count(Fault::kOutsideCode);
  fde.cie = index;
  fde.origin = kind_ == Kind::kEhFrame ? Origin::kEhFrame : Origin::kDebugFrame;
  fde.instructions.address = body.address();
  fde.instructions.bytes = body.take(body.remaining());
  entries_.fdes.push_back(fde);
}

uint32_t CfiSection::cie_at(uint64_t offset) {
  const auto [known, added] = cies_.try_emplace(offset, kNone);
  if (!added) return known->second;
  Cie cie;
  if (cies_.size() > kCiesMax || !read_cie(offset, cie)) return kNone;
  known->second = static_cast<uint32_t>(entries_.cies.size());
  entries_.cies.push_back(cie);
  return known->second;
}

bool CfiSection::read_cie(uint64_t offset, Cie& cie) const {
  Entry entry;
  if (offset >= section_.bytes.size() || !read_entry(offset, entry)) return false;
  if (entry.body == entry.end || !is_cie(entry)) return false;
  CfiReader body = reader(entry.body, entry.end);
  const uint8_t version = body.u8();
  if (version != 1 && version != 3 && version != 4) return false;
  const size_t at = entry.body + body.position();
  const std::string_view letters = reader(at, std::min(entry.end, at + kAugmentationMax)).text();
  body.take(letters.size() + 1);
  if (letters == "eh") body.fixed<uint64_t>();  // of GCC 2: a pointer to exception data
  if (version == 4 && (body.u8() != kAddressBytes || body.u8() != 0)) return false;
  cie.code_alignment = body.uleb();
  cie.data_alignment = body.sleb();
  cie.return_register = version == 1 ? body.u8() : body.uleb();
  if (!read_augmentation(letters, body, cie) || body.failed()) return false;
  if (body.remaining() > kCieInstructionsMax) return false;
  cie.instructions.address = body.address();
  cie.instructions.bytes = body.take(body.remaining());
  return true;
}

// The letters in order, each with its data. Behind 'z' stands their length, so that unknown ones
// can be passed over; without it an unknown letter leaves the rest unreadable.
bool CfiSection::read_augmentation(std::string_view letters, CfiReader& reader, Cie& cie) const {
  if (letters.empty() || letters == "eh") return true;
  if (letters.front() != 'z') return false;
  cie.has_augmentation_data = true;
  const uint64_t bytes = reader.uleb();
  const uint64_t address = reader.address();
  CfiReader data(reader.take(bytes), address);
  for (const char letter : letters.substr(1)) {
    if (letter == 'R') {
      cie.pointer_encoding = data.u8();
    } else if (letter == 'P') {
      data.unbased(data.u8());
    } else if (letter == 'L') {
      data.u8();
    } else if (letter == 'S') {
      cie.is_signal_frame = true;
    } else if (letter != 'B' && letter != 'G') {
      break;
    }
  }
  return !data.failed();
}

}  // namespace dwell::unwind
