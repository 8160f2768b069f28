// How long each output of a large recording takes: 200,000 stacks of up to 60 frames, 100,000
// frames, 400,000 rows of 5,000 threads. One run with --benchmark_min_time=0 is the smoke test.
#include <benchmark/benchmark.h>

#include "export/export.h"
#include "profile/dwell_file.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

const Profile& large_profile() {
  static const Profile profile = random_profile({.seed = 1,
                                                 .processes = 300,
                                                 .threads = 5'000,
                                                 .frames = 100'000,
                                                 .stacks = 200'000,
                                                 .rows = 400'000,
                                                 .depth_max = 60});
  return profile;
}

void run(benchmark::State& state, auto write) {
  large_profile();
  size_t bytes = 0;
  for (auto _ : state) bytes = write().size();
  state.counters["MiB"] = static_cast<double>(bytes) / (1 << 20);
}

void bench_encode(benchmark::State& state) {
  run(state, [] { return encode(large_profile()).value(); });
}
void bench_decode(benchmark::State& state) {
  const std::string bytes = encode(large_profile()).value();
  run(state, [&] {
    benchmark::DoNotOptimize(decode(bytes).value().rows.size());
    return std::string_view(bytes);
  });
}
void bench_json(benchmark::State& state) {
  run(state, [] { return json(large_profile()); });
}
void bench_table(benchmark::State& state) {
  run(state, [] { return table(large_profile()); });
}
void bench_folded(benchmark::State& state) {
  run(state, [] { return folded(large_profile()); });
}
void bench_pprof(benchmark::State& state) {
  run(state, [] { return pprof(large_profile()).value(); });
}

BENCHMARK(bench_encode)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_decode)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_json)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_table)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_folded)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_pprof)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dwell

BENCHMARK_MAIN();
