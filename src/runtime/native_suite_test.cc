// The suite of all event arrays, on the runtime's map: the program that the kernel's suite loads,
// compiled natively, outputs into a user-space array on a pretended machine whose CPUs are named
// like the real ones.
#include <asm/ptrace.h>
#include <sched.h>

#include "event_array/event_array_suite.h"
#include "event_array/testdata/generator.h"
#include "event_array/user_event_array.h"
#include "runtime/array_map.h"
#include "runtime/event_map.h"
#include "runtime/object.h"

extern "C" const dwell_native_object dwell_native_generator;

namespace dwell {
namespace {

class RuntimeHarness {
 public:
  static std::string unavailable() { return ""; }

  explicit RuntimeHarness(const SuiteOptions& options)
      : machine_(read_cpu_list("possible").value().back() + 1),
        object_(std::move(*runtime::Object::open(dwell_native_generator))) {
    runtime::MapDefinition& events = object_->definition("events");
    events.ring_bytes = options.ring_bytes;
    events.overwrite = options.overwrite;
    EXPECT_TRUE(object_->load(machine_));
    task_.tgid = 1;
    shared().target_pid = 1;
    shared().counting = 1;
    array_ =
        std::move(*UserEventArray::open(object_->map<runtime::EventMap>("events").events(),
                                        {.wakeup = {.watermark_bytes = options.watermark_bytes},
                                         .wait = {.sweep = options.sweep}}));
  }

  EventArray& array() { return *array_; }

  int output(uint64_t flags, uint64_t size) {
    const auto cpu = static_cast<uint32_t>(sched_getcpu());
    machine_.cpu(cpu).current = &task_;
    pt_regs registers = {};
    registers.rdi = size;
    registers.rsi = flags;
    uint64_t ctx[] = {reinterpret_cast<uint64_t>(&registers), GENERATOR_SYSCALL};
    EXPECT_TRUE(object_->program("on_syscall").run(cpu, ctx).ran);
    return static_cast<int>(shared().last_result[cpu]);
  }

 private:
  generator_shared& shared() { return object_->variable<generator_shared>("shared"); }

  runtime::Machine machine_;
  std::unique_ptr<runtime::Object> object_;
  runtime::Task& task_ = machine_.create_task(0);
  std::unique_ptr<UserEventArray> array_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Runtime, EventArraySuite, RuntimeHarness);

}  // namespace
}  // namespace dwell
