#include "common/argo/argocd_client.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::argo {
namespace {

constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kMaxMessage = 500;

// "/api/v1/applications/<name>"
std::string app_path(const AppRef& app) {
  return "/api/v1/applications/" + percent_encode(app.name);
}

// "?appNamespace=…&project=…", without empty parameters.
std::string app_query(const AppRef& app, const ObjectFilter& only = {}) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  const auto add = [&pairs](std::string_view name, std::string_view value) {
    if (!value.empty()) pairs.emplace_back(name, value);
  };
  add("appNamespace", app.ns);
  add("project", app.project);
  add("group", only.group);
  add("kind", only.kind);
  add("namespace", only.ns);
  add("name", only.name);
  return pairs.empty() ? std::string() : "?" + http::query_string(pairs);
}

std::string shown(const AppRef& app) {
  return app.ns.empty() ? app.name : app.ns + "/" + app.name;
}

// argocd-server's errors are {"error", "code", "message"}; `error` and `message` are the same text.
Error error_from_answer(const http::Response& response, const std::string& what) {
  Error error;
  error.code = error_code_of_status(response.status);
  error.http_status = response.status;
  error.message = what + ": " + std::to_string(response.status) + " " +
                  std::string(http::reason_phrase(response.status));
  if (const auto value = response.headers.find("Retry-After")) {
    error.retry_after = parse_retry_after(*value, wall_now());
  }
  if (response.body.size() > kMaxErrorBody) return error;
  const auto message = string_at(parse_json_object(response.body), {"message"});
  if (!message.empty()) error.message += ": " + message.substr(0, kMaxMessage);
  return error;
}

std::string with_slash(const std::string& root_path) {
  const auto begin = root_path.find_first_not_of('/');
  if (begin == std::string::npos) return {};
  return "/" + root_path.substr(begin, root_path.find_last_not_of('/') - begin + 1);
}

}  // namespace

ArgoCdClient::ArgoCdClient(http::Client& http, Options options, std::function<Secret()> token)
    : http_(http), options_(std::move(options)), token_(std::move(token)) {
  options_.root_path = with_slash(options_.root_path);
}

Task<Result<std::string>> ArgoCdClient::resource_tree(AppRef app, Deadline deadline) {
  co_return co_await get(app_path(app) + "/resource-tree" + app_query(app),
                         "resource tree of " + shown(app), Auth::token, deadline);
}

Task<Result<std::string>> ArgoCdClient::managed_resources(AppRef app, Deadline deadline,
                                                          ObjectFilter only) {
  co_return co_await get(app_path(app) + "/managed-resources" + app_query(app, only),
                         "managed resources of " + shown(app), Auth::token, deadline);
}

Task<Result<std::string>> ArgoCdClient::revision_metadata(AppRef app, std::string revision,
                                                          int source_index, Deadline deadline) {
  std::string target = app_path(app) + "/revisions/" + percent_encode(revision) + "/metadata";
  target += app_query(app);
  target += target.contains('?') ? '&' : '?';
  target += "sourceIndex=" + std::to_string(source_index);
  co_return co_await get(std::move(target), "revision " + revision + " of " + shown(app),
                         Auth::token, deadline);
}

Task<Result<bool>> ArgoCdClient::can_i(std::string resource, std::string action, std::string object,
                                       Deadline deadline) {
  // The last part of the path may contain slashes.
  const auto answer = co_await get("/api/v1/account/can-i/" + percent_encode(resource) + "/" +
                                       percent_encode(action) + "/" + object,
                                   "right to " + action + " " + resource, Auth::token, deadline);
  if (!answer) co_return std::unexpected(answer.error());
  const auto json = nlohmann::json::parse(*answer, nullptr, false);
  const auto value = json.is_object() ? json.value("value", nlohmann::json()) : nlohmann::json();
  if (value != "yes" && value != "no") {
    co_return fail(ErrorCode::protocol, "Argo CD right to " + action + " " + resource +
                                            ": the answer is neither yes nor no");
  }
  co_return value == "yes";
}

Task<Result<std::string>> ArgoCdClient::version(Deadline deadline) {
  co_return co_await get("/api/version", "version", Auth::none, deadline);
}

Task<Result<std::string>> ArgoCdClient::get(std::string target, std::string what, Auth auth,
                                            Deadline deadline) {
  http::Request request{.target = std::move(target)};
  if (auth == Auth::token) {
    if (const Secret token = token_(); !token.empty()) {
      request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
    }
  }
  co_return co_await send(std::move(request), std::move(what), deadline);
}

Task<Result<Secret>> ArgoCdClient::log_in(std::string username, Secret password,
                                          Deadline deadline) {
  http::Request request{.method = "POST", .target = "/api/v1/session"};
  request.headers.set("Content-Type", "application/json");
  request.body = to_text({{"username", username}, {"password", password.reveal()}});
  auto answer = co_await send(std::move(request), "login of " + username, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const Secret wiped(*answer);
  std::string token = string_at(parse_json_object(*answer), {"token"});
  if (token.empty()) {
    co_return fail(ErrorCode::invalid_data, "Argo CD login of " + username + ": no token came");
  }
  co_return Secret(std::move(token));
}

Task<Result<std::string>> ArgoCdClient::send(http::Request request, std::string what,
                                             Deadline deadline) {
  request.target = http::join_target(options_.server, options_.root_path + request.target);
  request.headers.set("Accept", "application/json");
  what = "Argo CD " + what;
  auto response =
      co_await http_.send(options_.server, std::move(request), deadline, options_.max_answer);
  if (!response) co_return fail(what, std::move(response.error()));
  if (response->status == 200) co_return std::move(response->body);
  co_return std::unexpected(
      error_from_answer(*response, what + " at " + options_.server.host_header()));
}

Result<http::Url> parse_server(const std::string& text) {
  auto url = http::parse_url(text.contains("://") ? text : "http://" + text);
  if (url && url->scheme != "http" && url->scheme != "https") {
    return fail(ErrorCode::invalid_argument, "expected host:port, http:// or https://");
  }
  return url;
}

}  // namespace gitops::argo
