// Names that try to break a report: threads called by the command line's words (any bytes but NUL),
// which nap in functions of long plain names. The test that runs this program first overwrites
// those names, in the symbol table of a copy, with hostile bytes of the same length. usage: hostile
// [THREAD-NAME]...
#include "truth.h"

#define NAPPER(function)                                  \
  NOINLINE void function(struct truth* t) {               \
    for (int i = 0; i < 10; i++) TIMED(t, nap(10000000)); \
    KEEP_FRAME();                                         \
  }
// 80 letters each.
NAPPER(name_0_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_)
NAPPER(name_1_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_)
NAPPER(name_2_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_)
NAPPER(name_3_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_)
NAPPER(name_4_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_)
NAPPER(name_5_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_)

static void (*const kFunctions[])(struct truth*) = {
    name_0_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_,
    name_1_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_,
    name_2_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_,
    name_3_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_,
    name_4_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_,
    name_5_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_,
};
enum { kCount = sizeof kFunctions / sizeof *kFunctions };
static char** names;
static int name_count;

static void* run(void* index) {
  long i = (intptr_t)index;
  struct truth t;
  name_thread(i < name_count ? names[i] : "plain");
  truth_start(&t, "hostile");
  kFunctions[i](&t);
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread[kCount];
  names = argv + 1;
  name_count = argc - 1;
  for (intptr_t i = 0; i < kCount; i++) thread[i] = start_thread(run, (void*)i);
  for (int i = 0; i < kCount; i++) pthread_join(thread[i], NULL);
  return 0;
}
