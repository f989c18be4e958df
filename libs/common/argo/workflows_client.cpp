#include "common/argo/workflows_client.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/argo/argo_error.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::argo {
namespace {

using Json = nlohmann::json;

std::string path_of(const std::string& collection, const std::string& ns,
                    const std::string& name = {}) {
  return "/api/v1/" + collection + "/" + percent_encode(ns) +
         (name.empty() ? std::string() : "/" + percent_encode(name));
}

}  // namespace

WorkflowsClient::WorkflowsClient(http::Client& http, Options options, std::function<Secret()> token)
    : http_(http), options_(std::move(options)), token_(std::move(token)) {}

Task<Result<std::string>> WorkflowsClient::workflow(std::string ns, std::string name,
                                                    std::string fields, Deadline deadline) {
  std::string target = path_of("workflows", ns, name);
  if (!fields.empty()) target += "?" + http::query_string({{"fields", fields}});
  co_return co_await call("GET", std::move(target), {}, "Workflow " + ns + "/" + name, deadline);
}

Task<Result<std::string>> WorkflowsClient::workflow_template(std::string ns, std::string name,
                                                             Deadline deadline) {
  co_return co_await call("GET", path_of("workflow-templates", ns, name), {},
                          "WorkflowTemplate " + ns + "/" + name, deadline);
}

Task<Result<std::string>> WorkflowsClient::put(std::string ns, std::string name, std::string verb,
                                               std::string options, Deadline deadline) {
  auto body = parse_json_object(options.empty() ? "{}" : options);
  body["name"] = name;
  body["namespace"] = ns;
  co_return co_await call("PUT", path_of("workflows", ns, name) + "/" + verb, to_text(body),
                          verb + " of Workflow " + ns + "/" + name, deadline);
}

Task<Result<void>> WorkflowsClient::remove(std::string ns, std::string name, bool force,
                                           Deadline deadline) {
  auto done = co_await call("DELETE", path_of("workflows", ns, name) + (force ? "?force=true" : ""),
                            {}, "deletion of Workflow " + ns + "/" + name, deadline);
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return Result<void>();
}

Task<Result<std::string>> WorkflowsClient::submit(std::string ns, std::string workflow_template,
                                                  std::string options, Deadline deadline) {
  const Json body{{"namespace", ns},
                  {"resourceKind", "WorkflowTemplate"},
                  {"resourceName", workflow_template},
                  {"submitOptions", parse_json_object(options.empty() ? "{}" : options)}};
  co_return co_await call("POST", path_of("workflows", ns) + "/submit", to_text(body),
                          "submission of WorkflowTemplate " + ns + "/" + workflow_template,
                          deadline);
}

Task<Result<http::ClientExchange>> WorkflowsClient::logs(std::string ns, std::string name,
                                                         WorkflowLogOptions options,
                                                         Deadline deadline) {
  const std::string container = options.container.empty() ? "main" : options.container;
  const std::string tail = options.tail_lines ? std::to_string(*options.tail_lines) : "";
  const std::string since = options.since ? std::to_string(options.since->count()) : "";
  std::vector<std::pair<std::string_view, std::string_view>> wanted{
      {"logOptions.container", container},
      {"logOptions.follow", options.follow ? "true" : "false"},
      {"logOptions.timestamps", options.timestamps ? "true" : "false"}};
  const auto add = [&wanted](std::string_view key, std::string_view value) {
    if (!value.empty()) wanted.emplace_back(key, value);
  };
  add("podName", options.pod);
  add("grep", options.grep);
  add("selector", options.selector);
  add("logOptions.tailLines", tail);
  add("logOptions.sinceSeconds", since);
  http::Request request{
      .method = "GET",
      .target = http::join_target(
          options_.server, path_of("workflows", ns, name) + "/log?" + http::query_string(wanted))};
  if (const Secret token = token_(); !token.empty()) {
    request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
  }
  request.headers.set("Accept", "application/json");
  auto exchange = co_await http_.open(options_.server, std::move(request), deadline);
  if (!exchange) {
    co_return fail("Argo Workflows logs of " + ns + "/" + name, std::move(exchange.error()));
  }
  co_return std::move(*exchange);
}

Task<Result<std::string>> WorkflowsClient::call(std::string method, std::string target,
                                                std::string body, std::string what,
                                                Deadline deadline) {
  http::Request request{.method = std::move(method),
                        .target = http::join_target(options_.server, target)};
  if (const Secret token = token_(); !token.empty()) {
    request.headers.set("Authorization", "Bearer " + std::string(token.reveal()));
  }
  request.headers.set("Accept", "application/json");
  if (!body.empty()) request.headers.set("Content-Type", "application/json");
  request.body = std::move(body);
  what = "Argo Workflows " + what;
  auto response =
      co_await http_.send(options_.server, std::move(request), deadline, options_.max_answer);
  if (!response) co_return fail(what, std::move(response.error()));
  co_return body_of(std::move(*response), what);
}

}  // namespace gitops::argo
