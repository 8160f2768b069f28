// A jit-PID.dump ("jitdump"): binary records by which a JIT compiler tells the code that it made
// and moved, with names.
//
// The target writes it while we read it, and any byte may be a lie: sizes are checked, code in the
// records is skipped without being read, reading ends at kFileMax, and memory is bounded by the
// limits of CodeRanges. Of two records about one address the later one wins, as at the end of the
// recording: a stack is kept once, without all the times at which it was seen, so the times in the
// records decide nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "symbolize/code_ranges.h"

namespace dwell::symbolize {

class JitDump {
 public:
  static constexpr uint64_t kFileMax = uint64_t{1} << 30;
  static constexpr size_t kFunctionsMax = CodeRanges::kPiecesMax;  // that can be moved
  static constexpr size_t kNameMax = 64 << 10;  // a record whose name is longer is skipped
  // What append() needs at once to get on: a record without its code.
  static constexpr size_t kPieceMin = kNameMax + 256;

  // Where the reading goes on; beyond the end of the file if a record is not yet written whole.
  uint64_t next_offset() const { return next_; }
  // The bytes of the file from next_offset() on. What is cut off at their end has to come again.
  void append(std::string_view bytes);
  std::optional<CodeRanges::Match> find(uint64_t address) const { return code_.find(address); }
  // Why nothing more is read: "" as long as there is no reason.
  const std::string& damage() const { return damage_; }
  bool closed() const { return closed_; }  // by its last record
  size_t size() const { return code_.size(); }
  bool full() const { return code_.full() || closed_ || !damage_.empty() || next_ >= kFileMax; }
  size_t memory_bytes() const { return code_.memory_bytes() + functions_.size() * kFunctionCost; }

 private:
  static constexpr size_t kFunctionCost = 64;  // of a hash node
  // Bytes to go on by, at least 1; 0 if the record is cut off.
  uint64_t take_header(std::string_view bytes);
  uint64_t take_record(std::string_view bytes);
  bool take_load(std::string_view record, uint64_t record_bytes);
  void take_move(std::string_view record);

  CodeRanges code_;
  std::unordered_map<uint64_t, CodeRanges::Name> functions_;  // by the compiler's own number
  uint64_t next_ = 0;
  bool closed_ = false;
  std::string damage_;
};

}  // namespace dwell::symbolize
