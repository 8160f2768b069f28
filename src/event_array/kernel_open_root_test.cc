// Opening and closing a KernelEventArray over a real map.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using OpenTest = KernelArrayTest;

// Runs `body` in a child process; its return value is the child's exit code.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST_F(OpenTest, RefusesAMapOfAnotherTypeAndLeaksNothing) {
  const Fd map(bpf_map_create(BPF_MAP_TYPE_HASH, "not_a_ring", 4, 4, 1, nullptr));
  ASSERT_TRUE(map);
  const size_t before = open_descriptors();
  const auto array = KernelEventArray::open(map.get());
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().code, EINVAL);
  EXPECT_NE(array.error().message.find("'not_a_ring' is a hash"), std::string::npos)
      << array.error().message;
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(OpenTest, RefusesABadDescriptor) {
  const auto array = KernelEventArray::open(-1);
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().code, EBADF);
  const Fd file(dup(0));
  EXPECT_FALSE(KernelEventArray::open(file.get())) << "a descriptor, but of no map";
}

TEST_F(OpenTest, RoundsTheSizeAndReportsIt) {
  const std::vector<std::pair<uint64_t, uint64_t>> sizes = {
      {1, 4096},         {4096, 4096},      {8192, 8192},  {12288, 16384},
      {5 * 4096, 32768}, {8 * 4096, 32768}, {0, 512 << 10}};
  for (const auto& [asked, effective] : sizes) {
    const auto array = open({.size = {.bytes_per_cpu = asked}});
    ASSERT_NE(array, nullptr);
    EXPECT_EQ(array->report().ring_bytes, effective) << asked;
    PinToCpu pin(online_[0]);
    EXPECT_EQ(generator_->output(16), 0);
    EXPECT_EQ(drain_all(*array).size(), 1u);
  }
  EXPECT_FALSE(
      KernelEventArray::open(generator_->map_fd(), {.size = {.bytes_per_cpu = uint64_t{1} << 31}}));
}

TEST_F(OpenTest, NamesTheCpusThatASmallMapDoesNotCover) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  load(1);
  const auto array = open();
  EXPECT_EQ(array->ring_count(), 1u);
  EXPECT_EQ(array->report().uncovered, std::vector<uint32_t>(online_.begin() + 1, online_.end()));
  EXPECT_EQ(array->report().warnings.size(), 1u);
  PinToCpu pin(online_[1]);
  EXPECT_EQ(generator_->output(16), -E2BIG);
}

TEST_F(OpenTest, AcceptsAMapLargerThanTheMachine) {
  load(1024);
  const auto array = open();
  EXPECT_EQ(array->ring_count(), online_.size());
  EXPECT_EQ(array->report().spare_slots, 1024 - online_.size());
  EXPECT_TRUE(array->report().warnings.empty());
}

TEST_F(OpenTest, ReadsAPinnedMapAndAMapById) {
  const std::string path = "/sys/fs/bpf/dwell_open_test_" + std::to_string(getpid());
  if (bpf_obj_pin(generator_->map_fd(), path.c_str()) != 0)
    GTEST_SKIP() << "no BPF file system at /sys/fs/bpf: " << strerror(errno);
  PinToCpu pin(online_[0]);
  {
    auto array = KernelEventArray::open_pinned(path);
    unlink(path.c_str());
    ASSERT_TRUE(array) << array.error().message;
    generator_->output(16);
    EXPECT_EQ(drain_all(**array).size(), 1u);
  }
  auto by_id = KernelEventArray::open_id(bpf_map_info(generator_->map_fd())->id);
  ASSERT_TRUE(by_id);
  generator_->output(16);
  EXPECT_EQ(drain_all(**by_id).size(), 1u);
  EXPECT_FALSE(KernelEventArray::open_pinned("/sys/fs/bpf/dwell_no_such_map"));
}

