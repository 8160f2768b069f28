// The kernel's event array under random load, with everybody killed now and then: every output is
// delivered, or counted by the kernel as lost, or refused with an error that the program saw, on
// each CPU. exactness_run.h says how long and what else happens.
//
// The kernel's rings go with the last descriptor and the last mapping of their events. So the
// supervisor keeps both of every ring that a reader opens: what a killed reader leaves in a ring
// is then taken at the stored tail, as the next reader of a ring of ours would.
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "event_array/exactness_run.h"
#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr uint64_t kDataBytes = 32 << 10;
constexpr uint64_t kMappedBytes = kDataBytes + 4096;

// Opens events as the real kernel does and sends a copy of each, with its CPU, to the supervisor.
class SharingKernel : public PerfKernel {
 public:
  explicit SharingKernel(int socket) : socket_(socket) {}
  Result<Fd> open_event(const perf_event_attr& attr, pid_t tid, int cpu) override {
    auto event = PerfKernel::real().open_event(attr, tid, cpu);
    if (event && !send(event->get(), static_cast<uint32_t>(cpu)))
      return errno_error(errno, "cannot send a perf event to the supervisor");
    return event;
  }
  Result<std::vector<uint32_t>> online_cpus() override { return PerfKernel::real().online_cpus(); }
  Status set_slot(int map_fd, uint32_t index, int event_fd) override {
    return PerfKernel::real().set_slot(map_fd, index, event_fd);
  }
  Status clear_slot(int map_fd, uint32_t index) override {
    return PerfKernel::real().clear_slot(map_fd, index);
  }

 private:
  bool send(int event, uint32_t cpu);

  int socket_;
};

union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

bool SharingKernel::send(int event, uint32_t cpu) {
  Control control = {};
  iovec io = {&cpu, sizeof cpu};
  msghdr message = {};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof event);
  std::memcpy(CMSG_DATA(header), &event, sizeof event);
  ssize_t n = 0;
  do n = sendmsg(socket_, &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n == sizeof cpu;
}

struct KeptRing {
  uint32_t cpu = 0;
  Fd event;
  Mapping mapping;

  uint64_t lost() const {
    uint64_t values[2] = {};  // value, lost: the array's read_format
    EXPECT_EQ(read(event.get(), values, sizeof values), 16) << "CPU " << cpu;
    return values[1];
  }
  void map() {
    if (mapping) return;
    void* at = mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
    ASSERT_NE(at, MAP_FAILED) << strerror(errno);
    mapping = Mapping(at, kMappedBytes);
  }
};

class KernelSubject : public ExactnessSubject {
 public:
  KernelSubject(Stage& stage, Generator& generator)
      : ExactnessSubject(stage), generator_(generator) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
    ours_ = Fd(pair[0]);
    theirs_ = Fd(pair[1]);
  }

  void produce(uint32_t writer, Dice& dice) override;
  Result<std::unique_ptr<EventArray>> open() override;
  void take(uint32_t cpu, const Sample& sample, uint64_t lost) override;
  void reader_stopped() override;
  void reader_dead() override;
  bool drained() override;
  void compare(const std::vector<bool>& dead) override;
  void print() const override;

 private:
  void receive_events();
  void take_what_is_left(KeptRing& ring);

  Generator& generator_;
  Fd ours_, theirs_;
  std::vector<KeptRing> rings_;  // of the reader that lives, in the order of opening
  std::array<uint64_t, kStageCpus> lost_{};
  std::array<uint64_t, kStageCpus> lost_before_{};  // in the rings of dead readers
  uint64_t left_behind_ = 0;
};

// The program itself counts how each ended. Payloads above 64 KiB are left out: the kernel reports
// success for those and destroys unread records.
void KernelSubject::produce(uint32_t, Dice& dice) {
  const uint64_t choice = dice.below(2000);
  const uint64_t size = choice == 0   ? 40'000  // larger than the ring
                        : choice < 50 ? dice.below(6000)
                                      : dice.below(400);
  const int saved = errno;
  Generator::fire(sizeof(generated) + size);
  errno = saved;
}

Result<std::unique_ptr<EventArray>> KernelSubject::open() {
  static SharingKernel kernel(theirs_.get());
  return KernelEventArray::open(generator_.map_fd(),
                                {.size = {.bytes_per_cpu = kDataBytes},
                                 .wait = {.sweep = std::chrono::milliseconds(20)},
                                 .kernel = &kernel});
}

