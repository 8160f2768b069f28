#include "symbolize/demangle.h"

#include <gtest/gtest.h>

#include <chrono>

namespace dwell::symbolize {
namespace {

TEST(Demangle, SpeaksCppAndBothRustSchemes) {
  EXPECT_EQ(demangle("_ZN3foo3barEi"), "foo::bar(int)");
  EXPECT_EQ(demangle("__ZN3foo3barEi"), "foo::bar(int)");
  EXPECT_EQ(demangle("_Z3fooILi3EEvv"), "void foo<3>()");
  EXPECT_EQ(demangle("_ZNKSt6vectorIiSaIiEE4sizeEv"),
            "std::vector<int, std::allocator<int> >::size() const");
  EXPECT_EQ(demangle("_ZN1AlsERKS_"), "A::operator<<(A const&)");
  EXPECT_EQ(demangle("_ZN1AcvbEv"), "A::operator bool()");
  EXPECT_EQ(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt");
  EXPECT_EQ(demangle("_RNvNtNtCs5QSdWC790r4_4core3fmt3num3imp"), "core::fmt::num::imp");
  EXPECT_EQ(demangle("_RINvNtC3std3mem8align_ofdE"), "std::mem::align_of::<f64>");
}

TEST(Demangle, TellsClones) {
  EXPECT_EQ(demangle("_ZN3foo3barEi.constprop.0"), "foo::bar(int) [clone .constprop.0]");
  EXPECT_EQ(demangle("_ZN3foo3barEi.cold"), "foo::bar(int) [clone .cold]");
}

TEST(Demangle, KeepsPltAndDropsVersions) {
  EXPECT_EQ(demangle("_ZN3foo3barEi@plt"), "foo::bar(int)@plt");
  EXPECT_EQ(demangle("memcpy@@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(demangle("memcpy@plt"), "memcpy@plt");
}

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const char* name :
       {"main", "", "_", "__", "_Z", "_ZN", "_ZN3foo", "_start", "_R", "__libc_start_main",
        "runtime.main", "camlStdlib__map_123", "?f@@YAXXZ", "a;b c\n", "@", "@x"})
    EXPECT_EQ(demangle(name), name);
}

TEST(Demangle, EndsSoonForNamesThatWouldPrintForEver) {
  // Every argument is a pair of the one before it, which prints it twice.
  std::string bomb = "_Z1fSt4pairIiiE";
  for (const char* digit = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"; *digit != '\0'; ++digit)
    bomb += std::string("S_IS") + *digit + "_S" + *digit + "_E";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(demangle(bomb), bomb);
  EXPECT_LE(demangle("_Z" + std::string(1 << 20, 'P')).size(), kFunctionNameMax);
  EXPECT_LE(demangle("_ZN" + std::string(4000, 'N')).size(), kFunctionNameMax);
  EXPECT_LE(demangle("_Z1f" + std::string(4000, 'P') + "i").size(), kFunctionNameMax);
  EXPECT_LE(demangle("_RNv" + std::string(4000, 'N')).size(), kFunctionNameMax);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Demangle, TakesNamesOverAThousandBytes) {
  std::string name = "_ZN";
  for (int i = 0; i < 150; ++i) name += "9namespace";
  name += "1fEv";
  EXPECT_TRUE(demangle(name).ends_with("::f()"));
}

}  // namespace
}  // namespace dwell::symbolize
