#include "symbolize/work_apart.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

namespace dwell::symbolize {
namespace {

using End = ApartAnswer::End;

TEST(WorkApart, AnswersWithAllThatItWrote) {
  const std::string text(300'000, 'x');
  const auto answer = work_apart({}, [&](int fd) { write_or_end(fd, text.data(), text.size()); });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->end, End::kWhole);
  EXPECT_EQ(answer->bytes, text);
}

TEST(WorkApart, EndsWhenItWritesTooMuchOrTakesTooLong) {
  const auto endless = work_apart({.answer_bytes = 1000}, [](int fd) {
    for (;;) write_or_end(fd, "more", 4);
  });
  EXPECT_EQ(endless->end, End::kTooMuch);
  const auto silent = work_apart({.patience = std::chrono::seconds(1)}, [](int) {
    for (;;) pause();
  });
  EXPECT_EQ(silent->end, End::kTooMuch);
}

TEST(WorkApart, DiesAlone) {
  const auto killed = work_apart({}, [](int) { raise(SIGKILL); });
  EXPECT_EQ(killed->end, End::kDied);
  EXPECT_EQ(killed->death, "Killed");
  const auto failed = work_apart({}, [](int) { _exit(3); });
  EXPECT_EQ(failed->end, End::kDied);
}

TEST(WorkApart, HasNoneOfRootsRights) {
  const auto user_of = [](bool as_nobody) {
    const auto answer = work_apart({.as_nobody = as_nobody}, [](int fd) {
      const uid_t user = geteuid();
      write_or_end(fd, &user, sizeof(user));
    });
    return *reinterpret_cast<const uid_t*>(answer->bytes.data());
  };
  EXPECT_EQ(user_of(false), geteuid());
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(user_of(true), 65534u);
}

}  // namespace
}  // namespace dwell::symbolize
