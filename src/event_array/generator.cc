#include "event_array/generator.h"

#include <bpf/bpf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dwell {
inline namespace v0 {
namespace {

int quiet(libbpf_print_level, const char*, va_list) { return 0; }

}  // namespace

const std::vector<std::byte>& Generator::pattern() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> filled(GENERATOR_PAYLOAD_BYTES);
    for (size_t i = 0; i < filled.size(); ++i) filled[i] = static_cast<std::byte>(i * 7 + i / 251);
    return filled;
  }();
  return bytes;
}

std::unique_ptr<Generator> Generator::load(uint32_t slots, uint32_t map_flags) {
  libbpf_set_print(quiet);
  std::unique_ptr<Generator> g(new Generator);
  const char* elsewhere = getenv("DWELL_GENERATOR_OBJECT");  // in a guest
  const char* path = elsewhere != nullptr ? elsewhere : DWELL_GENERATOR_OBJECT;
  g->object_.reset(bpf_object__open_file(path, nullptr));
  if (g->object_ == nullptr) {
    std::fprintf(stderr, "cannot open %s: %s\n", path, strerror(errno));
    return nullptr;
  }
  bpf_map* events = bpf_object__find_map_by_name(g->object_.get(), "events");
  bpf_map__set_max_entries(events, slots);
  bpf_map__set_map_flags(events, map_flags);
  if (const int error = bpf_object__load(g->object_.get()); error != 0) {
    std::fprintf(stderr, "cannot load BPF programs: %s; needs root\n", strerror(-error));
    return nullptr;
  }
  const int bss = bpf_object__find_map_fd_by_name(g->object_.get(), ".bss");
  const size_t size = (sizeof(generator_shared) + 4095) / 4096 * 4096;
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, bss, 0);
  if (at == MAP_FAILED) return nullptr;
  g->bss_ = Mapping(at, size);
  g->shared_ = static_cast<generator_shared*>(at);
  const int payloads = bpf_object__find_map_fd_by_name(g->object_.get(), "payloads");
  for (uint32_t i = 0; i < 4; ++i) bpf_map_update_elem(payloads, &i, pattern().data(), BPF_ANY);
  g->target_this_process();
  g->xdp_fd_ = bpf_program__fd(bpf_object__find_program_by_name(g->object_.get(), "on_packet"));
  g->link_.reset(
      bpf_program__attach(bpf_object__find_program_by_name(g->object_.get(), "on_syscall")));
  if (g->link_ == nullptr) {
    std::fprintf(stderr, "cannot attach to sys_enter: %s\n", strerror(errno));
    return nullptr;
  }
  return g;
}

void Generator::target_this_process() { shared_->target_pid = static_cast<uint32_t>(getpid()); }

int Generator::map_fd() const { return bpf_object__find_map_fd_by_name(object_.get(), "events"); }

uint64_t Generator::total(const unsigned long long (&per_cpu)[GENERATOR_CPUS]) const {
  uint64_t sum = 0;
  for (const unsigned long long n : per_cpu) sum += n;
  return sum;
}

void Generator::fire(uint64_t size, uint64_t flags, bool raw) {
  syscall(GENERATOR_SYSCALL, size, flags, raw ? 1ul : 0ul);
}

long Generator::output(uint64_t size, uint64_t flags, bool raw) {
  const int cpu = sched_getcpu();
  fire(size, flags, raw);
  return __atomic_load_n(&shared_->last_result[cpu], __ATOMIC_ACQUIRE);
}

long Generator::output_counting(uint64_t size, uint64_t flags) {
  shared_->counting = 1;
  const long result = output(size, flags);
  shared_->counting = 0;
  return result;
}

long Generator::output_xdp(std::span<const std::byte> packet, uint64_t size, uint64_t flags) {
  shared_->xdp_size = size;
  shared_->xdp_flags = flags;
  shared_->xdp_raw = 1;
  LIBBPF_OPTS(bpf_test_run_opts, opts);
  opts.data_in = packet.data();
  opts.data_size_in = static_cast<uint32_t>(packet.size());
  opts.repeat = 1;
  const int cpu = sched_getcpu();
  if (bpf_prog_test_run_opts(xdp_fd_, &opts) != 0) return -9999;
  return __atomic_load_n(&shared_->last_result[cpu], __ATOMIC_ACQUIRE);
}

void Generator::fill_from_xdp(uint64_t size, uint64_t count) {
  const std::vector<std::byte> packet(64);
  shared_->xdp_size = size;
  shared_->xdp_flags = 0xffffffff;
  shared_->xdp_raw = 1;
  LIBBPF_OPTS(bpf_test_run_opts, opts);
  opts.data_in = packet.data();
  opts.data_size_in = static_cast<uint32_t>(packet.size());
  opts.repeat = static_cast<int>(count);
  bpf_prog_test_run_opts(xdp_fd_, &opts);
}

}  // namespace v0
}  // namespace dwell