TEST_F(OpenTest, EmptiesTheSlotsAndLeavesNoDescriptorBehind) {
  const size_t before = open_descriptors();
  {
    const auto array = open();
    EXPECT_GT(open_descriptors(), before);
  }
  EXPECT_EQ(open_descriptors(), before);
  PinToCpu pin(online_[0]);
  EXPECT_EQ(generator_->output(16), -ENOENT);
}

// The kernel does not let us see that a slot is taken: the second reader silences the first, and
// when it goes the slots are empty. This is documented; the test keeps the documentation true.
TEST_F(OpenTest, TheSecondReaderOfAMapTakesTheSlots) {
  PinToCpu pin(online_[0]);
  const auto first = open();
  auto second = open();
  EXPECT_EQ(generator_->output(16), 0);
  EXPECT_EQ(drain_all(*first).size(), 0u);
  EXPECT_EQ(drain_all(*second).size(), 1u);
  second.reset();
  EXPECT_EQ(generator_->output(16), -ENOENT);
}

TEST_F(OpenTest, ARestartedReaderGetsTheEventsAgain) {
  for (const uint32_t flags : {0u, uint32_t{BPF_F_PRESERVE_ELEMS}}) {
    load(GENERATOR_CPUS, flags);
    PinToCpu pin(online_[0]);
    for (int reader = 0; reader < 2; ++reader) {
      const auto array = open();
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(generator_->output(16), 0);
      EXPECT_EQ(drain_all(*array).size(), 1000u);
    }
    const uint64_t before = generator_->total(generator_->counts().no_slot);
    for (int i = 0; i < 1000; ++i) generator_->output(16);
    EXPECT_EQ(generator_->total(generator_->counts().no_slot) - before, 1000u) << flags;
  }
}

// Slots belong to the open file that set them, unless the map preserves them.
TEST_F(OpenTest, SlotsOutliveTheirDescriptorOnlyInAPreservingMap) {
  PinToCpu pin(online_[0]);
  for (const uint32_t flags : {0u, uint32_t{BPF_F_PRESERVE_ELEMS}}) {
    load(GENERATOR_CPUS, flags);
    auto ring = PerfRing::open(PerfKernel::real(), online_[0], {.data_bytes = 4096});
    ASSERT_TRUE(ring);
    {
      const Fd own = std::move(*reopen_map(generator_->map_fd()));
      ASSERT_TRUE(set_map_slot(own.get(), online_[0], (*ring)->fd()));
      EXPECT_EQ(generator_->output(16), 0);
    }
    EXPECT_EQ(generator_->output(16), flags == 0 ? -ENOENT : 0);
  }
}

TEST_F(OpenTest, RefusesAnInheritedEvent) {
  perf_event_attr attr = bpf_output_attr({});
  attr.inherit = 1;
  auto ring = PerfRing::open(PerfKernel::real(), static_cast<int>(online_[0]), -1, attr, 4096);
  ASSERT_TRUE(ring) << ring.error().message;
  const Status status = set_map_slot(generator_->map_fd(), online_[0], (*ring)->fd());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, EOPNOTSUPP);
}

TEST_F(OpenTest, ClampsOrRefusesAWatermarkOutOfReach) {
  KernelEventArrayOptions options = one_page();
  options.wakeup.watermark_bytes = 4084;
  EXPECT_EQ(open(options)->report().wakeup.watermark_bytes, 2048u);
  EXPECT_TRUE(open(options)->report().wakeup.clamped);
  options.wakeup.clamp = false;
  EXPECT_FALSE(KernelEventArray::open(generator_->map_fd(), options));
}

TEST_F(OpenTest, WarnsWhenALossWouldWedgeTheRing) {
  KernelEventArrayOptions options = one_page();
  options.max_payload = 4060;
  ASSERT_EQ(open(options)->report().warnings.size(), 1u);
  options.max_payload = 4000;
  EXPECT_TRUE(open(options)->report().warnings.empty());
}

