#include "cli/event_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace dwell::cli {
namespace {

constexpr size_t kBytesPerLine = 16;

template <typename... Values>
void append(std::string& out, fmt::format_string<Values...> pattern, Values&&... values) {
  fmt::format_to(std::back_inserter(out), pattern, std::forward<Values>(values)...);
}

void append_hex(std::string& out, std::byte byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += kDigits[std::to_integer<unsigned>(byte) >> 4];
  out += kDigits[std::to_integer<unsigned>(byte) & 15];
}

// "  00000010  01 02 ...  |..ab|"
void append_dump(std::string& out, std::span<const std::byte> payload) {
  for (size_t at = 0; at < payload.size(); at += kBytesPerLine) {
    const auto line = payload.subspan(at, std::min(kBytesPerLine, payload.size() - at));
    append(out, "  {:08x} ", at);
    for (size_t i = 0; i < kBytesPerLine; ++i) {
      out += i == kBytesPerLine / 2 ? "  " : " ";
      if (i < line.size())
        append_hex(out, line[i]);
      else
        out += "  ";
    }
    out += "  |";
    for (const std::byte byte : line) {
      const char c = static_cast<char>(byte);
      out += c >= ' ' && c <= '~' ? c : '.';
    }
    out += "|\n";
  }
}

const char* trouble_name(Trouble what) {
  switch (what) {
    case Trouble::kCorrupt:
      return "corrupt";
    case Trouble::kOversize:
      return "oversize";
    case Trouble::kTruncated:
      return "truncated";
    case Trouble::kBadLength:
      break;
  }
  return "bad-length";
}

std::string exact_text(const RingStats& stats, const char* unknown) {
  return stats.lost_exact ? std::to_string(*stats.lost_exact) : unknown;
}

uint64_t lost_so_far(const RingStats& stats) {
  return stats.lost_exact.value_or(stats.lost_reported);
}

void append_json_counts(std::string& out, const RingStats& stats) {
  append(out,
         "\"samples\":{},\"bytes\":{},\"lost_reported\":{},\"lost_exact\":{},\"lost_pending\":{},"
         "\"corrupt\":{},\"skipped_bytes\":{},\"unknown\":{},\"peak_waiting_bytes\":{},"
         "\"ring_bytes\":{}",
         stats.samples, stats.bytes, stats.lost_reported, exact_text(stats, "null"),
         stats.lost_pending, stats.corrupt, stats.skipped_bytes, stats.unknown,
         stats.peak_waiting_bytes, stats.ring_bytes);
}

void append_text_statistics(std::string& out, const SessionStats& stats,
                            const std::vector<CpuStats>& cpus) {
  const RingStats& rings = stats.rings;
  append(out,
         "received {}, not shown {}, lost reported {}, lost exact {}, pending {}, corrupt {} "
         "({} bytes), oversize {}, unknown {}\n",
         stats.received, stats.dropped, rings.lost_reported, exact_text(rings, "not told"),
         rings.lost_pending, rings.corrupt, rings.skipped_bytes, stats.oversize, rings.unknown);
  for (const CpuStats& one : cpus)
    if (lost_so_far(one.stats) != 0)
      append(out, "  cpu {}: {} records, lost reported {}, lost exact {}, pending {}\n", one.cpu,
             one.stats.samples, one.stats.lost_reported, exact_text(one.stats, "not told"),
             one.stats.lost_pending);
}

}  // namespace

void append_array(std::string& out, LineFormat format, const BpfMapInfo& map) {
  if (format == LineFormat::kText)
    append(out, "{:>8}  {:<16} {:>6} slots\n", map.id, printable(map.name), map.max_entries);
  else  // the kernel allows letters, digits, '_' and '.' in names: nothing to escape
    append(out, "{{\"type\":\"array\",\"id\":{},\"name\":\"{}\",\"slots\":{}}}\n", map.id, map.name,
           map.max_entries);
}

