// The symbols of the running kernel, and of BPF programs that come and go.
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "symbolize/root_fixture.h"

namespace dwell::symbolize {
namespace {

TEST_F(SymbolizerRootTest, NamesTheKernelOfThisMachine) {
  std::ifstream kallsyms("/proc/kallsyms");
  uint64_t schedule = 0;
  for (std::string line; std::getline(kallsyms, line);)
    if (line.ends_with(" T schedule")) schedule = std::stoull(line, nullptr, 16);
  if (schedule == 0) GTEST_SKIP() << "the kernel hides its addresses here";
  const FrameInfo frame = symbolizer_->describe(symbolizer_->locate_kernel(schedule + 5, true));
  EXPECT_EQ(frame.function, "schedule");
  EXPECT_EQ(frame.offset, 5u);
  EXPECT_EQ(frame.kind, FrameKind::kKernel);
  EXPECT_EQ(frame.how, Resolution::kKallsyms);
  EXPECT_EQ(symbolizer_->object(frame.object).kind, ModuleKind::kKernel);
}

TEST_F(SymbolizerRootTest, SaysWhyTheKernelHasNoNamesForAUserWithoutPrivileges) {
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    const auto poor = std::move(*Symbolizer::create({}));
    const FrameInfo frame = poor->describe(poor->locate_kernel(0xffffffff81000100, true));
    std::string text = frame.function + "|" + poor->object(frame.object).path;
    for (const std::string& warning : poor->warnings()) text += "|" + warning;
    _exit(write(out[1], text.data(), text.size()) < 0);
  }
  close(out[1]);
  const std::string text = read_all(out[0], "pipe", 10'000).value();
  close(out[0]);
  waitpid(child, nullptr, 0);
  if (text.find("kptr_restrict") == std::string::npos) GTEST_SKIP() << "addresses are not hidden";
  EXPECT_TRUE(text.starts_with("|[kernel]|")) << text;
  EXPECT_NE(text.find("kernel.kptr_restrict is "), std::string::npos) << text;
  EXPECT_NE(text.find("CAP_PERFMON"), std::string::npos) << text;  // no mapping events either
}

// A BPF program of two instructions; nothing if it cannot be loaded and jitted here.
struct Program {
  Fd fd;
  uint64_t address = 0;
};
Program load_program(const std::string& name) {
  const bpf_insn code[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                           {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  load.insns = reinterpret_cast<uint64_t>(code);
  load.insn_cnt = 2;
  load.license = reinterpret_cast<uint64_t>("GPL");
  name.copy(load.prog_name, sizeof(load.prog_name) - 1);
  Program program;
  program.fd = Fd(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load))));
  if (!program.fd) return program;
  bpf_prog_info info{};
  info.nr_jited_ksyms = 1;
  info.jited_ksyms = reinterpret_cast<uint64_t>(&program.address);
  bpf_attr ask{};
  ask.info.bpf_fd = static_cast<uint32_t>(program.fd.get());
  ask.info.info_len = sizeof(info);
  ask.info.info = reinterpret_cast<uint64_t>(&info);
  syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &ask, sizeof(ask));
  return program;
}

TEST_F(SymbolizerRootTest, NamesBpfProgramsThatCameLaterAndAreGoneByNow) {
  const auto locate_program = [&](const std::string& name) {
    const Program program = load_program(name);
    symbolizer_->poll();
    return program.address == 0 ? std::optional<LocationId>()
                                : symbolizer_->locate_kernel(program.address + 4, true);
  };
  const auto late = locate_program("late_prog");
  if (!late) GTEST_SKIP() << "cannot load a BPF program here";
  const auto other = locate_program("other_prog");  // often at the same address
  ASSERT_TRUE(other);
  EXPECT_EQ(symbolizer_->describe(*late).function, "bpf_prog:late_prog");
  EXPECT_EQ(symbolizer_->describe(*other).function, "bpf_prog:other_prog");
  EXPECT_EQ(object(*late).kind, ModuleKind::kBpf);
  EXPECT_EQ(object(*late).path, "[bpf]");
}

}  // namespace
}  // namespace dwell::symbolize
