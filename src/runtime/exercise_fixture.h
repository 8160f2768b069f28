// For the runtime's tests: testdata/exercise.bpf.c on a machine of four CPUs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cerrno>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/map_of_maps.h"
#include "runtime/object.h"
#include "runtime/packet.h"
#include "runtime/testdata/exercise.h"

extern "C" const dwell_native_object dwell_native_exercise;

namespace dwell::runtime {

class ExerciseTest : public testing::Test {
 protected:
  static constexpr uint32_t kCpus = 4;

  void SetUp() override {
    auto opened = Object::open(dwell_native_exercise);
    ASSERT_TRUE(opened) << opened.error().message;
    object_ = std::move(*opened);
    inner_definition_ = object_->inner_definition("maps_in_array");
    const Status loaded = object_->load(machine_);
    ASSERT_TRUE(loaded) << loaded.error().message;
  }

  exercise_results& results() { return object_->variable<exercise_results>("results"); }

  // Runs a program whose context is an array of words; its last call's result.
  template <typename... Words>
  long call(const char* program, Words... words) {
    return call_on(0, program, words...);
  }
  template <typename... Words>
  long call_on(uint32_t cpu, const char* program, Words... words) {
    uint64_t ctx[] = {as_word(words)..., 0};
    EXPECT_TRUE(object_->program(program).run(cpu, ctx).ran) << program;
    return results().result;
  }

  template <typename Word>
  static uint64_t as_word(Word word) {
    if constexpr (std::is_pointer_v<Word>)
      return reinterpret_cast<uint64_t>(word);
    else
      return static_cast<uint64_t>(word);
  }

  Machine machine_{kCpus};
  std::unique_ptr<Object> object_;
  MapDefinition inner_definition_;
};

}  // namespace dwell::runtime
