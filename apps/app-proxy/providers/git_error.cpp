#include "app-proxy/providers/git_error.hpp"

#include <algorithm>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/text.hpp"
#include "common/core/time.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kMaxMessage = 200;

std::string message_in(JsonView json) {
  if (const auto text = json["message"].text(); !text.empty()) {
    // GitHub: {"message":"Validation Failed","errors":[{"message":"…"}]}
    for (const auto item : json["errors"].items()) {
      if (const auto more = item["message"].text(); !more.empty()) {
        return std::string(text) + ": " + std::string(more);
      }
    }
    return std::string(text);
  }
  if (const auto text = json["error"]["message"].text(); !text.empty()) return std::string(text);
  if (const auto text = json["error_description"].text(); !text.empty()) return std::string(text);
  if (const auto text = json["error"].text(); !text.empty()) return std::string(text);
  for (const auto item : json["errors"].items()) {
    if (const auto text = item["message"].text(); !text.empty()) return std::string(text);
  }
  // GitLab: {"message":{"name":["has already been taken"]}}, {"message":["…"]}
  for (const auto item : json["message"].items()) {
    if (const auto text = item.text(); !text.empty()) return std::string(text);
  }
  for (const auto& [name, messages] : json["message"].members()) {
    for (const auto item : messages.items()) {
      if (const auto text = item.text(); !text.empty()) return std::string(text);
    }
  }
  return {};
}

std::string begin(const GitErrorPlace& place) {
  return std::string(place.what) + " at " + place.root.url.host_header() + ": ";
}

// Returns the permissions that GitHub would have accepted, from its header field.
std::string accepted_permissions(const http::Response& response) {
  for (const auto* name : {"X-Accepted-GitHub-Permissions", "X-Accepted-OAuth-Scopes"}) {
    const auto value = response.headers.find(name);
    if (!value || value->empty() || value->size() > kMaxMessage) continue;
    const bool plain = std::ranges::all_of(*value, [](unsigned char c) {
      return c > 0x20 ? c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\'' : c == ' ';
    });
    if (plain) return " (needed: " + std::string(*value) + ")";
  }
  return {};
}

// Returns a host's text as one line to show; empty when it contains the token.
std::string one_line(std::string_view text, std::string_view token) {
  if (!token.empty() && text.contains(token)) return {};
  std::string out;
  while (!text.empty() && out.size() < kMaxMessage) {
    const auto length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool is_control = first < 0x20 || first == 0x7f;
    out += length == 0 ? "?" : is_control ? " " : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// Returns the explanation in the body of a response: from JSON, or plain text, which some hosts
// send.
std::string words_of(const http::Response& response, std::string_view token) {
  if (auto said = host_message(response.body, token); !said.empty()) return said;
  const bool is_text = http::equal_ignoring_case(http::media_type(response.headers), "text/plain");
  if (!is_text || response.body.size() > kMaxErrorBody) return {};
  return one_line(trimmed(response.body), token);
}

}  // namespace

std::string host_message(std::string_view body, std::string_view token) {
  if (body.size() > kMaxErrorBody) return {};
  JsonParser parser;
  const auto json = parser.parse_object(body, "error");
  if (!json) return {};
  return one_line(message_in(*json), token);
}

Error refused_by_host(const GitErrorPlace& place, const http::Response& response,
                      std::string_view token) {
  Error error;
  error.http_status = response.status;
  error.code = error_code_of_status(response.status);
  error.message = begin(place);
  const std::string host(display_name(place.root.kind));
  const auto said = words_of(response, token);
  const auto quoted = said.empty() ? std::string() : " (" + said + ")";
  switch (response.status) {
    case 401:
      error.subcode = git_errors::kTokenRejected;
      error.message += host + " rejected the Git token" + quoted +
                       "; register a new token with the Git integration";
      break;
    case 403:
      error.subcode = git_errors::kTokenLacksRight;
      error.message += "the Git token lacks a right" + accepted_permissions(response) + quoted +
                       "; extend the token's rights, or register another token";
      break;
    case 404:
      error.subcode = git_errors::kNotFound;
      error.message += "not found, or not visible to the Git token" + quoted +
                       "; check the name, and the repositories that the token may use";
      break;
    case 409:
      error.subcode = git_errors::kConflict;
      error.message += "it exists already, or was changed meanwhile" + quoted;
      break;
    default:
      if (response.status >= 500) {
        error.subcode = git_errors::kUnreachable;
        error.message +=
            host + " answered " + std::to_string(response.status) + quoted + "; try again later";
      } else {
        error.subcode = git_errors::kRefused;
        error.message +=
            host + " refused the request with " + std::to_string(response.status) + quoted;
      }
  }
  return error;
}

Error host_unreachable(const GitErrorPlace& place, Error cause) {
  cause.message = begin(place) + "no answer (" + cause.message +
                  "); check the integration's apiUrl, and the proxy and CA settings";
  cause.subcode = git_errors::kUnreachable;
  return cause;
}

Error host_throttles(const GitErrorPlace& place, std::chrono::milliseconds wait) {
  Error error{.code = ErrorCode::too_many_requests};
  error.retry_after = wait;
  error.http_status = 429;
  error.subcode = git_errors::kThrottled;
  error.message = begin(place) + std::string(display_name(place.root.kind)) +
                  " limits the requests of this Git token until " +
                  format_rfc3339(wall_now() + wait) + "; try again then";
  return error;
}

Error bad_answer(const GitErrorPlace& place, std::string_view problem) {
  return Error{.code = ErrorCode::protocol,
               .message = begin(place) + "the answer is not that of " +
                          std::string(display_name(place.root.kind)) + " (" + std::string(problem) +
                          "); check provider and apiUrl",
               .subcode = git_errors::kBadAnswer};
}

Error redirected_away(const GitErrorPlace& place) {
  return Error{.code = ErrorCode::protocol,
               .message = begin(place) +
                          "the host redirects to another address, which is not followed, because "
                          "the Git token would be sent there; correct apiUrl",
               .subcode = git_errors::kRedirected};
}

}  // namespace gitops::app_proxy
