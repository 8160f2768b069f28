#include "symbolize/kernel_table.h"

#include <fmt/format.h>

#include "base/fd.h"
#include "symbolize/elf_file.h"
#include "symbolize/process_maps.h"

namespace dwell::symbolize {
namespace {

std::string kernel_build_id() {
  constexpr size_t kNotesMax = 64 << 10;
  const auto notes = read_file("/sys/kernel/notes", kNotesMax);
  return notes ? build_id_in_notes(*notes) : std::string();
}

}  // namespace

KernelTable::KernelTable(ObjectTable& objects, bool enabled)
    : objects_(objects),
      enabled_(enabled),
      kernel_object_(objects.add_named("[kernel]", ModuleKind::kKernel, kernel_build_id())) {
  if (enabled_) {
    read();
  } else {
    objects_.set_excuse(kernel_object_, {"kernel symbols were not asked for", ""});
  }
}

void KernelTable::read() {
  read_ns_ = monotonic_now_ns();
  const auto kallsyms = read_file("/proc/kallsyms", KernelSymbols::kTextMax);
  const auto modules = read_file("/proc/modules", KernelSymbols::kTextMax);
  if (!kallsyms) {
    warnings_ = {kallsyms.error().message +
                 ": kernel frames stay addresses; mount /proc, or build "
                 "the kernel with CONFIG_KALLSYMS"};
    objects_.set_excuse(kernel_object_, {kallsyms.error().message, "mount /proc"});
    return;
  }
  symbols_ = KernelSymbols::parse(*kallsyms, modules ? *modules : "");
  warnings_.clear();
  if (symbols_.hidden()) warn_hidden();
}

void KernelTable::warn_hidden() {
  const auto value = read_file("/proc/sys/kernel/kptr_restrict", 16);
  const std::string level = value ? value->substr(0, value->find('\n')) : "unknown";
  const std::string reason = fmt::format("kernel.kptr_restrict is {}", level);
  const std::string remedy = level == "1" ? "run as root (CAP_SYSLOG), or 'sysctl -w "
                                            "kernel.kptr_restrict=0'"
                                          : "'sysctl -w kernel.kptr_restrict=1' and run as root";
  warnings_.push_back(reason +
                      ": the kernel hides its addresses from /proc/kallsyms, kernel "
                      "frames stay addresses; " +
                      remedy);
  objects_.set_excuse(kernel_object_, {reason, remedy});
}

void KernelTable::reread_if_due() {
  if (!enabled_ || symbols_.hidden() || monotonic_now_ns() - read_ns_ < kRereadPauseNs) return;
  read();
}

ObjectId KernelTable::object_of(uint64_t address) {
  if (!enabled_ || symbols_.in_vmlinux(address)) return kernel_object_;
  auto symbol = symbols_.find(address);
  if (!symbol) {
    reread_if_due();
    symbol = symbols_.find(address);
  }
  if (symbol && symbol->module == "bpf") return objects_.add_named("[bpf]", ModuleKind::kBpf);
  if (symbol && !symbol->module.empty())
    return objects_.add_named(symbol->module, ModuleKind::kKernelModule);
  if (const KernelModule* module = symbols_.module_of(address))
    return objects_.add_named(module->name, ModuleKind::kKernelModule);
  return kernel_object_;
}

void KernelTable::name(uint64_t address, bool return_address, FrameInfo& frame) {
  const auto symbol = symbols_.find(address - (return_address ? 1 : 0));
  if (!symbol) return;
  frame.symbol = symbol->name;
  frame.function = kernel_function_name(symbol->name);
  frame.offset = address - symbol->address;
  frame.how = Resolution::kKallsyms;
}

}  // namespace dwell::symbolize
