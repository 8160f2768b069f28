#include "ring/record.h"

#include <cstring>

namespace dwell {
inline namespace v0 {
namespace {

using ring::SampleField;

// Takes fields off the front of a span; after the first that does not fit, every take fails.
class FieldCursor {
 public:
  explicit FieldCursor(std::span<const std::byte> bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  std::span<const std::byte> left() const { return left_; }

  std::span<const std::byte> take(uint64_t size) {
    if (size > left_.size()) ok_ = false;
    if (!ok_) return {};
    const auto taken = left_.first(static_cast<size_t>(size));
    left_ = left_.subspan(static_cast<size_t>(size));
    return taken;
  }
  uint64_t take_u64() {
    const auto bytes = take(8);
    return ok_ ? load<uint64_t>(bytes.data()) : 0;
  }
  // Two u32 that share a u64 cell.
  void take_pair(uint32_t& first, uint32_t& second) {
    const auto bytes = take(8);
    if (!ok_) return;
    first = load<uint32_t>(bytes.data());
    second = load<uint32_t>(bytes.data() + 4);
  }

  // One load: the value that was checked is the value that is used.
  template <typename T>
  static T load(const std::byte* at) {
    return __atomic_load_n(reinterpret_cast<const T*>(at), __ATOMIC_RELAXED);
  }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

// Bytes of the READ field, which for a group starts with its own count.
uint64_t read_field_size(uint64_t format, std::span<const std::byte> left) {
  const uint64_t times =
      8 * (((format & ring::kReadTimeEnabled) != 0) + ((format & ring::kReadTimeRunning) != 0));
  const uint64_t each =
      8 * (1 + ((format & ring::kReadId) != 0) + ((format & ring::kReadLost) != 0));
  if ((format & ring::kReadGroup) == 0) return each + times;
  if (left.size() < 8) return 8;
  const uint64_t members = FieldCursor::load<uint64_t>(left.data());
  if (members > left.size() / each) return UINT64_MAX;
  return 8 + times + members * each;
}

void take_callchain(FieldCursor& cursor, Sample& sample) {
  const uint64_t frames = cursor.take_u64();
  const bool fits = frames <= cursor.left().size() / 8;
  sample.callchain = cursor.take(fits ? frames * 8 : UINT64_MAX);
}

// The fields before RAW, in ABI order.
void take_fixed_fields(const RecordFormat& format, FieldCursor& cursor, Sample& sample) {
  const uint64_t fields = format.sample_type;
  RecordIds& ids = sample.ids;
  uint32_t unused = 0;
  if (fields & SampleField::kSampleIdentifier) ids.identifier = cursor.take_u64();
  if (fields & SampleField::kSampleIp) sample.ip = cursor.take_u64();
  if (fields & SampleField::kSampleTid) cursor.take_pair(ids.pid, ids.tid);
  if (fields & SampleField::kSampleTime) ids.time_ns = cursor.take_u64();
  if (fields & SampleField::kSampleAddr) sample.addr = cursor.take_u64();
  if (fields & SampleField::kSampleId) ids.identifier = cursor.take_u64();
  if (fields & SampleField::kSampleStreamId) ids.stream_id = cursor.take_u64();
  if (fields & SampleField::kSampleCpu) cursor.take_pair(ids.cpu, unused);
  if (fields & SampleField::kSamplePeriod) sample.period = cursor.take_u64();
  if (fields & SampleField::kSampleRead)
    sample.read_values = cursor.take(read_field_size(format.read_format, cursor.left()));
  if (fields & SampleField::kSampleCallchain) take_callchain(cursor, sample);
}

SampleCheck take_raw(const RecordFormat& format, const Record& record, FieldCursor& cursor,
                     Sample& sample) {
  const auto size_bytes = cursor.take(4);
  if (!cursor.ok()) return SampleCheck::kTruncated;
  uint64_t raw_size = FieldCursor::load<uint32_t>(size_bytes.data());
  if (raw_size > cursor.left().size()) return SampleCheck::kOversize;
  sample.payload = cursor.take(raw_size);
  sample.rest = cursor.left();
  if (format.pad_in_misc) {
    const size_t pad = (record.misc & ring::kMiscPadMask) >> ring::kMiscPadShift;
    sample.payload = sample.payload.first(sample.payload.size() - std::min(pad, raw_size));
  }
  return SampleCheck::kOk;
}

}  // namespace

SampleCheck decode_sample(const RecordFormat& format, const Record& record, Sample& sample) {
  sample = Sample{};
  FieldCursor cursor(record.body);
  if (format.sample_type != ring::kSampleRaw) {
    take_fixed_fields(format, cursor, sample);
    if (!cursor.ok()) return SampleCheck::kTruncated;
    if ((format.sample_type & ring::kSampleRaw) == 0) {
      sample.rest = cursor.left();
      return SampleCheck::kOk;
    }
  }
  // No room for raw_size: the size of a payload of 65,525 bytes wrapped to 8.
  if (record.body.empty()) return SampleCheck::kOversize;
  return take_raw(format, record, cursor, sample);
}

size_t id_block_size(const RecordFormat& format) {
  if (!format.sample_id_all) return 0;
  constexpr uint64_t kFields = ring::kSampleTid | ring::kSampleTime | ring::kSampleId |
                               ring::kSampleStreamId | ring::kSampleCpu | ring::kSampleIdentifier;
  return 8 * static_cast<size_t>(__builtin_popcountll(format.sample_type & kFields));
}

std::optional<RecordIds> decode_ids(const RecordFormat& format, const Record& record) {
  const size_t size = id_block_size(format);
  if (size == 0 || size > record.body.size() || record.is_sample()) return std::nullopt;
  FieldCursor cursor(record.body.last(size));
  const uint64_t fields = format.sample_type;
  RecordIds ids;
  uint32_t unused = 0;
  if (fields & SampleField::kSampleTid) cursor.take_pair(ids.pid, ids.tid);
  if (fields & SampleField::kSampleTime) ids.time_ns = cursor.take_u64();
  if (fields & SampleField::kSampleId) ids.identifier = cursor.take_u64();
  if (fields & SampleField::kSampleStreamId) ids.stream_id = cursor.take_u64();
  if (fields & SampleField::kSampleCpu) cursor.take_pair(ids.cpu, unused);
  if (fields & SampleField::kSampleIdentifier) ids.identifier = cursor.take_u64();
  return ids;
}

std::span<const std::byte> body_without_ids(const RecordFormat& format, const Record& record) {
  const size_t size = id_block_size(format);
  if (record.is_sample() || size > record.body.size()) return record.body;
  return record.body.first(record.body.size() - size);
}

std::optional<uint64_t> lost_count(const Record& record) {
  const size_t at = record.type == ring::kRecordLost          ? 8
                    : record.type == ring::kRecordLostSamples ? 0
                                                              : SIZE_MAX;
  if (at == SIZE_MAX || record.body.size() < at + 8) return std::nullopt;
  return FieldCursor::load<uint64_t>(record.body.data() + at);
}

std::optional<std::span<const std::byte>> length_prefixed(std::span<const std::byte> payload) {
  uint32_t length = 0;
  if (payload.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, payload.data(), sizeof length);
  const auto bytes = payload.subspan(sizeof length);
  if (length > bytes.size()) return std::nullopt;
  return bytes.first(length);
}

}  // namespace v0
}  // namespace dwell
