#include <asm/ptrace.h>

#include "event_array/user_event_array.h"
#include "runtime/event_map.h"
#include "runtime/exercise_fixture.h"
#include "runtime/program_array.h"

namespace dwell::runtime {
namespace {

using testing::ElementsAre;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

class CallsTest : public ExerciseTest {
 protected:
  void SetUp() override {
    ExerciseTest::SetUp();
    events_ = &object_->map<EventMap>("events");
    array_ = std::move(*UserEventArray::open(events_->events()));
  }
  // Payloads with the CPU in front.
  std::vector<std::vector<int>> drain() {
    std::vector<std::vector<int>> seen;
    array_->drain({}, [&](uint32_t cpu, const Record& record) {
      Sample sample;
      if (decode_sample(array_->format(), record, sample) != SampleCheck::kOk) return;
      seen.push_back({static_cast<int>(cpu)});
      for (const std::byte byte : sample.payload) seen.back().push_back(std::to_integer<int>(byte));
    });
    return seen;
  }
  long read(int how, const void* from, uint32_t size) {
    pt_regs registers = {};
    registers.rdi = static_cast<uint64_t>(how);
    registers.rsi = reinterpret_cast<uint64_t>(from);
    registers.rdx = size;
    EXPECT_TRUE(object_->program("on_read").run(0, &registers).ran);
    return results().result;
  }
  std::string text() { return results().text; }

