// Draining kernel perf rings: KernelEventArray against libbpf's perf_buffer and, where they are
// built (README.md), cilium/ebpf's Reader and goebpf's design, in one interleaved run.
//   ring_kernel_bench [ROUNDS] [--drains]
// First part: a ring is filled, then drained; nanoseconds per record, the readers taking turns;
// with --drains nothing else. Second part: a producer at full speed on one CPU and a reader with
// its defaults on another; what arrives per second, and what is lost. libbpf's default wakes its
// reader for every event, which holds the producer up: nothing is lost, and little is carried.
// Third part: Dwell's reader at multiples of that rate.
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/rings/peers/peer.h"
#include "event_array/cpu_list.h"
#include "event_array/generator.h"
#include "event_array/kernel_event_array.h"

namespace dwell {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kRingBytes = kDefaultRingBytes;

uint64_t sink;  // what consumers touch, so that reading is not optimised away

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One reader over a map of its own.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual uint64_t drain() = 0;  // number of samples
  virtual void poll(int ms) = 0;
  // How long it takes to drain that many.
  virtual double ns_for(uint64_t samples) {
    const auto start = Clock::now();
    if (drain() != samples) fmt::print("lost some of {}\n", samples);
    return seconds_since(start) * 1e9;
  }
  Generator& generator() { return *generator_; }

 protected:
  // Slots for the CPUs that there are: cilium's reader refuses more.
  std::unique_ptr<Generator> generator_ =
      Generator::load(static_cast<uint32_t>(read_cpu_list("possible").value().back() + 1));
};

class DwellReader : public Reader {
 public:
  DwellReader() : array_(std::move(*KernelEventArray::open(generator_->map_fd()))) {}
  uint64_t drain() override {
    uint64_t samples = 0;
    array_->drain({}, [&](uint32_t, const Record& record) {
      if (!record.is_sample()) return;
      const auto payload = raw_payload(record);
      if (!payload) return;
      sink += *reinterpret_cast<const uint32_t*>(payload->data());
      ++samples;
    });
    return samples;
  }
  void poll(int ms) override { (void)array_->wait(std::chrono::milliseconds(ms)); }

 private:
  std::unique_ptr<KernelEventArray> array_;
};

class LibbpfReader : public Reader {
 public:
  LibbpfReader()
      : buffer_(perf_buffer__new(generator_->map_fd(), kRingBytes / 4096, &LibbpfReader::on_sample,
                                 nullptr, this, nullptr)) {}
  ~LibbpfReader() override { perf_buffer__free(buffer_); }
  uint64_t drain() override {
    samples_ = 0;
    perf_buffer__consume(buffer_);
    return samples_;
  }
  void poll(int ms) override { perf_buffer__poll(buffer_, ms); }
  uint64_t samples() const { return samples_; }

 private:
  static void on_sample(void* self, int, void* data, __u32) {
    sink += *static_cast<const uint32_t*>(data);
    ++static_cast<LibbpfReader*>(self)->samples_;
  }
  perf_buffer* buffer_;
  uint64_t samples_ = 0;
};

// A reader in another process.
class PeerReader : public Reader {
 public:
  PeerReader(const std::string& name, std::vector<std::string> arguments) {
    peer_ = Peer::start(name, arguments, generator_->map_fd());
  }
  bool runs() const { return peer_ != nullptr; }
  uint64_t drain() override { return 0; }
  void poll(int) override {}
  double ns_for(uint64_t samples) override { return peer_->run(samples); }

 private:
  std::unique_ptr<Peer> peer_;
};

struct NamedReader {
  std::string name;
  std::unique_ptr<Reader> reader;
};

// Dwell first, libbpf second.
std::vector<NamedReader> all_readers(const std::vector<uint32_t>& online) {
  std::vector<NamedReader> readers;
  readers.push_back({"dwell", std::make_unique<DwellReader>()});
  readers.push_back({"libbpf", std::make_unique<LibbpfReader>()});
  const auto add_peer = [&](const char* name, const char* program,
                            const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {std::to_string(kRingBytes)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    auto peer = std::make_unique<PeerReader>(program, arguments);
    if (peer->runs()) readers.push_back({name, std::move(peer)});
  };
  std::vector<std::string> cpus;
  for (const uint32_t cpu : online) cpus.push_back(std::to_string(cpu));
  add_peer("goebpf 2", "goebpf_design", cpus);  // its goroutines on all CPUs,
  PinToCpu pin(online.front());
  add_peer("goebpf 1", "goebpf_design", cpus);  // and on one
  add_peer("ReadInto", "cilium_reader", {"ReadInto"});
  add_peer("Read", "cilium_reader", {"Read"});
  return readers;
}

// Lower decile: what a round costs when nobody else takes the CPU. The machine may be shared.
double decile(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 10),
                   values.end());
  return values[values.size() / 10];
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void compare_drains(int rounds, const std::vector<uint32_t>& online) {
  std::vector<NamedReader> readers = all_readers(online);
  PinToCpu pin(online.front());
  fmt::print("ns per record of a full ring ({} KiB), lower decile of {} rounds; of libbpf\n{:>8}",
             kRingBytes >> 10, rounds, "payload");
  for (const NamedReader& r : readers) fmt::print(" {:>8} {:>6}", r.name, "");
  fmt::print("\n");
  for (const uint64_t size : {16u, 64u, 256u, 4096u}) {
    const uint64_t count = kRingBytes / (size + 16) * 9 / 10;
    std::vector<std::vector<double>> ns(readers.size());
    for (int round = 0; round < rounds; ++round)
      for (size_t turn = 0; turn < readers.size(); ++turn) {
        const size_t which = (static_cast<size_t>(round) + turn) % readers.size();
        Reader& reader = *readers[which].reader;
        // Once before: whoever comes after a reader in another process finds all caches cold.
        for (const bool counts : {false, true}) {
          reader.generator().fill_from_xdp(size, count);
          const double each = reader.ns_for(count) / static_cast<double>(count);
          if (counts) ns[which].push_back(each);
        }
      }
    fmt::print("{:>8}", size);
    for (const auto& each : ns)
      fmt::print(" {:>8.2f} {:>6.2f}", decile(each), decile(each) / decile(ns[1]));
    fmt::print("\n");
  }
}

