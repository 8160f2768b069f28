// For tests: a temporary directory in which programs are built with the machine's own compiler and
// linkers, and running programs that print the addresses of their functions.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "symbolize/live_process.h"
#include "symbolize/process_maps.h"

namespace dwell::symbolize {

class Workshop {
 public:
  Workshop() {
    char name[] = "/tmp/dwell_symbolize.XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~Workshop() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  const std::string& directory() const { return directory_; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Runs a shell command inside the directory; true if it succeeded.
  bool run(const std::string& command) const {
    const std::string line = "cd " + directory_ + " && (" + command + ") >>log 2>&1";
    return std::system(line.c_str()) == 0;
  }
  // Output of a shell command inside the directory.
  std::string output(const std::string& command) const {
    run("(" + command + ") > output");
    return read("output");
  }
  static bool has(const std::string& tool) {
    return std::system(("command -v " + tool + " >/dev/null 2>&1").c_str()) == 0;
  }
  // Address of a symbol, by nm.
  uint64_t address_of(const std::string& file, const std::string& symbol) const {
    std::istringstream lines(output("nm " + file));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string address, type, name;
      if (words >> address >> type >> name && name == symbol)
        return std::stoull(address, nullptr, 16);
    }
    return 0;
  }

 private:
  std::string directory_;
};

// A started program. It prints lines "NAME ADDRESS" and then "ready", and sleeps until it is killed
// or, told so by a line on its input, goes on.
class Target {
 public:
  explicit Target(const std::vector<std::string>& words) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      std::vector<char*> arguments;
      for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    input_ = Fd(in[1]);
    output_ = Fd(out[0]);
    close(in[0]);
    close(out[1]);
  }
  ~Target() { stop(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // Reads its lines until "ready"; false if it ended before.
  bool wait_ready() {
    std::string line;
    char c;
    while (::read(output_.get(), &c, 1) == 1) {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (line == "ready") return true;
      const size_t blank = line.find(' ');
      if (blank != std::string::npos)
        addresses_[line.substr(0, blank)] = std::strtoull(line.c_str() + blank, nullptr, 16);
      line.clear();
    }
    return false;
  }
  void go_on() { EXPECT_EQ(::write(input_.get(), "\n", 1), 1); }
  void stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  uint64_t at(const std::string& name) const {
    const auto found = addresses_.find(name);
    return found == addresses_.end() ? 0 : found->second;
  }
  // As the probe would say it, to the clock tick.
  ProcessKey key(uint32_t exec_id = 1) const { return key_of(pid(), exec_id); }
  static ProcessKey key_of(uint32_t pid, uint32_t exec_id = 1) {
    const auto process = LiveProcess::find(pid);
    return {pid, exec_id, process ? process->start_ticks() * kNsPerTick : 0};
  }

 private:
  pid_t pid_ = -1;
  Fd input_, output_;
  std::map<std::string, uint64_t> addresses_;
};

// A program with functions of its own, exported or not, that says where they are. Programs with
// different prefixes have different build ids: the linker's hash leaves the symbol table out.
inline std::string speaking_program(const std::string& prefix = "") {
  std::string text = R"(
#include <stdio.h>
#include <unistd.h>
const char* volatile built_as = "PREFIX";
__attribute__((noinline)) static int PREFIXinner(int x) { return x * 3; }
__attribute__((noinline)) int PREFIXouter(int x) { return PREFIXinner(x) + 1; }
int main(int argc, char** argv) {
  char c;
  (void)argv;
  printf("inner %p\nouter %p\nmain %p\nready\n", (void*)PREFIXinner, (void*)PREFIXouter,
         (void*)main);
  fflush(stdout);
  return (int)read(0, &c, 1) + PREFIXouter(argc);
}
)";
  const std::string mark = "PREFIX";
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
    text.replace(at, mark.size(), prefix);
  return text;
}

}  // namespace dwell::symbolize
