#include "symbolize/vdso.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace dwell::symbolize {
namespace {

std::string read_image(const std::string& memory_path, uint64_t start, uint64_t end) {
  if (end <= start || end - start > kVdsoMax) return {};
  const auto fd = open_for_reading(memory_path);
  if (!fd) return {};
  std::string image(end - start, '\0');
  const ssize_t n = pread(fd->get(), image.data(), image.size(), static_cast<off_t>(start));
  return n == static_cast<ssize_t>(image.size()) ? image : std::string();
}

}  // namespace

std::string own_vdso() {
  const auto maps = read_file("/proc/self/maps", LiveProcess::kMapsMax);
  if (!maps) return {};
  const auto lines = parse_maps(*maps);
  const auto vdso = std::ranges::find(lines, "[vdso]", &MapsLine::path);
  return vdso == lines.end() ? std::string() : read_image("/proc/self/mem", vdso->start, vdso->end);
}

std::string remote_vdso(const LiveProcess& process, uint64_t start, uint64_t end) {
  return read_image(process.directory() + "/mem", start, end);
}

}  // namespace dwell::symbolize
