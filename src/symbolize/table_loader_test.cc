// On processes of this machine: ourselves, children that fork and exec.
#include "symbolize/table_loader.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "unwind/fake_table_memory.h"

namespace dwell::symbolize {
namespace {

using std::chrono::milliseconds;

uint64_t address_of(const char* function) {
  return reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, function));
}

class TableLoaderTest : public testing::Test {
 protected:
  TableLoaderTest()
      : objects_(options_, roots_, worker_),
        maps_(roots_, worker_),
        finder_(objects_, roots_, worker_) {
    auto memory =
        std::make_unique<unwind::FakeTableMemory>(unwind::TableSizes{16384, 16384, 4096, 64, 64});
    memory_ = memory.get();
    tables_.emplace(std::move(memory));
    loader_.emplace(*tables_, objects_, finder_, maps_, roots_);
  }
  ~TableLoaderTest() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  // A child that waits until it is killed.
  uint32_t start_child() {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    children_.push_back(child);
    return static_cast<uint32_t>(child);
  }
  void end(uint32_t child) {
    kill(static_cast<pid_t>(child), SIGKILL);
    waitpid(static_cast<pid_t>(child), nullptr, 0);
    std::erase(children_, static_cast<pid_t>(child));
  }
  void settle() { loader_->settle(milliseconds(10'000)); }

  const Options options_;
  FileWorker worker_;
  Roots roots_;
  ObjectTable objects_;
  ProcessMaps maps_;
  ObjectFinder finder_;
  unwind::FakeTableMemory* memory_;
  std::optional<unwind::LoadedTables> tables_;
  std::optional<TableLoader> loader_;
  std::vector<pid_t> children_;
  const uint32_t self_ = static_cast<uint32_t>(getpid());
};

TEST_F(TableLoaderTest, FindsRulesForLibcAndForTheProgramOfAProcess) {
  loader_->want(self_);
  settle();
  const auto* sleeping = memory_->find(self_, address_of("clock_nanosleep"));
  ASSERT_NE(sleeping, nullptr);
  EXPECT_EQ(sleeping->cfa_kind, DWELL_CFA_REGISTER);
  EXPECT_EQ(sleeping->cfa_register, DWELL_REGISTER_RSP);
  EXPECT_EQ(sleeping->cfa_offset, 8) << "a function begins with its return address on top";
  const auto here = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  EXPECT_NE(memory_->find(self_, here), nullptr);
  EXPECT_TRUE(loader_->take_changed());
  EXPECT_FALSE(loader_->take_changed());
}

TEST_F(TableLoaderTest, FindsRulesForTheVdso) {
  loader_->want(self_);
  settle();
  const auto process = LiveProcess::find(self_);
  ASSERT_TRUE(process);
  uint64_t with_rule = 0;
  for (const MapsLine& line : process->executable_maps())
    if (line.path == "[vdso]")
      for (uint64_t ip = line.start; ip < line.end; ++ip)
        with_rule += memory_->find(self_, ip) != nullptr;
  EXPECT_GT(with_rule, 100u);
}

TEST_F(TableLoaderTest, CompilesAFileOnceForAllProcesses) {
  loader_->want(self_);
  settle();
  const uint64_t rows = tables_->rows();
  const uint32_t child = start_child();
  loader_->want(child);
  settle();
  EXPECT_NE(memory_->find(child, address_of("clock_nanosleep")), nullptr);
  EXPECT_EQ(tables_->rows(), rows);
}

TEST_F(TableLoaderTest, FollowsAForkAndItsEnd) {
  loader_->want(self_);
  settle();
  const uint32_t child = start_child();
  loader_->on_fork(self_, child);
  EXPECT_EQ(tables_->processes(), 2u);
  end(child);
  loader_->update(monotonic_ns());
  EXPECT_EQ(tables_->processes(), 1u);
}

TEST_F(TableLoaderTest, DropsTheMappingsOfTheProgramBeforeAnExec) {
  const uint32_t child = start_child();
  loader_->want(child);
  settle();
  ASSERT_NE(memory_->find(child, address_of("clock_nanosleep")), nullptr);
  loader_->on_exec(child, monotonic_ns());
  EXPECT_EQ(memory_->find(child, address_of("clock_nanosleep")), nullptr);
  loader_->on_map(child);
  settle();
  EXPECT_NE(memory_->find(child, address_of("clock_nanosleep")), nullptr);
}

TEST_F(TableLoaderTest, CompilesAgainWhatWasDroppedAndIsMappedAgain) {
  const uint32_t first = start_child();
  loader_->want(first);
  settle();
  ASSERT_GT(tables_->rows(), 0u);
  end(first);
  const uint64_t now = monotonic_ns(), later = now + unwind::LoadedTables::kIdleNs;
  loader_->update(now);
  loader_->update(later + TableLoader::kDropPauseNs);
  EXPECT_EQ(tables_->rows(), 0u);
  const uint32_t second = start_child();
  loader_->want(second);
  settle();
  EXPECT_NE(memory_->find(second, address_of("clock_nanosleep")), nullptr);
}

// No event told of the library: perhaps there are none on this machine.
TEST_F(TableLoaderTest, ReadsTheMappingsAgainWhenAWalkDoubtsThem) {
  loader_->want(self_);
  settle();
  void* library = dlopen("libm.so.6", RTLD_NOW);
  void* late = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || late == nullptr) GTEST_SKIP() << "SKIP: no libresolv.so.2 here";
  const auto address = reinterpret_cast<uint64_t>(dlsym(late, "ns_name_ntop"));
  if (address == 0) GTEST_SKIP() << "SKIP: libresolv.so.2 has no ns_name_ntop";
  const uint64_t code = reinterpret_cast<uint64_t>(dlsym(late, "__p_class"));
  const uint64_t probe = code != 0 ? code : address;
  std::this_thread::sleep_for(milliseconds(200));  // between two readings of one process
  loader_->doubt(self_, monotonic_ns());
  settle();
  EXPECT_NE(memory_->find(self_, probe), nullptr);
}

TEST_F(TableLoaderTest, SurvivesProcessesThatAreGone) {
  const uint32_t child = start_child();
  end(child);
  loader_->want(child);
  loader_->doubt(child, monotonic_ns());
  loader_->on_map(child);
  settle();
  EXPECT_EQ(tables_->processes(), 0u);
}

}  // namespace
}  // namespace dwell::symbolize
