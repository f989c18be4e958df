#include "app-proxy/runtime/runtime_life.hpp"

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
  const auto good = status_items({.has_argocd = true, .has_git_token = true, .sync_mode = "HELM"},
                                 {.has_runtime_secret = true, .argocd_token_trouble = ""});
  for (const auto& item : good) EXPECT_EQ(item.state, successful) << item.name;
  EXPECT_THAT(troubles_of(good), IsEmpty());
  // All that the public type RuntimeStatus has.
  std::set<std::string> names;
  for (const auto& item : good) names.insert(item.name);
  EXPECT_EQ(names, (std::set<std::string>{"appProxyStarted", "gitSourceConfigured",
                                          "defaultGitIntegration", "encryptionKey", "encryptionIv",
                                          "eventReporterArgoCDToken", "isc", "runtimeGitToken",
                                          "syncMode", "argoCdState"}));
  EXPECT_EQ(good.size(), names.size());

  const auto bare = status_items({}, {.has_runtime_secret = true, .argocd_token_trouble = ""});
  EXPECT_EQ(state_of(bare, "argoCdState"), unknown);
  EXPECT_EQ(state_of(bare, "isc"), unknown);
  EXPECT_EQ(state_of(bare, "gitSourceConfigured"), unknown);
  EXPECT_EQ(state_of(bare, "syncMode"), unknown);
  EXPECT_THAT(troubles_of(bare), IsEmpty());

  const auto bad =
      status_items({.argocd_trouble = "not logged in", .has_argocd = true},
                   {.has_runtime_secret = true, .argocd_token_trouble = "no right apiKey"});
  EXPECT_EQ(state_of(bad, "argoCdState"), failed);
  std::vector<std::string> messages;
  for (const auto& trouble : troubles_of(bad)) messages.push_back(trouble.message);
  EXPECT_THAT(messages, ElementsAre("argoCdState: not logged in",
                                    "eventReporterArgoCDToken: no right apiKey"));
}

}  // namespace
}  // namespace gitops::app_proxy
