#include "symbolize/symbol_names.h"

#include <elf.h>

#include <algorithm>

namespace dwell::symbolize {

uint32_t SymbolNames::add(std::string_view name) {
  const auto offset = static_cast<uint32_t>(bytes_.size());
  bytes_ += name;
  bytes_ += '\0';
  return offset;
}

SectionWindow::SectionWindow(FileBytes file, const Section& section)
    : SectionWindow(file, section.offset, section.type == SHT_NOBITS ? 0 : section.bytes) {}

std::string_view SectionWindow::held(uint64_t offset) const {
  if (offset < start_ || offset - start_ >= window_.size()) return {};
  return std::string_view(window_).substr(offset - start_);
}

void SectionWindow::fill(uint64_t offset) {
  start_ = offset;
  window_.resize(std::min(kWindowBytes, bytes_ - offset));
  if (!file_.read(offset_ + offset, window_.data(), window_.size())) window_.clear();
}

std::string_view SectionWindow::at(uint64_t offset, uint64_t wanted) {
  if (offset >= bytes_) return {};
  wanted = std::min(wanted, bytes_ - offset);
  if (held(offset).size() < wanted) fill(offset);
  return held(offset).substr(0, wanted);
}

std::string_view SectionWindow::text_at(uint64_t offset) {
  std::string_view text = held(offset);
  size_t end = text.find('\0');
  if (end == std::string_view::npos) {
    text = at(offset, kWindowBytes);
    end = text.find('\0');
  }
  return text.substr(0, std::min(end, text.size()));
}

}  // namespace dwell::symbolize
