#include "ring/layout.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

namespace dwell {
inline namespace v0 {
namespace ring {
namespace {

TEST(Layout, IsTheKernelsOwn) {
  EXPECT_EQ(offsetof(MetaPage, version), offsetof(perf_event_mmap_page, version));
  EXPECT_EQ(offsetof(MetaPage, lock), offsetof(perf_event_mmap_page, lock));
  EXPECT_EQ(offsetof(MetaPage, time_enabled), offsetof(perf_event_mmap_page, time_enabled));
  EXPECT_EQ(offsetof(MetaPage, capabilities), offsetof(perf_event_mmap_page, capabilities));
  EXPECT_EQ(offsetof(MetaPage, data_head), offsetof(perf_event_mmap_page, data_head));
  EXPECT_EQ(offsetof(MetaPage, data_tail), offsetof(perf_event_mmap_page, data_tail));
  EXPECT_EQ(offsetof(MetaPage, data_offset), offsetof(perf_event_mmap_page, data_offset));
  EXPECT_EQ(offsetof(MetaPage, data_size), offsetof(perf_event_mmap_page, data_size));
  EXPECT_EQ(offsetof(MetaPage, aux), offsetof(perf_event_mmap_page, aux_head));
  EXPECT_GE(offsetof(MetaPage, extension), sizeof(perf_event_mmap_page));
  EXPECT_EQ(sizeof(RecordHeader), sizeof(perf_event_header));
  EXPECT_EQ(offsetof(RecordHeader, size), offsetof(perf_event_header, size));
}

TEST(Layout, NumbersTypesAndFieldsAsTheKernelDoes) {
  EXPECT_EQ(kRecordLost, PERF_RECORD_LOST);
  EXPECT_EQ(kRecordSample, PERF_RECORD_SAMPLE);
  EXPECT_EQ(kRecordMmap2, PERF_RECORD_MMAP2);
  EXPECT_EQ(kRecordLostSamples, PERF_RECORD_LOST_SAMPLES);
  EXPECT_EQ(kRecordKsymbol, PERF_RECORD_KSYMBOL);
  EXPECT_EQ(uint64_t{kSampleRaw}, uint64_t{PERF_SAMPLE_RAW});
  EXPECT_EQ(uint64_t{kSampleIdentifier}, uint64_t{PERF_SAMPLE_IDENTIFIER});
  EXPECT_EQ(uint64_t{kSampleCallchain}, uint64_t{PERF_SAMPLE_CALLCHAIN});
  EXPECT_EQ(uint64_t{kReadGroup}, uint64_t{PERF_FORMAT_GROUP});
  EXPECT_EQ(kCurrentCpu, uint64_t{BPF_F_CURRENT_CPU});
  EXPECT_EQ(kIndexMask, uint64_t{BPF_F_INDEX_MASK});
  EXPECT_EQ(kCaptureMask, uint64_t{BPF_F_CTXLEN_MASK});
}

TEST(Layout, RoundsSamplesAsTheKernelDoes) {
  EXPECT_EQ(sample_record_size(100), 112u);
  EXPECT_EQ(sample_record_size(65516), 65528u);
  EXPECT_EQ(usable_bytes(4096), 4088u);
}

}  // namespace
}  // namespace ring
}  // namespace v0
}  // namespace dwell
