// For tests that need root: a symbolizer of the whole machine and programs to look at.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "symbolize/symbolizer.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {

class SymbolizerRootTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    symbolizer_ = std::move(*Symbolizer::create({}));
    for (const std::string& warning : symbolizer_->warnings())
      if (warning.find("perf event") != std::string::npos) GTEST_SKIP() << warning;
  }
  std::string name(const ProcessKey& key, uint64_t ip, uint64_t time_ns) {
    return symbolizer_->describe(locate(key, ip, time_ns)).function;
  }
  LocationId locate(const ProcessKey& key, uint64_t ip, uint64_t time_ns) {
    symbolizer_->poll();
    return symbolizer_->locate_user(key, ip, false, time_ns);
  }
  const ObjectInfo& object(LocationId id) {
    return symbolizer_->object(symbolizer_->describe(id).object);
  }
  void build(const std::string& program, const std::string& prefix,
             const std::string& flags = "-O1") {
    shop_.write(program + ".c", speaking_program(prefix));
    ASSERT_TRUE(shop_.run("gcc " + flags + " -o " + program + " " + program + ".c"))
        << shop_.read("log");
  }
  void build_c(const std::string& program, const std::string& source,
               const std::string& flags = "-O1") {
    shop_.write(program + ".c", source);
    ASSERT_TRUE(shop_.run("gcc " + flags + " -o " + program + " " + program + ".c"))
        << shop_.read("log");
  }
  // The only child of a process, once it is there.
  static uint32_t child_of(uint32_t pid) {
    const std::string path =
        "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children";
    for (int i = 0; i < 100; ++i) {
      std::ifstream in(path);
      uint32_t child = 0;
      if (in >> child) return child;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return 0;
  }
  Workshop shop_;
  std::unique_ptr<Symbolizer> symbolizer_;
};

}  // namespace dwell::symbolize
