#include "app-proxy/integrations/integration.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

Integration sample() {
  Integration out{.name = "default",
                  .account_id = "acc",
                  .root = *make_api_root("GITHUB", ""),
                  .sharing = SharingPolicy::all_users,
                  .users = {}};
  EXPECT_TRUE(register_token(out, {.user_id = "b", .sealed = {"k", "n", "text"}}));
  EXPECT_TRUE(register_token(out, {.user_id = "a", .sealed = {"k", "n", "text"}}));
  return out;
}

TEST(IntegrationRules, NoNameMeansDefault) {
  EXPECT_EQ(integration_name("").value(), "default");
  EXPECT_EQ(integration_name("team-a").value(), "team-a");
  for (const auto* bad : {"A", "a_b", "-a", "a-", "a/b", "a.b", "../x", "a b"}) {
    EXPECT_FALSE(integration_name(bad)) << bad;
  }
  EXPECT_FALSE(integration_name(std::string(64, 'a')));
}

TEST(IntegrationRules, AccountAdminsHides) {
  auto integration = sample();
  const Actor user{"a", "acc", false};
  const Actor admin{"a", "acc", true};
  EXPECT_TRUE(is_visible(integration, user));
  integration.sharing = SharingPolicy::account_admins;
  EXPECT_FALSE(is_visible(integration, user));
  EXPECT_TRUE(is_visible(integration, admin));
}

TEST(IntegrationRules, AnEmptyUrlKeepsTheOne) {
  auto integration = sample();
  ASSERT_TRUE(edit(integration, "", SharingPolicy::account_admins, PlainHttp::refused));
  EXPECT_EQ(integration.root.text(), "https://api.github.com");
  EXPECT_EQ(integration.sharing, SharingPolicy::account_admins);
  EXPECT_EQ(integration.find("a")->state, TokenState::valid);
  ASSERT_TRUE(
      edit(integration, "https://api.github.com/", SharingPolicy::all_users, PlainHttp::refused));
  EXPECT_EQ(integration.find("a")->state, TokenState::valid) << "the same, written differently";
}

TEST(IntegrationRules, TokensDoNotMoveToAnotherHost) {
  auto integration = sample();
  ASSERT_TRUE(
      edit(integration, "https://evil.example.test", SharingPolicy::all_users, PlainHttp::refused));
  EXPECT_EQ(integration.root.text(), "https://evil.example.test/api/v3");
  for (const auto& token : integration.users) {
    EXPECT_EQ(token.state, TokenState::invalid);
    EXPECT_EQ(token.sealed, SealedToken());
  }
  EXPECT_FALSE(edit(integration, "http://h.test", SharingPolicy::all_users, PlainHttp::refused));
  EXPECT_EQ(integration.root.text(), "https://evil.example.test/api/v3");
}

TEST(IntegrationRules, UsersComeAndGo) {
  auto integration = sample();
  EXPECT_EQ(integration.users.front().user_id, "a");
  ASSERT_TRUE(register_token(integration, {.user_id = "a", .sealed = {"k", "n", "new"}}));
  EXPECT_EQ(integration.users.size(), 2U);
  EXPECT_EQ(integration.find("a")->sealed.text, "new");
  EXPECT_TRUE(deregister(integration, "a"));
  EXPECT_FALSE(deregister(integration, "a"));
  EXPECT_EQ(integration.find("a"), nullptr);
  for (int i = 0; i < 999; ++i) {
    ASSERT_TRUE(register_token(integration, {.user_id = "u" + std::to_string(i)}));
  }
  EXPECT_EQ(register_token(integration, {.user_id = "one-more"}).error().subcode,
            integration_errors::kTooMany);
  EXPECT_TRUE(register_token(integration, {.user_id = "u7"})) << "who is there may change";
}

}  // namespace
}  // namespace gitops::app_proxy
