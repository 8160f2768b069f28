#include "export/small_profile.h"

#include <algorithm>

#include "profile/profile_builder.h"

namespace dwell {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

uint32_t named(ProfileBuilder& builder, const char* function, uint32_t module, uint64_t address,
               FrameKind kind = FrameKind::kUser) {
  const bool kernel = kind == FrameKind::kKernel;
  return builder.frame({.function = builder.string(function),
                        .module = module,
                        .address = address,
                        .offset = 0x2d,
                        .how = kernel ? Resolution::kKallsyms : Resolution::kSymtab,
                        .kind = kind});
}

struct Stacks {
  uint32_t epoll, fsync, preempted, kernel_thread;
};

Stacks add_stacks(ProfileBuilder& b) {
  const uint32_t kernel = b.module("[kernel]", "", ModuleKind::kKernel);
  const uint32_t libc = b.module("/lib/x86_64-linux-gnu/libc.so.6", "5e1f", ModuleKind::kFile);
  const uint32_t server = b.module("/usr/sbin/server", "c0ffee", ModuleKind::kFile);
  const uint32_t jit = b.module("[jit]", "", ModuleKind::kJit);
  const auto in_kernel = [&](const char* name, uint64_t address) {
    return named(b, name, kernel, address, FrameKind::kKernel);
  };
  const uint32_t schedule = in_kernel("schedule", 0xffffffff81c00010);
  const uint32_t main = named(b, "main", server, 0x1100);
  const uint32_t loop = named(b, "event_loop(int; char)", server, 0x1200);
  const uint32_t no_name = b.frame({.module = server, .address = 0x1300});
  const uint32_t epoll[] = {schedule, in_kernel("do_epoll_wait", 0xffffffff81300020),
                            named(b, "epoll_wait", libc, 0x10e0f0), loop, main};
  const uint32_t fsync[] = {schedule,
                            in_kernel("jbd2_log_wait_commit", 0xffffffff81400000),
                            named(b, "fsync", libc, 0xf5000),
                            no_name,
                            loop,
                            main};
  const uint32_t preempted[] = {named(b, "render", jit, 0x7f0000001000),
                                b.placeholder("[user stack lost: page not in memory]")};
  const uint32_t kernel_thread[] = {schedule, in_kernel("worker_thread", 0xffffffff810a0000)};
  const Walk by_unwind_data{WalkEnd::kRoot, {}};
  const Walk mixed{WalkEnd::kRoot, {0b0010, 0}};
  const Walk fault{WalkEnd::kFault, {}};
  return {b.stack(epoll, true, false, by_unwind_data), b.stack(fsync, true, false, mixed),
          b.stack(preempted, false, true, fault), b.stack(kernel_thread, false, false)};
}

uint32_t add_thread(ProfileBuilder& b, uint32_t process, uint32_t tid, const char* name,
                    const ThreadTimes& times) {
  Thread thread{.process = process,
                .tid = tid,
                .start_boottime_ns = 5 * kSecond,
                .birth_ns = 100 * kSecond,
                .end_ns = 110 * kSecond,
                .comm = b.string(name),
                .kernel_thread = tid == 33,
                .times = times,
                .schedstat = std::nullopt};
  if (tid != 33)
    thread.schedstat = {times.running_ns, times.run_queue_ns + times.censored_run_queue_ns,
                        times.alive_ns};
  return b.thread(thread);
}

void add_facts(ProfileBuilder& b) {
  Profile& facts = b.facts();
  facts.dwell_version = "0.1.0";
  facts.host = "reef";
  facts.kernel = "6.1.0-18-amd64";
  facts.cpus = 2;
  facts.target = "-a";
  facts.options = {"min=0", "max=none"};
  facts.window = {100 * kSecond, 110 * kSecond, 1'764'502'907 * kSecond + 123'456'789,
                  1'764'502'917 * kSecond + 123'456'789};
  facts.losses = {{"rows_full", "The table of rows was full: raise --rows.", 0, 0, true},
                  {"user_stack_faults",
                   "No frame of a user stack could be read: nothing to do, the page was not in "
                   "memory.",
                   1, std::nullopt, true},
                  {"early_wakeups", "Woken before the switch-out.", 2, std::nullopt, false}};
  facts.unresolved = {{2, 1, "stripped, and no debug file was found",
                       "install the debug package or copy server.debug to /usr/lib/debug"}};
  facts.warnings = {"kernel.kptr_restrict is 1: run as root for names of kernel frames"};
  facts.kernel_memory_bytes = 8 << 20;
  facts.user_memory_bytes = 16 << 20;
  facts.recorder_cpu_ns = 20 * kMs;
}

}  // namespace

Profile small_profile() {
  ProfileBuilder b;
  const Stacks stacks = add_stacks(b);
  const uint32_t server = b.process({.pid = 1200,
                                     .parent_pid = 1,
                                     .exec_id = 2,
                                     .start_boottime_ns = 5 * kSecond,
                                     .comm = b.string("server"),
                                     .executable = b.string("/usr/sbin/server"),
                                     .command_line = b.string("server --workers 2")});
  const uint32_t kworker = b.process(
      {.pid = 33, .parent_pid = 2, .start_boottime_ns = 1, .comm = b.string("kworker/0:1")});
  const uint32_t first = add_thread(b, server, 1200, "server",
                                    {.alive_ns = 10 * kSecond,
                                     .running_ns = 1 * kSecond,
                                     .run_queue_ns = 30 * kMs,
                                     .blocked_ns = 8'970 * kMs,
                                     .intervals = 211,
                                     .blocked_intervals = 210});
  const uint32_t second = add_thread(b, server, 1201, "server",
                                     {.alive_ns = 10 * kSecond,
                                      .running_ns = 500 * kMs,
                                      .blocked_ns = 6 * kSecond,
                                      .censored_blocked_ns = 3'500 * kMs,
                                      .intervals = 3,
                                      .blocked_intervals = 3});
  const uint32_t kernel = add_thread(b, kworker, 33, "kworker/0:1",
                                     {.alive_ns = 10 * kSecond,
                                      .running_ns = 1 * kMs,
                                      .censored_blocked_ns = 9'000 * kMs,
                                      .lost_ns = 999 * kMs,
                                      .intervals = 1,
                                      .blocked_intervals = 1});
  const auto add = [&](uint32_t thread, uint32_t stack, const char* cause, WaitClass wait_class,
                       uint64_t count, uint64_t blocked_ns, uint64_t run_queue_ns, bool cut) {
    Row row{.thread = thread,
            .stack = stack,
            .cause = b.string(cause),
            .wait_class = wait_class,
            .state = is_blocked_class(wait_class) ? 1u : 0u,
            .censored_right = cut,
            .count = count,
            .blocked_ns = blocked_ns,
            .run_queue_ns = run_queue_ns,
            .max_ns = (blocked_ns + run_queue_ns) / count};
    row.histogram[20] = static_cast<uint32_t>(count);
    b.add(row);
  };
  using enum WaitClass;
  add(first, stacks.epoll, "epoll_wait", kInterruptible, 200, 7 * kSecond, 20 * kMs, false);
  add(first, stacks.fsync, "fsync", kIo, 10, 1'970 * kMs, 5 * kMs, false);
  add(first, stacks.preempted, "preempted", kPreempted, 1, 0, 5 * kMs, false);
  add(second, stacks.epoll, "epoll_wait", kInterruptible, 2, 6 * kSecond, 0, false);
  add(second, stacks.epoll, "epoll_wait", kInterruptible, 1, 3'500 * kMs, 0, true);
  add(kernel, stacks.kernel_thread, "kernel thread", kIdleKthread, 1, 9 * kSecond, 0, true);
  add_facts(b);
  b.facts().timeline_min_ns = 1 * kMs;
  b.facts().timeline = {{.thread = first,
                         .stack = stacks.fsync,
                         .cause = b.string("fsync"),
                         .wait_class = kIo,
                         .state = 2,
                         .cpu = 1,
                         .start_ns = 102 * kSecond,
                         .blocked_ns = 300 * kMs,
                         .run_queue_ns = 2 * kMs},
                        {.thread = second,
                         .stack = stacks.epoll,
                         .cause = b.string("epoll_wait"),
                         .wait_class = kInterruptible,
                         .censored_right = true,
                         .state = 1,
                         .start_ns = 106'500 * kMs,
                         .blocked_ns = 3'500 * kMs}};
  return std::move(b).finish();
}

Profile small_profile_with_source() {
  Profile profile = small_profile();
  const auto string = [&](const char* text) {
    profile.strings.emplace_back(text);
    return static_cast<StringId>(profile.strings.size() - 1);
  };
  const StringId source = string("/src/server/loop.c"), header = string("/src/server/wait; 2.h");
  const auto loop = static_cast<uint32_t>(std::ranges::find_if(profile.frames,
                                                               [&](const Frame& f) {
                                                                 return profile.text(f.function) ==
                                                                        "event_loop(int; char)";
                                                               }) -
                                          profile.frames.begin());
  profile.frames[loop].file = source;
  profile.frames[loop].line = 120;
  const auto inlined = [&](const char* name, uint32_t line) {
    Frame frame = profile.frames[loop];
    frame.function = string(name);
    frame.symbol = 0;
    frame.offset = 0;
    frame.how = Resolution::kDebugFile;
    frame.inlined = true;
    frame.file = header;
    frame.line = line;
    profile.frames.push_back(frame);
    return static_cast<uint32_t>(profile.frames.size() - 1);
  };
  const uint32_t inner = inlined("poll_once", 7), outer = inlined("poll_all<4>", 31);
  for (Stack& stack : profile.stacks) {
    const auto at = std::ranges::find(stack.frames, loop);
    if (at != stack.frames.end()) stack.frames.insert(at, {inner, outer});
  }
  return profile;
}

}  // namespace dwell
