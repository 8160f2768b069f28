// bind_monitor: prints who on this machine binds which address, until Ctrl-C. The program in the
// kernel; bind_monitor_native.cc runs the same one without it.
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>

#include "bind_monitor.skel.h"
#include "bind_reader.h"
#include "event_array/kernel_event_array.h"

using namespace dwell;

namespace {

volatile std::sig_atomic_t stopped = 0;

using Skeleton = std::unique_ptr<bind_monitor, decltype(&bind_monitor::destroy)>;

Status monitor_binds() {
  const Skeleton program(bind_monitor::open_and_load(), bind_monitor::destroy);
  if (!program) return errno_error(errno, "cannot load the BPF program; needs root");

  // The rings are ready before the first call.
  KernelEventArrayOptions options;
  options.timestamps = true;
  DWELL_ASSIGN(const auto array,
               KernelEventArray::open(bpf_map__fd(program->maps.events), options));
  DWELL_ASSIGN(const auto session, print_binds(*array));
  if (bind_monitor::attach(program.get()) != 0)
    return errno_error(errno,
                       "cannot attach to the tracepoint syscalls:sys_enter_bind; it needs "
                       "`mount -t tracefs tracefs /sys/kernel/tracing`");
  fmt::print(stderr, "monitoring\n");
  while (stopped == 0) DWELL_TRY(session->poll(std::chrono::milliseconds(100)));

  // Nothing more comes after this; what the rings hold is printed.
  bind_monitor::detach(program.get());
  DWELL_TRY(array->detach());
  while (array->has_data()) session->consume();
  session->drain_order();
  const SessionStats stats = session->stats();
  fmt::print(stderr, "{} binds, {} lost\n", stats.received,
             stats.rings.lost_exact.value_or(stats.rings.lost_reported));
  return {};
}

}  // namespace

int main(int argc, char**) {
  if (argc != 1) {
    fmt::print(stderr, "usage: bind_monitor\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { stopped = 1; });
  const Status done = monitor_binds();
  if (!done) fmt::print(stderr, "bind_monitor: {}\n", done.error().message);
  return done ? 0 : 1;
}
