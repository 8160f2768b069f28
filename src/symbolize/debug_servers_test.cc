// A server on this machine that answers well, wrongly, without end or not at all.
#include "symbolize/debug_servers.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <filesystem>

#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

// A process that answers every request with `head` and `body`, the body again and again if it is
// to be endless.
class Server {
 public:
  Server(const std::string& head, const std::string& body, bool endless = false) {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(place);
    auto* address = reinterpret_cast<sockaddr*>(&place);
    listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener_.get(), address, size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), address, &size), 0);
    url_ = fmt::format("http://127.0.0.1:{}", ntohs(place.sin_port));
    pid_ = fork();
    if (pid_ == 0) serve(head, body, endless);
  }
  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  const std::string& url() const { return url_; }

 private:
  [[noreturn]] void serve(const std::string& head, const std::string& body, bool endless) const {
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
      const Fd client(accept(listener_.get(), nullptr, nullptr));
      char request[4096];
      if (::read(client.get(), request, sizeof(request)) <= 0) continue;
      if (head.empty()) pause();
      bool taken = send(client.get(), head);
      do {
        taken = taken && send(client.get(), body);
      } while (taken && endless);
    }
  }
  static bool send(int to, const std::string& text) {
    return ::write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  Fd listener_;
  std::string url_;
  pid_t pid_ = -1;
};

class DebugServersTest : public testing::Test {
 protected:
  static constexpr const char* kId = "abcdef01";
  void SetUp() override {
    if (dlopen("libdebuginfod.so.1", RTLD_LAZY) == nullptr)
      GTEST_SKIP() << "libdebuginfod is not installed";
    shop_.write("p.c", speaking_program());
    ASSERT_TRUE(
        shop_.run("gcc -g -O1 -Wl,--build-id=0xabcdef01 -o full p.c && "
                  "objcopy --only-keep-debug full full.debug"))
        << shop_.read("log");
    setenv("DEBUGINFOD_CACHE_PATH", shop_.path("cache").c_str(), 1);
    setenv("DEBUGINFOD_RETRY_LIMIT", "1", 1);
  }
  void TearDown() override { unsetenv("DEBUGINFOD_URLS"); }
  Result<std::string> fetch(const std::string& urls, const ServerLimits& limits = {}) const {
    setenv("DEBUGINFOD_URLS", urls.c_str(), 1);
    DWELL_ASSIGN(DebugServers servers, DebugServers::create(limits));
    return servers.fetch(kId, "program");
  }
  static std::string head_for(size_t bytes) {
    return fmt::format("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", bytes);
  }
  Workshop shop_;
};

TEST_F(DebugServersTest, SendTheFileOfABuildId) {
  const std::string file = shop_.read("full.debug");
  const Server server(head_for(file.size()), file);
  const auto path = fetch(server.url());
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_TRUE(path->starts_with(shop_.path("cache")));
  std::ifstream in(*path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), file);
}

TEST_F(DebugServersTest, AreNotBelievedAboutAnotherBuild) {
  ASSERT_TRUE(shop_.run("gcc -g -O1 -Wl,--build-id=0x9999 -o full p.c"));
  for (const std::string& file : {shop_.read("full"), std::string("not ELF at all")}) {
    std::filesystem::remove_all(shop_.path("cache"));
    const Server server(head_for(file.size()), file);
    EXPECT_FALSE(fetch(server.url()));
  }
}

TEST_F(DebugServersTest, MaySendOnlySoMuch) {
  const std::string much(size_t{1} << 20, 'x');
  const Server server("HTTP/1.0 200 OK\r\n\r\n", much, true);
  ServerLimits limits;
  limits.file_bytes = size_t{8} << 20;
  const auto path = fetch(server.url(), limits);
  ASSERT_FALSE(path);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shop_.path("cache"))) {
    if (!entry.is_regular_file()) continue;
    EXPECT_LE(entry.file_size(), limits.file_bytes) << entry.path();
  }
}

TEST_F(DebugServersTest, MayTakeOnlySoLong) {
  const Server silent("", "");
  ServerLimits limits;
  limits.patience = std::chrono::seconds(1);
  const auto began = std::chrono::steady_clock::now();
  const auto path = fetch(silent.url(), limits);
  ASSERT_FALSE(path);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

TEST_F(DebugServersTest, AreNotAskedAgainAfterSomeFailures) {
  setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9", 1);
  auto servers = DebugServers::create();
  ASSERT_TRUE(servers);
  for (int i = 0; i < ServerLimits::kFailuresMax; ++i)
    EXPECT_EQ(servers->fetch(kId, "program").error().message.find("not asked"), std::string::npos);
  EXPECT_NE(servers->fetch(kId, "program").error().message.find("not asked"), std::string::npos);
}

TEST_F(DebugServersTest, AreNotAskedForWhatIsNoBuildId) {
  for (const char* id : {"", "../../etc/passwd", "ABCD", "12 34"}) {
    setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9", 1);
    auto servers = DebugServers::create();
    ASSERT_TRUE(servers);
    EXPECT_NE(servers->fetch(id, "program").error().message.find("no build id"), std::string::npos)
        << id;
  }
}

TEST_F(DebugServersTest, HaveToBeNamed) {
  for (const char* urls : {"", "  "}) {
    setenv("DEBUGINFOD_URLS", urls, 1);
    EXPECT_FALSE(DebugServers::create());
  }
  unsetenv("DEBUGINFOD_URLS");
  const auto servers = DebugServers::create();
  ASSERT_FALSE(servers);
  EXPECT_EQ(servers.error().kind, Error::Kind::kUsage);
}

}  // namespace
}  // namespace dwell::symbolize
