// How `dwell events` writes what it reads: text for people, or JSON lines (docs/events.md). Pure
// functions that append whole lines to a string. Payloads come from BPF programs of strangers: only
// their hexadecimal digits and printable ASCII reach the output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "event_array/bpf_map.h"
#include "event_array/event_session.h"

namespace dwell::cli {

enum class LineFormat { kText, kJson };

struct CpuStats {
  uint32_t cpu = 0;
  RingStats stats;
};

void append_array(std::string& out, LineFormat format, const BpfMapInfo& map);
void append_event(std::string& out, LineFormat format, const Event& event);
void append_lost(std::string& out, LineFormat format, uint32_t cpu, uint64_t lost);
void append_trouble(std::string& out, LineFormat format, uint32_t cpu, Trouble what,
                    uint64_t value);
// What came in between two looks, `before` and `now`, which name the same CPUs in the same order.
void append_rate(std::string& out, LineFormat format, double seconds,
                 const std::vector<CpuStats>& before, const std::vector<CpuStats>& now);
// The last line. As text it is followed by a line for each CPU that lost something.
void append_statistics(std::string& out, LineFormat format, const SessionStats& stats,
                       const std::vector<CpuStats>& cpus);

}  // namespace dwell::cli
