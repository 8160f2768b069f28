#include "probe/probe.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/btf.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "abi/unwind.h"
#include "base/clock.h"
#include "base/fd.h"
#include "probe/load_log.h"
#include "probe/probe_object.h"

namespace dwell::probe {
namespace {

using std::chrono::milliseconds;

// What the running kernel can do, as its BTF tells.
struct KernelFeatures {
  int switch_arguments = 0;  // of the sched_switch tracepoint: 3, or 4 since 5.18
  // Hash maps without preallocation are safe in scheduler tracepoints since 6.1 (bpf_mem_alloc),
  // and cost only what they hold. Before, they are allocated in full.
  bool allocates_lazily = false;
  bool reads_other_tasks = false;  // bpf_copy_from_user_task, since 5.18
};

Result<KernelFeatures> read_features() {
  const std::unique_ptr<btf, void (*)(btf*)> kernel(btf__load_vmlinux_btf(), btf__free);
  if (!kernel)
    return privilege_error(
        "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): /sys/kernel/btf/vmlinux is missing; use a "
        "kernel with BTF, "
        "as every Debian kernel since 11 is");
  KernelFeatures features;
  const int id = btf__find_by_name_kind(kernel.get(), "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
  if (id > 0) {
    const btf_type* type = btf__type_by_id(kernel.get(), static_cast<uint32_t>(id));
    const btf_type* pointer = btf__type_by_id(kernel.get(), type->type);
    features.switch_arguments =
        btf_vlen(btf__type_by_id(kernel.get(), pointer->type)) - 1;  // the first is the hook's
  }
  features.allocates_lazily =
      btf__find_by_name_kind(kernel.get(), "bpf_mem_alloc", BTF_KIND_STRUCT) > 0;
  features.reads_other_tasks =
      btf__find_by_name_kind(kernel.get(), "bpf_copy_from_user_task", BTF_KIND_FUNC) > 0;
  return features;
}

constexpr int kRoundsMax = 6;
// Some 370 kernel stacks: at the end of a window one sample of each may come at once.
constexpr uint32_t kSampleRingBytes = 1 << 20;

uint32_t power_of_two_at_least(uint32_t bytes, uint32_t minimum) {
  uint32_t size = minimum;
  while (size < bytes && size < (1u << 30)) size *= 2;
  return size;
}

}  // namespace

struct Probe::Impl {
  std::unique_ptr<ProbeObject> object;
  ProbeOptions options;
  ProbeMaps maps;
  Fd rows[2];
  KernelFeatures features;
  const char* seed_program = nullptr;  // the iterator in use
  bool rewalks = false;
  std::vector<std::string> notes;

