// Forks, execs, new executable mappings and BPF symbols of the whole machine, in order of time,
// from one software perf event per CPU. Called by the symbolizer's poll().
//
// Each CPU has a ring of its own, so events are sorted by time, and those that are younger than the
// start of a poll wait for the next one: an event that caused another lies in its ring before the
// other's time, hence what is delivered never lacks its cause.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "ring/ring_reader.h"
#include "symbolize/mapping_records.h"

namespace dwell::symbolize {

class MappingEvents {
 public:
  static constexpr size_t kRingBytes = 256 << 10;  // per CPU; smaller where the kernel refuses
  static constexpr size_t kSmallestRingBytes = 16 << 10;

  // An error says what privilege is missing.
  static Result<MappingEvents> open();

  // Readable when something has happened since the last take(): for poll().
  int fd() const { return wakes_.get(); }

  // What happened until now, oldest first; valid until the next call.
  const std::vector<MappingEvent>& take();
  // Events that did not fit into a ring because polls were too rare.
  uint64_t lost() const;

 private:
  // Mapped ring of one CPU.
  class CpuRing {
   public:
    static Result<CpuRing> open(int cpu);
    CpuRing(CpuRing&& other) noexcept;
    CpuRing& operator=(CpuRing&&) = delete;
    ~CpuRing();
    int fd() const { return fd_.get(); }
    RingReader& reader() { return *reader_; }
    const RingReader& reader() const { return *reader_; }

   private:
    CpuRing() = default;
    Status map();
    Fd fd_;
    void* memory_ = nullptr;
    size_t bytes_ = 0;
    std::optional<RingReader> reader_;
  };

  Status wake_by(const CpuRing& ring);

  Fd wakes_;  // epoll of all rings
  std::vector<CpuRing> rings_;
  std::vector<MappingEvent> waiting_;  // younger than the start of the last poll
  std::vector<MappingEvent> ready_;
  uint64_t next_order_ = 0;
};

}  // namespace dwell::symbolize
