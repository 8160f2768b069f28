#include "collect/drain.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dwell::collect {
namespace {

constexpr uint32_t kRowsPerCall = 4096;

struct RingDeleter {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

// What a callback of libbpf returns to end the turn; the record counts as taken.
constexpr int kTurnOver = -ECANCELED;

// One ring and where its records go. A turn takes at most as much as the ring holds, which is all
// that was there when it began: a probe that sends faster than we take must not keep us for ever.
struct Intake {
  std::unique_ptr<ring_buffer, RingDeleter> ring;
  Batch* batch = nullptr;
  size_t ring_bytes = 0;
  size_t taken = 0;

  int count(size_t size) {
    taken += size;
    return taken < ring_bytes ? 0 : kTurnOver;
  }
};

int take_stack(void* context, void* data, size_t size) {
  auto& intake = *static_cast<Intake*>(context);
  const auto* record = static_cast<const dwell_stack_record*>(data);
  if (size < DWELL_STACK_RECORD_HEADER_BYTES) return intake.count(size);
  const size_t frames =
      std::min<size_t>(record->count, (size - DWELL_STACK_RECORD_HEADER_BYTES) / sizeof(uint64_t));
  const auto* steps = record->pointer_steps;
  intake.batch->stacks.push_back({record->hash,
                                  record->process,
                                  record->first_seen_ns,
                                  record->flags,
                                  {record->ips, record->ips + frames},
                                  record->end,
                                  {steps[0], steps[1]}});
  return intake.count(size);
}

template <typename Record, std::vector<Record> Batch::*Member>
int take_record(void* context, void* data, size_t size) {
  auto& intake = *static_cast<Intake*>(context);
  if (size >= sizeof(Record)) (intake.batch->*Member).push_back(*static_cast<const Record*>(data));
  return intake.count(size);
}

Status open_ring(Intake& intake, int fd, ring_buffer_sample_fn take) {
  bpf_map_info info = {};
  uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(fd, &info, &size) != 0)
    return errno_error(errno, "cannot ask for the size of the probe's ring");
  intake.ring_bytes = info.max_entries;
  intake.ring.reset(ring_buffer__new(fd, take, &intake, nullptr));
  if (!intake.ring) return errno_error(errno, "cannot map the probe's ring");
  return {};
}

Status take_turn(Intake& intake, Batch& batch) {
  intake.batch = &batch;
  intake.taken = 0;
  const int failure = ring_buffer__consume(intake.ring.get());
  if (failure < 0 && failure != kTurnOver)
    return errno_error(-failure, "cannot read the probe's ring");
  return {};
}

// A per-CPU array of one kind of struct, summed by `add`.
template <typename Value, typename Add>
Result<std::vector<Value>> sum_over_cpus(int fd, uint32_t entries, Add add, const char* name) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return errno_error(-cpus, "cannot count the possible CPUs");
  std::vector<Value> sums(entries), values(static_cast<size_t>(cpus));
  for (uint32_t i = 0; i < entries; ++i) {
    if (bpf_map_lookup_elem(fd, &i, values.data()) != 0)
      return errno_error(errno, std::string("cannot read ") + name);
    for (const Value& value : values) add(sums[i], value);
  }
  return sums;
}

}  // namespace

struct Drain::Impl {
  probe::ProbeMaps maps;
  Intake stacks, threads, samples;
  Intake python_stacks;  // without a ring where the probe has none
  int current = 0;
};

