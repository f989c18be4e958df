#include "app-proxy/integrations/integration_secret.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Integration sample(std::string provider = "GITHUB", std::string url = "") {
  Integration out{.name = "team-a",
                  .account_id = "5f0a",
                  .root = *make_api_root(provider, url),
                  .sharing = SharingPolicy::account_admins,
                  .users = {}};
  EXPECT_TRUE(register_token(out, {.user_id = "user/1",
                                   .username = "dana",
                                   .sealed = {"k1", "nonce-12byte", "sealed"},
                                   .state = TokenState::valid,
                                   .login = "dana",
                                   .name = "Dana",
                                   .mail = "d@x.test"}));
  EXPECT_TRUE(register_token(out, {.user_id = "user/2",
                                   .sealed = {"k1", "nonce-12byte", "other"},
                                   .state = TokenState::invalid}));
  return out;
}

TEST(IntegrationSecret, HasTheNameAndLabelsThatOtherProgramsLookFor) {
  const auto secret = Json::parse(new_integration_secret("runtime", sample()));
  EXPECT_EQ(secret["metadata"]["name"], "git-team-a-5f0a");
  EXPECT_EQ(secret["metadata"]["namespace"], "runtime");
  EXPECT_EQ(secret["metadata"]["labels"]["io.codefresh.integration-type"], "git");
  EXPECT_EQ(secret["metadata"]["labels"]["io.codefresh.integration-name"], "team-a");
  for (const auto& [key, value] : secret["data"].items()) {
    EXPECT_THAT(key, testing::MatchesRegex("[-._a-zA-Z0-9]+"));
  }
}

TEST(IntegrationSecret, IsReadAsItWasWritten) {
  for (const auto& [provider, url] :
       {std::pair("GITHUB", ""), std::pair("GITLAB", ""), std::pair("BITBUCKET", ""),
        std::pair("BITBUCKET_SERVER", "https://bb.example.test"),
        std::pair("GITEA", "https://tea.example.test")}) {
    const auto written = sample(provider, url);
    const auto read = read_integration(new_integration_secret("runtime", written));
    ASSERT_TRUE(read) << provider;
    EXPECT_EQ(read->name, "team-a");
    EXPECT_EQ(read->account_id, "5f0a");
    EXPECT_EQ(read->root.kind, written.root.kind);
    EXPECT_EQ(read->root.text(), written.root.text());
    EXPECT_EQ(read->sharing, SharingPolicy::account_admins);
    ASSERT_EQ(read->users.size(), 2U);
    EXPECT_EQ(read->users[0].user_id, "user/1");
    EXPECT_EQ(read->users[0].sealed, written.users[0].sealed);
    EXPECT_EQ(read->users[0].mail, "d@x.test");
    EXPECT_EQ(read->users[0].state, TokenState::valid);
    EXPECT_EQ(read->users[1].state, TokenState::invalid);
  }
}

TEST(IntegrationSecret, WhatItDoesNotKnowStays) {
  auto secret = Json::parse(new_integration_secret("runtime", sample()));
  secret["metadata"]["resourceVersion"] = "7";
  secret["metadata"]["labels"]["team"] = "x";
  secret["metadata"]["annotations"]["note"] = "y";
  secret["data"]["foreign"] = "Zm9v";
  auto changed = sample();
  ASSERT_TRUE(deregister(changed, "user/2"));
  const auto text = with_integration(secret.dump(), changed);
  ASSERT_TRUE(text);
  const auto next = Json::parse(*text);
  EXPECT_EQ(next["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(next["metadata"]["labels"]["team"], "x");
  EXPECT_EQ(next["metadata"]["annotations"]["note"], "y");
  EXPECT_EQ(next["data"]["foreign"], "Zm9v");
  EXPECT_EQ(next["data"].size(), 3U) << "the entry of the other user is gone";
  EXPECT_EQ(read_integration(*text)->users.size(), 1U);
}

TEST(IntegrationSecret, ADamagedUserDoesNotHideTheOthers) {
  auto secret = Json::parse(new_integration_secret("runtime", sample()));
  for (auto& [key, value] : secret["data"].items()) {
    const auto text = base64_decode(value.get<std::string>()).value();
    if (text.contains("user/2")) value = "AAAA";
  }
  const auto read = read_integration(secret.dump());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->users.size(), 1U);
  EXPECT_EQ(read->users[0].user_id, "user/1");
}

TEST(IntegrationSecret, AnEntryUnderAnotherUsersKeyIsNotRead) {
  auto secret = Json::parse(new_integration_secret("runtime", sample()));
  std::string first;
  for (auto& [key, value] : secret["data"].items()) {
    if (!key.starts_with("user-")) continue;
    if (first.empty()) {
      first = value.get<std::string>();
    } else {
      value = first;
    }
  }
  EXPECT_EQ(read_integration(secret.dump())->users.size(), 1U);
}

// [AC-24]
TEST(IntegrationSecret, AC24_SecretsOfOthersAreRefusedWithoutQuotingThem) {
  auto moved = Json::parse(new_integration_secret("runtime", sample()));
  moved["metadata"]["name"] = "git-default-5f0a";
  auto bad_root = Json::parse(new_integration_secret("runtime", sample()));
  bad_root["data"]["integration"] = base64_encode(
      R"({"name":"team-a","accountId":"5f0a","provider":"GITHUB","apiUrl":"https://u:canary@h"})");
  const Json foreign{{"metadata", {{"name", "git-default-5f0a"}}},
                     {"data", {{"tokens", base64_encode("canary")}}}};
  for (const auto& text : {moved.dump(), bad_root.dump(), foreign.dump(), std::string("{"),
                           std::string("[]"), std::string(R"({"data":{"integration":7}})"),
                           std::string(R"({"data":{"integration":"!"}})")}) {
    const auto read = read_integration(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_data);
    EXPECT_THAT(read.error().message, Not(HasSubstr("canary")));
  }
}

TEST(IntegrationSecret, KeepsWhatALoginGave) {
  auto integration = sample();
  const WallTime ends{std::chrono::milliseconds(1'700'000'000'123)};
  integration.users[0].refresh = {"k2", "nonce-12byt2", "sealed refresh"};
  integration.users[0].expires = ends;
  const auto secret = new_integration_secret("runtime", integration);
  const auto read = read_integration(secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->users[0].refresh, integration.users[0].refresh);
  EXPECT_EQ(read->users[0].expires, ends);
  EXPECT_TRUE(read->users[0].can_renew(ends, std::chrono::minutes(5)));
  EXPECT_FALSE(read->users[0].can_renew(ends - std::chrono::minutes(6), std::chrono::minutes(5)));
  // A token that its user made has neither.
  EXPECT_TRUE(read->users[1].refresh.text.empty());
  EXPECT_EQ(read->users[1].expires, WallTime());
  EXPECT_FALSE(read->users[1].can_renew(ends, std::chrono::minutes(5)));
  // Another host gets neither of them.
  auto moved = *read;
  ASSERT_TRUE(
      edit(moved, "https://ghe.example.test", SharingPolicy::all_users, PlainHttp::refused));
  EXPECT_TRUE(moved.users[0].refresh.text.empty());
  EXPECT_EQ(moved.users[0].expires, WallTime());
}

}  // namespace
}  // namespace gitops::app_proxy