void KernelSubject::take(uint32_t cpu, const Sample& sample, uint64_t lost) {
  const auto front = payload_as<generated>(sample);
  if (!front || front->cpu != cpu || front->size > sample.payload.size() ||
      front->size + 8 <= sample.payload.size())
    return stage_.fault("a damaged record; CPU, size", cpu, sample.payload.size());
  if (std::memcmp(sample.payload.data() + sizeof *front,
                  Generator::pattern().data() + sizeof *front, front->size - sizeof *front) != 0)
    stage_.fault("damaged bytes; CPU, size", cpu, front->size);
  if (!stage_.journals[cpu].take(0, front->seq, lost)) ++stage_.taken_again;
}

void KernelSubject::receive_events() {
  for (;;) {
    Control control = {};
    KeptRing ring;
    iovec io = {&ring.cpu, sizeof ring.cpu};
    msghdr message = {};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    if (recvmsg(ours_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return;
    int fd = -1;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    ASSERT_NE(header, nullptr);
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    ring.event = Fd(fd);
    rings_.push_back(std::move(ring));
  }
}

// Before its mappings go: a ring lives as long as it is mapped.
void KernelSubject::reader_stopped() {
  receive_events();
  for (KeptRing& ring : rings_) ring.map();
}

void KernelSubject::take_what_is_left(KeptRing& ring) {
  auto reader = RingReader::create({reinterpret_cast<ring::MetaPage*>(ring.mapping.data()),
                                    ring.mapping.data() + 4096, kDataBytes, false});
  ASSERT_TRUE(reader);
  uint64_t lost = 0;
  while (reader->has_data())
    reader->drain({}, [&](const Record& record) {
      if (const auto count = lost_count(record)) {
        lost += *count;
        return;
      }
      Sample sample;
      ASSERT_EQ(decode_sample({}, record, sample), SampleCheck::kOk);
      take(ring.cpu, sample, std::exchange(lost, 0));
      ++left_behind_;
    });
  EXPECT_EQ(reader->counts().corrupt, 0u);
}

// The slots are empty now, but a program that took a ring out of its slot before may still be
// writing into it. Programs are RCU read sections, and this waits for those that run.
void KernelSubject::reader_dead() {
  ASSERT_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0) << strerror(errno);
  for (KeptRing& ring : rings_) {
    take_what_is_left(ring);
    lost_before_[ring.cpu] += ring.lost();
  }
  rings_.clear();
}

bool KernelSubject::drained() {
  for (uint32_t cpu = 0; cpu < kStageCpus; ++cpu)
    if (stage_.journals[cpu].delivered() != generator_.counts().ok[cpu]) return false;
  return true;
}

void KernelSubject::compare(const std::vector<bool>&) {
  receive_events();
  lost_ = lost_before_;
  for (const KeptRing& ring : rings_) lost_[ring.cpu] += ring.lost();
  const generator_shared& program = generator_.counts();
  for (uint32_t cpu = 0; cpu < kStageCpus; ++cpu) {
    const Journal& journal = stage_.journals[cpu];
    ASSERT_EQ(journal.delivered(), program.ok[cpu]) << "CPU " << cpu;
    ASSERT_EQ(lost_[cpu], program.no_space[cpu]) << "CPU " << cpu;
    ASSERT_LE(journal.told(), lost_[cpu]) << "told by LOST records, CPU " << cpu;
    ASSERT_EQ(journal.delivered() + lost_[cpu] + program.no_slot[cpu] + program.other[cpu],
              program.calls[cpu])
        << "CPU " << cpu;
  }
}

void KernelSubject::print() const {
  const generator_shared& program = generator_.counts();
  for (uint32_t cpu = 0; cpu < kStageCpus; ++cpu)
    if (program.calls[cpu] != 0)
      fmt::print("  CPU {}: produced {} = delivered {} + lost {} + no reader {} + event off {}\n",
                 cpu, program.calls[cpu], stage_.journals[cpu].delivered(), lost_[cpu],
                 program.no_slot[cpu], program.other[cpu]);
  fmt::print("  {} records were taken from the rings of dead readers\n", left_behind_);
}

using KernelExactnessTest = KernelArrayTest;

TEST_F(KernelExactnessTest, EveryOutputIsDeliveredOrCountedThoughAnybodyIsKilled) {
  if (online_.back() >= kStageCpus) GTEST_SKIP() << "made for up to " << kStageCpus << " CPUs";
  if (sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "made for pages of 4 KiB";
  generator_->target_any_process();
  Stage& stage = make_stage();
  KernelSubject subject(stage, *generator_);
  {
    ExactnessRun run(stage, subject);
    run.run();
    EXPECT_GT(run.kills(), static_cast<uint64_t>(ExactnessRun::seconds().count()));
    EXPECT_GT(run.reader_ends(), 0u);
  }
  for (const uint32_t cpu : online_) {
    EXPECT_GT(stage.journals[cpu].delivered(), 0u);
    EXPECT_GT(generator_->counts().no_space[cpu], 0u) << "the load was too low to show anything";
  }
  munmap(&stage, sizeof stage);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
