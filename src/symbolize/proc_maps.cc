#include "symbolize/proc_maps.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace dwell::symbolize {
namespace {

// Takes values off the front of one line.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  template <typename T>
  bool number(T& value, int base, char end) {
    const auto [stop, failure] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (failure != std::errc{}) return false;
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    if (rest_.empty()) return end == '\n';  // only the inode may end the line
    if (end != '\n' && rest_.front() != end) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view value = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return value;
  }
  std::string_view path() const {
    const size_t first = rest_.find_first_not_of(' ');
    return first == std::string_view::npos ? std::string_view() : rest_.substr(first);
  }

 private:
  std::string_view rest_;
};

struct AnyLine {
  MapsLine line;
  bool executable = false;
};

std::optional<AnyLine> parse_line(std::string_view text) {
  Fields fields(text);
  AnyLine any;
  MapsLine& line = any.line;
  if (!fields.number(line.start, 16, '-') || !fields.number(line.end, 16, ' ')) return std::nullopt;
  const std::string_view permissions = fields.word();
  if (permissions.size() != 4 || line.start >= line.end) return std::nullopt;
  any.executable = permissions[2] == 'x';
  if (!fields.number(line.page_offset, 16, ' ') || !fields.number(line.device_major, 16, ':') ||
      !fields.number(line.device_minor, 16, ' ') || !fields.number(line.inode, 10, '\n'))
    return std::nullopt;
  const std::string_view path = fields.path();
  if (path.size() > kMapsPathMax) return std::nullopt;
  line.path = path;
  return any;
}

bool is_anonymous(const MapsLine& line) { return line.path.empty() && line.inode == 0; }

bool same_file(const MapsLine& a, const MapsLine& b) {
  return a.inode != 0 && a.inode == b.inode && a.device_major == b.device_major &&
         a.device_minor == b.device_minor && a.path == b.path;
}

// before | hole | after, adjacent, with the file's offsets going on across the hole.
bool is_moved_text(const MapsLine& before, const MapsLine& hole, const MapsLine& after) {
  return is_anonymous(hole) && same_file(before, after) && before.end == hole.start &&
         hole.end == after.start && after.page_offset >= before.page_offset &&
         after.page_offset - before.page_offset == after.start - before.start;
}

void fill_hole(const MapsLine& before, MapsLine& line, const MapsLine& after) {
  if (!is_moved_text(before, line, after)) return;
  line.page_offset = before.page_offset + (line.start - before.start);
  line.device_major = before.device_major;
  line.device_minor = before.device_minor;
  line.inode = before.inode;
  line.path = before.path;
  line.moved_text = true;
}

}  // namespace

std::vector<MapsLine> parse_maps(std::string_view text) {
  std::vector<AnyLine> lines;
  while (!text.empty() && lines.size() < kMapsLinesMax) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto any = parse_line(text.substr(0, end))) lines.push_back(std::move(*any));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (size_t i = 1; i + 1 < lines.size(); ++i)
    if (lines[i].executable) fill_hole(lines[i - 1].line, lines[i].line, lines[i + 1].line);
  std::vector<MapsLine> executable;
  for (AnyLine& any : lines)
    if (any.executable) executable.push_back(std::move(any.line));
  return executable;
}

std::string_view without_deleted_mark(std::string_view path) {
  constexpr std::string_view kMark = " (deleted)";
  return path.ends_with(kMark) ? path.substr(0, path.size() - kMark.size()) : path;
}

std::string unescape_newlines(std::string_view path) {
  constexpr std::string_view kNewline = "\\012";
  std::string out;
  for (size_t i = 0; i < path.size();) {
    if (path.substr(i, kNewline.size()) == kNewline) {
      out += '\n';
      i += kNewline.size();
    } else {
      out += path[i++];
    }
  }
  return out;
}

}  // namespace dwell::symbolize
