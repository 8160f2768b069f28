// For tests against the kernel: loads the generator or skips, and checks that no descriptor leaks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "event_array/cpu_list.h"
#include "event_array/generator.h"
#include "event_array/kernel_event_array.h"

namespace dwell {
inline namespace v0 {

inline size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

struct Got {
  uint32_t cpu = 0;
  uint32_t type = 0;
  uint64_t lost = 0;
  std::vector<std::byte> payload;

  bool is_sample() const { return type == ring::kRecordSample; }
  generated front() const {
    generated g = {};
    if (payload.size() >= sizeof g) std::memcpy(&g, payload.data(), sizeof g);
    return g;
  }
};

inline Got copy_of(const EventArray& array, uint32_t cpu, const Record& record) {
  Got got{cpu, record.type, lost_count(record).value_or(0), {}};
  Sample sample;
  if (record.is_sample() && decode_sample(array.format(), record, sample) == SampleCheck::kOk)
    got.payload.assign(sample.payload.begin(), sample.payload.end());
  return got;
}

inline std::vector<Got> drain_all(EventArray& array, const Budget& budget = {}) {
  std::vector<Got> all;
  array.drain(budget, [&](uint32_t cpu, const Record& record) {
    all.push_back(copy_of(array, cpu, record));
  });
  return all;
}

class KernelArrayTest : public testing::Test {
 protected:
  void SetUp() override {
    online_ = read_cpu_list("online").value();
    load();
  }
  void load(uint32_t slots = GENERATOR_CPUS, uint32_t flags = 0) {
    generator_.reset();
    generator_ = Generator::load(slots, flags);
    if (generator_ == nullptr) GTEST_SKIP() << "this kernel does not let us load BPF programs";
  }
  std::unique_ptr<KernelEventArray> open(const KernelEventArrayOptions& options = {}) {
    auto array = KernelEventArray::open(generator_->map_fd(), options);
    if (!array) {
      ADD_FAILURE() << array.error().message;
      return nullptr;
    }
    return std::move(*array);
  }

  std::vector<uint32_t> online_;
  std::unique_ptr<Generator> generator_;
};

// Small rings whose producer wakes nobody for long.
inline KernelEventArrayOptions one_page() { return {.size = {.bytes_per_cpu = 4096}}; }

}  // namespace v0
}  // namespace dwell
