// Perf maps of live processes: found, followed, believed or refused. Needs root for namespaces.
#include <sys/stat.h>

#include "base/clock.h"
#include "symbolize/root_fixture.h"

namespace dwell::symbolize {
namespace {

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
  const LocationId id = locate(key, target.at("code") + 8, monotonic_ns());
  EXPECT_EQ(symbolizer_->describe(id).function, "jit blob::run(int)");
  EXPECT_EQ(symbolizer_->describe(id).offset, 8u);
  EXPECT_EQ(symbolizer_->describe(id).how, Resolution::kPerfMap);
  EXPECT_EQ(object(id).kind, ModuleKind::kJit);
  target.go_on();
  ASSERT_TRUE(target.wait_ready());
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(name(key, target.at("code") + 64, monotonic_ns()), "jit more");
  EXPECT_EQ(name(key, target.at("code"), monotonic_ns()), "jit again");
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
  const LocationId id = locate(key, target.at("code") + 8, monotonic_ns());
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
        fresh->locate_user(target.key(), target.at("code"), false, monotonic_ns());
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

}  // namespace
}  // namespace dwell::symbolize
