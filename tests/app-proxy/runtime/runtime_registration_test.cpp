#include "app-proxy/runtime/runtime_registration.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Json = nlohmann::json;
using control_plane::RuntimeStatusItem;

RuntimeSecret secret(const char* token, const char* iv) {
  return {.token = Secret(token), .iv = Secret(iv)};
}

TEST(OwnedSecrets, AreWrittenAndReadAgain) {
  const auto object = runtime_secret_object("argocd", secret("t-1", "iv-1"));
  EXPECT_EQ(Json::parse(object)["metadata"]["name"], "codefresh-token");
  EXPECT_EQ(Json::parse(object)["metadata"]["namespace"], "argocd");
  EXPECT_TRUE(read_runtime_secret(object).token == Secret("t-1"));
  EXPECT_TRUE(read_runtime_secret(object).iv == Secret("iv-1"));
  EXPECT_TRUE(read_argocd_token(argocd_token_object("argocd", Secret("a-1"))) == Secret("a-1"));
  // What others have put into it stays, and its version, by which an update is refused when it is stale.
  Json before = Json::parse(object);
  before["metadata"]["resourceVersion"] = "7";
  before["metadata"]["labels"]["mine"] = "x";
  before["data"]["extra"] = base64_encode("e");
  const auto after =
      Json::parse(runtime_secret_object("argocd", secret("t-2", "iv-1"), before.dump()));
  EXPECT_EQ(after["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(after["metadata"]["labels"]["mine"], "x");
  EXPECT_EQ(after["data"]["extra"], base64_encode("e"));
  EXPECT_EQ(after["data"]["token"], base64_encode("t-2"));
}

TEST(OwnedSecrets, WhatIsNoSecretIsEmpty) {
  for (const char* text : {"", "null", "[]", "{}", R"({"data":7})", R"({"data":{"token":"?"}})"}) {
    EXPECT_TRUE(read_runtime_secret(text).token.empty()) << text;
    EXPECT_TRUE(read_argocd_token(text).empty()) << text;
  }
}

RepoCreds creds(const char* password = "git-1") {
  return {.url = "https://git.example.test/", .username = "robot", .password = Secret(password)};
}

TEST(RepoCreds, AreASecretAsArgoCdReadsIt) {
  const auto object = Json::parse(repo_creds_object("argocd", creds()));
  EXPECT_EQ(object["metadata"]["name"], "runtime-repo-creds-secret");
  EXPECT_EQ(object["metadata"]["namespace"], "argocd");
  EXPECT_EQ(object["metadata"]["labels"],
            (Json{{"argocd.argoproj.io/secret-type", "repo-creds"},
                  {"app.kubernetes.io/managed-by", "gitops-app-proxy"}}));
  EXPECT_EQ(object["data"], (Json{{"url", base64_encode("https://git.example.test/")},
                                  {"username", base64_encode("robot")},
                                  {"password", base64_encode("git-1")},
                                  {"type", base64_encode("git")}}));
}

// Argo CD compares the URL with the beginning of a repository's.
TEST(RepoCreds, AreForOneHostAlone) {
  const auto url = [](std::string_view repository) {
    return repo_creds_url(http::parse_url(repository).value());
  };
  EXPECT_EQ(url("https://github.com/acme/config.git"), "https://github.com/");
  EXPECT_EQ(url("https://git.example.test:8443/acme/config.git"), "https://git.example.test:8443/");
  EXPECT_FALSE(std::string("https://github.com.evil.test/a/b.git")
                   .starts_with(url("https://github.com/acme/config.git")));
}

TEST(RepoCreds, AreHealedAndThoseOfOthersStay) {
  using enum RepoCredsStep;
  EXPECT_EQ(repo_creds_step("", creds()), write);
  const auto stored = repo_creds_object("argocd", creds());
  EXPECT_EQ(repo_creds_step(stored, creds()), keep);
  EXPECT_EQ(repo_creds_step(stored, creds("git-2")), write) << "the token was changed";
  auto other = Json::parse(stored);
  other["metadata"]["labels"].erase("argocd.argoproj.io/secret-type");
  EXPECT_EQ(repo_creds_step(other.dump(), creds()), write) << "Argo CD does not read it any more";
  other = Json::parse(stored);
  other["data"]["url"] = base64_encode("https://other.test/");
  EXPECT_EQ(repo_creds_step(other.dump(), creds()), write);
  // What is written replaces what differs, and nothing else.
  other["metadata"]["resourceVersion"] = "7";
  other["data"]["proxy"] = base64_encode("http://proxy.test");
  const auto healed = repo_creds_object("argocd", creds("git-2"), other.dump());
  EXPECT_EQ(repo_creds_step(healed, creds("git-2")), keep);
  EXPECT_EQ(Json::parse(healed)["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(Json::parse(healed)["data"]["proxy"], base64_encode("http://proxy.test"));
  // Not ours.
  other["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm";
  EXPECT_EQ(repo_creds_step(other.dump(), creds()), leave);
  other["metadata"].erase("labels");
  EXPECT_EQ(repo_creds_step(other.dump(), creds()), leave);
}

TEST(SecretStep, EachState) {
  using enum SecretStep;
  const auto whole = secret("t", "iv");
  const RuntimeSecret none;
  const auto step = [](SecretView view) { return secret_step(view); };
  // A new runtime.
  EXPECT_EQ(step({.has_user_token = true, .is_leader = true}), enroll);
  EXPECT_EQ(step({.has_user_token = true}), wait);
  EXPECT_EQ(step({.is_leader = true}), wait);
  // As it should be.
  EXPECT_EQ(step({.stored = whole, .has_user_token = true, .is_leader = true}), keep);
  EXPECT_EQ(step({.stored = whole}), keep);
  // It vanished, or a part of it: what is known is stored again, and the runtime is not registered twice.
  EXPECT_EQ(step({.known = whole, .has_user_token = true, .is_leader = true}), write);
  EXPECT_EQ(step({.known = whole, .has_user_token = true}), wait);
  EXPECT_EQ(step({.stored = secret("t", ""), .has_user_token = true, .is_leader = true}), write);
  EXPECT_EQ(step({.stored = secret("", "iv"), .known = whole, .is_leader = true}), write);
  EXPECT_EQ(step({.stored = secret("", "iv"), .has_user_token = true, .is_leader = true}), enroll);
  // The runtime was deleted at the control plane.
  EXPECT_EQ(step({.stored = whole, .has_user_token = true, .is_leader = true, .is_refused = true}),
            enroll);
  EXPECT_EQ(step({.stored = whole, .is_leader = true, .is_refused = true}), keep);
  EXPECT_EQ(step({.stored = whole, .has_user_token = true, .is_refused = true}), keep);
}

TEST(RuntimeStatus, SaysWhatIsWrong) {
  const auto state_of = [](const std::vector<RuntimeStatusItem>& items, std::string_view name) {
    for (const auto& item : items) {
      if (item.name == name) return item.state;
    }
    ADD_FAILURE() << name;
    return RuntimeStatusItem::State::unknown;
  };
  using enum RuntimeStatusItem::State;
  const auto good = status_items({.has_argocd = true, .has_git_token = true},
                                 {.has_runtime_secret = true, .argocd_token_error = ""});
  for (const auto& item : good) EXPECT_EQ(item.state, successful) << item.name;
  EXPECT_THAT(item_errors(good), IsEmpty());
  // All that the public type RuntimeStatus has.
  std::set<std::string> names;
  for (const auto& item : good) names.insert(item.name);
  EXPECT_EQ(names, (std::set<std::string>{"appProxyStarted", "gitSourceConfigured",
                                          "defaultGitIntegration", "encryptionKey", "encryptionIv",
                                          "eventReporterArgoCDToken", "isc", "runtimeGitToken",
                                          "syncMode", "argoCdState"}));
  EXPECT_EQ(good.size(), names.size());

  const auto bare = status_items({}, {.has_runtime_secret = true, .argocd_token_error = ""});
  EXPECT_EQ(state_of(bare, "argoCdState"), unknown);
  EXPECT_EQ(state_of(bare, "isc"), unknown);
  EXPECT_EQ(state_of(bare, "gitSourceConfigured"), unknown);
  EXPECT_THAT(item_errors(bare), IsEmpty());

  const auto bad =
      status_items({.argocd_error = "not logged in", .has_argocd = true},
                   {.has_runtime_secret = true, .argocd_token_error = "no right apiKey"});
  EXPECT_EQ(state_of(bad, "argoCdState"), failed);
  std::vector<std::string> messages;
  for (const auto& error : item_errors(bad)) messages.push_back(error.message);
  EXPECT_THAT(messages, ElementsAre("argoCdState: not logged in",
                                    "eventReporterArgoCDToken: no right apiKey"));

  // What was not looked at yet is no error.
  const auto early = status_items({.argocd_error = "not logged in yet",
                                   .config_repository_error = std::nullopt,
                                   .has_argocd = true,
                                   .has_git_token = true},
                                  {.has_runtime_secret = true});
  for (const char* name : {"argoCdState", "eventReporterArgoCDToken", "isc"}) {
    EXPECT_EQ(state_of(early, name), unknown) << name;
  }
  EXPECT_THAT(item_errors(early), IsEmpty());
}

TEST(RuntimeStatus, EachErrorIsToldOnce) {
  const auto items = status_items({.argocd_error = "not logged in",
                                   .config_repository_error = "no right to push",
                                   .has_argocd = true,
                                   .has_git_token = true},
                                  {.has_runtime_secret = true, .argocd_token_error = "refused"});
  std::vector<std::string> messages;
  for (const auto& error :
       errors_of(items, {connectivity_group({.argocd = "not logged in"}),
                         {.name = "components", .errors = {"web: container a: ErrImagePull"}},
                         git_sources_group(true, "no right to push"),
                         {.name = "clusters", .unknown = "not looked yet"}})) {
    messages.push_back(error.message);
  }
  EXPECT_THAT(messages, ElementsAre("eventReporterArgoCDToken: refused",
                                    "connectivity: Argo CD: not logged in",
                                    "components: web: container a: ErrImagePull",
                                    "Git sources: shared configuration repository: no right to "
                                    "push"));
}

}  // namespace
}  // namespace gitops::app_proxy
