#include "common/argo/argocd_client.hpp"

#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/argo/argo_error.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/message.hpp"
#include "common/http/traced.hpp"
#include "common/http/url.hpp"

namespace gitops::argo {
namespace {

// Returns "/api/v1/applications/<name>".
std::string app_path(const AppRef& app) {
  return "/api/v1/applications/" + percent_encode(app.name);
}

using Parameters = std::vector<std::pair<std::string_view, std::string_view>>;

// Returns "?appNamespace=…&project=…" and the given parameters, without empty ones.
std::string app_query(const AppRef& app, const Parameters& more) {
  Parameters pairs;
  const auto add = [&pairs](std::string_view name, std::string_view value) {
    if (!value.empty()) pairs.emplace_back(name, value);
  };
  add("appNamespace", app.ns);
  add("project", app.project);
  for (const auto& [name, value] : more) add(name, value);
  return pairs.empty() ? std::string() : "?" + http::query_string(pairs);
}

std::string app_query(const AppRef& app, const ObjectFilter& only = {}) {
  return app_query(
      app,
      Parameters{
          {"group", only.group}, {"kind", only.kind}, {"namespace", only.ns}, {"name", only.name}});
}

Parameters parameters_of(const ResourceRef& which) {
  return {{"namespace", which.ns},
          {"resourceName", which.name},
          {"version", which.version},
          {"group", which.group},
          {"kind", which.kind}};
}

// Returns the JSON object with the names of the Application.
std::string with_app(const std::string& options, const AppRef& app) {
  auto json = parse_json_object(options.empty() ? "{}" : options);
  json["name"] = app.name;
  if (!app.ns.empty()) json["appNamespace"] = app.ns;
  if (!app.project.empty()) json["project"] = app.project;
  return to_text(json);
}

std::string shown(const AppRef& app) {
  return app.ns.empty() ? app.name : app.ns + "/" + app.name;
}

std::string shown(const ResourceRef& which) {
  return which.kind + " " + (which.ns.empty() ? which.name : which.ns + "/" + which.name);
}

Result<void> without_answer(const Result<std::string>& answer) {
  if (!answer) return std::unexpected(answer.error());
  return {};
}

// Begins the span of a request, and names it in the request.
Span client_span(const SpanContext& trace, http::Request& request) {
  if (trace.empty()) return {};
  auto span = http::client_span(trace, request.headers, request.method + " argocd-server");
  span.set("http.request.method", request.method);
  span.set("url.path", request.target.substr(0, request.target.find('?')));
  return span;
}

std::string with_slash(const std::string& root_path) {
  const auto begin = root_path.find_first_not_of('/');
  if (begin == std::string::npos) return {};
  return "/" + root_path.substr(begin, root_path.find_last_not_of('/') - begin + 1);
}

}  // namespace

ArgoCdClient::ArgoCdClient(http::Client& http, Options options, std::function<Secret()> token)
    : http_(http),
      options_(std::move(options)),
      at_server_(" at " + options_.server.host_header()),
      token_(std::move(token)) {
  options_.root_path = with_slash(options_.root_path);
}

Task<Result<std::string>> ArgoCdClient::resource_tree(AppRef app, Deadline deadline) {
  co_return co_await get(app_path(app) + "/resource-tree" + app_query(app),
                         "resource tree of " + shown(app), Auth::token, deadline, app.trace);
}

Task<Result<std::string>> ArgoCdClient::managed_resources(AppRef app, Deadline deadline,
                                                          ObjectFilter only) {
  co_return co_await get(app_path(app) + "/managed-resources" + app_query(app, only),
                         "managed resources of " + shown(app), Auth::token, deadline, app.trace);
}

Task<Result<std::string>> ArgoCdClient::revision_metadata(AppRef app, std::string revision,
                                                          int source_index, Deadline deadline,
                                                          std::optional<std::int64_t> history_id) {
  std::string target = app_path(app) + "/revisions/" + percent_encode(revision) + "/metadata";
  target += app_query(app);
  target += target.contains('?') ? '&' : '?';
  target += "sourceIndex=" + std::to_string(source_index);
  if (history_id) target += "&versionId=" + std::to_string(*history_id);
  co_return co_await get(std::move(target), "revision " + revision + " of " + shown(app),
                         Auth::token, deadline, app.trace);
}

Task<Result<std::string>> ArgoCdClient::application(AppRef app, Refresh refresh,
                                                    Deadline deadline) {
  const char* wanted = refresh == Refresh::none     ? ""
                       : refresh == Refresh::normal ? "normal"
                                                    : "hard";
  co_return co_await get(app_path(app) + app_query(app, Parameters{{"refresh", wanted}}),
                         "Application " + shown(app), Auth::token, deadline, app.trace);
}

Task<Result<std::string>> ArgoCdClient::sync(AppRef app, std::string options, Deadline deadline) {
  co_return co_await call("POST", app_path(app) + "/sync", with_app(options, app),
                          "sync of " + shown(app), deadline, app.trace);
}

Task<Result<std::string>> ArgoCdClient::rollback(AppRef app, std::string options,
                                                 Deadline deadline) {
  co_return co_await call("POST", app_path(app) + "/rollback", with_app(options, app),
                          "rollback of " + shown(app), deadline, app.trace);
}

Task<Result<void>> ArgoCdClient::terminate_operation(AppRef app, Deadline deadline) {
  co_return without_answer(co_await call("DELETE", app_path(app) + "/operation" + app_query(app),
                                         {}, "end of the operation of " + shown(app), deadline,
                                         app.trace));
}

Task<Result<void>> ArgoCdClient::remove(AppRef app, bool cascade, std::string propagation,
                                        Deadline deadline) {
  const Parameters how{{"cascade", cascade ? "true" : "false"}, {"propagationPolicy", propagation}};
  co_return without_answer(co_await call("DELETE", app_path(app) + app_query(app, how), {},
                                         "deletion of " + shown(app), deadline, app.trace));
}

Task<Result<std::string>> ArgoCdClient::resource(AppRef app, ResourceRef which, Deadline deadline) {
  co_return co_await get(app_path(app) + "/resource" + app_query(app, parameters_of(which)),
                         shown(which) + " of " + shown(app), Auth::token, deadline, app.trace);
}

Task<Result<std::string>> ArgoCdClient::patch_resource(AppRef app, ResourceRef which,
                                                       std::string patch_type, std::string patch,
                                                       Deadline deadline) {
  auto parameters = parameters_of(which);
  parameters.emplace_back("patchType", patch_type);
  co_return co_await call("POST", app_path(app) + "/resource" + app_query(app, parameters),
                          json_string(patch), "patch of " + shown(which) + " of " + shown(app),
                          deadline, app.trace);
}

Task<Result<void>> ArgoCdClient::delete_resource(AppRef app, ResourceRef which, Removal how,
                                                 Deadline deadline) {
  auto parameters = parameters_of(which);
  if (how.force) parameters.emplace_back("force", "true");
  if (how.orphan) parameters.emplace_back("orphan", "true");
  co_return without_answer(
      co_await call("DELETE", app_path(app) + "/resource" + app_query(app, parameters), {},
                    "deletion of " + shown(which) + " of " + shown(app), deadline, app.trace));
}

Task<Result<std::string>> ArgoCdClient::actions(AppRef app, ResourceRef which, Deadline deadline) {
  co_return co_await get(app_path(app) + "/resource/actions" + app_query(app, parameters_of(which)),
                         "actions of " + shown(which) + " of " + shown(app), Auth::token, deadline,
                         app.trace);
}

Task<Result<bool>> ArgoCdClient::has_action_parameters(Deadline deadline) {
  const auto answer = co_await version(deadline);
  if (!answer) co_return std::unexpected(answer.error());
  co_return argo::has_action_parameters(string_at(parse_json_object(*answer), {"Version"}));
}

Task<Result<void>> ArgoCdClient::run_action(AppRef app, ResourceRef which, std::string action,
                                            std::string parameters, Deadline deadline) {
  const std::string what = "action " + action + " on " + shown(which) + " of " + shown(app);
  const auto is_newer = co_await has_action_parameters(deadline);
  if (!is_newer) co_return std::unexpected(is_newer.error());
  const bool has_parameters = !parameters.empty() && parameters != "[]";
  if (!*is_newer) {
    if (has_parameters) {
      co_return fail(ErrorCode::unsupported,
                     "this release of Argo CD has no parameters of actions; it is older than 3.1");
    }
    co_return without_answer(co_await call(
        "POST", app_path(app) + "/resource/actions" + app_query(app, parameters_of(which)),
        json_string(action), what, deadline, app.trace));
  }
  nlohmann::json body{{"namespace", which.ns},    {"resourceName", which.name},
                      {"version", which.version}, {"group", which.group},
                      {"kind", which.kind},       {"action", action}};
  if (has_parameters) {
    auto list = nlohmann::json::parse(parameters, nullptr, false);
    if (list.is_array()) body["resourceActionParameters"] = std::move(list);
  }
  co_return without_answer(co_await call("POST", app_path(app) + "/resource/actions/v2",
                                         with_app(to_text(body), app), what, deadline, app.trace));
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
                                            Deadline deadline, SpanContext trace) {
  http::Request request{.target = std::move(target)};
  if (auth == Auth::token) {
    if (const Secret token = token_(); !token.empty()) {
      request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
    }
  }
  co_return co_await send(std::move(request), std::move(what), deadline, trace);
}

Task<Result<std::string>> ArgoCdClient::call(std::string method, std::string target,
                                             std::string body, std::string what, Deadline deadline,
                                             SpanContext trace) {
  http::Request request{.method = std::move(method), .target = std::move(target)};
  if (const Secret token = token_(); !token.empty()) {
    request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
  }
  // argocd-server requires this header of every request except GET, also of one without a body.
  request.headers.set("Content-Type", "application/json");
  request.body = std::move(body);
  co_return co_await send(std::move(request), std::move(what), deadline, trace);
}

Task<Result<http::ClientExchange>> ArgoCdClient::logs(AppRef app, AppLogOptions options,
                                                      Deadline deadline) {
  const std::string tail = options.tail_lines ? std::to_string(*options.tail_lines) : "";
  const std::string since = options.since ? std::to_string(options.since->count()) : "";
  const Parameters wanted{{"namespace", options.of.ns},
                          {"resourceName", options.of.name},
                          {"group", options.of.group},
                          {"kind", options.of.kind},
                          {"podName", options.pod},
                          {"container", options.container},
                          {"filter", options.filter},
                          {"follow", options.follow ? "true" : "false"},
                          {"previous", options.previous ? "true" : ""},
                          {"tailLines", tail},
                          {"sinceSeconds", since}};
  http::Request request{
      .method = "GET",
      .target = http::join_target(
          options_.server, options_.root_path + app_path(app) + "/logs" + app_query(app, wanted))};
  if (const Secret token = token_(); !token.empty()) {
    request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
  }
  request.headers.set("Accept", "application/json");
  const auto span = client_span(app.trace, request);
  auto exchange = co_await http_.open(options_.server, std::move(request), deadline);
  if (!exchange) co_return fail("Argo CD logs of " + shown(app), std::move(exchange.error()));
  co_return std::move(*exchange);
}

Task<Result<std::string>> ArgoCdClient::clusters(Deadline deadline) {
  co_return co_await get("/api/v1/clusters", "list of clusters", Auth::token, deadline);
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

Task<Result<Secret>> ArgoCdClient::create_token(std::string account, Deadline deadline) {
  auto answer =
      co_await call("POST", "/api/v1/account/" + percent_encode(account) + "/token",
                    to_text({{"name", account}}), "token of account " + account, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const Secret wiped(*answer);
  std::string token = string_at(parse_json_object(*answer), {"token"});
  if (token.empty()) {
    co_return fail(ErrorCode::invalid_data, "Argo CD token of account " + account + ": none came");
  }
  co_return Secret(std::move(token));
}

Task<Result<bool>> ArgoCdClient::is_accepted(Secret token, Deadline deadline) {
  http::Request request{.method = "GET", .target = "/api/v1/session/userinfo"};
  request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
  auto answer = co_await send(std::move(request), "check of a token", deadline);
  if (!answer && answer.error().code == ErrorCode::unauthenticated) co_return false;
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto json = parse_json_object(*answer);
  const auto found = json.find("loggedIn");
  co_return found != json.end() && found->is_boolean() && found->get<bool>();
}

Task<Result<std::string>> ArgoCdClient::send(http::Request request, std::string what,
                                             Deadline deadline, SpanContext trace) {
  auto span = client_span(trace, request);
  request.target = http::join_target(options_.server, options_.root_path + request.target);
  request.headers.set("Accept", "application/json");
  what = "Argo CD " + what;
  auto response =
      co_await http_.send(options_.server, std::move(request), deadline, options_.max_answer);
  if (!response) {
    span.fail(response.error().message);
    co_return fail(what, std::move(response.error()));
  }
  span.set("http.response.status_code", response->status);
  if (response->status >= 400) span.fail("");
  co_return body_of(std::move(*response), what.append(at_server_));
}

bool has_action_parameters(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return true;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return true;
  return major > 3 || (major == 3 && minor >= 1);
}

Result<http::Url> parse_server(const std::string& text) {
  auto url = http::parse_url(text.contains("://") ? text : "http://" + text);
  if (url && url->scheme != "http" && url->scheme != "https") {
    return fail(ErrorCode::invalid_argument, "expected host:port, http:// or https://");
  }
  return url;
}

}  // namespace gitops::argo
