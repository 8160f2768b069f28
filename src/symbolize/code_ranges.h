// Which piece of generated code holds an address? Fed by the readers of perf maps and jitdumps.
//
// Pieces overlap in the order in which they are added: later ones win over the range that they
// cover, because code is moved and freed. Bounded by kPiecesMax and kNamesMax.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dwell::symbolize {

class CodeRanges {
 public:
  static constexpr size_t kPiecesMax = 1'000'000;
  static constexpr size_t kNamesMax = size_t{64} << 20;

  using Name = uint32_t;
  struct Match {
    std::string_view name;  // valid until the next add_name()
    uint64_t address = 0;   // of the function: the match may lie in the rest of a covered piece
  };

  // Control bytes are left out. Nothing if the limit is reached: full() from then on.
  std::optional<Name> add_name(std::string_view name);
  void add(uint64_t start, uint64_t end, Name name);
  std::optional<Match> find(uint64_t address) const;

  size_t size() const { return pieces_.size(); }
  bool full() const { return full_; }
  size_t memory_bytes() const { return pieces_.size() * kPieceCost + names_.size(); }

 private:
  static constexpr size_t kPieceCost = 80;  // of a map node
  struct Piece {
    uint64_t end;
    Name name;
    uint64_t address;
  };
  void uncover(uint64_t start, uint64_t end);

  std::map<uint64_t, Piece> pieces_;  // by start, never overlapping
  std::string names_;
  bool full_ = false;
};

}  // namespace dwell::symbolize
