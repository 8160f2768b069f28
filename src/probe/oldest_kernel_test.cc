// The raw build serves kernels from 5.10 on. None so old runs here, so this looks at what the build
// asks of a kernel: no helper, kind of map or instruction that 5.10 lacks, and no pointer given to
// a function that is verified by itself.
#include <bpf/btf.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <linux/bpf.h>

#include <cstring>
#include <string>
#include <vector>

#include "probe/probe_object.h"

namespace dwell::probe {
namespace {

// include/uapi/linux/bpf.h of 5.10: the last of each enum.
constexpr int kLastHelper = BPF_FUNC_redirect_peer;
constexpr bpf_map_type kLastMapType = BPF_MAP_TYPE_INODE_STORAGE;

std::vector<bpf_insn> instructions(std::span<const uint8_t> elf) {
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  std::vector<bpf_insn> all;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, elf.data() + header.e_shoff + i * sizeof section, sizeof section);
    if (!(section.sh_flags & SHF_EXECINSTR)) continue;
    const size_t count = section.sh_size / sizeof(bpf_insn), before = all.size();
    all.resize(before + count);
    std::memcpy(all.data() + before, elf.data() + section.sh_offset, count * sizeof(bpf_insn));
  }
  return all;
}

bool is_number(const btf* types, uint32_t id) {
  const btf_type* type = btf__type_by_id(types, id);
  while (type != nullptr && (btf_is_mod(type) || btf_is_typedef(type)))
    type = btf__type_by_id(types, type->type);
  return type != nullptr && (btf_is_int(type) || btf_is_enum(type));
}

class OldestKernelTest : public testing::Test {
 protected:
  const std::unique_ptr<ProbeObject> raw_ = ProbeObject::open(Build::kRaw);
};

TEST_F(OldestKernelTest, HasEachHelperThatIsCalled) {
  int calls = 0;
  for (const bpf_insn& instruction : instructions(raw_->elf())) {
    if (instruction.code != (BPF_JMP | BPF_CALL) || instruction.src_reg != 0) continue;
    ++calls;
    EXPECT_LE(instruction.imm, kLastHelper);
  }
  EXPECT_GT(calls, 100) << "this looks at all code";
}

TEST_F(OldestKernelTest, HasEachAtomicInstruction) {
  for (const bpf_insn& instruction : instructions(raw_->elf())) {
    if (BPF_CLASS(instruction.code) != BPF_STX || BPF_MODE(instruction.code) != BPF_ATOMIC)
      continue;
    EXPECT_EQ(instruction.imm, BPF_ADD) << "all others are of 5.12";
  }
}

TEST_F(OldestKernelTest, HasEachKindOfMap) {
  bpf_map* map;
  bpf_object__for_each_map(map, raw_->object()) EXPECT_LE(bpf_map__type(map), kLastMapType)
      << bpf_map__name(map);
}

TEST_F(OldestKernelTest, IsGivenNumbersOnlyByFunctionsOfTheirOwn) {
  const btf* types = bpf_object__btf(raw_->object());
  std::vector<std::string> functions;
  for (uint32_t id = 1; id < btf__type_cnt(types); ++id) {
    const btf_type* function = btf__type_by_id(types, id);
    if (!btf_is_func(function) || btf_vlen(function) != BTF_FUNC_GLOBAL) continue;
    const std::string name = btf__name_by_offset(types, function->name_off);
    if (raw_->program(name.c_str()) != nullptr) continue;
    functions.push_back(name);
    const btf_type* prototype = btf__type_by_id(types, function->type);
    EXPECT_TRUE(is_number(types, prototype->type)) << name << " returns no number";
    for (int i = 0; i < btf_vlen(prototype); ++i)
      EXPECT_TRUE(is_number(types, btf_params(prototype)[i].type)) << name << " takes a pointer";
  }
  EXPECT_THAT(functions, testing::Contains("walk_current"));
}

}  // namespace
}  // namespace dwell::probe
