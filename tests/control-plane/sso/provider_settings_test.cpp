#include "control-plane/sso/provider_settings.hpp"

#include <gmock/gmock.h>

#include "support/process.hpp"

namespace gitops::control_plane_server::sso {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ProviderSettingsTest : public testing::Test {
 protected:
  ProviderSettingsTest() { test::write_file(folder_ / "secret", "the secret\n"); }
  std::string file(const std::string& name, const std::string& text) {
    test::write_file(folder_ / name, text);
    return (folder_ / name).string();
  }
  [[nodiscard]] std::string required(const std::string& name = "corp") const {
    return "name: " + name + "\nissuer: https://idp.example\nclient-id: gitops\n" +
           "client-secret-file: " + (folder_ / "secret").string() + "\n";
  }
  std::string mistake_of(const std::string& text) {
    const auto read = read_providers({file("provider.yaml", text)});
    return read ? std::string() : read.error().message;
  }

  test::TempDir folder_;
};

TEST_F(ProviderSettingsTest, HasDefaults) {
  const auto read = read_providers({file("corp.yaml", required())});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1);
  const auto& settings = read->front();
  EXPECT_EQ(settings.title, "corp");
  EXPECT_THAT(settings.scopes, ElementsAre("openid", "profile", "email"));
  EXPECT_EQ(settings.groups_claim, "groups");
  EXPECT_FALSE(settings.creates_users);
  EXPECT_FALSE(settings.joins_by_email);
  EXPECT_TRUE(settings.teams.empty());
}

TEST_F(ProviderSettingsTest, ReadsEveryKey) {
  const auto read = read_providers(
      {file("corp.yaml", required() + "title: Corp login\nscopes: [email]\ngroups-claim: roles\n"
                                      "teams: [dev=developers, 'cn=ops,dc=corp=operators']\n"
                                      "account: acme\ncreate-users: true\njoin-by-email: true\n")});
  ASSERT_TRUE(read) << read.error().message;
  const auto& settings = read->front();
  EXPECT_EQ(settings.title, "Corp login");
  EXPECT_THAT(settings.scopes, ElementsAre("openid", "email"));
  EXPECT_EQ(settings.groups_claim, "roles");
  EXPECT_THAT(settings.teams,
              ElementsAre(Pair("cn=ops,dc=corp", "operators"), Pair("dev", "developers")));
  EXPECT_EQ(settings.account, "acme");
  EXPECT_TRUE(settings.creates_users);
  EXPECT_TRUE(settings.joins_by_email);
}

TEST_F(ProviderSettingsTest, NamesEveryMistake) {
  EXPECT_THAT(mistake_of(""), HasSubstr("name"));
  EXPECT_THAT(mistake_of(required("Corp")), HasSubstr("lower-case letters"));
  EXPECT_THAT(mistake_of(required("key")), HasSubstr("no names"));
  EXPECT_THAT(mistake_of("name: corp\nissuer: https://idp.example\n"), HasSubstr("client-id"));
  EXPECT_THAT(mistake_of(required() + "issuer-url: x\n"), HasSubstr("issuer-url"));
  EXPECT_THAT(mistake_of(required() + "teams: [dev]\n"), HasSubstr("GROUP=TEAM"));
  EXPECT_THAT(mistake_of(required() + "teams: [dev=Admins]\n"), HasSubstr("lower-case"));
  EXPECT_THAT(mistake_of(required() + "teams: [dev=admins]\n"), HasSubstr("built in"));
  EXPECT_THAT(mistake_of(required() + "teams: [dev=a, dev=b]\n"), HasSubstr("two teams"));
  auto http = required();
  http.replace(http.find("https"), 5, "http");
  EXPECT_THAT(mistake_of(http), HasSubstr("https"));
  EXPECT_THAT(read_providers({"/nowhere.yaml"}).error().message, HasSubstr("/nowhere.yaml"));
  EXPECT_THAT(
      read_providers({file("a.yaml", required()), file("b.yaml", required())}).error().message,
      HasSubstr("another provider has this name"));
}

}  // namespace
}  // namespace gitops::control_plane_server::sso
