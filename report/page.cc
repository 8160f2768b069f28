#include "report/page.h"

// Assembled from the file itself: a string literal of this size is beyond what compilers must
// accept, and an array of numbers takes seconds to compile.
__asm__(
    ".pushsection .rodata\n"
    "dwell_report_page_begin:\n"
    ".incbin \"" DWELL_REPORT_PAGE_FILE
    "\"\n"
    "dwell_report_page_end:\n"
    ".popsection\n");

extern "C" {
extern const char dwell_report_page_begin[] __attribute__((visibility("hidden")));
extern const char dwell_report_page_end[] __attribute__((visibility("hidden")));
}

namespace dwell {

std::string_view report_page() {
  return {dwell_report_page_begin,
          static_cast<size_t>(dwell_report_page_end - dwell_report_page_begin)};
}

}  // namespace dwell
