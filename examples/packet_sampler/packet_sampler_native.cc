// packet_sampler_native [ONE_IN] < PACKETS: the same BPF program and the same reader in this
// process alone. A packet is a line of hexadecimal digits. Needs no privileges.
#include <fmt/format.h>

#include <iostream>

#include "base/text.h"
#include "event_array/user_event_array.h"
#include "examples/hex.h"
#include "runtime/event_map.h"
#include "runtime/object.h"
#include "runtime/packet.h"
#include "sample_reader.h"

extern "C" const dwell_native_object dwell_native_packet_sampler;

using namespace dwell;

namespace {

Status sample_input(uint32_t one_in) {
  runtime::Machine machine;
  DWELL_ASSIGN(const auto object, runtime::Object::open(dwell_native_packet_sampler));
  object->variable<uint32_t>("one_in") = one_in;
  DWELL_TRY(object->load(machine));
  UserEventMap& events = object->map<runtime::EventMap>("events").events();
  DWELL_ASSIGN(const auto array, UserEventArray::open(events));
  DWELL_ASSIGN(const auto session, print_samples(*array));

  runtime::Program& program = object->program("sample_packet");
  for (std::string line; std::getline(std::cin, line);) {
    DWELL_ASSIGN(const auto bytes, bytes_of_hex(line));
    DWELL_ASSIGN(const auto packet, runtime::Packet::create(bytes));
    program.run(/*cpu=*/0, *packet);
    session->consume();
  }
  const SessionStats stats = session->stats();
  fmt::print(stderr, "{} samples, {} lost\n", stats.received, stats.rings.lost_exact.value_or(0));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto one_in = parse_u32(argc > 1 ? argv[1] : "1");
  if (argc > 2 || !one_in || *one_in == 0) {
    fmt::print(stderr, "usage: packet_sampler_native [ONE_IN] < PACKETS\n");
    return 2;
  }
  const Status done = sample_input(*one_in);
  if (!done) fmt::print(stderr, "packet_sampler_native: {}\n", done.error().message);
  return done ? 0 : 1;
}
