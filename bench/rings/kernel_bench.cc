// Draining kernel perf rings: KernelEventArray against libbpf's perf_buffer and, where they are
// built (README.md), cilium/ebpf's Reader and goebpf's design, in one interleaved run.
//   ring_kernel_bench [ROUNDS] [--drains]
// First part: a ring is filled, then drained; nanoseconds per record, the readers taking turns;
// with --drains nothing else. Second part: a producer on one CPU and a reader on another, at its
// defaults and at its best: what arrives per second, and what is lost. First in bursts at full
// speed; libbpf's default wakes its reader for every event, which holds the producer up: nothing is
// lost, and little is carried. Then Dwell's default at an even pace, at multiples of that.
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>

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
  explicit DwellReader(const KernelEventArrayOptions& options = {})
      : array_(std::move(*KernelEventArray::open(generator_->map_fd(), options))) {}
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
  // Woken for every 64 events; the ring is the one given.
  explicit LibbpfReader(uint64_t ring_bytes) {
    perf_event_attr attr = {};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_BPF_OUTPUT;
    attr.sample_type = PERF_SAMPLE_RAW;
    attr.sample_period = 1;
    attr.wakeup_events = 64;
    buffer_ = perf_buffer__new_raw(generator_->map_fd(), ring_bytes / 4096, &attr,
                                   &LibbpfReader::on_event, this, nullptr);
  }
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
  static bpf_perf_event_ret on_event(void* self, int cpu, perf_event_header* event) {
    if (event->type == PERF_RECORD_SAMPLE)  // behind the header the size, then the bytes
      on_sample(self, cpu, reinterpret_cast<char*>(event) + sizeof *event + 4, 0);
    return LIBBPF_PERF_EVENT_CONT;
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

// A reader on its CPU, while `produce(Generator&)` outputs on another.
template <typename R, typename Produce, typename... Arguments>
Flood flood(uint32_t producer_cpu, uint32_t reader_cpu, Produce produce, Arguments... arguments) {
  R reader(arguments...);
  std::atomic<bool> reads = false, done = false;
  std::thread consumer([&] {
    PinToCpu pin(reader_cpu);
    reads = true;
    while (!done) {
      reader.poll(100);
      reader.drain();
    }
    reader.drain();
  });
  PinToCpu pin(producer_cpu);
  while (!reads) continue;
  const auto start = Clock::now();
  produce(reader.generator());
  const double seconds = seconds_since(start);
  done = true;
  consumer.join();
  const generator_shared& counts = reader.generator().counts();
  const double sent = static_cast<double>(reader.generator().total(counts.calls));
  const double lost = static_cast<double>(reader.generator().total(counts.no_space));
  return {sent / seconds, (sent - lost) / seconds, lost / sent * 100};
}

constexpr double kFloodSeconds = 0.5;

// As fast as the reader's wake-ups let it, in bursts: a call sleeps some milliseconds before it.
void output_in_bursts(Generator& generator) {
  const auto start = Clock::now();
  while (seconds_since(start) < kFloodSeconds) generator.fill_from_xdp(16, 100'000);
}

// Evenly, by a system call for each.
auto output_evenly(double per_s) {
  return [per_s](Generator&) {
    const auto start = Clock::now();
    for (double sent = 0; sent < kFloodSeconds * per_s; ++sent) {
      while (seconds_since(start) < sent / per_s) continue;
      Generator::fire(16);
    }
  };
}

// Events per second that cilium's reader gets, at its defaults, in another process; 0: not built.
double carried_by_cilium(uint32_t producer_cpu, uint32_t reader_cpu) {
  constexpr uint64_t kEvents = 50'000;
  std::unique_ptr<PeerReader> cilium;
  {
    PinToCpu pin(reader_cpu);
    cilium = std::make_unique<PeerReader>(
        "cilium_reader", std::vector<std::string>{std::to_string(kRingBytes), "ReadInto"});
  }
  if (!cilium->runs()) return 0;
  std::atomic<bool> done = false;
  std::thread producer([&] {
    PinToCpu pin(producer_cpu);
    while (!done) cilium->generator().fill_from_xdp(16, 10'000);
  });
  const double ns = cilium->ns_for(kEvents);
  done = true;
  producer.join();
  return kEvents / ns * 1e9;
}

void compare_floods(int rounds, const std::vector<uint32_t>& online) {
  if (online.size() < 2) {
    fmt::print("one CPU only: no flood between two\n");
    return;
  }
  fmt::print("\n16-byte events from one CPU to a reader on another, million/s\n");
  fmt::print("{:>16} {:>8} {:>8} {:>8}\n", "reader", "sent", "carried", "lost %");
  const uint32_t from = online[0], to = online[1];
  const KernelEventArrayOptions large = {.size = {.bytes_per_cpu = 4 << 20}};
  const char* names[] = {"dwell, default", "libbpf, default", "dwell, best", "libbpf, best"};
  std::vector<double> sent[4], carried[4], lost[4];
  for (int round = 0; round < rounds; ++round) {
    const Flood all[] = {flood<DwellReader>(from, to, output_in_bursts),
                         flood<LibbpfReader>(from, to, output_in_bursts),
                         flood<DwellReader>(from, to, output_in_bursts, large),
                         flood<LibbpfReader>(from, to, output_in_bursts, large.size.bytes_per_cpu)};
    for (size_t i = 0; i < std::size(all); ++i) {
      sent[i].push_back(all[i].sent_per_s / 1e6);
      carried[i].push_back(all[i].read_per_s / 1e6);
      lost[i].push_back(all[i].lost_percent);
    }
  }
  for (size_t i = 0; i < std::size(names); ++i)
    fmt::print("{:>16} {:>8.3f} {:>8.3f} {:>8.2f}\n", names[i], median(sent[i]), median(carried[i]),
               median(lost[i]));
  if (const double rate = carried_by_cilium(from, to); rate > 0)
    fmt::print("{:>16} {:>8} {:>8.3f}\n", "cilium, default", "", rate / 1e6);
  fmt::print("carried, ratio: {:.1f}\ndwell, default, at an even pace:\n",
             median(carried[0]) / median(carried[1]));
  for (const double times : {10.0, 20.0}) {
    std::vector<double> sent_per_s, lost_percent;
    for (int round = 0; round < rounds; ++round) {
      const Flood paced =
          flood<DwellReader>(from, to, output_evenly(times * median(carried[1]) * 1e6));
      sent_per_s.push_back(paced.sent_per_s / 1e6);
      lost_percent.push_back(paced.lost_percent);
    }
    fmt::print("{:>16.3f} sent, at most {:.3f} % lost in {} rounds\n", median(sent_per_s),
               *std::ranges::max_element(lost_percent), rounds);
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
