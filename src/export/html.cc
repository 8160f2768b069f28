#include "export/export.h"
#include "export/gzip.h"

namespace dwell {
namespace {

constexpr std::string_view kPlaceholder = "@DWELL_DATA@";
constexpr std::string_view kDataElement =
    "<script id=\"dwell-data\" type=\"application/octet-stream\" data-encoding=\"gzip-base64\">"
    "@DWELL_DATA@</script>";

}  // namespace

Result<std::string> html(const Profile& profile, std::string_view page) {
  const size_t element = page.find(kDataElement);
  if (element == page.npos || page.find(kDataElement, element + 1) != page.npos)
    return runtime_error(
        "cannot make the HTML report: its page must have exactly one data element; build it anew "
        "in report/");
  DWELL_ASSIGN(const std::string data, compress_gzip(json(profile)));
  const size_t hole = element + kDataElement.find(kPlaceholder);
  std::string out(page.substr(0, hole));
  out += encode_base64(data);
  out += page.substr(hole + kPlaceholder.size());
  return out;
}

}  // namespace dwell
