// Writer and reader against a model: whatever is put, read, stopped and refused, the reader gives
// exactly what the model holds, and every loss is told or pending.
// Input: byte 0 ring size, byte 1 options, bytes 2-9 start position; then operations of 3 bytes.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "ring/ring_reader.h"
#include "ring/ring_writer.h"

namespace {

void require(bool condition) {
  if (!condition) abort();
}

struct Model {
  std::deque<std::vector<std::byte>> unread;
  uint64_t refused = 0;
  uint64_t told = 0;
};

std::vector<std::byte> payload_of(size_t size, uint8_t seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i * 13);
  return bytes;
}

void read_one(Model& model, const dwell::Record& record, bool exact) {
  if (const auto lost = dwell::lost_count(record)) {
    require(*lost != 0);
    model.told += *lost;
    require(model.told <= model.refused);
    return;
  }
  require(record.is_sample() && !model.unread.empty());
  const auto payload = dwell::raw_payload(record, exact);
  const std::vector<std::byte>& expected = model.unread.front();
  require(payload.has_value() && payload->size() >= expected.size());
  require(!exact || payload->size() == expected.size());
  require(expected.empty() || std::memcmp(payload->data(), expected.data(), expected.size()) == 0);
  for (size_t i = expected.size(); i < payload->size(); ++i) require((*payload)[i] == std::byte{0});
  model.unread.pop_front();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 10) return 0;
  const uint64_t data_size = uint64_t{64} << data[0] % 12;
  const bool exact = (data[1] & 1) != 0;
  auto meta = std::make_unique<dwell::ring::MetaPage>();
  uint64_t start = 0;
  std::memcpy(&start, data + 2, 8);
  start &= ~uint64_t{7};
  meta->data_head = meta->data_tail = meta->extension.report_head = start;
  std::vector<std::byte> area(data_size);
  const dwell::RingMemory memory{meta.get(), area.data(), data_size, false};
  dwell::RingWriter writer(memory, {.exact_length = exact});
  auto reader = dwell::RingReader::create(memory);
  Model model;
  for (size_t at = 10; at + 3 <= size; at += 3) {
    const uint8_t operation = data[at];
    const uint64_t argument = data[at + 1] | uint64_t{data[at + 2]} << 8;
    if (operation < 160) {
      const auto bytes = payload_of(operation < 120 ? argument % 200 : argument, operation);
      const size_t cut = bytes.size() * (operation % 4) / 4;  // the rest as a capture
      const auto outcome =
          writer.put(std::span(bytes).first(bytes.size() - cut), std::span(bytes).last(cut));
      if (outcome == dwell::PutOutcome::kWritten) model.unread.push_back(bytes);
      if (outcome == dwell::PutOutcome::kFull) ++model.refused;
      if (outcome == dwell::PutOutcome::kTooBig) require(bytes.size() > dwell::ring::kMaxPayload);
    } else {
      const dwell::Budget budget{.max_records = operation % 2 == 0 ? argument % 20 : UINT64_MAX,
                                 .max_bytes = operation % 3 == 0 ? argument : UINT64_MAX,
                                 .hold = operation % 5 == 0};
      reader->drain(budget, [&](const dwell::Record& r) { read_one(model, r, exact); });
    }
    require(reader->counts().corrupt == 0);
    require(model.told + writer.pending_loss() <= model.refused);  // the rest waits unread
    require(meta->extension.lost_total == model.refused);
  }
  reader->drain({}, [&](const dwell::Record& r) { read_one(model, r, exact); });
  require(model.unread.empty());
  require(model.told + writer.pending_loss() == model.refused);
  return 0;
}
