// packet_sampler INTERFACE [ONE_IN]: prints the packets that come in, or a random one in ONE_IN,
// until Ctrl-C. The program in the kernel; packet_sampler_native.cc runs the same one without it.
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <net/if.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "event_array/kernel_event_array.h"
#include "packet_sampler.skel.h"
#include "sample_reader.h"

using namespace dwell;

namespace {

volatile std::sig_atomic_t stopped = 0;

using Skeleton = std::unique_ptr<packet_sampler, decltype(&packet_sampler::destroy)>;

Status attach(packet_sampler& program, const char* interface) {
  const auto index = static_cast<int>(if_nametoindex(interface));
  if (index == 0) return errno_error(errno, fmt::format("cannot find interface {}", interface));
  program.links.sample_packet = bpf_program__attach_xdp(program.progs.sample_packet, index);
  if (program.links.sample_packet == nullptr)
    return errno_error(errno, fmt::format("cannot attach to {}; `ip link` shows whether another "
                                          "XDP program is there",
                                          interface));
  return {};
}

Status sample_interface(const char* interface, uint32_t one_in) {
  const Skeleton program(packet_sampler::open(), packet_sampler::destroy);
  if (!program) return errno_error(errno, "cannot open the BPF program");
  program->rodata->one_in = one_in;
  if (packet_sampler::load(program.get()) != 0)
    return errno_error(errno, "cannot load the BPF program; needs root");

  // The rings are ready before the first packet.
  KernelEventArrayOptions options;
  options.timestamps = true;
  DWELL_ASSIGN(const auto array,
               KernelEventArray::open(bpf_map__fd(program->maps.events), options));
  DWELL_ASSIGN(const auto session, print_samples(*array));
  DWELL_TRY(attach(*program, interface));
  fmt::print(stderr, "sampling {}\n", interface);
  while (stopped == 0) DWELL_TRY(session->poll(std::chrono::milliseconds(100)));

  // Nothing more comes after this; what the rings hold is printed.
  packet_sampler::detach(program.get());
  DWELL_TRY(array->detach());
  while (array->has_data()) session->consume();
  session->drain_order();
  const SessionStats stats = session->stats();
  fmt::print(stderr, "{} samples, {} lost\n", stats.received,
             stats.rings.lost_exact.value_or(stats.rings.lost_reported));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto one_in = parse_u32(argc > 2 ? argv[2] : "1");
  if (argc < 2 || argc > 3 || !one_in || *one_in == 0) {
    fmt::print(stderr, "usage: packet_sampler INTERFACE [ONE_IN]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { stopped = 1; });
  const Status done = sample_interface(argv[1], *one_in);
  if (!done) fmt::print(stderr, "packet_sampler: {}\n", done.error().message);
  return done ? 0 : 1;
}
