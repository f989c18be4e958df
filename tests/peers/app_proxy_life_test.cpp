// From an empty namespace and an empty repository to a registered runtime with a Git source that Argo CD has
// applied: the running app-proxy on a real cluster, a real Argo CD and a real Gitea, whose repositories Argo CD reads by
// the Secret that app-proxy makes. The control plane is the double.
#include <iostream>

#include <gmock/gmock.h>

#include "e2e/app_proxy_harness.hpp"
#include "peers/gitea_account.hpp"
#include "peers/peer_bed.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kTimeLimit = std::chrono::seconds(60);

// The time that people are promised.
constexpr auto kPromised = std::chrono::seconds(30);

std::string secret_value(const char* name, const char* key) {
  const auto reply = peer_bed().cluster().request(
      "GET", std::string("/api/v1/namespaces/") + PeerArgoCd::kNamespace + "/secrets/" + name);
  if (!reply.ok()) return {};
  const auto json = Json::parse(reply.body, nullptr, false);
  const auto bytes = base64_decode(json.value(Json::json_pointer("/data/" + std::string(key)), ""));
  return bytes ? *bytes : "";
}

TEST(RuntimeRegistration, FromNothingToAGitSourceThatArgoCdHasApplied) {
  GITOPS_REQUIRE_PEERS();
  GITOPS_REQUIRE_PEER(PeerGitea);
  auto& bed = peer_bed();
  // Its shared configuration repository has no commit yet.
  GiteaAccount git;
  const auto& ann = git.ann;
  const auto shop = git.gitea.create_repository(ann, "shop");
  git.put("shop", "one/cm.yaml",
          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git}\ndata: {a: b}\n");
  for (const std::string repository : {"config", "shop"}) {
    ASSERT_TRUE(
        git.gitea.api(ann, "PATCH", "/repos/ann/" + repository, R"({"private":true})").ok());
  }
  // As the administrator: the bot's own token ends when its password is changed.
  const auto session = Json::parse(bed.argocd().request_ok(
      "POST", "/api/v1/session",
      Json{{"username", "admin"}, {"password", bed.argocd().admin_password()}}.dump()));
  const auto argocd = [&](const std::string& method, const std::string& path,
                          const std::string& body = {}) {
    return http_call({.method = method,
                      .url = bed.argocd().url() + path,
                      .headers = {"Authorization: Bearer " + session.value("token", ""),
                                  "Content-Type: application/json"},
                      .body = body});
  };
  // It does not know Gitea's authority. It is told no credentials: without those of the Secret it refuses the repository.
  const auto trust = [&](const std::string& repository) {
    return argocd("POST", "/api/v1/repositories",
                  Json{{"repo", git.url(repository)}, {"insecure", true}}.dump())
        .ok();
  };
  EXPECT_FALSE(trust("shop"));
  bed.cluster().create_namespace("life-shop");
  // An account with the capability apiKey.
  constexpr const char* kPassword = "canary-bot-password";
  const auto changed = argocd("PUT", "/api/v1/account/password",
                              Json{{"name", "bot"},
                                   {"currentPassword", bed.argocd().admin_password()},
                                   {"newPassword", kPassword}}
                                  .dump());
  ASSERT_TRUE(changed.ok()) << changed.body;
  in_app_proxy_harness(
      [&](AppProxyHarness& harness) -> Task<> {
        auto& accounts = harness.platform.accounts();
        git.tell(harness.platform);
        TempDir folder;
        const auto begin = Clock::now();
        auto environment = git.environment(folder);
        environment.merge(Environment{{"KUBECONFIG", bed.cluster().kubeconfig().string()},
                                      {"NAMESPACE", PeerArgoCd::kNamespace},
                                      {"RUNTIME_NAME", "fresh"},
                                      {"RUNTIME_TOKEN", ""},
                                      {"USER_TOKEN", kAnn},
                                      {"ARGO_CD_URL", bed.argocd().url()},
                                      {"ARGO_CD_USERNAME", "bot"},
                                      {"ARGO_CD_PASSWORD", kPassword}});
        harness.start(std::move(environment));
        CO_ASSERT_TRUE(co_await eventually(
            [] {
              return secret_value("codefresh-token", "token") == "canary-runtime-token-1" &&
                     !secret_value("argocd-token", "token").empty();
            },
            "the Secrets", kTimeLimit));
        co_await harness.account_known();
        const auto done = [&](std::string query, Json variables) -> Task<> {
          const auto answer = co_await harness.ask(std::move(query), AppProxyHarness::as(kAnn),
                                                   std::move(variables));
          EXPECT_FALSE(answer.json.contains("errors")) << answer.body;
        };
        co_await done(
            "mutation($args: AddGitIntegrationArgs!){addGitIntegration(args: $args){name}}",
            {{"args",
              {{"provider", "GITHUB"},
               {"apiUrl", git.gitea.url() + "/api/v1"},
               {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}}});
        co_await done(
            "mutation($args: RegisterToGitIntegrationArgs!){registerToGitIntegration(args: "
            "$args){name}}",
            {{"args", {{"token", ann.token}}}});
        co_await done("mutation($args: CreateGitSourceInput!){createGitSource(args: $args)}",
                      {{"args",
                        {{"appName", "life-shop"},
                         {"appSpecifier", shop + "/one?ref=main"},
                         {"destServer", "https://kubernetes.default.svc"},
                         {"destNamespace", "life-shop"}}}});
        EXPECT_TRUE(co_await eventually([&] { return trust("shop"); },
                                        "credentials for Git sources", kTimeLimit));
        // Argo CD refuses a repository without commits, so it learns of this one now.
        EXPECT_TRUE(
            co_await eventually([&] { return trust("config"); }, "the first commit", kTimeLimit));
        EXPECT_TRUE(co_await eventually(
            [&] {
              for (const char* name : {"fresh", "in-cluster", "life-shop"}) {
                (void)argocd("GET",
                             "/api/v1/applications/" + std::string(name) + "?refresh=normal");
              }
              return bed.cluster()
                  .request("GET", "/api/v1/namespaces/life-shop/configmaps/from-git")
                  .ok();
            },
            "the Git source", kTimeLimit));
        if (::testing::Test::HasFailure()) {
          for (const char* name : {"fresh", "in-cluster", "life-shop"}) {
            std::cerr << argocd("GET", "/api/v1/applications/" + std::string(name)).body << "\n";
          }
        }
        const auto took = Clock::now() - begin;
        std::cout << "a synced Git source after "
                  << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms\n";
        EXPECT_LT(took, kPromised);
        EXPECT_EQ(accounts.life().registered.size(), 1U);
        EXPECT_EQ(harness.daemon->status().state("registration"), "ok") << harness.daemon->status();

        // argocd-token is one that Argo CD takes, and it is made again when somebody deletes it.
        const auto token = secret_value("argocd-token", "token");
        bed.cluster().request("DELETE", std::string("/api/v1/namespaces/") +
                                            PeerArgoCd::kNamespace + "/secrets/argocd-token");
        EXPECT_TRUE(co_await eventually(
            [&] {
              const auto now = secret_value("argocd-token", "token");
              return !now.empty() && now != token;
            },
            "another argocd-token", kTimeLimit));
        EXPECT_THAT(harness.daemon->log(), Not(HasSubstr(token)));
      },
      4 * kTimeLimit);
}

}  // namespace
}  // namespace gitops::test
