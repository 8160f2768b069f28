// A peer that writes anything anywhere into the shared pages of an event map while both sides work:
// outputs and reads end, stay inside the ring, and answer with their known results.
// Input: first byte chooses the producer and the direction; then operations of 1 + n bytes.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "event_array/user_event_array.h"
#include "event_array/user_event_map.h"

namespace {

constexpr size_t kMaxOperations = 300;  // per input, so that each ends soon

void require(bool condition) {
  if (!condition) abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  template <typename T>
  T take() {
    T value = {};
    const size_t n = left_ < sizeof value ? left_ : sizeof value;
    std::memcpy(&value, data_, n);
    data_ += n;
    left_ -= n;
    return value;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

struct Fixture {
  std::unique_ptr<dwell::UserEventMap> map;
  std::unique_ptr<dwell::UserEventArray> array;
  std::vector<std::byte> payload = std::vector<std::byte>(70'000, std::byte{7});

  void scribble(uint32_t ring, uint32_t at, uint64_t value) {
    const dwell::RingMemory& memory = map->ring(ring % map->rings());
    std::byte* base = reinterpret_cast<std::byte*>(memory.meta);
    const uint64_t size = map->layout().ring_stride();
    std::memcpy(base + at % (size - 8), &value, 8);
  }
  // Positions and counters, where a change tells most.
  void scribble_word(uint8_t which, uint64_t value) {
    static constexpr uint32_t kWords[] = {1024, 1032, 2048, 2072, 2112, 2120, 2128, 2176, 2184};
    for (uint32_t ring = 0; ring < map->rings(); ++ring)
      scribble(ring, kWords[which % std::size(kWords)], value);
  }
  void output(uint16_t size, uint32_t extra) {
    const uint64_t flags = dwell::ring::kCurrentCpu | uint64_t{extra & 0xfffff} << 32;
    const dwell::DataContext context{payload.data(), payload.data() + 100};
    const int result = map->output(flags, std::span(payload).first(size), context);
    require(result == 0 || result == -ENOSPC || result == -E2BIG || result == -EBUSY ||
            result == -EFAULT || result == -ENOENT || result == -EOPNOTSUPP);
  }
  void read(uint8_t most) {
    uint64_t sum = 0, bytes = 0;
    const auto touch = [&](const dwell::Record& record) {
      for (const std::byte b : record.body) sum += static_cast<uint64_t>(b);
      bytes += record.size;
      return true;
    };
    if (map->layout().backward) {
      for (uint32_t cpu = 0; cpu < array->slots(); ++cpu) {
        bytes = 0;
        require(array->snapshot(cpu, touch).has_value());
        require(bytes <= map->layout().data_size);
      }
      return;
    }
    array->drain({.max_records = most}, [&](uint32_t, const dwell::Record& r) { touch(r); });
    require(bytes <= array->slots() * map->layout().data_size);
    volatile uint64_t keep = sum;
    (void)keep;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const auto kind = input.take<uint8_t>();
  Fixture f;
  auto map = dwell::UserEventMap::create({.ring_bytes = uint64_t{4096} << (kind >> 2) % 4,
                                          .overwrite = (kind & 2) != 0,
                                          .force_lock = (kind & 1) != 0});
  require(map.has_value());
  f.map = std::move(*map);
  auto array = dwell::UserEventArray::open(*f.map);
  require(array.has_value());
  f.array = std::move(*array);
  for (size_t i = 0; i < kMaxOperations && !input.empty(); ++i) {
    switch (input.take<uint8_t>() % 8) {
      case 0:
        f.scribble(input.take<uint8_t>(), input.take<uint32_t>(), input.take<uint64_t>());
        break;
      case 1:
        f.scribble_word(input.take<uint8_t>(), input.take<uint64_t>());
        break;
      case 2:
        f.scribble_word(input.take<uint8_t>(), uint64_t(input.take<int16_t>()));
        break;
      case 3:
        f.output(input.take<uint16_t>(), input.take<uint32_t>());
        break;
      case 4:
      case 5:
        f.output(input.take<uint8_t>(), 0);
        break;
      default:
        f.read(input.take<uint8_t>());
    }
  }
  (void)f.array->stats(0);
  return 0;
}
