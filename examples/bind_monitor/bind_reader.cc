#include "bind_reader.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "bind_monitor.h"

using namespace dwell;

namespace {

// The bytes come from whoever called bind(): any family, any length.
template <typename Address>
std::optional<Address> address_as(std::span<const uint8_t> bytes) {
  Address address = {};
  if (bytes.size() < sizeof address) return std::nullopt;
  std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

std::string internet(std::span<const uint8_t> bytes) {
  const auto address = address_as<sockaddr_in>(bytes);
  if (!address) return "inet, cut short";
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
  return fmt::format("inet {}:{}", text, ntohs(address->sin_port));
}

std::string internet_6(std::span<const uint8_t> bytes) {
  const auto address = address_as<sockaddr_in6>(bytes);
  if (!address) return "inet6, cut short";
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof text);
  return fmt::format("inet6 [{}]:{}", text, ntohs(address->sin6_port));
}

// A path ends at a zero byte, an abstract name starts with one and has its own length.
std::string local(std::span<const uint8_t> bytes) {
  const auto path = bytes.subspan(offsetof(sockaddr_un, sun_path));
  std::string_view text(reinterpret_cast<const char*>(path.data()), path.size());
  if (text.empty()) return "unix, a name of the kernel's choice";
  if (text[0] == '\0') return "unix @" + printable(text.substr(1));
  return "unix " + printable(text.substr(0, text.find('\0')));
}

std::string describe(std::span<const uint8_t> bytes) {
  const auto family = address_as<sa_family_t>(bytes);
  if (!family) return "no address";
  if (*family == AF_INET) return internet(bytes);
  if (*family == AF_INET6) return internet_6(bytes);
  if (*family == AF_UNIX) return local(bytes);
  return fmt::format("family {}, {} bytes", *family, bytes.size());
}

Verdict print_bind(const Event& event) {
  const auto asked = event.as<bind_asked>();
  if (!asked || asked->address_bytes > ADDRESS_BYTES) return Verdict::kDropped;  // none of ours
  const std::string_view name(asked->name, strnlen(asked->name, NAME_BYTES));
  fmt::print("{} {}: {}\n", asked->pid, printable(name),
             describe(std::span(asked->address).first(asked->address_bytes)));
  return Verdict::kContinue;
}

}  // namespace

Result<std::unique_ptr<EventSession>> print_binds(EventArray& array) {
  SessionCallbacks callbacks;
  callbacks.on_event = print_bind;
  callbacks.on_lost = [](uint32_t cpu, uint64_t lost) {
    fmt::print(stderr, "CPU {}: {} binds lost\n", cpu, lost);
  };
  callbacks.on_trouble = [](uint32_t cpu, Trouble, uint64_t) {
    fmt::print(stderr, "CPU {}: bytes that are no event\n", cpu);
  };
  SessionOptions options;
  // One order over all CPUs where records have a time: the kernel's, if asked for.
  options.ordered = (array.format().sample_type & ring::kSampleTime) != 0;
  return EventSession::create(array, std::move(callbacks), options);
}
