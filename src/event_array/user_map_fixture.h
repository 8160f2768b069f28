// For tests of maps in user space, with restartable and with locking producers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "event_array/cpu_list.h"
#include "event_array/pin.h"
#include "event_array/restartable_put.h"
#include "event_array/user_event_array.h"
#include "event_array/user_event_map.h"
#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {

inline Bytes numbered(uint64_t id, size_t size = 8) {
  Bytes bytes(std::max<size_t>(size, 8), static_cast<std::byte>(id));
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

struct UserGot {
  uint32_t cpu = 0;
  uint32_t type = 0;
  uint64_t lost = 0;
  Bytes payload;

  uint64_t id() const {
    uint64_t id = 0;
    if (payload.size() >= 8) std::memcpy(&id, payload.data(), 8);
    return id;
  }
};

inline std::vector<UserGot> drain_all(UserEventArray& array, const Budget& budget = {}) {
  std::vector<UserGot> all;
  array.drain(budget, [&](uint32_t cpu, const Record& record) {
    UserGot got{cpu, record.type, lost_count(record).value_or(0), {}};
    Sample sample;
    if (record.is_sample() && decode_sample(array.format(), record, sample) == SampleCheck::kOk)
      got.payload.assign(sample.payload.begin(), sample.payload.end());
    all.push_back(std::move(got));
  });
  return all;
}

// The parameter: true forces the lock.
class UserMapTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    online_ = read_cpu_list("online").value();
    if (!GetParam() && !restartable_sequences_work())
      GTEST_SKIP() << "no restartable sequences here (glibc.pthread.rseq=0, or no rseq)";
  }
  std::unique_ptr<UserEventMap> create(UserEventMapOptions options = {.ring_bytes = 4096}) {
    options.force_lock = GetParam();
    auto map = UserEventMap::create(options);
    if (!map) ADD_FAILURE() << map.error().message;
    return map ? std::move(*map) : nullptr;
  }
  std::unique_ptr<UserEventArray> attach(UserEventMap& map,
                                         const UserEventArrayOptions& options = {}) {
    auto array = UserEventArray::open(map, options);
    if (!array) ADD_FAILURE() << array.error().message;
    return array ? std::move(*array) : nullptr;
  }

  std::vector<uint32_t> online_;
};

inline std::string producer_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Lock" : "Restartable";
}

}  // namespace v0
}  // namespace dwell
