#include "common/graphql/leaf.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "common/core/json_text.hpp"
#include "common/core/text.hpp"
#include "common/graphql/print.hpp"

namespace gitops::graphql {
namespace {

constexpr double kMaxInt = 2147483647;
constexpr double kMinInt = -2147483648.0;

void append_integer(std::string& out, std::int64_t integer) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), integer).ptr;
  out.append(buffer.data(), end);
}

std::optional<double> number_of(const Value& value) {
  if (const auto* integer = value.get<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* number = value.get<double>()) return *number;
  if (const auto* truth = value.get<bool>()) return *truth ? 1 : 0;
  return std::nullopt;
}

std::string write_scalar(std::string& out, const NamedType& type, const Value& value) {
  const auto text = value.text();
  const auto number = number_of(value);
  switch (type.scalar) {
    case ScalarKind::custom:
      if (text) {
        append_quoted(out, *text);
      } else if (const auto* truth = value.get<bool>()) {
        out += *truth ? "true" : "false";
      } else if (const auto* integer = value.get<std::int64_t>()) {
        append_integer(out, *integer);
      } else if (number && std::isfinite(*number)) {
        out += print_number(*number);
      } else {
        return "Scalar \"" + std::string(type.name) + "\" cannot represent value: " + shown(value);
      }
      return {};
    case ScalarKind::integer:
      if (!number || std::trunc(*number) != *number) {
        return "Int cannot represent non-integer value: " + shown(value);
      }
      if (*number > kMaxInt || *number < kMinInt) {
        return "Int cannot represent non 32-bit signed integer value: " + shown(value);
      }
      append_integer(out, static_cast<std::int64_t>(*number));
      return {};
    case ScalarKind::floating:
      if (!number || !std::isfinite(*number)) {
        return "Float cannot represent non numeric value: " + shown(value);
      }
      out += print_number(*number);
      return {};
    case ScalarKind::boolean:
      if (!number) return "Boolean cannot represent a non boolean value: " + shown(value);
      out += *number != 0 ? "true" : "false";
      return {};
    case ScalarKind::id:
      if (const auto* integer = value.get<std::int64_t>()) {
        append_quoted(out, std::to_string(*integer));
      } else if (text) {
        append_quoted(out, *text);
      } else {
        return "ID cannot represent value: " + shown(value);
      }
      return {};
    case ScalarKind::string:
      if (text) {
        append_quoted(out, *text);
      } else if (const auto* truth = value.get<bool>()) {
        out += *truth ? "\"true\"" : "\"false\"";
      } else if (number) {
        append_quoted(out, print_number(*number));
      } else {
        return "String cannot represent value: " + shown(value);
      }
      return {};
  }
  return "no such scalar";
}

}  // namespace

Result<Json> Json::parse(std::string text) {
  JsonParser parser;
  if (!parser.parse(text, "text")) return fail(ErrorCode::invalid_data, "the text is not JSON");
  return Json(std::move(text));
}

Value plain(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text == "null") return {};
  if (text == "true" || text == "false") {
    return Value(Value::Content(std::in_place_type<bool>, text == "true"));
  }
  if (text.front() == '"' && text.size() >= 2 && text.find('\\') == std::string_view::npos) {
    return Value(
        Value::Content(std::in_place_type<std::string_view>, text.substr(1, text.size() - 2)));
  }
  if (text.front() == '-' || (text.front() >= '0' && text.front() <= '9')) {
    std::int64_t integer = 0;
    const char* const last = text.data() + text.size();
    const auto whole = std::from_chars(text.data(), last, integer);
    if (whole.ec == std::errc() && whole.ptr == last) {
      return Value(Value::Content(std::in_place_type<std::int64_t>, integer));
    }
    double number = 0;
    if (std::from_chars(text.data(), last, number).ec == std::errc()) {
      return Value(Value::Content(std::in_place_type<double>, number));
    }
  }
  return Value(JsonSlice{text});
}

Members::Members(const Value& object) {
  const auto* json = object.get<JsonSlice>();
  if (!json) return;
  for_each_member(json->text, [&](std::string_view key, std::string_view text) {
    members_.emplace_back(key, text);
    return true;
  });
}

Value Members::find(std::string_view name) const {
  std::string_view found;
  for (const auto& [key, text] : members_) {
    if (key == name) found = text;
  }
  found = trimmed(found);
  if (found.empty() || found == "null") return {};
  return Value(JsonSlice{found});
}

std::string shown(const Value& value) {
  if (const auto text = value.text()) return in_quotes(*text);
  if (const auto* truth = value.get<bool>()) return *truth ? "true" : "false";
  if (const auto* integer = value.get<std::int64_t>()) {
    return print_number(static_cast<double>(*integer));
  }
  if (const auto* number = value.get<double>()) return print_number(*number);
  if (const auto* json = value.get<JsonSlice>()) return std::string(json->text.substr(0, 100));
  return value.get<Value::Items>() ? "[Array]" : "[Object]";
}

std::string write_leaf(std::string& out, const NamedType& type, const Value& value) {
  if (const auto* json = value.get<JsonSlice>()) {
    const std::string_view text = trimmed(json->text);
    const bool is_string = text.starts_with('"');
    const bool is_custom = type.kind == TypeKind::scalar && type.scalar == ScalarKind::custom;
    const bool is_text = type.kind == TypeKind::scalar &&
                         (type.scalar == ScalarKind::string || type.scalar == ScalarKind::id);
    if (is_custom || (is_text && is_string)) {
      out += text;
      return {};
    }
    const Value simple = plain(text);
    if (!simple.get<JsonSlice>() && !simple.is_null()) return write_leaf(out, type, simple);
  }
  if (type.kind == TypeKind::enumeration) {
    const auto text = value.text();
    if (!text || !type.value(*text)) {
      return "Enum \"" + std::string(type.name) + "\" cannot represent value: " + shown(value);
    }
    append_quoted(out, *text);
    return {};
  }
  return write_scalar(out, type, value);
}

}  // namespace gitops::graphql