void append_event(std::string& out, LineFormat format, const Event& event) {
  if (format == LineFormat::kText) {
    append(out, "{}.{:09} cpu {} pid {} tid {} {} bytes{}\n", event.time_ns / 1'000'000'000,
           event.time_ns % 1'000'000'000, event.cpu, event.pid, event.tid, event.payload.size(),
           event.late ? " late" : "");
    return append_dump(out, event.payload);
  }
  append(out,
         "{{\"type\":\"record\",\"cpu\":{},\"time_ns\":{},\"pid\":{},\"tid\":{},\"late\":{},"
         "\"bytes\":{},\"hex\":\"",
         event.cpu, event.time_ns, event.pid, event.tid, event.late, event.payload.size());
  for (const std::byte byte : event.payload) append_hex(out, byte);
  out += "\"}\n";
}

void append_lost(std::string& out, LineFormat format, uint32_t cpu, uint64_t lost) {
  if (format == LineFormat::kText)
    append(out, "cpu {}: {} records were lost before this point\n", cpu, lost);
  else
    append(out, "{{\"type\":\"lost\",\"cpu\":{},\"count\":{}}}\n", cpu, lost);
}

void append_trouble(std::string& out, LineFormat format, uint32_t cpu, Trouble what,
                    uint64_t value) {
  if (format == LineFormat::kText)
    append(out, "cpu {}: {} ({} bytes)\n", cpu, trouble_name(what), value);
  else
    append(out, "{{\"type\":\"trouble\",\"cpu\":{},\"what\":\"{}\",\"bytes\":{}}}\n", cpu,
           trouble_name(what), value);
}

void append_rate(std::string& out, LineFormat format, double seconds,
                 const std::vector<CpuStats>& before, const std::vector<CpuStats>& now) {
  const auto per_second = [&](uint64_t then, uint64_t since) {
    return static_cast<uint64_t>(static_cast<double>(since - then) / seconds + 0.5);
  };
  if (format == LineFormat::kJson)
    append(out, "{{\"type\":\"rate\",\"seconds\":{:.3f},\"cpus\":[", seconds);
  for (size_t i = 0; i < now.size(); ++i) {
    const RingStats &then = before[i].stats, &since = now[i].stats;
    if (format == LineFormat::kText)
      append(out, "cpu {}: {} records/s, {}/s, {} lost/s, ring at most {:.0f} % full\n", now[i].cpu,
             per_second(then.samples, since.samples),
             format_bytes(per_second(then.bytes, since.bytes)),
             per_second(lost_so_far(then), lost_so_far(since)),
             100.0 * static_cast<double>(since.peak_waiting_bytes) /
                 static_cast<double>(std::max<uint64_t>(since.ring_bytes, 1)));
    else
      append(out, "{}{{\"cpu\":{},\"records\":{},\"bytes\":{},\"lost\":{}}}", i == 0 ? "" : ",",
             now[i].cpu, since.samples - then.samples, since.bytes - then.bytes,
             lost_so_far(since) - lost_so_far(then));
  }
  if (format == LineFormat::kJson) out += "]}\n";
}

void append_statistics(std::string& out, LineFormat format, const SessionStats& stats,
                       const std::vector<CpuStats>& cpus) {
  if (format == LineFormat::kText) return append_text_statistics(out, stats, cpus);
  append(out,
         "{{\"type\":\"statistics\",\"received\":{},\"not_shown\":{},\"late\":{},\"oversize\":{},"
         "\"other\":{},",
         stats.received, stats.dropped, stats.late, stats.oversize, stats.other);
  append_json_counts(out, stats.rings);
  out += ",\"cpus\":[";
  for (size_t i = 0; i < cpus.size(); ++i) {
    append(out, "{}{{\"cpu\":{},", i == 0 ? "" : ",", cpus[i].cpu);
    append_json_counts(out, cpus[i].stats);
    out += "}";
  }
  out += "]}\n";
}

}  // namespace dwell::cli
