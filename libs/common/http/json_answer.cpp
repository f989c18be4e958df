#include "common/http/json_answer.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace gitops::http {
namespace {

constexpr std::size_t kMaxShown = 100;

// Returns "application/json" for "Application/JSON; charset=utf-8"; empty without a field.
std::string lower_media_type(const Headers& headers) {
  std::string type(media_type(headers));
  std::ranges::transform(type, type.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return type;
}

bool begins_as_page(std::string_view body) {
  const auto first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '<';
}

}  // namespace

bool may_be_json(const Headers& headers) {
  const auto type = lower_media_type(headers);
  return type.empty() || type == "application/json" || type == "text/json" ||
         type.ends_with("+json");
}

bool may_be_json(const Response& response) {
  return may_be_json(response.headers) && !begins_as_page(response.body);
}

bool is_page(const Headers& headers) {
  const auto type = lower_media_type(headers);
  return type == "text/html" || type == "application/xhtml+xml";
}

std::string not_json(const Response& response) {
  auto type = lower_media_type(response.headers).substr(0, kMaxShown);
  if (type.empty() || may_be_json(response.headers)) type = "a page";
  return std::to_string(response.status) + " with " + type +
         " instead of JSON; something in between answers, such as a proxy or a login page";
}

}  // namespace gitops::http
