#include "probe/probe_object.h"

#include <cstring>

#include "off_cpu.skel.h"
#include "off_cpu_raw.skel.h"

namespace dwell::probe {
namespace {

// The two skeletons are different types with equal members.
template <typename Skeleton, Skeleton* (*Open)(), void (*Destroy)(Skeleton*)>
class SkeletonObject : public ProbeObject {
 public:
  static std::unique_ptr<ProbeObject> open() {
    Skeleton* skeleton = Open();
    if (skeleton == nullptr) return nullptr;
    return std::unique_ptr<ProbeObject>(new SkeletonObject(skeleton));
  }
  ~SkeletonObject() override { Destroy(typed_); }

  dwell_config& config() override {
    return const_cast<dwell_config&>(
        reinterpret_cast<const volatile dwell_config&>(typed_->rodata->config));
  }
  volatile dwell_window& window() override {
    return reinterpret_cast<volatile dwell_window&>(typed_->bss->window);
  }
  uint8_t* target_hints() override { return typed_->bss->target_hints; }
  volatile uint32_t& unprepared() override { return typed_->bss->unprepared; }
  std::span<const uint8_t> kernel_chunk() override { return typed_->bss->kernel_chunk; }

 private:
  explicit SkeletonObject(Skeleton* skeleton) : typed_(skeleton) { skeleton_ = skeleton->skeleton; }
  Skeleton* typed_;
};

using TypedObject = SkeletonObject<off_cpu, off_cpu__open, off_cpu__destroy>;
using RawObject = SkeletonObject<off_cpu_raw, off_cpu_raw__open, off_cpu_raw__destroy>;

}  // namespace

std::unique_ptr<ProbeObject> ProbeObject::open(Build build) {
  return build == Build::kTyped ? TypedObject::open() : RawObject::open();
}

int ProbeObject::load() { return bpf_object__load_skeleton(skeleton_); }
int ProbeObject::attach() { return bpf_object__attach_skeleton(skeleton_); }

const bpf_link* ProbeObject::link(const char* program) const {
  for (int i = 0; i < skeleton_->prog_cnt; ++i)
    if (std::strcmp(skeleton_->progs[i].name, program) == 0) return *skeleton_->progs[i].link;
  return nullptr;
}

}  // namespace dwell::probe
