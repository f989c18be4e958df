#include "request-router/error_answer.hpp"

#include <string>

#include "common/core/encoding.hpp"

namespace gitops::router {
namespace {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Returns whether a browser sent the request: browsers name HTML; programs ask for JSON, or for
// anything.
bool wants_html(std::optional<std::string_view> accept) {
  if (!accept) return false;
  const auto html = accept->find("text/html");
  const auto json = accept->find("application/json");
  return html != std::string_view::npos && html < json;
}

std::string_view seconds_to_wait(int status) {
  if (status == 429) return "1";
  if (status == 502 || status == 503 || status == 504) return "5";
  return {};
}

}  // namespace

http::Response error_answer(int status, std::string_view message,
                            std::optional<std::string_view> accept) {
  http::Response response{.status = status, .headers = {}, .body = {}};
  const std::string phrase(http::reason_phrase(status));
  if (wants_html(accept)) {
    const std::string title = std::to_string(status) + " " + phrase;
    response.headers.add("Content-Type", "text/html; charset=utf-8");
    response.body = "<!doctype html><title>" + title + "</title><h1>" + title + "</h1><p>" +
                    escape_html(message) + "</p>\n";
  } else {
    response.headers.add("Content-Type", "application/json");
    response.body = "{\"statusCode\":" + std::to_string(status) +
                    ",\"message\":" + json_string(message) + ",\"error\":" + json_string(phrase) +
                    "}\n";
  }
  response.headers.add("Cache-Control", "no-store");
  if (const auto wait = seconds_to_wait(status); !wait.empty()) {
    response.headers.add("Retry-After", std::string(wait));
  }
  return response;
}

}  // namespace gitops::router
