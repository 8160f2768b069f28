#include "export/reading.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace dwell {

std::vector<FoldedLine> parse_folded(const std::string& text) {
  std::vector<FoldedLine> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    EXPECT_NE(end, text.npos) << "the last line has no end";
    if (end == text.npos) break;
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    const size_t blank = line.rfind(' ');
    EXPECT_NE(blank, line.npos) << line;
    if (blank == line.npos) continue;
    const std::string_view number = line.substr(blank + 1);
    EXPECT_TRUE(!number.empty() && std::ranges::all_of(number, [](char c) {
      return c >= '0' && c <= '9';
    })) << line;
    FoldedLine parsed{{}, std::stoull(std::string(number))};
    std::string_view rest = line.substr(0, blank);
    for (;;) {
      const size_t semicolon = rest.find(';');
      parsed.frames.emplace_back(rest.substr(0, semicolon));
      EXPECT_FALSE(parsed.frames.back().empty()) << line;
      if (semicolon == rest.npos) break;
      rest.remove_prefix(semicolon + 1);
    }
    lines.push_back(std::move(parsed));
  }
  return lines;
}

std::string gunzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int status = Z_OK;
  while (status == Z_OK) {
    char chunk[1 << 16];
    stream.next_out = reinterpret_cast<Bytef*>(chunk);
    stream.avail_out = sizeof chunk;
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk, sizeof chunk - stream.avail_out);
  }
  EXPECT_EQ(status, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  inflateEnd(&stream);
  return out;
}

pprof_file::Profile read_pprof(const std::string& gzipped) {
  pprof_file::Profile file;
  EXPECT_TRUE(file.ParseFromString(gunzip(gzipped)));
  const auto is_string = [&](int64_t i) { return i >= 0 && i < file.string_table_size(); };
  EXPECT_TRUE(file.string_table_size() > 0 && file.string_table(0).empty());
  std::set<std::string> strings(file.string_table().begin(), file.string_table().end());
  EXPECT_EQ(strings.size(), static_cast<size_t>(file.string_table_size())) << "a string twice";
  std::set<uint64_t> functions, mappings, locations;
  for (const auto& function : file.function()) {
    EXPECT_TRUE(function.id() != 0 && functions.insert(function.id()).second);
    EXPECT_TRUE(is_string(function.name()) && is_string(function.system_name()));
  }
  for (const auto& mapping : file.mapping()) {
    EXPECT_TRUE(mapping.id() != 0 && mappings.insert(mapping.id()).second);
    EXPECT_TRUE(is_string(mapping.filename()) && is_string(mapping.build_id()));
  }
  for (const auto& location : file.location()) {
    EXPECT_TRUE(location.id() != 0 && locations.insert(location.id()).second);
    EXPECT_TRUE(location.mapping_id() == 0 || mappings.contains(location.mapping_id()));
    EXPECT_GE(location.line_size(), 1) << "some readers drop locations without a line";
    for (const auto& line : location.line()) EXPECT_TRUE(functions.contains(line.function_id()));
  }
  for (const auto& sample : file.sample()) {
    EXPECT_EQ(sample.value_size(), file.sample_type_size());
    EXPECT_GE(sample.location_id_size(), 1);
    for (const uint64_t id : sample.location_id()) EXPECT_TRUE(locations.contains(id));
    std::set<int64_t> keys;
    for (const auto& label : sample.label()) {
      EXPECT_TRUE(is_string(label.key()) && is_string(label.str()));
      EXPECT_TRUE(keys.insert(label.key()).second) << "a label twice";
    }
  }
  return file;
}

std::array<int64_t, 4> pprof_sums(const pprof_file::Profile& file) {
  std::array<int64_t, 4> sums{};
  for (const auto& sample : file.sample())
    for (int i = 0; i < std::min(4, sample.value_size()); ++i)
      sums[static_cast<size_t>(i)] += sample.value(i);
  return sums;
}

}  // namespace dwell
