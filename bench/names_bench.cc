// What names cost, without a recording around them (docs/benchmarks.md). Two measurements, each in
// a process of its own so that nothing is warm but the page cache:
//
//   names_bench file FILE COUNT         COUNT random addresses of one file's code, described cold
//   names_bench lines FILE COUNT        their source lines and inlined functions, with a debug file
//   names_bench addresses FILE COUNT    the same addresses as text, for other tools
//   names_bench processes COUNT PROCESSES [LIBRARY...]
//                                       COUNT distinct addresses of living processes, located and
//                                       described as the recorder does it; LIBRARYs are loaded too
//
//   names_bench run COMMAND...          runs it and says on standard error what it took: the peak
//   of a
//                                       process started by a larger one would be that one's
//
// Prints one line of JSON. bench/names runs it beside other tools.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "symbolize/debug_info.h"
#include "symbolize/demangle.h"
#include "symbolize/line_process.h"
#include "symbolize/live_process.h"
#include "symbolize/process_maps.h"
#include "symbolize/symbol_loader.h"
#include "symbolize/symbolizer.h"

namespace dwell::symbolize {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

double cpu_ms(const rusage& usage) {
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return cpu_ms(usage);
}

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "names_bench: {}\n", message);
  std::exit(1);
}

// Of the file's largest section of code. The same for each run.
std::vector<uint64_t> random_addresses(ElfFile& elf, size_t count) {
  if (!elf.read_sections()) fail("the file has no sections");
  const Section* text = elf.section(".text");
  if (text == nullptr || text->bytes == 0) fail("the file has no .text");
  std::mt19937_64 random(1);
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < count; ++i) addresses.push_back(text->address + random() % text->bytes);
  return addresses;
}

struct OpenedElf {
  Fd fd;
  ElfFile elf;
};
OpenedElf open_elf(const std::string& path) {
  auto fd = open_for_reading(path);
  if (!fd) fail(fd.error().message);
  const auto bytes = FileBytes::of_file(fd->get(), path);
  if (!bytes) fail(bytes.error().message);
  auto elf = ElfFile::read(*bytes);
  if (!elf) fail(path + ": " + elf.error().message);
  return {std::move(*fd), std::move(*elf)};
}

int describe_file(const std::string& path, size_t count) {
  OpenedElf opened = open_elf(path);
  const std::vector<uint64_t> addresses = random_addresses(opened.elf, count);
  const double cpu_before_ms = cpu_ms();
  const auto start = Clock::now();
  std::vector<uint64_t> wanted = addresses;
  std::ranges::sort(wanted);
  const LoadedSymbols loaded =
      load_symbols(opened.elf.bytes(), path, {}, Options().symbol_bytes_max, wanted);
  const double load_ms = ms_since(start);
  size_t named = 0, letters = 0;
  for (const uint64_t address : addresses) {
    const auto match = loaded.table ? loaded.table->find(address) : std::nullopt;
    if (!match) continue;
    ++named;
    letters += demangle(match->name).size();
  }
  fmt::print(
      "{{\"ms\": {:.2f}, \"cpu_ms\": {:.2f}, \"load_ms\": {:.2f}, \"named\": {}, \"letters\": {}, "
      "\"symbols\": {}, \"peak_kib\": {}}}\n",
      ms_since(start), cpu_ms() - cpu_before_ms, load_ms, named, letters,
      loaded.table ? loaded.table->size() : 0, peak_kib());
  return 0;
}

// Time and memory are those of the process that reads the DWARF.
int look_up_file(const std::string& path, size_t count) {
  OpenedElf opened = open_elf(path);
  std::vector<uint64_t> addresses = random_addresses(opened.elf, count);
  std::ranges::sort(addresses);
  const auto start = Clock::now();
  const auto info = find_debug_info({path, opened.elf.build_id(), UINT64_MAX});
  if (!info) fail(path + ": " + info.error().message);
  const auto chains = look_up_lines(*info, addresses);
  if (!chains) fail(path + ": " + chains.error().message);
  const double ms = ms_since(start);
  size_t known = 0, inlined = 0;
  for (const SourceChain& chain : *chains) {
    known += !chain.empty() && chain.front().line != 0;
    inlined += chain.empty() ? 0 : chain.size() - 1;
  }
  rusage child{};
  getrusage(RUSAGE_CHILDREN, &child);
  fmt::print("{{\"ms\": {:.1f}, \"known\": {}, \"inlined\": {}, \"peak_kib\": {}}}\n", ms, known,
             inlined, child.ru_maxrss);
  return 0;
}

int run_command(char** words) {
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
    execvp(words[0], words);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child) fail("cannot run the command");
  fmt::print(stderr, "{{\"ms\": {:.1f}, \"cpu_ms\": {:.1f}, \"peak_kib\": {}}}\n", ms_since(start),
             cpu_ms(used), used.ru_maxrss);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int print_addresses(const std::string& path, size_t count) {
  OpenedElf opened = open_elf(path);
  for (const uint64_t address : random_addresses(opened.elf, count)) fmt::print("{:#x}\n", address);
  return 0;
}

