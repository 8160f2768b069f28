// The oracle: the same program, in the kernel and natively, asked the same. Results and payloads
// must be equal.
#include <asm/ptrace.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "event_array/kernel_fixture.h"
#include "event_array/user_event_array.h"
#include "runtime/array_map.h"
#include "runtime/event_map.h"
#include "runtime/object.h"
#include "runtime/packet.h"

extern "C" const dwell_native_object dwell_native_generator;

namespace dwell {
namespace {

struct Asked {
  uint64_t size;
  uint64_t flags;
};

uint64_t capture(uint64_t bytes) { return ring::kCurrentCpu | bytes << 32; }

class KernelDifferentialTest : public KernelArrayTest {
 protected:
  void SetUp() override {
    KernelArrayTest::SetUp();
    if (IsSkipped()) return;
    pin_.emplace(online_[0]);
    cpu_ = online_[0];
    kernel_ = open({.size = {.bytes_per_cpu = 1 << 20}});
    ASSERT_NE(kernel_, nullptr);
    object_ = std::move(*runtime::Object::open(dwell_native_generator));
    object_->definition("events").ring_bytes = 1 << 20;
    ASSERT_TRUE(object_->load(machine_));
    auto& events = object_->map<runtime::EventMap>("events").events();
    native_ = std::move(*UserEventArray::open(events));
    // What Generator::load puts into the kernel's map.
    auto& payloads = object_->map<runtime::ArrayMap>("payloads");
    for (uint32_t i = 0; i < 4; ++i) payloads.write(&i, Generator::pattern().data(), 0);
  }

  // Both answers to one question from a packet's context.
  void ask_xdp(std::span<const std::byte> bytes, const Asked& asked) {
    const long kernel = generator_->output_xdp(bytes, asked.size, asked.flags);
    auto packet = runtime::Packet::create(bytes).value();
    auto& shared = object_->variable<generator_shared>("shared");
    shared.xdp_size = asked.size;
    shared.xdp_flags = asked.flags;
    shared.xdp_raw = 1;
    ASSERT_TRUE(object_->program("on_packet").run(cpu_, *packet).ran);
    EXPECT_EQ(shared.last_result[cpu_], kernel)
        << "size " << asked.size << " flags " << std::hex << asked.flags;
  }
  // ... and from a tracepoint's.
  void ask_traced(const Asked& asked) {
    const long kernel = generator_->output(asked.size, asked.flags, true);
    auto& shared = object_->variable<generator_shared>("shared");
    shared.target_pid = task_.tgid = 1;
    machine_.cpu(cpu_).current = &task_;
    pt_regs registers = {};
    registers.rdi = asked.size;
    registers.rsi = asked.flags;
    registers.rdx = 1;
    uint64_t ctx[] = {reinterpret_cast<uint64_t>(&registers), GENERATOR_SYSCALL};
    ASSERT_TRUE(object_->program("on_syscall").run(cpu_, ctx).ran);
    EXPECT_EQ(shared.last_result[cpu_], kernel)
        << "size " << asked.size << " flags " << std::hex << asked.flags;
  }
  void expect_equal_payloads(size_t count) {
    const std::vector<Got> kernel = drain_all(*kernel_), native = drain_all(*native_);
    ASSERT_EQ(kernel.size(), native.size());
    EXPECT_EQ(kernel.size(), count);
    for (size_t i = 0; i < kernel.size(); ++i) {
      EXPECT_EQ(kernel[i].cpu, native[i].cpu);
      // The kernel's length is padded to 8 bytes with what lay there; ours is exact.
      std::vector<std::byte> front = kernel[i].payload;
      ASSERT_GE(front.size(), native[i].payload.size());
      ASSERT_LT(front.size() - native[i].payload.size(), 8u);
      front.resize(native[i].payload.size());
      EXPECT_EQ(front, native[i].payload) << "record " << i;
    }
  }

  std::optional<PinToCpu> pin_;
  uint32_t cpu_ = 0;
  std::unique_ptr<KernelEventArray> kernel_;
  runtime::Machine machine_{read_cpu_list("possible").value().back() + 1};
  runtime::Task& task_ = machine_.create_task(0);
  std::unique_ptr<runtime::Object> object_;
  std::unique_ptr<UserEventArray> native_;
};

TEST_F(KernelDifferentialTest, PacketProgramsAnswerAlike) {
  std::vector<std::byte> packet(64);
  for (size_t i = 0; i < packet.size(); ++i) packet[i] = static_cast<std::byte>(i);
  for (const Asked& asked :
       {Asked{8, ring::kCurrentCpu}, Asked{0, ring::kCurrentCpu}, Asked{24, capture(1)},
        Asked{24, capture(64)}, Asked{0, capture(33)}, Asked{24, capture(65)}, Asked{8, 1ull << 52},
        Asked{8, 0xfffffffe}, Asked{8, GENERATOR_CPUS}, Asked{8, GENERATOR_CPUS - 1},
        Asked{100, cpu_}, Asked{65000, ring::kCurrentCpu}})
    ask_xdp(packet, asked);
  expect_equal_payloads(7);
}

TEST_F(KernelDifferentialTest, TracingProgramsAnswerAlike) {
  for (const Asked& asked :
       {Asked{8, ring::kCurrentCpu}, Asked{3, ring::kCurrentCpu}, Asked{24, capture(1)},
        Asked{8, 1ull << 52}, Asked{8, 0xfffffffe}, Asked{8, GENERATOR_CPUS},
        Asked{8, GENERATOR_CPUS - 1}, Asked{100, cpu_}, Asked{65000, ring::kCurrentCpu}})
    ask_traced(asked);
  if (online_.size() > 1) ask_traced({8, online_[1]});
  expect_equal_payloads(4);
}

TEST_F(KernelDifferentialTest, LossesAreAlike) {
  const std::vector<std::byte> packet(64);
  for (int i = 0; i < 40; ++i) ask_xdp(packet, {60000, ring::kCurrentCpu});
  EXPECT_EQ(kernel_->stats(cpu_).lost_exact, native_->stats(cpu_).lost_exact);
  EXPECT_GT(native_->stats(cpu_).lost_exact.value_or(0), 0u);
  expect_equal_payloads(17);
  ask_xdp(packet, {8, ring::kCurrentCpu});
  const std::vector<Got> kernel = drain_all(*kernel_), native = drain_all(*native_);
  ASSERT_EQ(kernel.size(), 2u);
  ASSERT_EQ(native.size(), 2u);
  EXPECT_EQ(kernel[0].lost, native[0].lost);
}

}  // namespace
}  // namespace dwell
