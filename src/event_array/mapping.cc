#include "event_array/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

namespace dwell {
inline namespace v0 {

Mapping::Mapping(void* address, uint64_t size) : address_(address), size_(size), owner_(getpid()) {}

Mapping::~Mapping() {
  if (address_ != nullptr && owner_ == getpid()) munmap(address_, size_);
}

}  // namespace v0
}  // namespace dwell
