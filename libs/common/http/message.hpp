#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gitops::http {

// Header fields in the order in which they were received or added. Names compare without case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // Returns the first value of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // Returns whether a comma-separated list of that name contains `token`, without case.
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

// Returns the standard reason phrase, or "Unknown".
std::string_view reason_phrase(int status);

// Compares field names and tokens without case (ASCII only).
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Returns the media type of a Content-Type value, without parameters and surrounding white space.
// Compare it without case.
std::string_view media_type(std::string_view content_type);
// Returns the media type of a message's Content-Type; empty if it is missing.
std::string_view media_type(const Headers& headers);

// Returns whether a request may be sent twice (RFC 9110 section 9.2.2).
bool is_idempotent(std::string_view method);

// Returns whether the text consists of RFC 9110 token characters, at least one.
bool is_token(std::string_view text);
// Returns whether the text may be a field value: it has no control characters other than tab.
bool is_field_value(std::string_view text);

// Returns the loggable form of a field: its value, or "[redacted]" (Authorization, Cookie,
// tokens…).
std::string_view redacted(std::string_view name, std::string_view value);

}  // namespace gitops::http
