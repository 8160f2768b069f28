// Puts records of several rings into one order of time, within a bounded delay and bounded memory.
// Pure: it knows no clock and no ring.
//
// The cut decides, not the presence of other records, so that an idle ring holds nobody up: whoever
// reads the rings takes the time before the pass, and afterwards everything at or below that time
// minus the longest delay between stamping and publishing is complete.
// Invariant: what is emitted without `late` is in order of time. Nothing is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ring/record.h"

namespace dwell {
inline namespace v0 {

struct OrderedRecord {
  uint32_t cpu = 0;
  uint64_t time_ns = 0;
  bool late = false;  // older than a record that was emitted before
  Record record;      // valid during the call
};

class TimeOrder {
 public:
  using Sink = std::function<void(const OrderedRecord&)>;

  // Beyond `max_bytes` of held records the oldest are emitted before their cut (forced()), so that
  // others may become late.
  TimeOrder(uint64_t max_bytes, Sink sink);
  TimeOrder(TimeOrder&&) noexcept;
  TimeOrder& operator=(TimeOrder&&) noexcept;
  ~TimeOrder();

  // Copies the record. Records of one time keep the order in which they were pushed.
  void push(uint32_t cpu, uint64_t time_ns, const Record& record);
  // For records that bear no time, as LOST does: right behind the last one of its ring.
  void push_behind(uint32_t cpu, const Record& record);

  // Emits, in order, everything at or below `cut_ns`; stops early if `go_on` says so.
  void emit_until(uint64_t cut_ns, const std::function<bool()>& go_on = {});

  // Time of the newest record pushed for this ring, 0 if none.
  uint64_t newest_of(uint32_t cpu) const;
  bool empty() const { return heap_.empty(); }
  uint64_t held_bytes() const { return held_bytes_; }
  uint64_t late() const { return late_; }
  uint64_t forced() const { return forced_; }

 private:
  struct Chunk;
  struct Entry {
    uint64_t time_ns;
    uint64_t serial;
    Chunk* chunk;
    const std::byte* body;
    uint32_t cpu;
    uint32_t type;
    uint16_t misc;
    uint16_t size;
  };
  static bool later(const Entry& a, const Entry& b);

  std::byte* store(const Record& record, Chunk** chunk);
  void recycle(Chunk* chunk);
  void emit_oldest();

  uint64_t max_bytes_;
  Sink sink_;
  std::vector<Entry> heap_;  // oldest on top
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* filling_ = nullptr;
  std::vector<Chunk*> spare_;
  std::vector<uint64_t> newest_;  // by CPU
  uint64_t serial_ = 0;
  uint64_t held_bytes_ = 0;
  uint64_t last_emitted_ns_ = 0;
  uint64_t late_ = 0;
  uint64_t forced_ = 0;
};

}  // namespace v0
}  // namespace dwell