struct Flood {
  double sent_per_s = 0;
  double read_per_s = 0;
  double lost_percent = 0;
};

// The producer outputs as fast as the reader's wake-ups let it, or `per_s` events per second.
template <typename R>
Flood flood(uint32_t producer_cpu, uint32_t reader_cpu, double per_s = 0) {
  constexpr double kSeconds = 0.5;
  // Many per call: one call takes milliseconds of its own.
  const uint64_t per_call = per_s > 0 ? 10'000 : 100'000;
  R reader;
  std::atomic<bool> done = false;
  uint64_t read = 0;
  std::thread consumer([&] {
    PinToCpu pin(reader_cpu);
    while (!done) {
      reader.poll(100);
      read += reader.drain();
    }
    read += reader.drain();
  });
  PinToCpu pin(producer_cpu);
  const auto start = Clock::now();
  for (double sent = 0; seconds_since(start) < kSeconds; sent += static_cast<double>(per_call)) {
    while (per_s > 0 && seconds_since(start) < sent / per_s) continue;
    reader.generator().fill_from_xdp(16, per_call);
  }
  const double seconds = seconds_since(start);
  done = true;
  consumer.join();
  const generator_shared& counts = reader.generator().counts();
  const double sent = static_cast<double>(reader.generator().total(counts.calls));
  const double lost = static_cast<double>(reader.generator().total(counts.no_space));
  return {sent / seconds, (sent - lost) / seconds, lost / sent * 100};
}

void compare_floods(int rounds, const std::vector<uint32_t>& online) {
  if (online.size() < 2) {
    fmt::print("one CPU only: no flood between two\n");
    return;
  }
  fmt::print("\n16-byte events from one CPU to a reader with its defaults on another, million/s\n");
  fmt::print("{:>8} {:>8} {:>8} {:>8}\n", "reader", "sent", "carried", "lost %");
  std::vector<double> sent[2], carried[2], lost[2];
  for (int round = 0; round < rounds; ++round) {
    const Flood both[] = {flood<DwellReader>(online[0], online[1]),
                          flood<LibbpfReader>(online[0], online[1])};
    for (int i = 0; i < 2; ++i) {
      sent[i].push_back(both[i].sent_per_s / 1e6);
      carried[i].push_back(both[i].read_per_s / 1e6);
      lost[i].push_back(both[i].lost_percent);
    }
  }
  const char* names[] = {"dwell", "libbpf"};
  for (int i = 0; i < 2; ++i)
    fmt::print("{:>8} {:>8.3f} {:>8.3f} {:>8.2f}\n", names[i], median(sent[i]), median(carried[i]),
               median(lost[i]));
  fmt::print("carried, ratio: {:.1f}\n", median(carried[0]) / median(carried[1]));
  fmt::print("\ndwell at multiples of what libbpf carries\n{:>8} {:>8} {:>8}\n", "times", "sent",
             "lost %");
  for (const double times : {5.0, 10.0, 15.0, 20.0}) {
    sent[0].clear(), lost[0].clear();
    for (int round = 0; round < rounds; ++round) {
      const Flood paced =
          flood<DwellReader>(online[0], online[1], times * median(carried[1]) * 1e6);
      sent[0].push_back(paced.sent_per_s / 1e6);
      lost[0].push_back(paced.lost_percent);
    }
    fmt::print("{:>8} {:>8.3f} {:>8.2f}\n", times, median(sent[0]),
               *std::ranges::max_element(lost[0]));
  }
}

int run(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, atoi(argv[1])) : 21;
  if (Generator::load() == nullptr) {
    fmt::print("skipped: this kernel does not let us load BPF programs\n");
    return 0;
  }
  const auto online = read_cpu_list("online");
  if (!online || online->empty()) return 1;
  compare_drains(rounds, *online);
  if (argc < 3 || std::strcmp(argv[2], "--drains") != 0)
    compare_floods(std::max(1, rounds / 7), *online);
  fmt::print("(checksum {:x})\n", sink);
  return 0;
}

}  // namespace
}  // namespace dwell

int main(int argc, char** argv) { return dwell::run(argc, argv); }