  EventMap* events_ = nullptr;
  std::unique_ptr<UserEventArray> array_;
};

TEST_F(CallsTest, TellTheMachinesFacts) {
  Task& task = machine_.create_task(sizeof(task_struct));
  task.tgid = 10;
  task.pid = 11;
  task.uid = 1000;
  task.gid = 100;
  task.set_comm("a name that is too long");
  machine_.cpu(2).current = &task;
  machine_.set_clock(5000);
  machine_.set_boot_offset(70);
  machine_.cpu(2).clock_offset_ns = -1;
  EXPECT_EQ(call_on(2, "on_facts"), 0);
  const exercise_facts& facts = results().facts;
  EXPECT_EQ(facts.ktime_ns, 4999u);
  EXPECT_EQ(facts.boot_ns, 5069u);
  EXPECT_EQ(facts.cpu, 2u);
  EXPECT_EQ(facts.pid_tgid, (10ull << 32) | 11);
  EXPECT_EQ(facts.uid_gid, (100ull << 32) | 1000);
  EXPECT_EQ(facts.task, as_word(task.kernel()));
  EXPECT_EQ(facts.task_btf, facts.task);
  EXPECT_STREQ(facts.comm, "a name that is ");
  EXPECT_THAT(machine_.take_trace(), ElementsAre("cpu 2 factor 3"));
}

TEST_F(CallsTest, WithoutATaskAreHarmless) {
  EXPECT_EQ(call("on_facts"), -EINVAL);
  EXPECT_EQ(results().facts.pid_tgid, 0u);
  EXPECT_EQ(results().facts.task, 0u);
}

TEST_F(CallsTest, OutputChecksInTheKernelsOrder) {
  EXPECT_EQ(call_on(1, "on_output", 4, BPF_F_CURRENT_CPU), 0);
  EXPECT_EQ(call_on(1, "on_output", 4, 1), 0);
  EXPECT_EQ(call_on(1, "on_output", 4, 2), -EOPNOTSUPP) << "another CPU's ring";
  EXPECT_EQ(call_on(1, "on_output", 4, 5), -ENOENT) << "no such CPU";
  EXPECT_EQ(call_on(1, "on_output", 4, 8), -E2BIG);
  EXPECT_EQ(call_on(1, "on_output", 4, 1ull << 32 | 8), -EINVAL);
  EXPECT_EQ(drain().size(), 2u);
  array_->close();
  EXPECT_NE(call_on(1, "on_output", 4, BPF_F_CURRENT_CPU), 0);
}

TEST_F(CallsTest, PacketsHaveDataPointersAndAreCaptured) {
  auto packet = Packet::create(bytes({1, 2, 3, 4, 5})).value();
  results().bytes[0] = 8;
  results().bytes[1] = 9;
  const auto run = [&](uint64_t flags) {
    results().runs = flags;
    EXPECT_EQ(object_->program("on_packet").run(3, *packet).value, XDP_PASS);
    return results().result;
  };
  EXPECT_EQ(run(BPF_F_CURRENT_CPU | 3ull << 32), 0);
  EXPECT_EQ(results().value, 15u);
  EXPECT_EQ(run(BPF_F_CURRENT_CPU | 6ull << 32), -EFAULT) << "longer than the packet";
  EXPECT_EQ(run(BPF_F_CURRENT_CPU | 1ull << 52), -EINVAL);
  EXPECT_THAT(drain(), ElementsAre(ElementsAre(3, 8, 9, 1, 2, 3)));
}

TEST_F(CallsTest, SocketProgramsLoadBytes) {
  auto packet = Packet::create(bytes({1, 2, 3, 4, 5})).value();
  Program& program = object_->program("on_socket");
  results().runs = 1;
  EXPECT_EQ(program.run(0, *packet).value, 5);
  EXPECT_EQ(results().result, 0);
  EXPECT_EQ(results().bytes[0], 2);
  results().runs = 2;
  program.run(0, *packet);
  EXPECT_EQ(results().result, -EFAULT) << "four bytes from the third of five";
  EXPECT_EQ(results().bytes[0], 0);
}

TEST_F(CallsTest, TracingProgramsOutputThePacketsTheyAreShown) {
  auto packet = Packet::create(bytes({6, 7})).value();
  results().bytes[0] = 1;
  for (const char* program : {"on_skb_output", "on_xdp_output"}) {
    EXPECT_EQ(call(program, packet->kernel(), BPF_F_CURRENT_CPU | 2ull << 32), 0);
    EXPECT_THAT(drain(), ElementsAre(ElementsAre(0, 1, 0, 0, 0, 6, 7)));
    EXPECT_EQ(call(program, packet->kernel(), BPF_F_CURRENT_CPU | 3ull << 32), -EFAULT);
    EXPECT_EQ(call(program, 0, BPF_F_CURRENT_CPU | 1ull << 32), -EFAULT);
    EXPECT_EQ(call(program, 0, BPF_F_CURRENT_CPU), 0);
    drain();
  }
}

TEST_F(CallsTest, CountersAreWhatTheTestSets) {
  events_->set_counter(1, {.counter = 77, .enabled = 1, .running = 1});
  EXPECT_EQ(call_on(1, "on_counter", BPF_F_CURRENT_CPU, 24), 0);
  EXPECT_EQ(results().value, 77u);
  EXPECT_EQ(call("on_counter", 2, 24), -ENOENT);
  EXPECT_EQ(results().value, 0u);
  EXPECT_EQ(call("on_counter", 8, 24), -E2BIG);
  EXPECT_EQ(call("on_counter", 1ull << 40, 24), -EINVAL);
  EXPECT_EQ(call("on_counter", 1, 16), -EINVAL);
}

TEST_F(CallsTest, TailCallsReplaceTheProgramAndAreCounted) {
  auto packet = Packet::create({}).value();
  auto& programs = object_->map<ProgramArray>("programs");
  Program& caller = object_->program("tail_caller");
  EXPECT_EQ(caller.run(0, *packet).value, 1);
  programs.set(0, &object_->program("tail_called"));
  EXPECT_EQ(caller.run(0, *packet).value, 7);
  EXPECT_EQ(results().runs, 1u);
  programs.set(1, &object_->program("tail_called"));
  EXPECT_EQ(caller.run(0, *packet).value, 7);
  EXPECT_EQ(results().runs, 1u + 33u);
  EXPECT_FALSE(programs.set(2, nullptr));
}

TEST_F(CallsTest, ReadsThatFaultSaySoAndGiveZeros) {
  const char here[] = "kernel";
  EXPECT_EQ(read(0, here, sizeof here), 0);
  EXPECT_EQ(text(), "kernel");
  EXPECT_EQ(read(0, reinterpret_cast<const void*>(8), 4), -EFAULT);
  EXPECT_EQ(text(), "");
  EXPECT_EQ(read(1, here, 4), -EFAULT) << "no user memory";
  EXPECT_EQ(read(0, reinterpret_cast<const void*>(0xffff888000000000), 4), -EFAULT);
  BytesMemory kernel;
  kernel.add(0xffff888000000000, bytes({'a', 'b', 'c', 0}));
  machine_.set_kernel_memory(&kernel);
  EXPECT_EQ(read(0, reinterpret_cast<const void*>(0xffff888000000001), 3), 0);
  EXPECT_EQ(text(), "bc");
  EXPECT_EQ(read(0, reinterpret_cast<const void*>(0xffff888000000001), 4), -EFAULT);
}

TEST_F(CallsTest, TextIsReadToItsEnd) {
  Task& task = machine_.create_task(sizeof(task_struct));
  BytesMemory user;
  user.add(0x7000, bytes({'u', 's', 'e', 'r', 0, 'x'}));
  user.add(0x8000, std::vector<std::byte>(100, std::byte{'y'}));
  user.add(0x9000, bytes({'c', 'u', 't'}));
  task.user_memory = &user;
  machine_.cpu(0).current = &task;
  const auto at = [](uint64_t address) { return reinterpret_cast<const void*>(address); };
  EXPECT_EQ(read(3, at(0x7000), 16), 5);
  EXPECT_EQ(text(), "user");
  EXPECT_EQ(read(5, at(0x7001), 16), 4);
  EXPECT_EQ(read(3, at(0x8000), 16), 16);
  EXPECT_EQ(text(), std::string(15, 'y')) << "cut, and closed with a zero";
  EXPECT_EQ(read(3, at(0x9000), 16), -EFAULT) << "no end before the memory ends";
  EXPECT_EQ(read(2, "kernel", 16), 7);
  EXPECT_EQ(read(4, at(0x7000), 4), 0);
  EXPECT_EQ(read(4, "own", 4), 0);
  EXPECT_EQ(text(), "own");
}

TEST_F(CallsTest, CoreReadsFollowTheProgramsOwnTypes) {
  Task& task = machine_.create_task(sizeof(task_struct));
  Task& parent = machine_.create_task(sizeof(task_struct));
  exercise_leaf leaf{12};
  parent.as<task_struct>().leaf = &leaf;
  task.as<task_struct>().parent = &parent.as<task_struct>();
  task.as<task_struct>().lazy = 5;
  task.as<task_struct>().ready = 2;
  EXPECT_EQ(call("on_core", task.kernel()), 1);
  EXPECT_EQ(results().value, 12u);
  EXPECT_EQ(results().runs, 25u);
  task.as<task_struct>().parent = nullptr;
  machine_.set_missing({"task->leaf"});
  EXPECT_EQ(call("on_core", task.kernel()), 0) << "this kernel has no such field";
  EXPECT_EQ(results().value, 0u) << "a null pointer on the way reads as zero";
}

}  // namespace
}  // namespace dwell::runtime