Drain::Drain(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Drain::Drain(Drain&&) noexcept = default;
Drain& Drain::operator=(Drain&&) noexcept = default;
Drain::~Drain() = default;

Result<Drain> Drain::create(const probe::ProbeMaps& maps) {
  auto impl = std::make_unique<Impl>();
  impl->maps = maps;
  DWELL_TRY(open_ring(impl->stacks, maps.stacks, take_stack));
  DWELL_TRY(
      open_ring(impl->threads, maps.threads, take_record<dwell_thread_record, &Batch::threads>));
  DWELL_TRY(open_ring(impl->samples, maps.samples,
                      take_record<dwell_kernel_stack_sample, &Batch::samples>));
  if (maps.python_stacks >= 0)
    DWELL_TRY(open_ring(impl->python_stacks, maps.python_stacks, take_stack));
  return Drain(std::move(impl));
}

Status Drain::take_rings(Batch& batch) {
  for (Intake* intake : {&impl_->stacks, &impl_->threads, &impl_->samples})
    DWELL_TRY(take_turn(*intake, batch));
  if (impl_->python_stacks.ring) return take_turn(impl_->python_stacks, batch);
  return {};
}

bool Drain::wants_another_turn() const {
  return impl_->stacks.taken >= impl_->stacks.ring_bytes ||
         impl_->threads.taken >= impl_->threads.ring_bytes;
}

Status Drain::take_rows(Batch& batch) {
  const int full = impl_->maps.rows[impl_->current];
  impl_->current ^= 1;
  const uint32_t zero = 0;
  if (bpf_map_update_elem(impl_->maps.epoch, &zero, &impl_->maps.rows[impl_->current], BPF_ANY) !=
      0)
    return errno_error(errno, "cannot swap the epoch");
  std::vector<dwell_row_key> keys(kRowsPerCall);
  std::vector<dwell_row> values(kRowsPerCall);
  uint32_t position = 0;
  for (bool first = true, more = true; more; first = false) {
    uint32_t n = kRowsPerCall;
    const int failure = bpf_map_lookup_and_delete_batch(
        full, first ? nullptr : &position, &position, keys.data(), values.data(), &n, nullptr);
    more = failure == 0;
    if (failure != 0 && errno != ENOENT) return errno_error(errno, "cannot read the rows");
    for (uint32_t i = 0; i < n; ++i) batch.rows.push_back({keys[i], values[i]});
    DWELL_TRY(take_rings(batch));  // they fill while a large epoch is read
  }
  return {};
}

Result<uint64_t> Drain::rows_inserted() const {
  const int cpus = libbpf_num_possible_cpus();
  std::vector<dwell_counter_cell> cells(static_cast<size_t>(std::max(cpus, 1)));
  const uint32_t counter = DWELL_COUNT_ROWS_INSERTED;
  if (bpf_map_lookup_elem(impl_->maps.counters, &counter, cells.data()) != 0)
    return errno_error(errno, "cannot read the counters");
  uint64_t sum = 0;
  for (const dwell_counter_cell& cell : cells) sum += cell.count;
  return sum;
}

Result<std::vector<dwell_counter_cell>> Drain::read_counters() const {
  const auto add = [](dwell_counter_cell& sum, const dwell_counter_cell& cell) {
    sum.count += cell.count;
    sum.ns += cell.ns;
  };
  return sum_over_cpus<dwell_counter_cell>(impl_->maps.counters, DWELL_COUNTER_COUNT, add,
                                           "the counters");
}

Result<std::vector<dwell_row>> Drain::read_overflow() const {
  const auto add = [](dwell_row& sum, const dwell_row& row) {
    sum.count += row.count;
    sum.blocked_ns += row.blocked_ns;
    sum.run_queue_ns += row.run_queue_ns;
    sum.max_ns = std::max(sum.max_ns, row.max_ns);
    for (int i = 0; i < DWELL_HISTOGRAM_BUCKETS; ++i) sum.histogram[i] += row.histogram[i];
  };
  return sum_over_cpus<dwell_row>(impl_->maps.overflow, DWELL_CLASS_COUNT, add,
                                  "the overflow rows");
}

Result<dwell_lost_threads> Drain::read_lost_threads() const {
  const auto add = [](dwell_lost_threads& sum, const dwell_lost_threads& lost) {
    sum.threads += lost.threads;
    sum.alive_ns += lost.alive_ns;
    auto* to = reinterpret_cast<uint64_t*>(&sum.books);
    const auto* from = reinterpret_cast<const uint64_t*>(&lost.books);
    for (size_t i = 0; i < sizeof(dwell_books) / sizeof(uint64_t); ++i) to[i] += from[i];
  };
  DWELL_ASSIGN(auto sums, sum_over_cpus<dwell_lost_threads>(impl_->maps.lost_threads, 1, add,
                                                            "the lost threads"));
  return sums[0];
}

}  // namespace dwell::collect
