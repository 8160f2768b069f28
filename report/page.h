// The web report's page, built by report/build.mjs and embedded in the binary.
//
// It holds the text @DWELL_DATA@ exactly once, between the tags of its data block; the HTML
// exporter puts base64(gzip(the JSON document)) there. Nothing else may be changed: a content
// security policy pins the page's script and style by their hashes.
#pragma once

#include <string_view>

namespace dwell {

std::string_view report_page();  // lives as long as the program

}  // namespace dwell
