// A process of this machine that maps what looks like a CPython: ourselves, with a library built
// here.
#include "symbolize/python_programs.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "symbolize/table_loader.h"
#include "symbolize/workshop.h"
#include "unwind/fake_table_memory.h"

namespace dwell::symbolize {
namespace {

class PythonProgramsTest : public testing::Test {
 protected:
  PythonProgramsTest()
      : objects_(options_, roots_, worker_),
        maps_(roots_, worker_),
        finder_(objects_, roots_, worker_),
        programs_(objects_, worker_) {
    auto memory =
        std::make_unique<unwind::FakeTableMemory>(unwind::TableSizes{16384, 16384, 4096, 64, 64});
    memory_ = memory.get();
    tables_.emplace(std::move(memory));
  }
  ~PythonProgramsTest() override {
    if (library_ != nullptr) dlclose(library_);
  }
  // Opens a library of that name with these variables, and looks at our own process.
  void look_at_ourselves(const std::string& name, const std::string& variables,
                         bool wanted = true) {
    shop_.write("made.c", variables);
    ASSERT_TRUE(shop_.run("cc -shared -fPIC made.c -o " + name)) << shop_.read("log");
    library_ = dlopen(shop_.path(name).c_str(), RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    TableLoader loader(*tables_, objects_, finder_, maps_, roots_, wanted ? &programs_ : nullptr);
    loader.want(self_);
    loader.settle(std::chrono::milliseconds(10'000));
    ASSERT_NE(memory_->process(self_), nullptr);
  }

  const Options options_;
  Workshop shop_;
  FileWorker worker_;
  Roots roots_;
  ObjectTable objects_;
  ProcessMaps maps_;
  ObjectFinder finder_;
  PythonPrograms programs_;
  unwind::FakeTableMemory* memory_;
  std::optional<unwind::LoadedTables> tables_;
  void* library_ = nullptr;
  const uint32_t self_ = static_cast<uint32_t>(getpid());
};

constexpr const char* kPython =
    "const unsigned long Py_Version = 0x030c08f0; long _PyRuntime[64] = {1};";

TEST_F(PythonProgramsTest, TellsTheProbeWhereAProcessHasItsInterpreter) {
  look_at_ourselves("libpython3.12.so.1.0", kPython);
  const dwell_unwind_process& process = *memory_->process(self_);
  EXPECT_EQ(process.python_layout, 1u);
  EXPECT_EQ(process.python_runtime, reinterpret_cast<uint64_t>(dlsym(library_, "_PyRuntime")));
  ASSERT_TRUE(memory_->python_layouts().contains(1));
  EXPECT_EQ(memory_->python_layouts().at(1).entry_is_shim, 1u) << "as of 3.12";
  ASSERT_NE(programs_.offsets(1), nullptr);
  EXPECT_EQ(programs_.offsets(1)->code_first_line, 68u);
  EXPECT_EQ(programs_.offsets(0), nullptr);
  EXPECT_EQ(programs_.offsets(2), nullptr);
  EXPECT_TRUE(programs_.warnings().empty());
}

TEST_F(PythonProgramsTest, WarnsOfAnInterpreterThatItCannotRead) {
  look_at_ourselves("libpython3.8.so.1.0", "long _PyRuntime[64] = {1};");
  EXPECT_EQ(memory_->process(self_)->python_layout, 0u);
  ASSERT_EQ(programs_.warnings().size(), 1u);
  EXPECT_EQ(programs_.warnings()[0],
            "no Python frames of " + shop_.path("libpython3.8.so.1.0") +
                ": its CPython is older than 3.11, whose frames cannot be read");
}

TEST_F(PythonProgramsTest, LooksOnlyIntoFilesThatAreNamedAfterPython) {
  look_at_ourselves("libother.so", kPython);
  EXPECT_EQ(memory_->process(self_)->python_layout, 0u);
}

TEST_F(PythonProgramsTest, LeavesPythonAloneIfNobodyWantsItsFrames) {
  look_at_ourselves("libpython3.12.so.1.0", kPython, false);
  EXPECT_EQ(memory_->process(self_)->python_layout, 0u);
}

}  // namespace
}  // namespace dwell::symbolize
