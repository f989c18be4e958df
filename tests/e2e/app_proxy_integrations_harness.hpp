#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "app-proxy/sealing/unseal.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "e2e/git_harness.hpp"
#include "k8s-client/resource.hpp"
#include "support/git_server.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

// app-proxy with integrations of other tools.
namespace gitops::test {

using namespace nlohmann::literals;

inline constexpr auto kAnn = AppProxyHarness::kAnn;

inline constexpr const char* kStaging = "canary-staging.9999";

inline constexpr const char* kControllersLabel = "sealedsecrets.bitnami.com/sealed-secrets-key";

// The repository "config" of a real Git server is the account's, which has the runtimes "prod" and "staging".
struct ToolHarness {
  explicit ToolHarness(GitHarness& w, const Executor& executor) : harness(w), other(executor) {
    git.create_repository("config");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    auto& accounts = harness.base.platform.accounts();
    accounts.add({.id = "acc-1",
                  .name = "acme",
                  .admins = {"u-ann"},
                  .git_provider = {},
                  .shared_config_repo = git.url("config")});
    accounts.add(kStaging,
                 FakeAccounts::Runtime{
                     .name = "staging", .account_id = "acc-1", .runtime_namespace = "gitops"});
    EXPECT_TRUE(other.start());
    write_file(folder / "other", other.kubeconfig());
  }

  // A key as the controller makes it.
  RsaCertificate put_key(FakeKubeApi& cluster, const std::string& name) {
    auto key = make_rsa_certificate();
    cluster.put(k8s::resources::kSecrets, {{"apiVersion", "v1"},
                                           {"kind", "Secret"},
                                           {"type", "kubernetes.io/tls"},
                                           {"metadata",
                                            {{"name", name},
                                             {"namespace", "default"},
                                             {"creationTimestamp", "2026-01-01T00:00:00Z"},
                                             {"labels", {{kControllersLabel, "active"}}}}},
                                           {"data",
                                            {{"tls.crt", base64_encode(key.certificate)},
                                             {"tls.key", base64_encode(key.private_key)}}}});
    return key;
  }

  [[nodiscard]] Environment sharing() const {
    return {{"REPOS_DIR", (folder / "clones").string()},
            {"SHARE_SEALING_KEY", "true"},
            {"GIT_USERNAME", FakeGitHost::kLogin},
            {"GIT_PASSWORD", FakeGitHost::kToken}};
  }
  void start_prod(Environment more) {
    more.insert({"REPOS_DIR", (folder / "clones").string()});
    harness.start(std::move(more));
  }
  void start_staging() {
    auto more = sharing();
    more.insert_or_assign("REPOS_DIR", (folder / "clones-of-staging").string());
    more.insert({{"RUNTIME_NAME", "staging"},
                 {"RUNTIME_TOKEN", kStaging},
                 {"KUBECONFIG", (folder / "other").string()}});
    harness.start(std::move(more));
  }
  Task<> register_ann() {
    co_await harness.base.account_known();
    EXPECT_EQ((co_await harness.add()).code(), "");
    EXPECT_EQ((co_await harness.register_user(kAnn, {{"token", FakeGitHost::kToken}})).code(), "");
  }
  // Waits until the sealing key's entry has this state, and a message that begins so.
  Task<testing::AssertionResult> key_becomes(std::string state, std::string message) {
    auto seen = co_await eventually(
        [&] {
          const auto page = harness.base.daemon->status();
          return page.state("sealing key") == state &&
                 page.message("sealing key").starts_with(message);
        },
        "sealing key: " + message);
    co_return seen << " in " << harness.base.daemon->status();
  }

  // The document of the public client.
  Task<GitHarness::Answer> apply(const char* user, nlohmann::json input) {
    return harness.ask(user,
                       "mutation IntegrationFlow($input: IntegrationFlowInput!) { "
                       "applyIntegration(input: $input) }",
                       {{"input", std::move(input)}});
  }
  static nlohmann::json input(const char* operation, nlohmann::json runtimes,
                              const char* token = "canary-jira") {
    return {{"metadata",
             {{"name", "my-jira"},
              {"type", "issue.jira"},
              {"isAllRuntimes", runtimes.empty()},
              {"runtimes", runtimes},
              {"enabledIntegrationConsumers", {"JIRA_WRITE_BACK"}}}},
            {"operation", operation},
            {"providerInfo", R"({"host_url":"https://jira.example.test"})"},
            {"secureData", nlohmann::json{{"api_token", token}}.dump()},
            {"options", {{"skipTestConnection", true}}}};
  }
  static nlohmann::json answer(bool changed) {
    return {{"data", {{"applyIntegration", {{"changed", changed}}}}}};
  }

  [[nodiscard]] std::string file(const std::string& path) const {
    return git.file_at_head("config", path).value_or("");
  }
  [[nodiscard]] std::string git_line(const std::vector<std::string>& args) const {
    auto result = git.git("config", args);
    EXPECT_TRUE(result.ok()) << result.err;
    while (result.out.ends_with('\n')) result.out.pop_back();
    return result.out;
  }
  // The credential in a file, as the controller unseals it.
  [[nodiscard]] std::string unsealed(const std::string& path, const RsaCertificate& key,
                                     const std::string& label) const {
    const auto objects = parse_manifests(file(path));
    if (!objects || objects->size() != 1) return "no object in " + path;
    const auto sealed = base64_decode(
        objects->front().value("/spec/encryptedData/api_token"_json_pointer, std::string("?")));
    return sealed ? unseal_value(key.private_key, *sealed, label).value_or("not unsealed")
                  : "no base64";
  }

  GitHarness& harness;
  FakeKubeApi other;  // of the runtime "staging"
  GitServer git;
  TempDir folder;
};

inline void in_tool_harness(const std::function<Task<>(ToolHarness&)>& body) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([&](GitHarness& harness) -> Task<> {
    ToolHarness tools(harness, co_await asio::this_coro::executor);
    co_await body(tools);
    co_await tools.other.stop();
  });
}

}  // namespace gitops::test
