// How long it takes to build a profile of 200,000 stacks and 1,000,000 rows, each row added twice.
#include <benchmark/benchmark.h>

#include "profile/profile_builder.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

const Profile& million_rows() {
  static const Profile profile = random_profile({.seed = 1,
                                                 .processes = 300,
                                                 .threads = 5'000,
                                                 .frames = 100'000,
                                                 .stacks = 200'000,
                                                 .rows = 1'000'000,
                                                 .depth_max = 60});
  return profile;
}

void bench_build(benchmark::State& state) {
  const Profile& from = million_rows();
  for (auto _ : state) {
    ProfileBuilder builder;
    builder.reserve(from.rows.size(), from.stacks.size());
    for (const std::string& text : from.strings) builder.string(text);
    for (const Module& m : from.modules)
      builder.module(from.text(m.path), from.text(m.build_id), m.kind);
    for (const Frame& frame : from.frames) builder.frame(frame);
    for (const Stack& stack : from.stacks)
      builder.stack(stack.frames, stack.user_complete, stack.truncated);
    for (int pass = 0; pass < 2; ++pass)
      for (const Row& row : from.rows) builder.add(row);
    benchmark::DoNotOptimize(std::move(builder).finish().rows.size());
  }
}

BENCHMARK(bench_build)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dwell

BENCHMARK_MAIN();
