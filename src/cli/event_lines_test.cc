#include "cli/event_lines.h"

#include <gtest/gtest.h>

#include <array>

namespace dwell::cli {
namespace {

template <size_t N>
std::array<std::byte, N> bytes_from(unsigned first) {
  std::array<std::byte, N> bytes;
  for (size_t i = 0; i < N; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

Event event_with(std::span<const std::byte> payload) {
  return {
      .cpu = 3, .time_ns = 12'000'000'345, .pid = 7, .tid = 8, .late = false, .payload = payload};
}

TEST(EventLines, TextShowsSixteenBytesALineAndDotsForWhatIsNotPrintable) {
  const auto payload = bytes_from<18>(0x7a);
  std::string out;
  append_event(out, LineFormat::kText, event_with(payload));
  EXPECT_EQ(out,
            "12.000000345 cpu 3 pid 7 tid 8 18 bytes\n"
            "  00000000  7a 7b 7c 7d 7e 7f 80 81  82 83 84 85 86 87 88 89  |z{|}~...........|\n"
            "  00000010  8a 8b                                             |..|\n");
}

TEST(EventLines, JsonIsOneLineWithAllBytes) {
  const auto payload = bytes_from<4>(0xfe);
  std::string out;
  append_event(out, LineFormat::kJson, event_with(payload));
  EXPECT_EQ(out,
            "{\"type\":\"record\",\"cpu\":3,\"time_ns\":12000000345,\"pid\":7,\"tid\":8,"
            "\"late\":false,\"bytes\":4,\"hex\":\"feff0001\"}\n");
}

TEST(EventLines, AnEmptyPayloadAndALateOneAreShownAsSuch) {
  Event event = event_with({});
  event.late = true;
  std::string text, json;
  append_event(text, LineFormat::kText, event);
  append_event(json, LineFormat::kJson, event);
  EXPECT_EQ(text, "12.000000345 cpu 3 pid 7 tid 8 0 bytes late\n");
  EXPECT_TRUE(json.find("\"late\":true,\"bytes\":0,\"hex\":\"\"}") != std::string::npos) << json;
}

TEST(EventLines, ARateIsTheDifferenceOverTheTime) {
  std::vector<CpuStats> before = {{.cpu = 5, .stats = {}}}, now = before;
  before[0].stats.samples = 100;
  now[0].stats.samples = 400;
  now[0].stats.bytes = 4096;
  now[0].stats.lost_exact = 10;
  now[0].stats.peak_waiting_bytes = 1024;
  now[0].stats.ring_bytes = 4096;
  std::string text, json;
  append_rate(text, LineFormat::kText, 2.0, before, now);
  append_rate(json, LineFormat::kJson, 2.0, before, now);
  EXPECT_EQ(text, "cpu 5: 150 records/s, 2.0 KiB/s, 5 lost/s, ring at most 25 % full\n");
  EXPECT_EQ(json,
            "{\"type\":\"rate\",\"seconds\":2.000,\"cpus\":[{\"cpu\":5,\"records\":300,"
            "\"bytes\":4096,\"lost\":10}]}\n");
}

TEST(EventLines, StatisticsNameTheCpusThatLostAndWhatIsNotKnown) {
  SessionStats stats;
  stats.received = 10;
  stats.dropped = 2;
  stats.rings.lost_reported = 3;
  std::vector<CpuStats> cpus = {{.cpu = 0, .stats = {}}, {.cpu = 4, .stats = {}}};
  cpus[1].stats.samples = 12;
  cpus[1].stats.lost_reported = 3;
  std::string text, json;
  append_statistics(text, LineFormat::kText, stats, cpus);
  append_statistics(json, LineFormat::kJson, stats, cpus);
  EXPECT_EQ(text,
            "received 10, not shown 2, lost reported 3, lost exact not told, pending 0, corrupt 0 "
            "(0 bytes), oversize 0, unknown 0\n"
            "  cpu 4: 12 records, lost reported 3, lost exact not told, pending 0\n");
  EXPECT_NE(json.find("\"received\":10,\"not_shown\":2"), std::string::npos);
  EXPECT_NE(json.find("\"lost_exact\":null"), std::string::npos);
}

}  // namespace
}  // namespace dwell::cli
