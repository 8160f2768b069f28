#include "symbolize/kernel_table.h"

#include <fmt/format.h>

#include "base/clock.h"
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
  read_ns_ = monotonic_ns();
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
  for (const Program& program : programs_)
    if (!symbols_.find(program.address))
      symbols_.add_bpf(program.address, program.bytes, program.name);
  warnings_.clear();
  if (symbols_.hidden()) warn_hidden();
}

void KernelTable::warn_hidden() {
  const auto value = read_file("/proc/sys/kernel/kptr_restrict", 16);
  const std::string level = value ? value->substr(0, value->find('\n')) : "unknown";
  const std::string reason = fmt::format("kernel.kptr_restrict is {}", level);
  const std::string remedy = level == "2" ? "'sysctl -w kernel.kptr_restrict=1' and run as root"
                                          : "run as root (CAP_SYSLOG)";
  warnings_.push_back(reason +
                      ": the kernel hides its addresses from /proc/kallsyms, kernel "
                      "frames stay addresses; " +
                      remedy);
  objects_.set_excuse(kernel_object_, {reason, remedy});
}

void KernelTable::reread_if_due() {
  if (!enabled_ || symbols_.hidden() || monotonic_ns() - read_ns_ < kRereadPauseNs) return;
  read();
}

void KernelTable::on_program_loaded(uint64_t address, uint32_t bytes, const std::string& name) {
  if (!enabled_ || symbols_.hidden()) return;
  if (programs_.size() >= kProgramsMax) programs_.pop_front();
  programs_.push_back({address, bytes, name});
  symbols_.add_bpf(address, bytes, name);
}

uint32_t KernelTable::remember(const KernelSymbol& symbol) {
  if (remembered_.size() >= kRememberedMax) return 0;
  const auto [known, added] = remembered_ids_.try_emplace(
      std::pair(symbol.address, symbol.name), static_cast<uint32_t>(remembered_.size()));
  if (added) remembered_.push_back(symbol);
  return known->second;
}

KernelTable::Place KernelTable::place_of(uint64_t address) {
  if (!enabled_ || symbols_.in_vmlinux(address)) return {kernel_object_, 0};
  auto symbol = symbols_.find(address);
  if (!symbol) {
    reread_if_due();
    symbol = symbols_.find(address);
  }
  if (symbol && symbol->module == "bpf")
    return {objects_.add_named("[bpf]", ModuleKind::kBpf), remember(*symbol)};
  if (symbol && !symbol->module.empty())
    return {objects_.add_named(symbol->module, ModuleKind::kKernelModule), remember(*symbol)};
  if (const KernelModule* module = symbols_.module_of(address))
    return {objects_.add_named(module->name, ModuleKind::kKernelModule), 0};
  return {kernel_object_, 0};
}

void KernelTable::name(uint64_t address, bool return_address, uint32_t remembered,
                       FrameInfo& frame) const {
  std::optional<KernelSymbol> symbol;
  if (remembered != 0)
    symbol = remembered_[remembered];
  else if (symbols_.in_vmlinux(address))
    symbol = symbols_.find(address - (return_address ? 1 : 0));
  if (!symbol) return;
  frame.symbol = symbol->name;
  frame.function = kernel_function_name(symbol->name);
  frame.offset = address - symbol->address;
  frame.how = Resolution::kKallsyms;
}

}  // namespace dwell::symbolize
