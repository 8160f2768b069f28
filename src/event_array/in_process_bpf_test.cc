// An ordinary BPF object, run in this process by DPDK's librte_bpf, whose helper 25 is our map's
// output: the record is the one that the native call writes. Built only where librte_bpf is.
#include <gtest/gtest.h>
#include <rte_bpf.h>
#include <sched.h>

#include <array>
#include <memory>
#include <vector>

#include "event_array/pin.h"
#include "event_array/user_event_array.h"
#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

using Words = std::array<uint64_t, 5>;

constexpr size_t kOutputHelper = 25;  // BPF_FUNC_perf_event_output

// The helper's signature as librte_bpf has it: five words. Its compiled programs call with a stack
// that is not aligned to 16 bytes (22.11, x86-64), so that the callee aligns it.
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
uint64_t
perf_event_output(uint64_t, uint64_t map, uint64_t flags, uint64_t data, uint64_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const int result = reinterpret_cast<UserEventMap*>(map)->output(flags, bytes);
  return static_cast<uint64_t>(static_cast<int64_t>(result));
}

uint64_t no_such_helper(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) { return 0; }

// A call's number is an index into the table, so that each number below 25 needs an entry.
std::vector<rte_bpf_xsym> symbols(UserEventMap& map) {
  std::vector<rte_bpf_xsym> table(kOutputHelper + 1);
  for (rte_bpf_xsym& entry : table) {
    entry.name = "no_such_helper";
    entry.type = RTE_BPF_XTYPE_FUNC;
    entry.func.val = no_such_helper;
    entry.func.ret = {RTE_BPF_ARG_RAW, sizeof(uint64_t), 0};
  }
  rte_bpf_xsym& output = table[kOutputHelper];
  output.name = "perf_event_output";
  output.func.val = perf_event_output;
  output.func.nb_args = 5;
  output.func.args[0] = {RTE_BPF_ARG_PTR, sizeof(Words), 0};
  output.func.args[1] = {RTE_BPF_ARG_PTR, 1, 0};
  output.func.args[2] = {RTE_BPF_ARG_RAW, sizeof(uint64_t), 0};
  output.func.args[3] = {RTE_BPF_ARG_PTR, sizeof(Words), 0};
  output.func.args[4] = {RTE_BPF_ARG_RAW, sizeof(uint64_t), 0};
  rte_bpf_xsym events = {};
  events.name = "events";
  events.type = RTE_BPF_XTYPE_VAR;
  events.var.val = &map;
  events.var.desc = {RTE_BPF_ARG_PTR, sizeof map, 0};
  table.push_back(events);
  return table;
}

struct DestroyProgram {
  void operator()(rte_bpf* program) const { rte_bpf_destroy(program); }
};

std::unique_ptr<rte_bpf, DestroyProgram> load(const std::vector<rte_bpf_xsym>& table) {
  rte_bpf_prm parameters = {};
  parameters.xsym = table.data();
  parameters.nb_xsym = static_cast<uint32_t>(table.size());
  parameters.prog_arg = {RTE_BPF_ARG_PTR, sizeof(Words), 0};
  return std::unique_ptr<rte_bpf, DestroyProgram>(
      rte_bpf_elf_load(&parameters, DWELL_IN_PROCESS_OBJECT, "in_process"));
}

// The bytes of the ring between `from` and its head.
Bytes bytes_since(const RingMemory& ring, uint64_t from) {
  const uint64_t head = __atomic_load_n(&ring.meta->data_head, __ATOMIC_ACQUIRE);
  const std::byte* data = ring.data + (from & (ring.data_size - 1));
  return Bytes(data, data + (head - from));
}

TEST(InProcessBpf, OutputsTheRecordOfTheNativeCall) {
  const auto map = std::move(*UserEventMap::create({.ring_bytes = 4096}));
  const auto array = std::move(*UserEventArray::open(*map));
  const auto table = symbols(*map);
  const auto program = load(table);
  ASSERT_NE(program, nullptr) << "librte_bpf does not load " << DWELL_IN_PROCESS_OBJECT;
  rte_bpf_jit compiled = {};
  ASSERT_EQ(rte_bpf_get_jit(program.get(), &compiled), 0);
  const auto cpu = static_cast<uint32_t>(sched_getcpu());
  PinToCpu pin(cpu);
  const RingMemory& ring = map->ring(cpu);
  Words words = {1, UINT64_MAX, 0x0123456789abcdef, 0, 42};
  const Bytes payload(reinterpret_cast<std::byte*>(&words),
                      reinterpret_cast<std::byte*>(&words) + sizeof words);

  ASSERT_EQ(map->write(payload), 0);
  const Bytes native = bytes_since(ring, 0);
  ASSERT_EQ(native.size(), ring::sample_record_size(sizeof words));
  const uint64_t after_native = native.size();
  ASSERT_EQ(static_cast<int64_t>(rte_bpf_exec(program.get(), &words)), 0);
  EXPECT_EQ(bytes_since(ring, after_native), native) << "interpreted";
  ASSERT_NE(compiled.func, nullptr);
  ASSERT_EQ(static_cast<int64_t>(compiled.func(&words)), 0);
  EXPECT_EQ(bytes_since(ring, 2 * after_native), native) << "compiled";

  uint64_t read = 0;
  array->drain({}, [&](uint32_t, const Record& record) {
    Sample sample;
    ASSERT_EQ(decode_sample(array->format(), record, sample), SampleCheck::kOk);
    EXPECT_EQ(Bytes(sample.payload.begin(), sample.payload.end()), payload);
    ++read;
  });
  EXPECT_EQ(read, 3u);
}

TEST(InProcessBpf, SeesTheErrorOfTheNativeCall) {
  const auto map = std::move(*UserEventMap::create({.ring_bytes = 4096}));
  const auto array = std::move(*UserEventArray::open(*map));
  const auto table = symbols(*map);
  const auto program = load(table);
  ASSERT_NE(program, nullptr);
  PinToCpu pin(static_cast<uint32_t>(sched_getcpu()));
  Words words = {};
  int written = 0;
  int64_t result = 0;
  while ((result = static_cast<int64_t>(rte_bpf_exec(program.get(), &words))) == 0) ++written;
  EXPECT_EQ(result, -ENOSPC);
  EXPECT_EQ(written, 4088 / 56);
  EXPECT_EQ(array->total_stats().lost_exact, 1u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