  Status create_rows();
  void size_maps();
  void size_unwind_maps();
  void choose_seed();
  void set_config();
  Status run_iterator(const char* program);
  Status run_until_complete(const char* iterator);
  Status read_records(std::vector<dwell_thread_record>& records);
  Status load(Build build, LoadLog& log);
};

void Probe::Impl::set_config() {
  dwell_config& config = object->config();
  config.own_pid = static_cast<uint32_t>(getpid());
  config.all = options.all;
  config.follow = options.follow;
  config.user_threads = options.user_threads;
  config.kernel_threads = options.kernel_threads;
  config.user_stacks = options.user_stacks;
  config.kernel_stacks = options.kernel_stacks;
  config.runnable_kernel_stacks = options.runnable_kernel_stacks;
  config.class_mask = options.class_mask;
  config.state_mask = options.state_mask;
  config.min_ns = options.min_ns;
  config.max_ns = options.max_ns;
  config.verify_every = options.verify_every;
  config.renames_max = options.renames_max;
  config.timeline = options.timeline_min_ns.has_value();
  config.timeline_min_ns = options.timeline_min_ns.value_or(0);
  if (options.signatures) {
    config.sched_text_start = options.sched_text_start;
    config.sched_text_end = options.sched_text_end;
  }
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = monotonic_ns();
  config.hash_seed = seed;
  config.switch_tells_state = features.switch_arguments >= 4;
}

void Probe::Impl::size_maps() {
  const uint32_t page = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  bpf_map__set_max_entries(object->map("known_stacks"), options.stacks);
  bpf_map__set_max_entries(object->map("stacks"),
                           power_of_two_at_least(options.stack_ring_bytes, page));
  bpf_map__set_max_entries(object->map("threads"),
                           power_of_two_at_least(options.thread_ring_bytes, page));
  bpf_map__set_max_entries(object->map("samples"), power_of_two_at_least(kSampleRingBytes, page));
  bpf_map__set_autocreate(object->map("timeline"), options.timeline_min_ns.has_value());
  if (object->map("unwind_slabs") != nullptr && options.unwind_rows > 0) size_unwind_maps();
  if (!features.allocates_lazily) return;
  bpf_map__set_map_flags(object->map("known_stacks"), BPF_F_NO_PREALLOC);
  bpf_map__set_map_flags(object->map("signatures"), BPF_F_NO_PREALLOC);
  bpf_map__set_map_flags(bpf_map__inner_map(object->map("epoch")), BPF_F_NO_PREALLOC);
}

void Probe::Impl::size_unwind_maps() {
  bpf_map__set_max_entries(object->map("unwind_processes"), options.unwind_processes);
  bpf_map__set_max_entries(object->map("unwind_mappings"), options.unwind_mappings);
  bpf_map__set_max_entries(object->map("unwind_pages"), options.unwind_pages);
  bpf_map__set_max_entries(object->map("unwind_rules"), DWELL_UNWIND_RULES_MAX);
  bpf_map__set_max_entries(
      object->map("unwind_slabs"),
      (options.unwind_rows + DWELL_UNWIND_SLAB_ROWS - 1) / DWELL_UNWIND_SLAB_ROWS);
}

void Probe::Impl::choose_seed() {
  bpf_program* with_stacks = object->program("seed_with_stacks");
  const bool reads_stacks = with_stacks != nullptr && features.reads_other_tasks;
  if (with_stacks != nullptr) bpf_program__set_autoload(with_stacks, reads_stacks);
  bpf_program__set_autoload(object->program("seed"), !reads_stacks);
  bpf_program* rewalk = object->program("rewalk");
  rewalks = rewalk != nullptr && reads_stacks && options.unwind_rows > 0;
  if (rewalk != nullptr) bpf_program__set_autoload(rewalk, rewalks);
  seed_program = reads_stacks ? "seed_with_stacks" : "seed";
  if (!reads_stacks)
    notes.push_back(
        "the user stacks of threads blocked since before the start cannot be read here");
}

Status Probe::Impl::create_rows() {
  LIBBPF_OPTS(bpf_map_create_opts, create,
              .map_flags = features.allocates_lazily ? uint32_t{BPF_F_NO_PREALLOC} : 0);
  for (int i = 0; i < 2; ++i) {
    rows[i] = Fd(bpf_map_create(BPF_MAP_TYPE_HASH, i == 0 ? "dwell_rows0" : "dwell_rows1",
                                sizeof(dwell_row_key), sizeof(dwell_row), options.rows, &create));
    if (!rows[i])
      return errno_error(
          errno, fmt::format("cannot create a map of {} rows; try a smaller --rows", options.rows));
    maps.rows[i] = rows[i].get();
  }
  const uint32_t zero = 0;
  if (bpf_map_update_elem(object->map_fd("epoch"), &zero, &maps.rows[0], BPF_ANY) != 0)
    return errno_error(errno, "cannot put the row map in place");
  return {};
}

Status Probe::Impl::load(Build build, LoadLog& log) {
  object = ProbeObject::open(build);
  if (!object) return errno_error(errno, "cannot open the BPF object");
  set_config();
  size_maps();
  choose_seed();
  if (const int failure = object->load(); failure != 0) return log.explain(-failure);
  maps.epoch = object->map_fd("epoch");
  maps.overflow = object->map_fd("overflow");
  maps.counters = object->map_fd("counters");
  maps.lost_threads = object->map_fd("lost_threads");
  maps.stacks = object->map_fd("stacks");
  maps.threads = object->map_fd("threads");
  maps.samples = object->map_fd("samples");
  maps.signatures = object->map_fd("signatures");
  if (options.timeline_min_ns) maps.timeline = object->map_fd("timeline");
  if (object->map("unwind_slabs") == nullptr || options.unwind_rows == 0) return {};
  maps.unwind_processes = object->map_fd("unwind_processes");
  maps.unwind_mappings = object->map_fd("unwind_mappings");
  maps.unwind_pages = object->map_fd("unwind_pages");
  maps.unwind_rules = object->map_fd("unwind_rules");
  maps.unwind_slabs = object->map_fd("unwind_slabs");
  maps.python_layouts = object->map_fd("python_layouts");
  maps.python_stacks = object->map_fd("python_stacks");
  return {};
}

Result<Probe> Probe::load(const ProbeOptions& options) {
  auto impl = std::make_unique<Impl>();
  DWELL_ASSIGN(impl->features, read_features());
  impl->options = options;
  LoadLog log;
  Status loaded = impl->load(options.raw ? Build::kRaw : Build::kTyped, log);
  if (!loaded && !options.raw && loaded.error().kind == Error::Kind::kPrivilege) {
    // An older kernel may take the other build.
    const Status typed = std::move(loaded);
    const std::string verdict = log.verdict();
    if (loaded = impl->load(Build::kRaw, log); !loaded) return std::unexpected(typed.error());
    const std::string& why = typed.error().message;
    impl->notes.push_back(
        "recorded through raw tracepoints, where Python's frames are not read, because " +
        why.substr(0, why.find('\n')) + (verdict.empty() ? "" : " " + verdict));
  }
  if (!loaded) return std::unexpected(loaded.error());
  DWELL_TRY(impl->create_rows());
  return Probe(std::move(impl));
}

Probe::Probe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Probe::Probe(Probe&&) noexcept = default;
Probe& Probe::operator=(Probe&&) noexcept = default;
Probe::~Probe() = default;

std::vector<uint8_t> Probe::read_kernel(uint64_t address, size_t bytes) {
  const std::span<const uint8_t> chunk = impl_->object->kernel_chunk();
  std::vector<uint8_t> read;
  while (read.size() < bytes) {
    const uint64_t arguments[] = {address + read.size()};
    LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = arguments, .ctx_size_in = sizeof arguments);
    if (bpf_prog_test_run_opts(bpf_program__fd(impl_->object->program("read_kernel")), &run) != 0 ||
        run.retval != 0)
      return {};
    const size_t wanted = std::min(bytes - read.size(), chunk.size());
    read.insert(read.end(), chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(wanted));
  }
  return read;
}

Status Probe::add_target(const Target& target) {
  const dwell_target_key key = {.id = target.id, .is_tid = target.is_thread};
  if (bpf_map_update_elem(impl_->object->map_fd("targets"), &key, &target.start_boottime_ns,
                          BPF_ANY) != 0)
    return errno_error(errno, fmt::format("cannot record {}: too many targets", target.id));
  impl_->object->target_hints()[target.id % DWELL_TARGET_HINTS] = 1;
  return {};
}

Status Probe::attach() {
  LoadLog log;
  if (const int failure = impl_->object->attach(); failure != 0) return log.explain(-failure);
  return {};
}

Status Probe::Impl::run_iterator(const char* program) {
  Fd iterator(bpf_iter_create(bpf_link__fd(object->link(program))));
  if (!iterator) return errno_error(errno, "cannot iterate over the machine's threads");
  char byte;
  ssize_t n;
  while ((n = read(iterator.get(), &byte, 1)) != 0)
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return errno_error(errno, "cannot read the thread iterator");
  return {};
}

// The kernel refuses to make task-local storage on a CPU where another task was interrupted in the
// middle of doing so. That passes.
Status Probe::Impl::run_until_complete(const char* iterator) {
  for (int round = 0; round < kRoundsMax; ++round) {
    object->unprepared() = 0;
    DWELL_TRY(run_iterator(iterator));
    if (object->unprepared() == 0) break;
    std::this_thread::sleep_for(milliseconds(1 << round));
  }
  return {};
}

Result<uint64_t> Probe::open_window() {
  // Handlers begin to keep states when they see the start, and count from it on. It must lie ahead
  // of the clock when they can see it: if this thread was held up, set it again.
  volatile dwell_window& window = impl_->object->window();
  DWELL_TRY(impl_->run_until_complete("prepare"));
  uint64_t start;
  do {
    start = monotonic_ns() + 2'000'000;
    window.start_ns = start;
  } while (monotonic_ns() + 500'000 > start);
  DWELL_TRY(impl_->run_until_complete(impl_->seed_program));
  return start;
}

Status Probe::rewalk_stacks() { return impl_->rewalks ? impl_->run_iterator("rewalk") : Status(); }

Result<std::vector<dwell_thread_record>> Probe::close_window() {
  volatile dwell_window& window = impl_->object->window();
  while (monotonic_ns() <= window.start_ns) std::this_thread::sleep_for(milliseconds(1));
  uint64_t end;
  do {
    end = monotonic_ns() + 1'000'000;
    window.end_ns = end;
  } while (monotonic_ns() + 200'000 > end);
  while (monotonic_ns() <= end) std::this_thread::sleep_for(milliseconds(1));
  // Replacing an inner map waits until every handler that is under way has returned.
  const uint32_t zero = 0;
  uint32_t current = 0;
  if (bpf_map_lookup_elem(impl_->maps.epoch, &zero, &current) != 0)
    return errno_error(errno, "cannot read the epoch");
  for (const int rows : impl_->maps.rows) {
    bpf_map_info info = {};
    uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(rows, &info, &size) == 0 && info.id == current &&
        bpf_map_update_elem(impl_->maps.epoch, &zero, &rows, BPF_ANY) != 0)
      return errno_error(errno, "cannot wait for the probe's handlers");
  }
  // Twice: the second run takes those that a switch was closing during the first.
  std::vector<dwell_thread_record> records;
  DWELL_TRY(impl_->read_records(records));
  DWELL_TRY(impl_->read_records(records));
  return records;
}

Status Probe::Impl::read_records(std::vector<dwell_thread_record>& records) {
  Fd iterator(bpf_iter_create(bpf_link__fd(object->link("close_window"))));
  if (!iterator) return errno_error(errno, "cannot iterate over the machine's threads");
  DWELL_ASSIGN(std::string bytes, read_all(iterator.get(), "the thread iterator", size_t{4} << 30));
  const size_t before = records.size(), count = bytes.size() / sizeof(dwell_thread_record);
  records.resize(before + count);
  std::memcpy(records.data() + before, bytes.data(), count * sizeof(dwell_thread_record));
  return {};
}

const ProbeMaps& Probe::maps() const { return impl_->maps; }
uint64_t Probe::window_start_ns() const { return impl_->object->window().start_ns; }
uint64_t Probe::window_end_ns() const { return impl_->object->window().end_ns; }
std::vector<std::string> Probe::notes() const { return impl_->notes; }

uint64_t Probe::kernel_memory_bytes() const {
  uint64_t sum = 0;
  const auto add = [&](int fd) {
    const auto info = read_file(fmt::format("/proc/self/fdinfo/{}", fd), 1 << 16);
    const size_t at = info ? info->find("\nmemlock:") : std::string::npos;
    if (at != std::string::npos) sum += std::strtoull(info->c_str() + at + 9, nullptr, 10);
  };
  const bpf_map* map;
  bpf_object__for_each_map(map, impl_->object->object()) add(bpf_map__fd(map));
  for (const int rows : impl_->maps.rows) add(rows);
  return sum;
}

}  // namespace dwell::probe
