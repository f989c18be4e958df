#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "control-plane/projection/event_text.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

// Writes the elements of a JSON array one after another.
class ArrayJson {
 public:
  explicit ArrayJson(std::string& out) : out_(out) { out_ += '['; }
  // Returns the text to which the caller appends the next element.
  std::string& next() {
    if (!first_) out_ += ',';
    first_ = false;
    return out_;
  }
  void text(std::string_view value) { append_json_string(next(), value, JsonEscape::minimal); }
  template <class Write>
  void object(const Write& write);
  void end() { out_ += ']'; }

 private:
  std::string& out_;
  bool first_ = true;
};

// Writes the members of a JSON object of a view. Keys are literals. Members without any known value are omitted; the
// GraphQL engine reads them as null.
class ObjectJson {
 public:
  explicit ObjectJson(std::string& out) : writer_(out) {}
  void end() { writer_.end(); }

  void text(std::string_view key, std::string_view value) {
    append_json_string(writer_.begin(key), value, JsonEscape::minimal);
  }
  // Writes a text; null for an empty one.
  void text_or_null(std::string_view key, std::string_view value) {
    if (value.empty()) {
      null(key);
    } else {
      text(key, value);
    }
  }
  // Writes a number, limited to the range of GraphQL's Int.
  void number(std::string_view key, std::int64_t value);
  // Writes the integer in a body, limited to the range of GraphQL's Int; null for any other value.
  void number_or_null(std::string_view key, JsonView value);
  void flag(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
  void null(std::string_view key) { raw(key, "null"); }
  void time_or_null(std::string_view key, Micros time) { text_or_null(key, time_text(time)); }
  void raw(std::string_view key, std::string_view json) { writer_.raw(key, json); }
  // Writes only the key; the caller appends the value to the returned text.
  std::string& begin(std::string_view key) { return writer_.begin(key); }

  template <class Write>
  void object(std::string_view key, const Write& write) {
    ObjectJson inner(writer_.begin(key));
    write(inner);
    inner.end();
  }
  template <class Write>
  void array(std::string_view key, const Write& write) {
    ArrayJson inner(writer_.begin(key));
    write(inner);
    inner.end();
  }

 private:
  ObjectWriter writer_;
};

template <class Write>
void ArrayJson::object(const Write& write) {
  ObjectJson inner(next());
  write(inner);
  inner.end();
}

template <class Write>
std::string object_json(const Write& write) {
  std::string out;
  ObjectJson object(out);
  write(object);
  object.end();
  return out;
}

}  // namespace gitops::control_plane_server
