// conserve [cpus [threads [switches [between_drains [seed]]]]]: conservation of the probe's books
// at any scale. Exits 0 if every life's books equal the simulator's.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "collect/loss.h"
#include "recording.h"

namespace {

using dwell::simulation::Comparison;
using dwell::simulation::Recording;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_counters(const dwell::simulation::Told& told) {
  for (const dwell::collect::CounterMeaning& meaning : dwell::collect::counter_meanings()) {
    const dwell_counter_cell& cell = told.counters[meaning.counter];
    if (cell.count == 0) continue;
    fmt::print("  {:<22} {:>12} {:>20} ns{}\n", meaning.name, cell.count, cell.ns,
               meaning.is_loss ? "  loss" : "");
  }
}

void print_result(Recording& recording, const Comparison& c, double seconds) {
  const dwell::simulation::Scheduler& scheduler = recording.scheduler();
  fmt::print("switches {} in {:.1f} s, {:.0f} ns each; {} drains; {} execs, {} renames\n",
             scheduler.switches(), seconds, seconds * 1e9 / double(scheduler.switches()),
             recording.told().drains, scheduler.executed(), scheduler.renamed());
  fmt::print("window {} ns\n", scheduler.window().end_ns - scheduler.window().start_ns);
  fmt::print("lives {}, equal to the nanosecond {}, rows add up {}, no record {}, unexpected {}\n",
             c.lives, c.equal, c.rows_equal, c.missing, c.unexpected);
  fmt::print("time alive {} ns; lives conserved {}\n", c.alive_ns, c.conserved);
  print_counters(recording.told());
  for (const std::string& difference : c.differences) fmt::print("  {}\n", difference);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("memory {} MiB\n", usage.ru_maxrss / 1024);
}

uint64_t argument(int argc, char** argv, int i, uint64_t otherwise) {
  return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t cpus = argument(argc, argv, 1, 64), threads = argument(argc, argv, 2, 20'000),
                 switches = argument(argc, argv, 3, 2'000'000),
                 between = argument(argc, argv, 4, 100'000), seed = argument(argc, argv, 5, 1);
  const auto start = std::chrono::steady_clock::now();
  auto recording = Recording::create({.cpus = static_cast<uint32_t>(cpus),
                                      .threads = static_cast<uint32_t>(threads),
                                      .seed = seed},
                                     {.rows = 1u << 22,
                                      .stacks = 1u << 23,
                                      .stack_ring_bytes = 1u << 28,
                                      .thread_ring_bytes = 1u << 26});
  if (!recording) {
    fmt::print(stderr, "{}\n", recording.error().message);
    return 2;
  }
  fmt::print("{} CPUs, {} threads, seed {}\n", cpus, threads, seed);
  const Comparison c = (*recording)->run(switches, between);
  print_result(**recording, c, seconds_since(start));
  return c.equal == c.lives && c.rows_equal == c.lives && c.unexpected == 0 ? 0 : 1;
}
