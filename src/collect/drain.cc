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

int take_stack(void* context, void* data, size_t size) {
  const auto* record = static_cast<const dwell_stack_record*>(data);
  if (size < DWELL_STACK_RECORD_HEADER_BYTES) return 0;
  const size_t frames =
      std::min<size_t>(record->count, (size - DWELL_STACK_RECORD_HEADER_BYTES) / sizeof(uint64_t));
  const auto* steps = record->pointer_steps;
  static_cast<Batch*>(context)->stacks.push_back({record->hash,
                                                  record->process,
                                                  record->first_seen_ns,
                                                  record->flags,
                                                  {record->ips, record->ips + frames},
                                                  record->end,
                                                  {steps[0], steps[1]}});
  return 0;
}

template <typename Record, std::vector<Record> Batch::*Member>
int take_record(void* context, void* data, size_t size) {
  if (size < sizeof(Record)) return 0;
  (static_cast<Batch*>(context)->*Member).push_back(*static_cast<const Record*>(data));
  return 0;
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
  Batch batch;  // what the ring callbacks fill
  std::unique_ptr<ring_buffer, RingDeleter> rings;
  int current = 0;
};

Drain::Drain(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Drain::Drain(Drain&&) noexcept = default;
Drain& Drain::operator=(Drain&&) noexcept = default;
Drain::~Drain() = default;

Result<Drain> Drain::create(const probe::ProbeMaps& maps) {
  auto impl = std::make_unique<Impl>();
  impl->maps = maps;
  Batch* batch = &impl->batch;
  impl->rings.reset(ring_buffer__new(maps.stacks, take_stack, batch, nullptr));
  if (!impl->rings ||
      ring_buffer__add(impl->rings.get(), maps.threads,
                       take_record<dwell_thread_record, &Batch::threads>, batch) != 0 ||
      ring_buffer__add(impl->rings.get(), maps.samples,
                       take_record<dwell_kernel_stack_sample, &Batch::samples>, batch) != 0)
    return errno_error(errno, "cannot map the probe's rings");
  return Drain(std::move(impl));
}

Status Drain::take_rings(Batch& batch) {
  std::swap(impl_->batch, batch);
  const int failure = ring_buffer__consume(impl_->rings.get());
  std::swap(impl_->batch, batch);
  if (failure < 0) return errno_error(-failure, "cannot read the probe's rings");
  return {};
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
