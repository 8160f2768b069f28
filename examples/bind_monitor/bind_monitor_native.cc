// bind_monitor_native < CALLS: the same BPF program and the same reader in this process alone. A
// call is a line: process, name, length, and the address in hexadecimal digits, or "-" for one that
// cannot be read. Needs no privileges.
#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "bind_monitor.h"
#include "bind_reader.h"
#include "event_array/user_event_array.h"
#include "examples/hex.h"
#include "runtime/event_map.h"
#include "runtime/object.h"

extern "C" const dwell_native_object dwell_native_bind_monitor;

using namespace dwell;

namespace {

constexpr uint64_t kAddress = 0x7fff'0000'0000;  // where the caller has it

Status call_bind(runtime::Machine& machine, runtime::Program& program, const std::string& line) {
  runtime::Task& caller = machine.create_task(0);
  runtime::BytesMemory memory;
  std::string name, digits;
  uint32_t length = 0;
  if (!(std::istringstream(line) >> caller.tgid >> name >> length >> digits))
    return usage_error("not PROCESS NAME LENGTH ADDRESS: " + line);
  caller.set_comm(name);
  if (digits != "-") {
    DWELL_ASSIGN(auto bytes, bytes_of_hex(digits));
    memory.add(kAddress, std::move(bytes));
  }
  caller.user_memory = &memory;

  sys_enter context = {};
  context.args[1] = kAddress;
  context.args[2] = length;
  machine.cpu(0).current = &caller;
  program.run(/*cpu=*/0, &context);
  machine.cpu(0).current = nullptr;
  machine.free_task(caller);
  return {};
}

Status monitor_input() {
  runtime::Machine machine;
  DWELL_ASSIGN(const auto object, runtime::Object::open(dwell_native_bind_monitor));
  DWELL_TRY(object->load(machine));
  UserEventMap& events = object->map<runtime::EventMap>("events").events();
  DWELL_ASSIGN(const auto array, UserEventArray::open(events));
  DWELL_ASSIGN(const auto session, print_binds(*array));
  for (std::string line; std::getline(std::cin, line);) {
    DWELL_TRY(call_bind(machine, object->program("enter_bind"), line));
    session->consume();
  }
  const SessionStats stats = session->stats();
  fmt::print(stderr, "{} binds, {} lost\n", stats.received, stats.rings.lost_exact.value_or(0));
  return {};
}

}  // namespace

int main(int argc, char**) {
  if (argc != 1) {
    fmt::print(stderr, "usage: bind_monitor_native < CALLS\n");
    return 2;
  }
  const Status done = monitor_input();
  if (!done) fmt::print(stderr, "bind_monitor_native: {}\n", done.error().message);
  return done ? 0 : 1;
}
