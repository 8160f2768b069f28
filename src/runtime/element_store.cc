#include "runtime/element_store.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/sanitizers.h"
#if DWELL_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace dwell::runtime {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr size_t kGuardBytes = DWELL_ASAN ? 32 : 0;

}  // namespace

ElementStore::ElementStore(uint64_t count, size_t element_bytes)
    : count_(count),
      element_bytes_(element_bytes),
      stride_(((element_bytes + 7) & ~size_t{7}) + kGuardBytes),
      shift_(static_cast<uint32_t>(
          std::bit_width(std::max<size_t>(kChunkBytes / std::max<size_t>(stride_, 1), 1)) - 1)),
      chunks_((count >> shift_) + 1) {}

ElementStore::~ElementStore() {
  for (const std::atomic<std::byte*>& chunk : chunks_) std::free(chunk.load());
}

std::byte* ElementStore::make_chunk(uint64_t chunk) {
  const uint64_t elements = uint64_t{1} << shift_;
  auto* made = static_cast<std::byte*>(std::calloc(elements, std::max<size_t>(stride_, 1)));
  if (made == nullptr) std::abort();  // as operator new would
#if DWELL_ASAN
  for (uint64_t i = 0; i < elements; ++i)
    ASAN_POISON_MEMORY_REGION(made + i * stride_ + element_bytes_, stride_ - element_bytes_);
#endif
  std::byte* there = nullptr;
  if (chunks_[chunk].compare_exchange_strong(there, made, std::memory_order_acq_rel)) return made;
  std::free(made);
  return there;
}

}  // namespace dwell::runtime
