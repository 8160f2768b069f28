// For tests: the BPF program testdata/generator.bpf.c loaded into the kernel, and calls that make
// it output. The workload W-gen.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "event_array/mapping.h"
#include "event_array/pin.h"
#include "event_array/testdata/generator.h"

namespace dwell {
inline namespace v0 {

class Generator {
 public:
  // Null, with a reason on stderr, where the kernel does not let us load it.
  static std::unique_ptr<Generator> load(uint32_t slots = GENERATOR_CPUS, uint32_t map_flags = 0);

  int map_fd() const;
  const generator_shared& counts() const { return *shared_; }
  uint64_t total(const unsigned long long (&per_cpu)[GENERATOR_CPUS]) const;

  // One output from the CPU this thread runs on, at the raw tracepoint; its result. Pin first.
  // `raw`: payload is `pattern()`; otherwise it starts with struct generated.
  long output(uint64_t size, uint64_t flags = 0xffffffff, bool raw = false);
  // As output(), and the payload's first 8 bytes count up over all CPUs.
  long output_counting(uint64_t size, uint64_t flags);
  // From now on the payload's first 8 bytes count up over all CPUs.
  void count_over_all_cpus() { shared_->counting = 1; }
  // output() without asking for the result.
  static void fire(uint64_t size, uint64_t flags = 0xffffffff, bool raw = false);
  // One output from an XDP program that sees `packet`.
  long output_xdp(std::span<const std::byte> packet, uint64_t size, uint64_t flags);

  // `count` outputs of `size` bytes in one call, for filling rings quickly.
  void fill_from_xdp(uint64_t size, uint64_t count);

  // What the payload buffers of the program hold behind struct generated.
  static const std::vector<std::byte>& pattern();
  // After fork: the child becomes the process whose calls count.
  void target_this_process();
  // Every process's calls count.
  void target_any_process() { shared_->any_process = 1; }
  bpf_object* object() { return object_.get(); }

 private:
  struct CloseObject {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  struct DestroyLink {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  };

  std::unique_ptr<bpf_object, CloseObject> object_;
  std::unique_ptr<bpf_link, DestroyLink> link_;
  Mapping bss_;
  generator_shared* shared_ = nullptr;
  int xdp_fd_ = -1;
};

}  // namespace v0
}  // namespace dwell
