// Writes JSON straight into a string: the documents reach a hundred megabytes, and a tree of nodes
// would be ten times that. Commas are its business; that begin and end match is the caller's.
// Used by json.cc only.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace dwell {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  // `name` is one of ours: nothing in it needs escaping.
  void key(std::string_view name) {
    comma();
    out_ += '"';
    out_ += name;
    out_ += "\":";
    pending_comma_ = false;
  }

  template <std::integral T>
  void value(T number) {
    comma();
    if constexpr (std::same_as<T, bool>) {
      out_ += number ? "true" : "false";
    } else {
      char digits[24];
      out_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    }
    pending_comma_ = true;
  }
  // Any bytes: invalid UTF-8 becomes U+FFFD, control bytes are escaped.
  void value(std::string_view text);
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(const char* text) { value(std::string_view(text)); }
  void null();

  void field(std::string_view name, const auto& content) {
    key(name);
    value(content);
  }
  // A line break before the next element: long tables stay readable and comparable.
  void break_line() { break_line_ = true; }

  std::string take() && { return std::move(out_); }

 private:
  void open(char bracket) {
    comma();
    out_ += bracket;
    pending_comma_ = false;
  }
  void close(char bracket) {
    out_ += bracket;
    pending_comma_ = true;
  }
  void comma() {
    if (pending_comma_) out_ += ',';
    if (break_line_) out_ += '\n';
    break_line_ = false;
  }

  std::string out_;
  bool pending_comma_ = false;
  bool break_line_ = false;
};

}  // namespace dwell
