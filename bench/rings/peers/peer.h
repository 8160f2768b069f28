// A peer of the ring benches: a program beside the bench that prints "ready", and then answers each
// line "N" by doing its work N times and printing how many nanoseconds that took. It runs on the
// CPU that the bench is pinned to when it starts it.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

extern char** environ;

namespace dwell {

class Peer {
 public:
  // Null, with the reason printed, if the program is not there or does not start. `map_fd` becomes
  // its descriptor 3.
  static std::unique_ptr<Peer> start(const std::string& name,
                                     const std::vector<std::string>& arguments, int map_fd = -1) {
    const std::string path = std::string(DWELL_BENCH_PEERS) + "/" + name;
    if (access(path.c_str(), X_OK) != 0) {
      fmt::print("{} is not built: see bench/rings/README.md\n", name);
      return nullptr;
    }
    std::unique_ptr<Peer> peer(new Peer);
    if (!peer->spawn(path, arguments, map_fd) || peer->line() != "ready\n") {
      fmt::print("{} did not start\n", name);
      return nullptr;
    }
    return peer;
  }
  ~Peer() {
    if (to_ != nullptr) fclose(to_);
    if (from_ != nullptr) fclose(from_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Nanoseconds for `n` times.
  double run(uint64_t n) {
    fmt::print(to_, "{}\n", n);
    fflush(to_);
    return strtod(line().c_str(), nullptr);
  }

 private:
  Peer() = default;

  bool spawn(const std::string& path, const std::vector<std::string>& arguments, int map_fd) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (map_fd >= 0) posix_spawn_file_actions_adddup2(&actions, map_fd, 3);
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const bool spawned =
        posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
    return spawned;
  }
  std::string line() {
    char text[128] = "";
    return fgets(text, sizeof text, from_) != nullptr ? text : "";
  }

  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace dwell
