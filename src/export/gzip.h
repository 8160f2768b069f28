// Gzip, for pprof files and for the data inside the HTML report. The same input gives the same
// bytes: no time stamp, no name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace dwell {

Result<std::string> compress_gzip(std::string_view bytes);

// Standard alphabet, padded, no line breaks.
std::string encode_base64(std::string_view bytes);

}  // namespace dwell
