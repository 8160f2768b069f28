// The map in user space: what an output costs, what handing over costs, what reading costs.
//   ring_user_bench [ROUNDS]
// Compared in one interleaved run with what one would take instead, where it is there (README.md):
// boost::lockfree::spsc_queue behind a lock per CPU, and a tracepoint of LTTng-UST.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/rings/peers/peer.h"
#include "event_array/cpu_list.h"
#include "event_array/pin.h"
#include "event_array/user_event_array.h"

#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>
#define DWELL_HAVE_BOOST 1
#endif

namespace dwell {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kRingBytes = 1 << 20;
constexpr uint64_t kBatch = 10'000;

uint64_t sink;

struct Payload {
  uint64_t words[8];  // 64 bytes
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

template <typename Body>
double ns_each(uint64_t n, Body body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
         static_cast<double>(n);
}

class UserQueue {
 public:
  UserQueue()
      : map_(std::move(*UserEventMap::create({.ring_bytes = kRingBytes}))),
        array_(std::move(*UserEventArray::open(*map_))) {}
  bool put(const Payload& payload) {
    return map_->output(ring::kCurrentCpu, std::as_bytes(std::span(&payload, 1))) == 0;
  }
  uint64_t get_all() {
    return array_->drain({}, [](uint32_t, const Record& record) {
      sink += *reinterpret_cast<const uint32_t*>(record.body.data() + 4);
    });
  }
  int put_bytes(std::span<const std::byte> bytes) { return map_->output(ring::kCurrentCpu, bytes); }

 private:
  std::unique_ptr<UserEventMap> map_;
  std::unique_ptr<UserEventArray> array_;
};

#ifdef DWELL_HAVE_BOOST
// One queue and one lock per CPU, of which a thread takes those of the CPU that it runs on.
class LockedSpsc {
 public:
  LockedSpsc() : cpus_(static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF))) {}
  bool put(const Payload& payload) {
    Cpu& cpu = cpus_[static_cast<size_t>(sched_getcpu())];
    pthread_spin_lock(&cpu.lock);
    const bool ok = cpu.queue.push(payload);
    pthread_spin_unlock(&cpu.lock);
    return ok;
  }
  uint64_t get_all() {
    uint64_t n = 0;
    for (Cpu& cpu : cpus_)
      n += cpu.queue.consume_all([](const Payload& payload) { sink += payload.words[0]; });
    return n;
  }

 private:
  struct alignas(128) Cpu {
    Cpu() : queue(kRingBytes / sizeof(Payload)) { pthread_spin_init(&lock, 0); }
    pthread_spinlock_t lock;
    boost::lockfree::spsc_queue<Payload> queue;
  };
  std::vector<Cpu> cpus_;
};
#endif

// Once before: whoever comes after a program of its own finds all caches cold.
template <typename Queue>
void put_and_get(Queue& queue, std::vector<double>& put_ns, std::vector<double>& get_ns) {
  Payload payload = {{1, 2, 3, 4, 5, 6, 7, 8}};
  for (const bool counts : {false, true}) {
    const double put = ns_each(kBatch, [&] {
      for (uint64_t i = 0; i < kBatch; ++i) {
        payload.words[0] = i;
        queue.put(payload);
      }
    });
    const double get = ns_each(kBatch, [&] { queue.get_all(); });
    if (!counts) continue;
    put_ns.push_back(put);
    get_ns.push_back(get);
  }
}

// One producer, one consumer, each on its CPU, the consumer draining all the time.
template <typename Queue>
double hand_over_ns(uint32_t producer_cpu, uint32_t consumer_cpu) {
  Queue queue;
  constexpr uint64_t kEvents = 2'000'000;
  std::atomic<bool> done = false;
  std::thread consumer([&] {
    PinToCpu pin(consumer_cpu);
    uint64_t read = 0;
    while (!done || read < kEvents) {
      const uint64_t n = queue.get_all();
      read += n;
      if (done && n == 0) break;
    }
  });
  PinToCpu pin(producer_cpu);
  Payload payload = {};
  const double ns = ns_each(kEvents, [&] {
    for (uint64_t i = 0; i < kEvents; ++i) {
      payload.words[0] = i;
      while (!queue.put(payload)) {
      }
    }
  });
  done = true;
  consumer.join();
  return ns;
}

