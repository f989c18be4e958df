#include "common/control_plane/graphql.hpp"

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::control_plane {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPath = "/2.0/api/graphql";
constexpr std::size_t kMaxBody = 1024 * 1024;
constexpr std::size_t kMaxMessage = 500;

// The value at `path` in nested objects; null when it is absent.
Json value_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return *at;
}

// The message of the first entry of `errors`; empty when there is none.
std::optional<std::string> error_of(const Json& answer) {
  const Json errors = value_at(answer, {"errors"});
  if (!errors.is_array() || errors.empty()) return std::nullopt;
  const Json message = value_at(errors[0], {"message"});
  return message.is_string() ? message.get<std::string>().substr(0, kMaxMessage) : "";
}

}  // namespace

GraphqlClient::GraphqlClient(http::Client& http, http::Url url, std::function<Secret()> token)
    : http_(http), url_(std::move(url)), token_(std::move(token)) {}

Task<Result<std::string>> GraphqlClient::account(Deadline deadline) {
  http::Request request{.method = "POST", .target = http::join_target(url_, kPath)};
  request.headers.set("Content-Type", "application/json");
  // The control plane expects the raw token, without "Bearer".
  if (const Secret token = token_(); !token.empty()) {
    request.headers.set("Authorization", std::string(token.reveal()));
  }
  request.body = Json{{"query", "query me{me{activeAccount{name}}}"}}.dump();
  const std::string what = "control plane at " + url_.host_header();
  const auto response = co_await http_.send(url_, std::move(request), deadline, kMaxBody);
  if (!response) co_return fail("control plane", response.error());
  if (response->status != 200) {
    co_return std::unexpected(Error{.code = error_code_of_status(response->status),
                                    .message = what + ": " + std::to_string(response->status) +
                                               " " +
                                               std::string(http::reason_phrase(response->status)),
                                    .http_status = response->status});
  }
  const Json answer = Json::parse(response->body, nullptr, false);
  if (const auto error = error_of(answer)) {
    co_return fail(ErrorCode::invalid_data, what + ": " + *error);
  }
  if (!value_at(answer, {"data", "me"}).is_object()) {
    co_return fail(ErrorCode::protocol, what + ": the answer does not say who asks");
  }
  const Json name = value_at(answer, {"data", "me", "activeAccount", "name"});
  co_return name.is_string() ? name.get<std::string>() : std::string();
}

}  // namespace gitops::control_plane
