#include "app-proxy/argo_parts.hpp"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gitops::app_proxy {
namespace {

// argocd-server refuses all logins to an account after five wrong ones within 300 s.
constexpr auto kWrongPassword = std::chrono::seconds(310);
constexpr const char* kServiceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token";

constexpr const char* kNotLoggedInYet = "not logged in yet";

// Entry of a server; `token` is null when the server is not configured.
StatusEntry server_entry(std::string name, const Credential* token, const std::string& url) {
  if (token == nullptr) {
    return {
        .name = std::move(name), .state = StatusState::unavailable, .message = "not configured"};
  }
  auto entry = status_entry(std::move(name), token->last_error());
  if (entry.message == kNotLoggedInYet) entry.state = StatusState::pending;
  entry.add_text("url", url, "");
  return entry;
}

}  // namespace

ArgoParts::ArgoParts(const DaemonContext& context, const Config& config, net::Resolver& names,
                     const http::ProxySettings& proxy, const Rules& rules, k8s::Client* cluster)
    : config_(config), tasks_(context.executor) {
  if (config.argocd) {
    argocd_http_.emplace(context.executor, names,
                         client_options(config, proxy, config.argocd_insecure));
    argocd_.emplace(*argocd_http_, argo::ArgoCdClient::Options{.server = config.argocd->url},
                    [this] { return argocd_token_->current(); });
    argocd_token_.emplace(argocd_credential());
    argocd_token_->start(tasks_);
    applications_.emplace(*argocd_, *argocd_token_, rules, config.runtime_name);
  }
  if (config.workflows) {
    workflows_http_.emplace(context.executor, names,
                            client_options(config, proxy, config.workflows_insecure));
    workflows_token_.emplace(workflows_credential());
    workflows_client_.emplace(*workflows_http_,
                              argo::WorkflowsClient::Options{.server = config.workflows->url},
                              [this] { return workflows_token_->current(); });
    workflows_.emplace(*workflows_client_, *workflows_token_, rules, config.runtime_name);
    if (cluster) workflows_->name_users_in(*cluster);
  }
  if (cluster) rollouts_.emplace(*cluster, applications());
}

Task<> ArgoParts::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

// Obtains a token in the same way as the kubelet.
Task<Result<void>> ArgoParts::reach_workflows(Deadline deadline) {
  const auto& server = config_.workflows->url;
  const auto answer = co_await workflows_http_->send(
      server, {.method = "GET", .target = http::join_target(server, "/")}, deadline);
  if (!answer) co_return fail("Argo Workflows", answer.error());
  if (answer->status >= 500) {
    co_return fail(ErrorCode::unavailable,
                   "Argo Workflows: status " + std::to_string(answer->status));
  }
  co_return Result<void>();
}

StatusReport ArgoParts::status() const {
  return {server_entry("Argo CD", argocd_token_ ? &*argocd_token_ : nullptr,
                       argocd_token_ ? config_.argocd->text : std::string()),
          server_entry("Argo Workflows", workflows_token_ ? &*workflows_token_ : nullptr,
                       workflows_token_ ? config_.workflows->text : std::string())};
}

Credential ArgoParts::argocd_credential() {
  if (!config_.argocd_token_file.empty()) return Credential::file(config_.argocd_token_file);
  if (config_.argocd_username.empty()) return Credential::fixed(config_.argocd_token);
  return Credential::fetched(
      [this]() -> Task<Result<Secret>> {
        // The file is read each time, since it may change together with the account's password.
        auto password = config_.argocd_password_file.empty()
                            ? Credential::fixed(config_.argocd_password)
                            : Credential::file(config_.argocd_password_file);
        Secret given = password.current();
        // An empty one would be refused, and the pause after a refusal is long.
        if (given.empty()) {
          co_return fail(ErrorCode::unavailable, password.last_error().empty()
                                                     ? "the password for Argo CD is empty"
                                                     : password.last_error());
        }
        co_return co_await argocd_->log_in(config_.argocd_username, std::move(given),
                                           deadline_after(std::chrono::seconds(10)));
      },
      {.task = "login", .not_yet = kNotLoggedInYet, .retry_lasting = kWrongPassword});
}

Credential ArgoParts::workflows_credential() const {
  if (!config_.workflows_token_file.empty()) return Credential::file(config_.workflows_token_file);
  if (!config_.workflows_token.empty()) return Credential::fixed(config_.workflows_token);
  // A server in mode `server` requires no token.
  std::error_code missing;
  return std::filesystem::exists(kServiceAccountToken, missing)
             ? Credential::file(kServiceAccountToken)
             : Credential::fixed({});
}

}  // namespace gitops::app_proxy
