#include "native_probe.h"

#include <bit>
#include <cstring>

#include "kernel_types.h"
#include "runtime/array_map.h"
#include "runtime/map_of_maps.h"
#include "runtime/ring_buffer_map.h"
#include "runtime/seq_file.h"
#include "runtime/task_storage.h"

extern "C" const dwell_native_object dwell_native_off_cpu, dwell_native_off_cpu_raw;

namespace dwell::simulation {
namespace {

constexpr size_t kSeqBytes = 8 * 4096;  // the kernel's buffer of an iterator
constexpr uint32_t kZero = 0;

uint64_t word(runtime::Task& task) { return reinterpret_cast<uint64_t>(task.kernel()); }

bool is_blocked(uint8_t wait_class) { return wait_class < DWELL_CLASS_PREEMPTED; }

void add(RowSums& sums, const dwell_row& row, uint8_t wait_class) {
  sums.blocked_ns += row.blocked_ns;
  sums.run_queue_ns += row.run_queue_ns;
  sums.count += row.count;
  if (is_blocked(wait_class)) sums.blocked_count += row.count;
}

uint64_t accounted(const dwell_books& b) {
  return b.running_ns + b.run_queue_ns + b.blocked_ns + b.censored_run_queue_ns +
         b.censored_blocked_ns + b.lost_ns;
}

// All fields of these are sums of 64 bits.
template <typename Struct>
void add_words(Struct& sum, const Struct& term) {
  uint64_t words[sizeof(Struct) / 8], terms[sizeof(Struct) / 8];
  std::memcpy(words, &sum, sizeof words);
  std::memcpy(terms, &term, sizeof terms);
  for (size_t i = 0; i < std::size(words); ++i) words[i] += terms[i];
  std::memcpy(&sum, words, sizeof words);
}

void configure(runtime::Object& object, const ProbeLimits& limits) {
  auto& config = object.variable<dwell_config>("config");
  config.all = 1;
  config.user_threads = config.kernel_threads = 1;
  config.user_stacks = config.kernel_stacks = 1;
  config.switch_tells_state = 1;
  config.class_mask = ~0u;
  config.min_ns = limits.min_ns;
  config.max_ns = ~uint64_t{0};
  config.hash_seed = 0x243f6a8885a308d3;
  config.verify_every = 64;
  config.renames_max = limits.renames_max;
  object.definition("known_stacks").max_entries = limits.stacks;
  object.definition("stacks").max_entries = limits.stack_ring_bytes;
  object.definition("threads").max_entries = limits.thread_ring_bytes;
  object.definition("samples").max_entries = 64 << 10;
}

}  // namespace

void Told::add_record(const dwell_thread_record& record) {
  const auto [at, is_new] = record_of.try_emplace(record.thread, records.size());
  if (is_new)
    records.push_back(record);
  else if (accounted(record.books) > accounted(records[at->second].books))
    records[at->second] = record;
}

Result<std::unique_ptr<NativeProbe>> NativeProbe::load(runtime::Machine& machine,
                                                       const ProbeLimits& limits) {
  DWELL_ASSIGN(auto object,
               runtime::Object::open(limits.raw ? dwell_native_off_cpu_raw : dwell_native_off_cpu));
  configure(*object, limits);
  runtime::MapDefinition rows = object->inner_definition("epoch");
  rows.max_entries = limits.rows;
  DWELL_TRY(object->load(machine));
  if (!limits.raw) object->map<runtime::TaskStorageMap>("thread_states").set_limit(limits.states);
  std::unique_ptr<NativeProbe> probe(new NativeProbe(machine, std::move(object)));
  for (int i = 0; i < 2; ++i) {
    DWELL_ASSIGN(probe->row_maps_[i], runtime::create_map(rows, machine));
    probe->rows_[i] = &dynamic_cast<runtime::HashMap&>(*probe->row_maps_[i]);
  }
  if (probe->object_->map<runtime::MapOfMaps>("epoch").set_inner(&kZero, *probe->rows_[0]) != 0)
    return runtime_error("cannot put the row map in place");
  return probe;
}

NativeProbe::NativeProbe(runtime::Machine& machine, std::unique_ptr<runtime::Object> object)
    : machine_(machine),
      object_(std::move(object)),
      switch_(object_->program("on_sched_switch")),
      waking_(object_->program("on_sched_waking")),
      newtask_(object_->program("on_task_newtask")),
      wakeup_new_(object_->program("on_sched_wakeup_new")),
      exec_(object_->program("on_sched_process_exec")),
      rename_(object_->program("on_task_rename")) {}

void NativeProbe::sched_switch(uint32_t cpu, bool preempt, runtime::Task& prev, runtime::Task& next,
                               uint32_t prev_state) {
  uint64_t ctx[] = {preempt, word(prev), word(next), prev_state};
  switch_.run(cpu, ctx);
}

void NativeProbe::sched_waking(uint32_t cpu, runtime::Task& task) {
  uint64_t ctx[] = {word(task)};
  waking_.run(cpu, ctx);
}

void NativeProbe::task_newtask(uint32_t cpu, runtime::Task& task) {
  uint64_t ctx[] = {word(task), 0};
  newtask_.run(cpu, ctx);
}

void NativeProbe::sched_wakeup_new(uint32_t cpu, runtime::Task& task) {
  uint64_t ctx[] = {word(task)};
  wakeup_new_.run(cpu, ctx);
}

void NativeProbe::sched_process_exec(uint32_t cpu, runtime::Task& task) {
  uint64_t ctx[] = {word(task), 0, 0};
  exec_.run(cpu, ctx);
}

void NativeProbe::task_rename(uint32_t cpu, runtime::Task& task, const char* name) {
  uint64_t ctx[] = {word(task), reinterpret_cast<uint64_t>(name)};
  rename_.run(cpu, ctx);
}

void NativeProbe::iterate(runtime::Program& program, uint32_t cpu,
                          std::span<runtime::Task* const> tasks,
                          const std::function<void(std::span<const std::byte>)>& take) {
  runtime::SeqFile output(kSeqBytes);
  bpf_iter_meta meta{reinterpret_cast<seq_file*>(&output)};
  for (runtime::Task* task : tasks) {
    bpf_iter__task ctx{&meta, static_cast<task_struct*>(task->kernel())};
    program.run(cpu, &ctx);
    if (output.overflowed()) {  // the reader takes what is there, and the task's turn comes again
      take(output.take());
      program.run(cpu, &ctx);
    }
  }
  bpf_iter__task end{&meta, nullptr};
  program.run(cpu, &end);
  take(output.take());
}

void NativeProbe::prepare(uint32_t cpu, std::span<runtime::Task* const> tasks) {
  object_->variable<uint32_t>("unprepared") = 0;
  iterate(object_->program("prepare"), cpu, tasks, [](std::span<const std::byte>) {});
}

uint32_t NativeProbe::unprepared() { return object_->variable<uint32_t>("unprepared"); }

void NativeProbe::seed(uint32_t cpu, std::span<runtime::Task* const> tasks, bool with_stacks) {
  object_->variable<uint32_t>("unprepared") = 0;
  iterate(object_->program(with_stacks ? "seed_with_stacks" : "seed"), cpu, tasks,
          [](std::span<const std::byte>) {});
}

void NativeProbe::close_window(uint32_t cpu, std::span<runtime::Task* const> tasks, Told& told) {
  iterate(object_->program("close_window"), cpu, tasks, [&](std::span<const std::byte> bytes) {
    for (; bytes.size() >= sizeof(dwell_thread_record);
         bytes = bytes.subspan(sizeof(dwell_thread_record))) {
      dwell_thread_record record;
      std::memcpy(&record, bytes.data(), sizeof record);
      told.add_record(record);
    }
  });
}

void NativeProbe::take_rings(Told& told) {
  object_->map<runtime::RingBufferMap>("threads").consume([&](std::span<const std::byte> bytes) {
    dwell_thread_record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    told.add_record(record);
  });
  object_->map<runtime::RingBufferMap>("stacks").consume([&](std::span<const std::byte> bytes) {
    dwell_stack_record stack = {};
    std::memcpy(&stack, bytes.data(), bytes.size());
    told.stacks[stack.hash].assign(stack.ips, stack.ips + stack.count);
  });
  object_->map<runtime::RingBufferMap>("samples").consume([](std::span<const std::byte>) {});
}

void NativeProbe::take_rows(Told& told) {
  runtime::HashMap& full = *rows_[current_];
  current_ ^= 1;
  object_->map<runtime::MapOfMaps>("epoch").set_inner(&kZero, *rows_[current_]);
  full.take_all([&](const void* key_bytes, const void* row_bytes) {
    dwell_row_key key;
    dwell_row row;
    std::memcpy(&key, key_bytes, sizeof key);
    std::memcpy(&row, row_bytes, sizeof row);
    add(told.rows[key.thread], row, key.wait_class);
    add(told.by_class[key.wait_class], row, key.wait_class);
    if (!told.keep_stacks || !is_blocked(key.wait_class)) return;
    told.user_stack_counts[key.user_stack] += row.count;
    told.kernel_stack_counts[key.kernel_stack] += row.count;
  });
  ++told.drains;
}

void NativeProbe::take_sums(Told& told) {
  auto& counters = object_->map<runtime::ArrayMap>("counters");
  auto& overflow = object_->map<runtime::ArrayMap>("overflow");
  auto& lost = object_->map<runtime::ArrayMap>("lost_threads");
  for (uint32_t cpu = 0; cpu < machine_.cpu_count(); ++cpu) {
    for (uint32_t i = 0; i < DWELL_COUNTER_COUNT; ++i)
      add_words(told.counters[i], *static_cast<dwell_counter_cell*>(counters.element(cpu, i)));
    for (uint8_t i = 0; i < DWELL_CLASS_COUNT; ++i) {
      const auto& row = *static_cast<dwell_row*>(overflow.element(cpu, i));
      add(told.overflow, row, i);
      add(told.by_class[i], row, i);
    }
    add_words(told.lost_threads, *static_cast<dwell_lost_threads*>(lost.element(cpu, 0)));
  }
}

uint64_t NativeProbe::recursion_misses() const {
  uint64_t sum = 0;
  for (const runtime::Program* program :
       {&switch_, &waking_, &newtask_, &wakeup_new_, &exec_, &rename_})
    sum += program->recursion_misses();
  return sum;
}

}  // namespace dwell::simulation
