// The symbolizer on live, dying and dead processes: deleted files, namespaces, exec, reuse of
// addresses, JIT maps. Needs root for map_files, perf events of the whole machine and namespaces.
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "symbolize/symbolizer.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

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

TEST_F(SymbolizerRootTest, NamesADeletedProgram) {
  build("p", "");
  Target target({shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  ASSERT_TRUE(shop_.run("rm p"));
  const LocationId id = locate(target.key(), target.at("inner"), monotonic_now_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "inner");
  EXPECT_EQ(object(id).kind, ModuleKind::kDeletedFile);
  EXPECT_EQ(object(id).path, shop_.path("p"));
}

TEST_F(SymbolizerRootTest, NamesAReplacedProgramFromTheFileThatRuns) {
  build("p", "old_");
  build("new", "a_rather_longer_");
  Target target({shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  ASSERT_TRUE(shop_.run("mv new p"));
  EXPECT_EQ(name(target.key(), target.at("inner"), monotonic_now_ns()), "old_inner");
}

TEST_F(SymbolizerRootTest, NamesNothingFromAFileThatReplacedTheOneOfADeadProcess) {
  // No events here: all that is known is what /proc said while the process lived.
  Options options;
  options.follow_mappings = false;
  const auto late = std::move(*Symbolizer::create(options));
  build("p", "old_");
  build("new", "new_");
  Target target({shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey key = target.key();
  late->notice_process(key);
  target.stop();
  ASSERT_TRUE(shop_.run("mv new p"));
  const LocationId id = late->locate_user(key, target.at("inner"), false, monotonic_now_ns());
  EXPECT_NE(late->describe(id).function, "new_inner");
  EXPECT_EQ(late->object(late->describe(id).object).path, shop_.path("p"));
}

TEST_F(SymbolizerRootTest, NamesProgramsWhosePathsLookStrange) {
  for (const std::string strange : {"a b (deleted)", "line\nbreak", "back\\012slash"}) {
    build("p", "");
    std::filesystem::rename(shop_.path("p"), shop_.path(strange));
    Target target({shop_.path(strange)});
    ASSERT_TRUE(target.wait_ready());
    const LocationId id = locate(target.key(), target.at("inner"), monotonic_now_ns());
    EXPECT_EQ(symbolizer_->describe(id).function, "inner") << strange;
    EXPECT_EQ(object(id).kind, ModuleKind::kFile) << strange;
  }
}

TEST_F(SymbolizerRootTest, UsesTheFileOfTheMountNamespaceNotItsNamesakeHere) {
  build("p", "host_");
  build("inside", "container_");
  Target target({"unshare", "-m", "sh", "-c",
                 "mount --bind " + shop_.path("inside") + " " + shop_.path("p") + " && exec " +
                     shop_.path("p")});
  if (!target.wait_ready()) GTEST_SKIP() << "cannot make a mount namespace here";
  const ProcessKey key = target.key();
  const LocationId id = locate(key, target.at("inner"), monotonic_now_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "container_inner");
  EXPECT_EQ(object(id).path, shop_.path("p"));
}

TEST_F(SymbolizerRootTest, NamesAChrootedProgramByThePathThatItSees) {
  build("p", "inside_", "-O1 -static");
  ASSERT_TRUE(shop_.run("mkdir -p root/app && mv p root/app/p"));
  Target target({"chroot", shop_.path("root"), "/app/p"});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey key = target.key();
  const LocationId id = locate(key, target.at("inner"), monotonic_now_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "inside_inner");
  EXPECT_EQ(object(id).path, "/app/p");
}

TEST_F(SymbolizerRootTest, NamesAProgramThatIsOnlyInMemory) {
  build("p", "");
  build_c("launch", R"(
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
extern char** environ;
int main(int argc, char** argv) {
  int in = open(argv[1], O_RDONLY), fd = memfd_create("payload", MFD_CLOEXEC);
  while (sendfile(fd, in, 0, 1 << 20) > 0) {}
  return fexecve(fd, argv + 1, environ) + argc;
})");
  Target target({shop_.path("launch"), shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const LocationId id = locate(target.key(), target.at("inner"), monotonic_now_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "inner");
  EXPECT_EQ(object(id).kind, ModuleKind::kMemfd);
  EXPECT_EQ(object(id).path, "memfd:payload");
}

TEST_F(SymbolizerRootTest, NamesTwoHundredProcessesThatEndedBeforeAnybodyAsked) {
  build_c("brief", R"(
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static int brief_function(int x) { return x * 3; }
int main(int argc, char** argv) {
  struct timespec now;
  char stat[1024] = {0};
  FILE* in = fopen("/proc/self/stat", "r");
  unsigned long long ticks = 0;
  if (!in || !fgets(stat, sizeof(stat), in)) return 1;
  char* at = strrchr(stat, ')') + 2;
  for (int i = 0; i < 19; ++i) at = strchr(at, ' ') + 1;
  sscanf(at, "%llu", &ticks);
  usleep(20000);
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("pid %x\nticks %llx\ntime %llx\nown %p\nlibc %p\nready\n", getpid(), ticks,
         now.tv_sec * 1000000000ull + now.tv_nsec, (void*)brief_function, (void*)getppid);
  return brief_function(argc - 1);
})");
  constexpr int kProcesses = 200;
  int named = 0, libc_named = 0;
  std::vector<std::array<uint64_t, 5>> seen;
  for (int i = 0; i < kProcesses; ++i) {
    Target target({shop_.path("brief")});
    if (i % 4 == 3) symbolizer_->poll();
    ASSERT_TRUE(target.wait_ready());
    seen.push_back({target.at("pid"), target.at("ticks"), target.at("time"), target.at("own"),
                    target.at("libc")});
  }
  for (const auto& [pid, ticks, time_ns, own, libc] : seen) {
    const ProcessKey key{static_cast<uint32_t>(pid), 1, ticks * kNsPerTick};
    named += name(key, own, time_ns) == "brief_function";
    libc_named += name(key, libc, time_ns) == "getppid";
    EXPECT_EQ(symbolizer_->process_info(key).executable, shop_.path("brief"));
  }
  EXPECT_GE(named, kProcesses * 95 / 100);
  EXPECT_GE(libc_named, kProcesses * 95 / 100);
}

TEST_F(SymbolizerRootTest, TellsTheImagesOfOnePidApart) {
  build("b", "second_", "-O1 -no-pie");
  std::string first = speaking_program("first_");
  first.replace(first.find("return (int)read(0, &c, 1)"), 6,
                "if (read(0, &c, 1) == 1) execl(\"" + shop_.path("b") + "\", \"b\", NULL); return");
  build_c("a", first, "-O1 -no-pie");
  Target target({shop_.path("a")});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey before = target.key(5);
  const uint64_t first_ip = target.at("inner"), first_ns = monotonic_now_ns();
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey after = target.key(6);
  const uint64_t second_ip = target.at("inner");
  EXPECT_EQ(name(after, second_ip, monotonic_now_ns()), "second_inner");
  EXPECT_EQ(name(before, first_ip, first_ns), "first_inner");
  EXPECT_EQ(symbolizer_->process_info(before).executable, shop_.path("a"));
  EXPECT_EQ(symbolizer_->process_info(after).executable, shop_.path("b"));
}

TEST_F(SymbolizerRootTest, TellsTwoLibrariesAtOneAddressApart) {
  for (const std::string lib : {"one", "two"})
    build_c("lib" + lib + ".so", "int function_in_" + lib + "(int x) { return x + 1; }",
            "-O1 -shared -fPIC");
  build_c("p", R"(
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char c;
  for (int i = 1; i < argc; i += 2) {
    void* lib = dlopen(argv[i], RTLD_NOW);
    if (!lib) { puts(dlerror()); return 1; }
    printf("f %p\nready\n", dlsym(lib, argv[i + 1]));
    fflush(stdout);
    if (read(0, &c, 1) != 1) return 0;
    dlclose(lib);
  }
})",
          "-O1 -x c");
  Target target({shop_.path("p"), shop_.path("libone.so"), "function_in_one",
                 shop_.path("libtwo.so"), "function_in_two"});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey key = target.key();
  const uint64_t one = target.at("f"), one_ns = monotonic_now_ns();
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  const uint64_t two = target.at("f"), two_ns = monotonic_now_ns();
  if (one != two) GTEST_SKIP() << "the loader did not use the address again";
  EXPECT_EQ(name(key, two, two_ns), "function_in_two");
  EXPECT_EQ(name(key, one, one_ns), "function_in_one");
  EXPECT_EQ(name(key, two, monotonic_now_ns()), "function_in_two");
}

TEST_F(SymbolizerRootTest, NamesAProcessWhoseLeaderHasExited) {
  build_c("p", R"(
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void* worker(void* x) {
  char c;
  usleep(50000);
  printf("worker %p\nready\n", (void*)worker);
  fflush(stdout);
  return read(0, &c, 1) ? x : 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  pthread_exit(0);
})",
          "-O1 -pthread");
  Options options;
  options.follow_mappings = false;  // so that /proc has to be read
  symbolizer_ = std::move(*Symbolizer::create(options));
  Target target({shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey key = target.key();
  EXPECT_EQ(name(key, target.at("worker"), monotonic_now_ns()), "worker");
  EXPECT_EQ(symbolizer_->process_info(key).executable, shop_.path("p"));
}

constexpr const char* kJit = R"(
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char c, path[64];
  void* code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(path, "w");
  if (!map) return 1;
  fprintf(map, "%lx 40 jit blob::run(int)\n", (long)code);
  fflush(map);
  printf("code %p\nready\n", code);
  fflush(stdout);
  if (read(0, &c, 1) != 1) return argc;
  fprintf(map, "%lx 40 jit again\n%lx 40 jit more\n", (long)code, (long)code + 64);
  fflush(map);
  printf("ready\n");
  fflush(stdout);
  if (read(0, &c, 1) == 1) unlink(path);
  return 0;
})";

TEST_F(SymbolizerRootTest, NamesJitCodeAndFollowsItsGrowingMap) {
  build_c("jit", kJit);
  Target target({shop_.path("jit")});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey key = target.key();
  const LocationId id = locate(key, target.at("code") + 8, monotonic_now_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "jit blob::run(int)");
  EXPECT_EQ(symbolizer_->describe(id).offset, 8u);
  EXPECT_EQ(symbolizer_->describe(id).how, Resolution::kPerfMap);
  EXPECT_EQ(object(id).kind, ModuleKind::kJit);
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(name(key, target.at("code") + 64, monotonic_now_ns()), "jit more");
  EXPECT_EQ(name(key, target.at("code"), monotonic_now_ns()), "jit again");
  std::filesystem::remove("/tmp/perf-" + std::to_string(target.pid()) + ".map");
}

TEST_F(SymbolizerRootTest, FindsThePerfMapInAPidNamespaceAndKeepsItAfterItsEnd) {
  build_c("jit", kJit);
  const std::string copy = "mount -t tmpfs tmpfs /tmp && exec /proc/self/fd/9";
  Target target({"sh", "-c",
                 "exec 9<" + shop_.path("jit") +
                     "; exec 2>/dev/null unshare -mpf --mount-proc sh -c '" + copy + "'"});
  if (!target.wait_ready()) GTEST_SKIP() << "cannot make namespaces here";
  const uint32_t inner = child_of(target.pid());
  ASSERT_NE(inner, 0u);
  const ProcessKey key = Target::key_of(inner);
  const LocationId id = locate(key, target.at("code") + 8, monotonic_now_ns());
  kill(static_cast<pid_t>(inner), SIGKILL);
  target.stop();
  EXPECT_EQ(symbolizer_->describe(id).function, "jit blob::run(int)");
}

TEST_F(SymbolizerRootTest, RefusesAPerfMapThatIsALinkAFifoOrAStrangers) {
  build_c("plain", R"(
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  char c;
  void* code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("code %p\nready\n", code);
  fflush(stdout);
  return (int)read(0, &c, 1);
})");
  const auto refused = [&](const std::string& command) {
    const auto fresh = std::move(*Symbolizer::create({}));
    Target target({shop_.path("plain")});
    EXPECT_TRUE(target.wait_ready());
    const std::string map = "/tmp/perf-" + std::to_string(target.pid()) + ".map";
    char line[64];
    snprintf(line, sizeof(line), "%lx 1000 forged", static_cast<unsigned long>(target.at("code")));
    shop_.write("line", std::string(line) + "\n");
    EXPECT_TRUE(shop_.run("M=" + map + "; " + command)) << shop_.read("log");
    const auto start = std::chrono::steady_clock::now();
    const LocationId id =
        fresh->locate_user(target.key(), target.at("code"), false, monotonic_now_ns());
    const FrameInfo frame = fresh->describe(id);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    EXPECT_EQ(fresh->unresolved().size(), frame.how == Resolution::kNone ? 1u : 0u);
    std::filesystem::remove(map);
    return frame.function.empty();
  };
  EXPECT_FALSE(refused("cp line $M"));
  EXPECT_TRUE(refused("ln -s $PWD/line $M"));
  EXPECT_TRUE(refused("mkfifo $M"));
  EXPECT_TRUE(refused("mkdir $M"));
  EXPECT_TRUE(refused("cp line $M; chown 12345 $M"));
  EXPECT_TRUE(refused("true"));
}

TEST_F(SymbolizerRootTest, NamesTheVdsoWithoutAFile) {
  build_c("p", R"(
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>
int main(void) {
  char c;
  printf("vdso %lx\nready\n", getauxval(33));
  fflush(stdout);
  return (int)read(0, &c, 1);
})");
  Target target({shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  bool named = false;
  for (uint64_t offset = 0; offset < 0x2000 && !named; offset += 16) {
    const LocationId id = locate(target.key(), target.at("vdso") + offset, monotonic_now_ns());
    EXPECT_EQ(object(id).path, "[vdso]");
    named = symbolizer_->describe(id).function.find("gettime") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

TEST_F(SymbolizerRootTest, NamesTheKernelOfThisMachine) {
  std::ifstream kallsyms("/proc/kallsyms");
  uint64_t schedule = 0;
  for (std::string line; std::getline(kallsyms, line);)
    if (line.ends_with(" T schedule")) schedule = std::stoull(line, nullptr, 16);
  if (schedule == 0) GTEST_SKIP() << "the kernel hides its addresses here";
  const FrameInfo frame = symbolizer_->describe(symbolizer_->locate_kernel(schedule + 5, true));
  EXPECT_EQ(frame.function, "schedule");
  EXPECT_EQ(frame.offset, 5u);
  EXPECT_EQ(frame.kind, FrameKind::kKernel);
  EXPECT_EQ(frame.how, Resolution::kKallsyms);
  EXPECT_EQ(symbolizer_->object(frame.object).kind, ModuleKind::kKernel);
}

TEST_F(SymbolizerRootTest, ReadsFilesAgainThatItClosedToSaveDescriptors) {
  Options options;
  options.open_files_max = 2;
  symbolizer_ = std::move(*Symbolizer::create(options));
  std::vector<LocationId> ids;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    build("p" + number, "f" + number + "_");
    Target target({shop_.path("p" + number)});
    ASSERT_TRUE(target.wait_ready());
    ids.push_back(locate(target.key(), target.at("inner"), monotonic_now_ns()));
  }
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(symbolizer_->describe(ids[static_cast<size_t>(i)]).function,
              "f" + std::to_string(i) + "_inner");
}

}  // namespace
}  // namespace dwell::symbolize
