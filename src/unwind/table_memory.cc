#include "unwind/table_memory.h"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace dwell::unwind {
namespace {

// The values of an array map, mapped.
class MappedArray {
 public:
  static Result<MappedArray> open(int map, const char* name) {
    bpf_map_info info = {};
    uint32_t bytes = sizeof info;
    if (bpf_obj_get_info_by_fd(map, &info, &bytes) != 0)
      return errno_error(errno, fmt::format("cannot ask the kernel about the map {}", name));
    MappedArray array;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    array.count_ = info.max_entries;
    array.bytes_ = (size_t{info.value_size} * info.max_entries + page - 1) / page * page;
    void* at = mmap(nullptr, array.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (at == MAP_FAILED) return errno_error(errno, fmt::format("cannot map {}", name));
    array.memory_ = at;
    return array;
  }
  MappedArray() = default;
  MappedArray(MappedArray&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        bytes_(other.bytes_),
        count_(other.count_) {}
  MappedArray& operator=(MappedArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~MappedArray() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  template <typename Value>
  std::span<Value> values() const {
    return {static_cast<Value*>(memory_), count_};
  }
  void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  size_t count_ = 0;
};

class BpfMemory final : public TableMemory {
 public:
  explicit BpfMemory(const UnwindMaps& maps) : maps_(maps) {}

  Status open() {
    DWELL_ASSIGN(rules_, MappedArray::open(maps_.rules, "unwind_rules"));
    DWELL_ASSIGN(pages_, MappedArray::open(maps_.pages, "unwind_pages"));
    DWELL_ASSIGN(mappings_, MappedArray::open(maps_.mappings, "unwind_mappings"));
    bpf_map_info info = {};
    uint32_t bytes = sizeof info;
    if (bpf_obj_get_info_by_fd(maps_.slabs, &info, &bytes) != 0)
      return errno_error(errno, "cannot ask the kernel about the map unwind_slabs");
    slabs_max_ = info.max_entries;
    return {};
  }

  std::span<dwell_unwind_rule> rules() override { return rules_.values<dwell_unwind_rule>(); }
  std::span<dwell_unwind_page> pages() override { return pages_.values<dwell_unwind_page>(); }
  std::span<dwell_unwind_mapping> mappings() override {
    return mappings_.values<dwell_unwind_mapping>();
  }
  size_t slabs_max() const override { return slabs_max_; }
  uint64_t slab_bytes() const override {
    return slabs_.size() * DWELL_UNWIND_SLAB_ROWS * sizeof(dwell_unwind_row);
  }

  Result<std::span<dwell_unwind_row>> make_slab(uint32_t number) override {
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
    const Fd slab(bpf_map_create(BPF_MAP_TYPE_ARRAY, "dwell_rows", sizeof(uint32_t),
                                 DWELL_UNWIND_BLOCK_ROWS * sizeof(dwell_unwind_row),
                                 DWELL_UNWIND_SLAB_BLOCKS, &options));
    if (!slab) return errno_error(errno, "cannot create a map of unwind rows");
    DWELL_ASSIGN(MappedArray rows, MappedArray::open(slab.get(), "unwind rows"));
    const int fd = slab.get();
    if (bpf_map_update_elem(maps_.slabs, &number, &fd, BPF_ANY) != 0)
      return errno_error(errno, "cannot put a map of unwind rows in place");
    slabs_.push_back(std::move(rows));
    return std::span(static_cast<dwell_unwind_row*>(slabs_.back().memory()),
                     size_t{DWELL_UNWIND_SLAB_ROWS});
  }

  Status set_process(uint32_t pid, const dwell_unwind_process& process) override {
    if (bpf_map_update_elem(maps_.processes, &pid, &process, BPF_ANY) != 0)
      return errno_error(errno, fmt::format("cannot add the unwind tables of process {}", pid));
    return {};
  }
  void forget_process(uint32_t pid) override { bpf_map_delete_elem(maps_.processes, &pid); }
  Status set_python_layout(uint32_t number, const dwell_python_layout& layout) override {
    if (bpf_map_update_elem(maps_.python_layouts, &number, &layout, BPF_ANY) != 0)
      return errno_error(errno, "cannot tell the probe how to read Python frames");
    return {};
  }

 private:
  const UnwindMaps maps_;
  MappedArray rules_, pages_, mappings_;
  std::vector<MappedArray> slabs_;
  size_t slabs_max_ = 0;
};

}  // namespace

Result<std::unique_ptr<TableMemory>> open_bpf_memory(const UnwindMaps& maps) {
  auto memory = std::make_unique<BpfMemory>(maps);
  DWELL_TRY(memory->open());
  return memory;
}

}  // namespace dwell::unwind