// -- refusals ------------------------------------------------------------------------------------

// Becomes a user of its own, whose allowance nobody else uses, with all capabilities but one.
void become_user_without(int capability) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  prctl(PR_SET_KEEPCAPS, 1);
  ASSERT_EQ(setresuid(61234, 61234, 61234), 0);
  syscall(SYS_capget, &header, data);
  for (auto& set : data) set.effective = set.permitted;
  data[capability / 32].effective &= ~(1u << capability % 32);
  ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

TEST_F(OpenTest, SaysHowMuchLockedMemoryIsMissing) {
  EXPECT_EQ(in_child([&] {
              const rlimit none = {0, 0};
              setrlimit(RLIMIT_MEMLOCK, &none);
              become_user_without(CAP_IPC_LOCK);
              KernelEventArrayOptions options{.size = {.bytes_per_cpu = 64 << 20}};
              const size_t before = open_descriptors();
              const auto array = KernelEventArray::open(generator_->map_fd(), options);
              if (array) return 1;
              const std::string& text = array.error().message;
              if (array.error().code != EPERM) return 2;
              if (text.find(std::to_string((64 << 20) + 4096)) == std::string::npos) return 3;
              if (text.find("perf_event_mlock_kb = 516 KiB") == std::string::npos) return 4;
              if (open_descriptors() != before) return 5;
              options.shrink_to_fit = true;
              const auto smaller = KernelEventArray::open(generator_->map_fd(), options);
              if (!smaller) return 6;
              return (*smaller)->report().ring_bytes == 512 << 10 ? 0 : 7;
            }),
            0);
}

// Occupies every free descriptor number below `limit`.
void fill_descriptors(rlim_t limit) {
  const rlimit few = {limit, limit};
  setrlimit(RLIMIT_NOFILE, &few);
  while (dup(0) >= 0) {
  }
}

TEST_F(OpenTest, UndoesEverythingWhenDescriptorsRunOut) {
  const size_t needed = 3 + online_.size();  // map, epoll, eventfd, one event each
  for (size_t spare = 0; spare <= needed; ++spare)
    EXPECT_EQ(in_child([&] {
                fill_descriptors(200);
                for (size_t i = 0; i < spare; ++i) close(static_cast<int>(199 - i));
                const auto array = KernelEventArray::open(generator_->map_fd());
                if (array) return spare == needed ? 0 : 1;
                if (array.error().code != EMFILE) return 2;
                for (size_t i = 0; i < spare; ++i)
                  if (dup(0) < 0) return 3;  // something was left open
                return 0;
              }),
              0)
        << spare << " descriptors";
}

// -- a kernel that answers differently
// -------------------------------------------------------------

class ScriptedKernel : public PerfKernel {
 public:
  Result<Fd> open_event(const perf_event_attr& attr, pid_t tid, int cpu) override {
    ++opened;
    if (no_format_lost && (attr.read_format & (1u << 4)) != 0)
      return errno_error(EINVAL, "scripted");
    if (cpu == dead_cpu) return errno_error(ENODEV, "scripted");
    return PerfKernel::real().open_event(attr, tid, cpu);
  }
  Result<std::vector<uint32_t>> online_cpus() override { return online; }
  Status set_slot(int map_fd, uint32_t index, int event_fd) override {
    return PerfKernel::real().set_slot(map_fd, index, event_fd);
  }
  Status clear_slot(int map_fd, uint32_t index) override {
    return PerfKernel::real().clear_slot(map_fd, index);
  }

  std::vector<uint32_t> online;
  bool no_format_lost = false;
  int dead_cpu = -1;
  int opened = 0;
};

TEST_F(OpenTest, TellsNoExactLossWhereTheKernelHasNone) {
  ScriptedKernel kernel;
  kernel.online = online_;
  kernel.no_format_lost = true;
  KernelEventArrayOptions options = one_page();
  options.kernel = &kernel;
  const auto array = open(options);
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 200; ++i) generator_->output(64);
  EXPECT_FALSE(array->stats(online_[0]).lost_exact);
  EXPECT_TRUE(open(one_page())->stats(online_[0]).lost_exact);
}