// A child that has the libraries loaded and sleeps.
pid_t start_sleeper(const char* self, const std::vector<std::string>& libraries) {
  int ready[2];
  if (pipe(ready) != 0) fail("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ready[1], 1);
    close(ready[0]);
    close(ready[1]);
    std::vector<char*> words{const_cast<char*>(self), const_cast<char*>("sleep")};
    for (const std::string& library : libraries)
      words.push_back(const_cast<char*>(library.c_str()));
    words.push_back(nullptr);
    execv("/proc/self/exe", words.data());
    _exit(127);
  }
  close(ready[1]);
  char c;
  if (read(ready[0], &c, 1) != 1) fail("a sleeper did not start");
  close(ready[0]);
  return child;
}

int sleep_with(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries)
    if (dlopen(library.c_str(), RTLD_LAZY) == nullptr) fail(dlerror());
  if (write(1, "r", 1) != 1) return 1;
  for (;;) pause();
}

struct Address {
  ProcessKey process;
  uint64_t ip;
};

// `count` distinct addresses of the process, in mappings of files in proportion to their size.
void add_addresses(uint32_t pid, size_t count, std::mt19937_64& random, std::vector<Address>& out) {
  const auto process = LiveProcess::find(pid);
  if (!process) fail("a sleeper is gone");
  const ProcessKey key{pid, 1, process->start_ticks() * kNsPerTick};
  std::vector<MapsLine> lines = process->executable_maps();
  std::erase_if(lines, [](const MapsLine& line) { return !line.path.starts_with('/'); });
  uint64_t bytes = 0;
  for (const MapsLine& line : lines) bytes += line.end - line.start;
  if (bytes < count * 4) fail("too little code for so many distinct addresses");
  std::unordered_set<uint64_t> seen;
  while (seen.size() < count) {
    uint64_t at = random() % bytes;
    auto line = lines.begin();
    for (; at >= line->end - line->start; ++line) at -= line->end - line->start;
    if (seen.insert(line->start + at).second) out.push_back({key, line->start + at});
  }
}

int describe_processes(const char* self, size_t count, size_t processes,
                       const std::vector<std::string>& libraries) {
  std::vector<pid_t> children;
  for (size_t i = 0; i < processes; ++i) children.push_back(start_sleeper(self, libraries));
  std::mt19937_64 random(1);
  std::vector<Address> addresses;
  for (const pid_t child : children)
    add_addresses(static_cast<uint32_t>(child), count / processes, random, addresses);
  std::ranges::shuffle(addresses, random);
  const long before_kib = peak_kib();
  const double cpu_before_ms = cpu_ms();
  const auto start = Clock::now();
  auto symbolizer = Symbolizer::create({});
  if (!symbolizer) fail(symbolizer.error().message);
  std::vector<LocationId> locations;
  locations.reserve(addresses.size());
  for (const Address& a : addresses)
    locations.push_back((*symbolizer)->locate_user(a.process, a.ip, false, monotonic_ns()));
  const double locate_ms = ms_since(start);
  size_t named = 0;
  std::unordered_set<LocationId> described;
  for (const LocationId location : locations)
    if (described.insert(location).second)
      named += !(*symbolizer)->describe(location).function.empty();
  fmt::print(
      "{{\"ms\": {:.1f}, \"cpu_ms\": {:.1f}, \"locate_ms\": {:.1f}, \"addresses\": {}, "
      "\"locations\": {}, \"named\": {}, \"peak_kib\": {}}}\n",
      ms_since(start), cpu_ms() - cpu_before_ms, locate_ms, addresses.size(), described.size(),
      named, peak_kib() - before_kib);
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return 0;
}

}  // namespace
}  // namespace dwell::symbolize

int main(int argc, char** argv) {
  using namespace dwell::symbolize;
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::strtoul(argv[i], nullptr, 10) : 0; };
  const auto rest = [&](int i) {
    return std::vector<std::string>(argv + std::min(i, argc), argv + argc);
  };
  if (mode == "file" && number(3) > 0) return describe_file(argv[2], number(3));
  if (mode == "lines" && number(3) > 0) return look_up_file(argv[2], number(3));
  if (mode == "addresses" && number(3) > 0) return print_addresses(argv[2], number(3));
  if (mode == "processes" && number(2) >= number(3) && number(3) > 0)
    return describe_processes(argv[0], number(2), number(3), rest(4));
  if (mode == "run" && argc > 2) return run_command(argv + 2);
  if (mode == "sleep") return sleep_with(rest(2));
  fmt::print(stderr,
             "usage: names_bench file FILE COUNT | lines FILE COUNT | addresses FILE COUNT | "
             "processes COUNT PROCESSES [LIBRARY...] | run COMMAND...\n");
  return 2;
}
