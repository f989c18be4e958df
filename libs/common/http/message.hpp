#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gitops::http {

// Header fields in the order they were received or added. Names compare without case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first value of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // True when a comma-separated list value of that name holds `token` (without case).
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;
  void add(std::string name, std::string value);
  // Replaces every field of that name.
  void set(std::string name, std::string value);
  void erase(std::string_view name);
  void clear() { fields_.clear(); }

  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }
  [[nodiscard]] std::size_t size() const { return fields_.size(); }

 private:
  std::vector<Field> fields_;
};

struct Request {
  std::string method = "GET";
  std::string target = "/";  // origin form: path and query
  Headers headers = {};
  std::string body = {};
};

struct Response {
  int status = 200;
  Headers headers = {};
  std::string body = {};
};

// The standard reason phrase, or "Unknown".
std::string_view reason_phrase(int status);

// Field names and most tokens compare like this (ASCII only).
bool equal_ignoring_case(std::string_view a, std::string_view b);

// The media type of a Content-Type field, without parameters and the blanks around it. Compares
// without case.
std::string_view media_type(std::string_view content_type);
// The same of a message's Content-Type field; empty without one.
std::string_view media_type(const Headers& headers);

// Whether a request may be sent twice: RFC 9110 section 9.2.2.
bool is_idempotent(std::string_view method);

// True for RFC 9110 token characters only, at least one.
bool is_token(std::string_view text);
// True for text without control characters other than tab: what may stand in a field value.
bool is_field_value(std::string_view text);

// What may be shown of a header: its value, or "[redacted]" (Authorization, Cookie, tokens…).
std::string_view redacted(std::string_view name, std::string_view value);

}  // namespace gitops::http