TEST_F(OpenTest, OpensTheOthersWhenACpuGoesAndOpensItWhenItReturns) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  ScriptedKernel kernel;
  kernel.online = online_;
  kernel.dead_cpu = static_cast<int>(online_[1]);
  const auto array = open({.kernel = &kernel});
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(array->ring_count(), online_.size() - 1);
  EXPECT_EQ(array->report().offline, std::vector<uint32_t>{online_[1]});
  PinToCpu pin(online_[1]);
  EXPECT_EQ(generator_->output(16), -ENOENT);

  kernel.dead_cpu = -1;
  ASSERT_TRUE(array->maintain());
  EXPECT_EQ(generator_->output(16), 0);
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

TEST_F(OpenTest, ReplacesTheRingOfACpuThatWentAndCameBack) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  ScriptedKernel kernel;
  kernel.online = online_;
  const auto array = open({.kernel = &kernel});
  PinToCpu pin(online_[1]);
  ASSERT_EQ(generator_->output(24), 0);
  kernel.online = {online_[0]};
  ASSERT_TRUE(array->maintain());
  ASSERT_EQ(generator_->output(24), 0);  // the old event still works: only the list was scripted
  kernel.online = online_;
  const int opened = kernel.opened;
  ASSERT_TRUE(array->maintain());
  EXPECT_EQ(kernel.opened, opened + 1);
  ASSERT_EQ(generator_->output(24), 0);
  std::vector<uint64_t> seqs;
  while (array->has_data())
    for (const Got& got : drain_all(*array)) seqs.push_back(got.front().seq);
  EXPECT_EQ(seqs, (std::vector<uint64_t>{0, 1, 2})) << "old ring first";
  EXPECT_EQ(array->stats(online_[1]).records, 3u);
}

// What a CPU leaves behind that went and returned between two looks: an event that is off.
TEST_F(OpenTest, TurnsAnEventOnThatWentOff) {
  auto ring = PerfRing::open(PerfKernel::real(), online_[0], {.data_bytes = 4096});
  ASSERT_TRUE(ring);
  ASSERT_TRUE(set_map_slot(generator_->map_fd(), online_[0], (*ring)->fd()));
  PinToCpu pin(online_[0]);
  ASSERT_EQ(ioctl((*ring)->fd(), PERF_EVENT_IOC_DISABLE, 0), 0);
  EXPECT_EQ(generator_->output(16), -EOPNOTSUPP);
  ASSERT_TRUE((*ring)->enable());
  EXPECT_EQ(generator_->output(16), 0);
  ASSERT_TRUE((*ring)->enable()) << "no harm to one that is on";
  EXPECT_EQ(generator_->output(16), 0);
}

TEST_F(OpenTest, SurvivesARealCpuGoingOfflineAndBack) {
  if (getenv("DWELL_TEST_HOTPLUG") == nullptr)
    GTEST_SKIP() << "takes a CPU offline; set DWELL_TEST_HOTPLUG=1 on a machine of your own";
  const uint32_t cpu = online_.back();
  const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online";
  const auto set_online = [&](bool online) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return fd && write(fd.get(), online ? "1" : "0", 1) == 1;
  };
  const auto array = open();
  if (!set_online(false)) GTEST_SKIP() << "CPU " << cpu << " cannot be taken offline";
  EXPECT_TRUE(array->maintain());
  ASSERT_TRUE(set_online(true));
  {
    PinToCpu pin(cpu);
    EXPECT_EQ(generator_->output(16), -EOPNOTSUPP) << "the old event stays off";
    ASSERT_TRUE(array->maintain());
    EXPECT_EQ(generator_->output(16), 0);
  }
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
