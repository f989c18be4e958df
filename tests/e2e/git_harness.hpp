#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_harness.hpp"

namespace gitops::test {

// An AppProxyHarness with an API server and a GitHub, whose user "dana" works for the organisation
// "acme" with the repository "acme/shop". Git tokens are canaries, too.
struct GitHarness {
  using Json = nlohmann::json;
  using Answer = AppProxyHarness::Answer;

  explicit GitHarness(const Executor& executor)
      : base(executor), cluster(executor), host(executor, app_proxy::ProviderKind::github) {
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(host.start());
    // No integration is made by itself.
    base.platform.accounts().add(
        {.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = {}});
    auto& shop = host.add_repository("acme", "shop");
    shop.branches = {"main", "feature/x"};
    shop.tags = {"v1.0"};
    shop.files["deploy/app.yaml"] = "replicas: 1\n";
  }

  void start(Environment more = {}, std::vector<std::string> flags = {}) {
    write_file(folder_ / "kubeconfig", cluster.kubeconfig());
    more.insert({{"KUBECONFIG", (folder_ / "kubeconfig").string()},
                 {"NAMESPACE", "default"},
                 {"RUNTIME_STORE_IV", "canary-iv"},
                 {"GIT_INSECURE_HTTP", "true"}});
    base.start(std::move(more), std::move(flags));
  }

  Task<Answer> ask(const char* token, std::string query, Json variables = {}) {
    co_return co_await base.ask(std::move(query), AppProxyHarness::as(token), std::move(variables));
  }

  // The documents that the public Go SDK sends.
  Task<Answer> list(const char* token) {
    return ask(token,
               "query GitIntegrations{gitIntegrations{name sharingPolicy provider apiUrl "
               "users{userId}}}");
  }
  Task<Answer> get(const char* token, Json name = nullptr) {
    return ask(token,
               "query GitIntegration($name: String){gitIntegration(name: $name){name sharingPolicy "
               "provider apiUrl registeredUsers}}",
               {{"name", std::move(name)}});
  }
  Task<Answer> add(const char* token, Json args) {
    return ask(token,
               "mutation AddGitIntegration($args: AddGitIntegrationArgs!){addGitIntegration(args: "
               "$args){name sharingPolicy provider apiUrl registeredUsers}}",
               {{"args", std::move(args)}});
  }
  // The integration "default" for the double.
  Task<Answer> add() {
    return add(AppProxyHarness::kAnn, {{"provider", "GITHUB"},
                                       {"apiUrl", host.api_root().text() + "/"},
                                       {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}});
  }
  Task<Answer> edit(const char* token, Json args) {
    return ask(token,
               "mutation EditGitIntegration($args: EditGitIntegrationArgs!){editGitIntegration("
               "args: $args){name sharingPolicy provider apiUrl registeredUsers}}",
               {{"args", std::move(args)}});
  }
  Task<Answer> remove(const char* token, std::string name) {
    return ask(token,
               "mutation RemoveGitIntegration($name: String!){removeGitIntegration(name: $name)}",
               {{"name", std::move(name)}});
  }
  Task<Answer> register_user(const char* token, Json args) {
    return ask(token,
               "mutation RegisterToGitIntegration($args: RegisterToGitIntegrationArgs!){"
               "registerToGitIntegration(args: $args){name sharingPolicy provider apiUrl "
               "registeredUsers}}",
               {{"args", std::move(args)}});
  }
  Task<Answer> deregister(const char* token, Json name = nullptr) {
    return ask(token,
               "mutation DeregisterFromGitIntegration($name: String){deregisterFromGitIntegration("
               "name: $name){name sharingPolicy provider apiUrl registeredUsers}}",
               {{"name", std::move(name)}});
  }

  [[nodiscard]] std::string logs() const { return base.logs(); }
  Task<> stop() {
    co_await base.stop();
    co_await host.stop();
    co_await cluster.stop();
  }

  AppProxyHarness base;
  FakeKubeApi cluster;
  FakeGitHost host;

 private:
  TempDir folder_;
};

inline void in_git_harness(const std::function<Task<>(GitHarness&)>& body) {
  run_coro(
      [&]() -> Task<> {
        GitHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, body);
      },
      std::chrono::seconds(60));
}

}  // namespace gitops::test
