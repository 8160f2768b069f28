// The bytes of a perf ring: metadata page, data area, records. One header for both writers (the
// kernel; RingWriter and UserEventArray) and for the one reader. docs/ring-abi.md tells the same in
// prose, layout_test.cc compares it with the kernel's own header.
//
// Invariants of a ring: positions are free-running byte counters, offset = position & (size - 1);
// records start at multiples of 8 and their size is a multiple of 8, so that a header never
// straddles the end of the data area (a body can).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dwell {
inline namespace v0 {
namespace ring {

// Private to user-space rings; the kernel leaves these bytes zero. Each group has a cache line of
// its own, because different parties write them.
struct MetaExtension {
  // Counters: written by producers on their slow path, read by anyone.
  uint64_t lost_total;      // outputs refused for want of space: what read(2) of a perf fd gives
  uint64_t drop_too_big;    // payloads above kMaxPayload
  uint64_t drop_busy;       // lock mode: the lock's owner was interrupted or does not move
  uint64_t largest_record;  // backward rings: how far below head a writer may be writing
  uint64_t unused0[4];
  // How much of lost_total LOST records have told; see docs/ring-abi.md "LOST without a wedge".
  // Written by producers inside the section that commits head.
  uint64_t report_head;  // position at which `report_new` comes into force
  uint64_t report_new;
  uint64_t report_old;
  uint64_t unused1[5];
  // Wake-up: armed and watermark by the reader, wake_base by the producer that wakes.
  uint64_t wake_base;       // head at the last wake-up
  uint64_t wake_watermark;  // wake when head - wake_base exceeds this
  uint32_t armed;           // 1: the reader sleeps or is about to
  uint32_t unused2;
  uint64_t unused3[5];
  // Written by whoever controls the ring, read by each output.
  uint32_t gate;  // 0: outputs go ahead; else GateBit
  uint32_t unused4;
  uint64_t unused5[7];
  // Lock mode: 0 or the owner, see event_array/ring_lock.h.
  uint64_t lock;
  uint64_t unused6[7];
};

// The first page of a ring, as struct perf_event_mmap_page has it; only what a ring needs is named.
struct MetaPage {
  uint32_t version;
  uint32_t compat_version;
  uint32_t lock;
  uint32_t index;
  int64_t offset;
  uint64_t time_enabled;
  uint64_t time_running;
  uint64_t capabilities;
  uint8_t unused0[1024 - 48];
  uint64_t data_head;    // written by the producer (release), read by the reader (acquire)
  uint64_t data_tail;    // written by the reader (release), read by the producer; hostile to it
  uint64_t data_offset;  // bytes from this page to the data area
  uint64_t data_size;
  uint64_t aux[4];
  uint8_t unused1[2048 - 1088];
  MetaExtension extension;
};

static_assert(offsetof(MetaPage, capabilities) == 40);
static_assert(offsetof(MetaPage, data_head) == 1024);
static_assert(offsetof(MetaPage, data_tail) == 1032);
static_assert(offsetof(MetaPage, data_offset) == 1040);
static_assert(offsetof(MetaPage, data_size) == 1048);
static_assert(offsetof(MetaPage, extension) == 2048);
static_assert(offsetof(MetaExtension, report_head) == 64);
static_assert(offsetof(MetaExtension, wake_base) == 128);
static_assert(offsetof(MetaExtension, armed) == 144);
static_assert(offsetof(MetaExtension, gate) == 192);
static_assert(offsetof(MetaExtension, lock) == 256);
static_assert(sizeof(MetaPage) <= 4096);

// Why a producer must not write; bits of MetaExtension::gate, in the order of the checks.
enum GateBit : uint32_t {
  kGateEmpty = 1,       // slot holds no ring: -ENOENT
  kGateDisabled = 2,    // -EOPNOTSUPP
  kGateUnattached = 4,  // nobody reads: -ENOSPC, not counted, as a perf event without a mapping
  kGatePaused = 8,      // -ENOSPC, counted
};

struct RecordHeader {
  uint32_t type;
  uint16_t misc;
  uint16_t size;  // whole record, header included
};
static_assert(sizeof(RecordHeader) == 8);

// RecordHeader::type. A ring may hold others: whoever reads skips them by size.
enum RecordType : uint32_t {
  kRecordMmap = 1,
  kRecordLost = 2,  // u64 id, u64 lost
  kRecordComm = 3,
  kRecordExit = 4,
  kRecordThrottle = 5,
  kRecordUnthrottle = 6,
  kRecordFork = 7,
  kRecordRead = 8,
  kRecordSample = 9,
  kRecordMmap2 = 10,
  kRecordLostSamples = 13,  // u64 lost
  kRecordSwitch = 14,
  kRecordSwitchCpuWide = 15,
  kRecordNamespaces = 16,
  kRecordKsymbol = 17,
  kRecordBpfEvent = 18,
  kRecordCgroup = 19,
  kRecordTextPoke = 20,
};

// RecordHeader::misc
inline constexpr uint16_t kMiscCpuModeMask = 7;
inline constexpr uint16_t kMiscKernel = 1;
inline constexpr uint16_t kMiscUser = 2;
// Our rings only: number of padding bytes after the payload, in bits that the kernel does not use.
inline constexpr uint16_t kMiscPadShift = 3;
inline constexpr uint16_t kMiscPadMask = 7 << kMiscPadShift;

// perf_event_attr.sample_type: the fields of a sample, and (kSampleId...) of the id block.
enum SampleField : uint64_t {
  kSampleIp = 1 << 0,
  kSampleTid = 1 << 1,
  kSampleTime = 1 << 2,
  kSampleAddr = 1 << 3,
  kSampleRead = 1 << 4,
  kSampleCallchain = 1 << 5,
  kSampleId = 1 << 6,
  kSampleCpu = 1 << 7,
  kSamplePeriod = 1 << 8,
  kSampleStreamId = 1 << 9,
  kSampleRaw = 1 << 10,
  kSampleIdentifier = 1 << 16,
};

// perf_event_attr.read_format
enum ReadField : uint64_t {
  kReadTimeEnabled = 1 << 0,
  kReadTimeRunning = 1 << 1,
  kReadId = 1 << 2,
  kReadGroup = 1 << 3,
  kReadLost = 1 << 4,
};

inline constexpr uint64_t kRecordAlign = 8;
inline constexpr uint64_t kMaxRecord = 65528;  // largest multiple of 8 in a u16
inline constexpr uint64_t kRawPrefix = 12;     // header and raw_size
inline constexpr uint64_t kMaxPayload = kMaxRecord - kRawPrefix;
inline constexpr uint64_t kLostRecordSize = 24;
inline constexpr uint64_t kMinDataSize = 4096;

// Flags of bpf_perf_event_output.
inline constexpr uint64_t kIndexMask = 0xffffffffull;
inline constexpr uint64_t kCurrentCpu = kIndexMask;
inline constexpr uint64_t kCaptureMask = 0xfffffull << 32;
inline constexpr uint64_t kCaptureShift = 32;
inline constexpr uint64_t kReservedFlags = 0xfffull << 52;

constexpr bool is_power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Size in the ring of a RAW-only sample with `payload` bytes.
constexpr uint64_t sample_record_size(uint64_t payload) {
  return (payload + kRawPrefix + kRecordAlign - 1) & ~(kRecordAlign - 1);
}

// Most bytes that a ring holds: one record's alignment stays free, so that full is not empty.
constexpr uint64_t usable_bytes(uint64_t data_size) { return data_size - kRecordAlign; }

static_assert(sample_record_size(0) == 16 && sample_record_size(4) == 16);
static_assert(sample_record_size(5) == 24 && sample_record_size(13) == 32);
static_assert(sample_record_size(kMaxPayload) == kMaxRecord);

}  // namespace ring
}  // namespace v0
}  // namespace dwell
