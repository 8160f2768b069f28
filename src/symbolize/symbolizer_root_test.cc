// The symbolizer on live, dying and dead processes: deleted files, namespaces, exec, reuse of
// addresses. Needs root for map_files, perf events of the whole machine and namespaces.
#include "base/clock.h"
#include "symbolize/root_fixture.h"

namespace dwell::symbolize {
namespace {

TEST_F(SymbolizerRootTest, NamesADeletedProgram) {
  build("p", "");
  Target target({shop_.path("p")});
  ASSERT_TRUE(target.wait_ready());
  ASSERT_TRUE(shop_.run("rm p"));
  const LocationId id = locate(target.key(), target.at("inner"), monotonic_ns());
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
  EXPECT_EQ(name(target.key(), target.at("inner"), monotonic_ns()), "old_inner");
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
  const LocationId id = late->locate_user(key, target.at("inner"), false, monotonic_ns());
  EXPECT_NE(late->describe(id).function, "new_inner");
  EXPECT_EQ(late->object(late->describe(id).object).path, shop_.path("p"));
}

TEST_F(SymbolizerRootTest, NamesProgramsWhosePathsLookStrange) {
  for (const std::string strange : {"a b (deleted)", "line\nbreak", "back\\012slash"}) {
    build("p", "");
    std::filesystem::rename(shop_.path("p"), shop_.path(strange));
    Target target({shop_.path(strange)});
    ASSERT_TRUE(target.wait_ready());
    const LocationId id = locate(target.key(), target.at("inner"), monotonic_ns());
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
  const LocationId id = locate(key, target.at("inner"), monotonic_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "container_inner");
  EXPECT_EQ(object(id).path, shop_.path("p"));
}

TEST_F(SymbolizerRootTest, NamesAProgramOnAnOverlayWhoseInodesDiffer) {
  build("p", "layered_");
  Target target(
      {"unshare", "-m", "sh", "-c",
       "cd " + shop_.directory() +
           " && mkdir lower merged && mount -t tmpfs tmpfs lower && mkdir lower/l lower/u "
           "lower/w && cp p lower/l/ && mount -t overlay overlay -o "
           "lowerdir=lower/l,upperdir=lower/u,workdir=lower/w merged && exec merged/p"});
  if (!target.wait_ready()) GTEST_SKIP() << "cannot mount an overlay here";
  const LocationId id = locate(target.key(), target.at("inner"), monotonic_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "layered_inner");
  EXPECT_TRUE(symbolizer_->unresolved().empty());
}

TEST_F(SymbolizerRootTest, NamesAChrootedProgramByThePathThatItSees) {
  build("p", "inside_", "-O1 -static");
  ASSERT_TRUE(shop_.run("mkdir -p root/app && mv p root/app/p"));
  Target target({"chroot", shop_.path("root"), "/app/p"});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey key = target.key();
  const LocationId id = locate(key, target.at("inner"), monotonic_ns());
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
  const LocationId id = locate(target.key(), target.at("inner"), monotonic_ns());
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
  const uint64_t first_ip = target.at("inner"), first_ns = monotonic_ns();
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey after = target.key(6);
  const uint64_t second_ip = target.at("inner");
  EXPECT_EQ(name(after, second_ip, monotonic_ns()), "second_inner");
  EXPECT_EQ(name(before, first_ip, first_ns), "first_inner");
  EXPECT_EQ(symbolizer_->process_info(before).executable, shop_.path("a"));
  EXPECT_EQ(symbolizer_->process_info(after).executable, shop_.path("b"));
}

TEST_F(SymbolizerRootTest, DoesNotTakeTheMapsOfTheNextImageForThoseOfThisOne) {
  Options options;
  options.follow_mappings = false;  // so that no event tells of the exec
  symbolizer_ = std::move(*Symbolizer::create(options));
  build("b", "second_", "-O1 -no-pie");
  std::string first = speaking_program("first_");
  first.replace(first.find("return (int)read(0, &c, 1)"), 6,
                "if (read(0, &c, 1) == 1) execl(\"" + shop_.path("b") + "\", \"b\", NULL); return");
  build_c("a", first, "-O1 -no-pie");
  Target target({shop_.path("a")});
  ASSERT_TRUE(target.wait_ready());
  const ProcessKey before = target.key(5), after = target.key(6);
  const uint64_t first_ip = target.at("inner");
  symbolizer_->notice_process(before);
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  locate(before, 0x10, monotonic_ns());  // unknown: asks /proc again
  EXPECT_EQ(name(before, first_ip, monotonic_ns()), "first_inner");
  EXPECT_EQ(name(after, target.at("inner"), monotonic_ns()), "second_inner");
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
  const uint64_t one = target.at("f"), one_ns = monotonic_ns();
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  const uint64_t two = target.at("f"), two_ns = monotonic_ns();
  if (one != two) GTEST_SKIP() << "the loader did not use the address again";
  EXPECT_EQ(name(key, two, two_ns), "function_in_two");
  EXPECT_EQ(name(key, one, one_ns), "function_in_one");
  EXPECT_EQ(name(key, two, monotonic_ns()), "function_in_two");
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
  EXPECT_EQ(name(key, target.at("worker"), monotonic_ns()), "worker");
  EXPECT_EQ(symbolizer_->process_info(key).executable, shop_.path("p"));
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
    const LocationId id = locate(target.key(), target.at("vdso") + offset, monotonic_ns());
    EXPECT_EQ(object(id).path, "[vdso]");
    named = symbolizer_->describe(id).function.find("gettime") != std::string::npos;
  }
  EXPECT_TRUE(named);
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
    ids.push_back(locate(target.key(), target.at("inner"), monotonic_ns()));
  }
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(symbolizer_->describe(ids[static_cast<size_t>(i)]).function,
              "f" + std::to_string(i) + "_inner");
}

}  // namespace
}  // namespace dwell::symbolize
