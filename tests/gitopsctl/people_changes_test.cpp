// Users, teams, keys, service accounts and rules are changed beside a real control plane.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "contract/populated_control_plane.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

class PeopleChanges : public testing::Test {
 protected:
  static PopulatedControlPlane& bed() { return shared_control_plane(false); }
  CommandResult call(Words words, const std::string& key = bed().admin_key,
                     const std::string& url = bed().program().url()) const {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    auto result = run_command(words, {{"HTTP_PROXY", std::nullopt},
                                      {"http_proxy", std::nullopt},
                                      {"HOME", folder_.path()},
                                      {"CODEFRESH_URL", url},
                                      {"CODEFRESH_TOKEN", key}});
    EXPECT_THAT(result.out + result.err, Not(HasSubstr(key)));
    return result;
  }
  void expect_done(const Words& words, const std::string& says) const {
    const auto result = call(words);
    EXPECT_EQ(result.exit_code, 0) << words[0] << ' ' << words[1] << result.err;
    EXPECT_THAT(result.out, HasSubstr(says)) << words[0] << ' ' << words[1];
  }

  TempDir folder_;
};

TEST_F(PeopleChanges, AKeyIsShownOnceAndWorksUntilItIsRevoked) {
  const auto made = call({"token", "create", "laptop", "--scope=read"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, MatchesRegex("[0-9a-f]+\\.[A-Za-z0-9_-]+\n")) << "nothing but the key";
  EXPECT_EQ(made.err, "Done: key laptop is created. It is shown only now.\n");
  const auto key = made.out.substr(0, made.out.size() - 1);
  const auto read = call({"runtime", "list"}, key);
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(call({"token", "list"}).out, AllOf(HasSubstr("laptop"), Not(HasSubstr(key))));
  EXPECT_THAT(bed().program().log(), Not(HasSubstr(key)));
  EXPECT_EQ(call({"token", "revoke", "laptop"}).exit_code, 2) << "it is not confirmed";
  expect_done({"token", "revoke", "laptop", "--yes"}, "Done: key laptop is revoked");
  EXPECT_EQ(call({"runtime", "list"}, key).exit_code, 5);

  const auto second = call({"token", "create", "ci", "-o", "json"});
  const auto json = Json::parse(second.out);
  EXPECT_EQ(json["schema"], "gitopsctl/key/v1");
  EXPECT_EQ(json["name"], "ci");
  EXPECT_THAT(json["key"].get<std::string>(), StartsWith(json["id"].get<std::string>() + "."));
  expect_done({"token", "revoke", json["id"], "--yes"}, "Done: ");
  EXPECT_EQ(call({"token", "create", "x", "--scope=everything"}).exit_code, 2);
  const auto lost = call({"token", "create", "lost", "-o", "name"});
  EXPECT_EQ(lost.exit_code, 2) << "its key would be shown nowhere";
  EXPECT_THAT(call({"token", "list"}).out, Not(HasSubstr("lost")));
  EXPECT_EQ(call({"token", "create", "x", "--expires=yesterday"}).exit_code, 5);
}

TEST_F(PeopleChanges, FromAnInvitationToATeamAndOut) {
  const auto invited = call({"user", "add", "carla@example.test", "--name=carla"});
  EXPECT_EQ(invited.exit_code, 0) << invited.err;
  EXPECT_THAT(invited.out, StartsWith(bed().program().url() + "/invitation?token="));
  EXPECT_THAT(invited.err, StartsWith("Done: carla@example.test is invited by this link."));
  const auto again = call({"user", "add", "dan@example.test", "-o", "json"});
  EXPECT_EQ(Json::parse(again.out)["schema"], "gitopsctl/invitation/v1");
  EXPECT_THAT(call({"user", "list"}).out,
              AllOf(HasSubstr("dan@example.test"), HasSubstr("Pending"), HasSubstr("Active")));
  expect_done({"user", "remove", "dan@example.test", "--yes"}, "Done: user ");
  expect_done({"user", "remove", "carla", "--yes"}, "Done: user carla is removed");
  EXPECT_THAT(call({"user", "list"}).out, Not(HasSubstr("dan@example.test")));
  EXPECT_EQ(call({"user", "remove", "bob"}).exit_code, 2);

  expect_done({"team", "create", "pay"}, "Done: team pay is created");
  expect_done({"team", "add-member", "pay", "bob"}, "Done: user bob is in team pay");
  EXPECT_THAT(call({"team", "list"}).out, HasSubstr("bob"));
  expect_done({"team", "remove-member", "pay", "bob"}, "Done: user bob is no longer in team pay");
  expect_done({"team", "rename", "pay", "billing"}, "Done: team pay is called billing");
  expect_done({"team", "delete", "billing", "--yes"}, "Done: team billing is deleted");
  EXPECT_EQ(call({"team", "delete", "users", "--yes"}).exit_code, 5) << "it is built in";
}

TEST_F(PeopleChanges, AUserIsDisabledPromotedAndGetsAPassword) {
  expect_done({"user", "disable", "bob"}, "Done: user bob is disabled");
  EXPECT_THAT(call({"user", "list"}).out, HasSubstr("Disabled"));
  expect_done({"user", "enable", "bob"}, "Done: user bob is enabled");
  expect_done({"user", "grant-admin", "bob"}, "Done: user bob is an administrator");
  expect_done({"user", "revoke-admin", "bob"}, "Done: user bob is no administrator any more");
  const auto reset = call({"user", "reset-password", "bob", "-o", "json"});
  EXPECT_EQ(reset.exit_code, 0) << reset.err;
  const auto json = Json::parse(reset.out);
  EXPECT_GE(json["password"].get<std::string>().size(), 12U);
  EXPECT_THAT(reset.err, Not(HasSubstr(json["password"].get<std::string>())));
}

TEST_F(PeopleChanges, AServiceAccountHasKeysOfItsOwn) {
  expect_done({"team", "create", "robots"}, "Done: ");
  expect_done({"service-account", "create", "ci", "--team=robots"},
              "Done: service account ci is created");
  const auto made = call({"service-account", "create-key", "ci", "pipeline"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const auto key = made.out.substr(0, made.out.size() - 1);
  EXPECT_THAT(call({"whoami"}, key).out, HasSubstr("ci"));
  expect_done({"service-account", "disable", "ci"}, "is disabled");
  EXPECT_EQ(call({"whoami"}, key).exit_code, 5);
  expect_done({"service-account", "enable", "ci"}, "is enabled");
  expect_done({"service-account", "revoke-key", "ci", "pipeline", "--yes"},
              "Done: key pipeline is revoked");
  expect_done({"service-account", "delete", "ci", "--yes"}, "Done: service account ci is deleted");
  expect_done({"team", "delete", "robots", "--yes"}, "Done: ");
}

TEST_F(PeopleChanges, ARuleIsCreatedAndDeleted) {
  expect_done({"team", "create", "shoppers"}, "Done: ");
  const auto made = call({"rule", "create", "--team=shoppers", "--action=SYNC,REFRESH",
                          "--attribute=NAMESPACE=shop,LABEL[team]=a=b"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, MatchesRegex("Done: rule [^ ]+ is created\n"));
  const auto id = made.out.substr(11, made.out.find(" is created") - 11);
  EXPECT_THAT(call({"rule", "list"}).out, HasSubstr("NAMESPACE=shop,LABEL[team]=a=b"));
  EXPECT_EQ(call({"rule", "delete", id}).exit_code, 2);
  expect_done({"rule", "delete", id, "--yes"}, "Done: rule " + id + " is deleted");
  EXPECT_EQ(call({"rule", "create", "--team=shoppers"}).exit_code, 2);
  EXPECT_EQ(call({"rule", "create", "--team=shoppers", "--action=SYNC", "--attribute=x"}).exit_code,
            2);
  expect_done({"team", "delete", "shoppers", "--yes"}, "Done: ");
}

// A change, and whether it names something that can be missing.
struct Case {
  Words words;
  bool names_something = true;
  bool is_for_admins = true;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {.words = {"user", "add", "nothing@example.test"}, .names_something = false},
      {.words = {"user", "remove", "nothing", "--yes"}},
      {.words = {"user", "disable", "nothing"}},
      {.words = {"user", "enable", "nothing"}},
      {.words = {"user", "grant-admin", "nothing"}},
      {.words = {"user", "revoke-admin", "nothing"}},
      {.words = {"user", "reset-password", "nothing"}},
      {.words = {"team", "create", "nothing"}, .names_something = false},
      {.words = {"team", "delete", "nothing", "--yes"}},
      {.words = {"team", "rename", "nothing", "x"}},
      {.words = {"team", "add-member", "nothing", "bob"}},
      {.words = {"team", "remove-member", "nothing", "bob"}},
      {.words = {"token", "create", "nothing"}, .names_something = false, .is_for_admins = false},
      {.words = {"token", "revoke", "nothing", "--yes"}, .is_for_admins = false},
      {.words = {"service-account", "create", "nothing"}, .names_something = false},
      {.words = {"service-account", "delete", "nothing", "--yes"}},
      {.words = {"service-account", "disable", "nothing"}},
      {.words = {"service-account", "enable", "nothing"}},
      {.words = {"service-account", "create-key", "nothing", "k"}},
      {.words = {"service-account", "revoke-key", "nothing", "k", "--yes"}},
      {.words = {"rule", "create", "--team=nothing", "--action=SYNC"}},
      {.words = {"rule", "delete", "nothing", "--yes"}},
  };
  return all;
}

std::string text_of(const Words& words) {
  std::string text;
  for (const auto& word : words) text += word + ' ';
  return text;
}

TEST_F(PeopleChanges, WhatIsMissingIsNotFound) {
  for (const Case& one : cases()) {
    if (!one.names_something) continue;
    const auto result = call(one.words);
    EXPECT_EQ(result.exit_code, 4) << text_of(one.words) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr("nothing\" not found")) << text_of(one.words);
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(PeopleChanges, ARefusedKeyChangesNothing) {
  for (const Case& one : cases()) {
    const auto result = call(one.words, "wrong.key");
    EXPECT_EQ(result.exit_code, 5) << text_of(one.words) << result.out;
    EXPECT_THAT(result.err, HasSubstr("(Unauthorized): ")) << text_of(one.words);
    EXPECT_THAT(result.out, IsEmpty());
    if (!one.is_for_admins) continue;
    const auto as_bob = call(one.words, bed().bob_key);
    // Teams and rules are shown to everybody, so what is missing may be said before.
    EXPECT_THAT(as_bob.exit_code, testing::AnyOf(5, 4)) << text_of(one.words) << as_bob.out;
    if (!one.names_something) {
      EXPECT_THAT(as_bob.err, StartsWith("Refused (Forbidden): ")) << text_of(one.words);
    }
  }
}

TEST_F(PeopleChanges, AServerThatIsAwayIsNotKnown) {
  for (const Case& one : cases()) {
    const auto result = call(one.words, "a.key", "http://127.0.0.1:1");
    EXPECT_EQ(result.exit_code, 3) << text_of(one.words) << result.out;
    EXPECT_THAT(result.out, IsEmpty());
  }
}

}  // namespace
}  // namespace gitops::test