void compare_sizes(UserQueue& user, int rounds) {
  fmt::print("\noutput by payload size, ns (median): ");
  for (const size_t size : {8u, 16u, 56u, 64u, 128u, 256u, 1024u, 4096u}) {
    const std::vector<std::byte> bytes(size);
    std::vector<double> ns;
    for (int round = 0; round < rounds; ++round) {
      const uint64_t n = std::min<uint64_t>(kBatch, kRingBytes / (size + 32));
      ns.push_back(ns_each(n, [&] {
        for (uint64_t i = 0; i < n; ++i) user.put_bytes(bytes);
      }));
      user.get_all();
    }
    fmt::print(" {}: {:.1f}", size, median(ns));
  }
  fmt::print("\n");
}

// A session of LTTng in memory only (a flight recorder), and the program whose tracepoint it
// records.
class LttngSession {
 public:
  LttngSession() {
    if (std::system(
            "lttng create dwell-bench --snapshot --output=/tmp/dwell-bench >/dev/null 2>&1 && "
            "lttng enable-channel -u -s dwell-bench --subbuf-size=256K --num-subbuf=4 c "
            ">/dev/null && lttng enable-event -u -s dwell-bench -c c dwell_bench:put "
            ">/dev/null && lttng start dwell-bench >/dev/null") != 0)
      fmt::print(
          "no session of LTTng: lttng-tools is not installed, or lttng-sessiond not running\n");
    else
      peer_ = Peer::start("lttng_put", {});
  }
  ~LttngSession() {
    if (peer_ == nullptr) return;
    peer_.reset();
    if (std::system("lttng destroy dwell-bench >/dev/null 2>&1") != 0)
      fmt::print("the session dwell-bench of LTTng is still there\n");
  }
  Peer* peer() { return peer_.get(); }

 private:
  std::unique_ptr<Peer> peer_;
};

void compare_puts(UserQueue& user, int rounds) {
  std::vector<double> put[3], get[2];
#ifdef DWELL_HAVE_BOOST
  LockedSpsc boost;
#else
  fmt::print("spsc_queue: libboost-dev is not installed\n");
#endif
  LttngSession lttng;
  for (int round = 0; round < rounds; ++round) {
    put_and_get(user, put[0], get[0]);
#ifdef DWELL_HAVE_BOOST
    put_and_get(boost, put[1], get[1]);
#endif
    if (lttng.peer() == nullptr) continue;
    lttng.peer()->run(kBatch);
    put[2].push_back(lttng.peer()->run(kBatch) / static_cast<double>(kBatch));
  }
  fmt::print("64 bytes, same thread, ns: median of {} rounds of {}\n", rounds, kBatch);
  fmt::print("{:>28} {:>8} {:>8}\n", "", "put", "get");
  fmt::print("{:>28} {:>8.1f} {:>8.1f}\n", "UserEventMap", median(put[0]), median(get[0]));
  if (!put[1].empty())
    fmt::print("{:>28} {:>8.1f} {:>8.1f}\n", "spsc_queue behind a lock", median(put[1]),
               median(get[1]));
  if (!put[2].empty()) fmt::print("{:>28} {:>8.1f}\n", "LTTng-UST tracepoint", median(put[2]));
}

int run(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, atoi(argv[1])) : 101;
  const auto online = read_cpu_list("online");
  if (!online || online->empty()) return 1;
  PinToCpu pin(online->front());
  UserQueue user;
  compare_puts(user, rounds);
  compare_sizes(user, rounds);
  if (online->size() > 1) {
    std::vector<double> hand[2];
    for (int round = 0; round < std::max(1, rounds / 10); ++round) {
      hand[0].push_back(hand_over_ns<UserQueue>((*online)[0], (*online)[1]));
#ifdef DWELL_HAVE_BOOST
      hand[1].push_back(hand_over_ns<LockedSpsc>((*online)[0], (*online)[1]));
#endif
    }
    fmt::print("hand-over to another CPU, ns: UserEventMap {:.1f}", median(hand[0]));
    if (!hand[1].empty()) fmt::print(", spsc_queue behind a lock {:.1f}", median(hand[1]));
    fmt::print("\n");
  }
  fmt::print("(checksum {:x})\n", sink);
  return 0;
}

}  // namespace
}  // namespace dwell

int main(int argc, char** argv) { return dwell::run(argc, argv); }
