#include "symbolize/mapping_records.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <cstring>

namespace dwell::symbolize {
namespace {

constexpr size_t kPathMax = 4096;

// Bodies as include/uapi/linux/perf_event.h draws them, up to the variable part.
struct TaskBody {
  uint32_t pid, parent_pid, tid, parent_tid;
  uint64_t time_ns;
};
struct CommBody {
  uint32_t pid, tid;
};
struct Mmap2Body {
  uint32_t pid, tid;
  uint64_t address, bytes, page_offset;
  union {
    struct {
      uint32_t major, minor;
      uint64_t inode, generation;
    } file;
    struct {
      uint8_t size, unused0;
      uint16_t unused1;
      uint8_t bytes[20];
    } build_id;
  };
  uint32_t protection, flags;
};
struct KsymbolBody {
  uint64_t address;
  uint32_t bytes;
  uint16_t type, flags;
};
static_assert(sizeof(Mmap2Body) == 64 && sizeof(KsymbolBody) == 16 && sizeof(TaskBody) == 24);

template <typename Body>
bool take(std::span<const std::byte>& rest, Body& body) {
  if (rest.size() < sizeof(Body)) return false;
  std::memcpy(&body, rest.data(), sizeof(Body));
  rest = rest.subspan(sizeof(Body));
  return true;
}

std::string take_text(std::span<const std::byte> rest) {
  const auto* text = reinterpret_cast<const char*>(rest.data());
  return std::string(text, strnlen(text, std::min(rest.size(), kPathMax)));
}

// Tasks outside our pid namespace have no number in it.
bool is_pid(uint32_t pid) { return pid != 0 && pid != UINT32_MAX; }

std::optional<MappingEvent> decode_fork(std::span<const std::byte> rest) {
  TaskBody body;
  if (!take(rest, body) || !is_pid(body.pid) || !is_pid(body.parent_pid)) return std::nullopt;
  if (body.pid == body.parent_pid) return std::nullopt;  // a thread
  MappingEvent event;
  event.pid = body.pid;
  event.parent_pid = body.parent_pid;
  return event;
}

std::optional<MappingEvent> decode_exec(uint16_t misc, std::span<const std::byte> rest) {
  CommBody body;
  if ((misc & PERF_RECORD_MISC_COMM_EXEC) == 0) return std::nullopt;  // renamed itself
  if (!take(rest, body) || !is_pid(body.pid)) return std::nullopt;
  MappingEvent event;
  event.kind = MappingEvent::Kind::kExec;
  event.pid = body.pid;
  return event;
}

std::optional<MappingEvent> decode_map(uint16_t misc, std::span<const std::byte> rest) {
  Mmap2Body body;
  if (!take(rest, body) || !is_pid(body.pid)) return std::nullopt;
  if (body.bytes == 0 || body.bytes > UINT64_MAX - body.address) return std::nullopt;
  if ((body.protection & PROT_EXEC) == 0) return std::nullopt;
  MappingEvent event;
  event.kind = MappingEvent::Kind::kMap;
  event.pid = body.pid;
  Mapping& mapping = event.mapping;
  mapping.start = body.address;
  mapping.end = body.address + body.bytes;
  mapping.page_offset = body.page_offset;
  event.backing.path = take_text(rest);
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    const size_t size = std::min<size_t>(body.build_id.size, sizeof(body.build_id.bytes));
    for (size_t i = 0; i < size; ++i)
      event.backing.build_id += fmt::format("{:02x}", body.build_id.bytes[i]);
  } else {
    event.backing.device = makedev(body.file.major, body.file.minor);
    event.backing.inode = body.file.inode;
    event.backing.generation = body.file.generation;
  }
  return event;
}

std::optional<MappingEvent> decode_ksymbol(std::span<const std::byte> rest) {
  KsymbolBody body;
  if (!take(rest, body) || body.type != PERF_RECORD_KSYMBOL_TYPE_BPF) return std::nullopt;
  if ((body.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0) return std::nullopt;
  MappingEvent event;
  event.kind = MappingEvent::Kind::kProgramLoaded;
  event.address = body.address;
  event.bytes = body.bytes;
  event.name = take_text(rest);
  return event;
}

}  // namespace

std::optional<MappingEvent> decode_mapping_record(const Record& record) {
  const auto ids = decode_ids(kMappingFormat, record);
  if (!ids) return std::nullopt;
  const auto body = body_without_ids(kMappingFormat, record);
  std::optional<MappingEvent> event;
  if (record.type == PERF_RECORD_FORK) event = decode_fork(body);
  if (record.type == PERF_RECORD_COMM) event = decode_exec(record.misc, body);
  if (record.type == PERF_RECORD_MMAP2) event = decode_map(record.misc, body);
  if (record.type == PERF_RECORD_KSYMBOL) event = decode_ksymbol(body);
  if (!event) return std::nullopt;
  event->time_ns = ids->time_ns;
  event->mapping.from_ns = ids->time_ns;
  return event;
}

}  // namespace dwell::symbolize
