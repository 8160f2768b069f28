// Programs that interrupt programs on one CPU: which of them the kernel runs, and what their calls
// answer.
#include "event_array/user_event_array.h"
#include "runtime/event_map.h"
#include "runtime/exercise_fixture.h"

namespace dwell::runtime {
namespace {

class NestingTest : public ExerciseTest {
 protected:
  // Runs `outer` on CPU 0; in its middle `inner` on `cpu`. How deep they were.
  uint64_t nest(const char* outer, const char* inner, uint32_t cpu = 0) {
    results() = {};
    bool nested = false;
    machine_.set_interrupt_hook([&](const Interrupted&) {
      if (std::exchange(nested, true)) return;
      run(inner, cpu);
    });
    run(outer, 0);
    machine_.set_interrupt_hook({});
    return results().deepest;
  }
  void run(const char* name, uint32_t cpu) {
    uint64_t ctx[1] = {};
    if (std::string_view(name) == "nest_xdp")
      object_->program(name).run(cpu, *packet_);
    else
      object_->program(name).run(cpu, ctx);
  }
  uint64_t misses(const char* name) { return object_->program(name).recursion_misses(); }

  std::unique_ptr<Packet> packet_ = Packet::create({}).value();
};

TEST_F(NestingTest, AnyPerfProgramKeepsOthersFromItsCpu) {
  EXPECT_EQ(nest("nest_kprobe", "nest_kprobe"), 1u);
  EXPECT_EQ(nest("nest_kprobe", "nest_tracepoint"), 1u);
  EXPECT_EQ(misses("nest_kprobe"), 1u);
  EXPECT_EQ(misses("nest_tracepoint"), 1u);
  EXPECT_EQ(nest("nest_kprobe", "nest_raw"), 2u) << "raw tracepoints are not among them";
  EXPECT_EQ(nest("nest_raw", "nest_kprobe"), 2u);
}

TEST_F(NestingTest, ATracedProgramKeepsOnlyItselfFromItsCpu) {
  EXPECT_EQ(nest("nest_raw", "nest_raw"), 1u);
  EXPECT_EQ(misses("nest_raw"), 1u);
  EXPECT_EQ(nest("nest_raw", "nest_raw2"), 2u);
}

TEST_F(NestingTest, OtherCpusAreNotKeptOff) {
  EXPECT_EQ(nest("nest_raw", "nest_raw", 1), 2u);
  EXPECT_EQ(nest("nest_kprobe", "nest_tracepoint", 1), 2u);
}

TEST_F(NestingTest, PacketProgramsNestFreely) {
  EXPECT_EQ(nest("nest_xdp", "nest_xdp"), 2u);
  EXPECT_EQ(nest("nest_raw", "nest_xdp"), 2u);
}

TEST_F(NestingTest, TheFourthNestedOutputIsRefused) {
  auto array = UserEventArray::open(object_->map<EventMap>("events").events()).value();
  std::vector<long> inside_out;
  results().runs = BPF_F_CURRENT_CPU;
  machine_.set_interrupt_hook([&](const Interrupted& where) {
    if (where.point != InterruptPoint::kInsideOutput || inside_out.size() > 4) return;
    object_->program("on_packet").run(0, *packet_);
    inside_out.push_back(results().result);
  });
  object_->program("on_packet").run(0, *packet_);
  inside_out.push_back(results().result);
  EXPECT_EQ(inside_out, (std::vector<long>{-EBUSY, 0, 0, 0}));
  // Tracing programs have levels of their own.
  inside_out.clear();
  machine_.set_interrupt_hook([&](const Interrupted& where) {
    if (where.point != InterruptPoint::kInsideOutput || where.program->name() != "on_packet")
      return;
    inside_out.push_back(call("on_output", 4, BPF_F_CURRENT_CPU));
  });
  object_->program("on_packet").run(0, *packet_);
  EXPECT_EQ(inside_out, std::vector<long>{0});
}

TEST_F(NestingTest, ALockedBucketRefusesUpdatesButNotLookups) {
  std::vector<long> inside;
  uint64_t ctx[] = {EXERCISE_UPDATE, EXERCISE_HASH, 1, 10, BPF_ANY};
  machine_.set_interrupt_hook([&](const Interrupted& where) {
    if (where.point != InterruptPoint::kInsideUpdate || !inside.empty()) return;
    inside.push_back(0);
    Map& hash = object_->map("hash");
    const uint32_t key = 1;
    const uint64_t value = 5;
    inside = {hash.update(machine_.cpu(0), &key, &value, BPF_ANY),
              hash.erase(machine_.cpu(0), &key), hash.lookup(machine_.cpu(0), &key) == nullptr,
              hash.update(machine_.cpu(1), &key, &value, BPF_ANY)};
  });
  object_->program("on_map").run(0, ctx);
  EXPECT_EQ(inside, (std::vector<long>{-EBUSY, -EBUSY, 1, 0}));
  EXPECT_EQ(results().result, 0);
}

TEST_F(NestingTest, StorageIsNotMadeWhileStorageIsMade) {
  Task& a = machine_.create_task(sizeof(task_struct));
  Task& b = machine_.create_task(sizeof(task_struct));
  std::vector<long> inside;
  uint64_t ctx[] = {as_word(a.kernel()), 0, 1};
  machine_.set_interrupt_hook([&](const Interrupted& where) {
    if (where.point != InterruptPoint::kInsideStorage || !inside.empty()) return;
    inside.push_back(call("on_forget", b.kernel()));
  });
  object_->program("on_storage").run(0, ctx);
  EXPECT_EQ(inside, std::vector<long>{-EBUSY});
  EXPECT_EQ(results().result, 0);
}

TEST_F(NestingTest, CallsAreWhatIsInterrupted) {
  int points = 0;
  machine_.set_interrupt_hook([&](const Interrupted& where) {
    EXPECT_EQ(where.cpu, 2u);
    EXPECT_EQ(where.program->name(), "on_facts");
    ++points;
  });
  call_on(2, "on_facts");
  EXPECT_EQ(points, 10) << "one before each call";
}

TEST(ObjectTest, IsOpenOnceAndFreshEachTime) {
  Machine machine(1);
  {
    auto object = Object::open(dwell_native_exercise).value();
    EXPECT_FALSE(Object::open(dwell_native_exercise));
    object->variable<uint32_t>("factor") = 5;
    object->variable<uint64_t>("initialised") = 1;
    object->definition("hash").max_entries = 1;
    ASSERT_TRUE(object->load(machine));
    EXPECT_EQ(object->map("hash").definition().max_entries, 1u);
  }
  auto object = Object::open(dwell_native_exercise).value();
  EXPECT_EQ(object->variable<uint32_t>("factor"), 3u);
  EXPECT_EQ(object->variable<uint64_t>("initialised"), 42u);
  ASSERT_TRUE(object->load(machine));
  EXPECT_EQ(object->map("hash").definition().max_entries, 4u);
  EXPECT_FALSE(object->load(machine));
}

using ObjectDeathTest = ExerciseTest;
TEST_F(ObjectDeathTest, MistakesOfATestAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(object_->map("absent"), "has no map \"absent\"");
  EXPECT_DEATH(object_->program("absent"), "has no loaded program");
  EXPECT_DEATH(object_->variable<char>("results"), "has no variable of that size");
  int stranger = 0;
  EXPECT_DEATH(call("on_storage", &stranger, 0, 0), "");
}

}  // namespace
}  // namespace dwell::runtime
