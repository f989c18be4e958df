// The real gitopsctl beside a real control plane on SQLite, whose state real calls have made.
#include <algorithm>
#include <filesystem>
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
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

constexpr const char* kNowhere = "http://127.0.0.1:1";  // nothing listens there

class Commands : public testing::Test {
 protected:
  Commands() {
    for (const char* name : {"HTTP_PROXY", "http_proxy", "GITOPS_CONFIG", "CODEFRESH_URL",
                             "CODEFRESH_TOKEN", "XDG_CONFIG_HOME", "GITOPSCTL_CONTEXTS"}) {
      environment_[name] = std::nullopt;
    }
    environment_["HOME"] = folder_.path();
  }

  static PopulatedControlPlane& bed() { return shared_control_plane(false); }

  CommandResult call(Words words, const std::string& input = {}) const {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    auto result = run_command(words, environment_, input);
    for (const std::string& secret : {bed().admin_key, bed().bob_key}) {
      EXPECT_THAT(result.out + result.err, Not(HasSubstr(secret)));
    }
    return result;
  }
  // Uses this control plane and key without a login.
  void use(const std::string& url, const std::string& key) {
    environment_["CODEFRESH_URL"] = url;
    environment_["CODEFRESH_TOKEN"] = key;
  }
  CommandResult call_as(const std::string& key, const Words& words) {
    use(bed().program().url(), key);
    return call(words);
  }
  Json call_json(const std::string& key, Words words) {
    words.insert(words.end(), {"-o", "json"});
    const auto result = call_as(key, words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }

  TempDir folder_;
  Environment environment_;
};

TEST_F(Commands, FromTheLoginToTheLists) {
  const auto contexts = folder_ / ".config/gitopsctl/contexts.json";
  const auto login = call({"login", bed().program().url(), "--name=here"}, bed().admin_key + "\n");
  ASSERT_EQ(login.exit_code, 0) << login.err;
  EXPECT_EQ(login.out, "Logged in as admin of account default; context here is the current one.\n");
  EXPECT_EQ(std::filesystem::status(contexts).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_THAT(call({"context", "list"}).out, AllOf(StartsWith("CURRENT  NAME  URL"),
                                                   HasSubstr("*        here  http://127.0.0.1:")));

  const auto runtimes = call({"runtime", "list"});
  EXPECT_EQ(runtimes.exit_code, 0) << runtimes.err;
  EXPECT_THAT(runtimes.out, AllOf(StartsWith("NAME   NAMESPACE  STATUS"),
                                  HasSubstr("\nprod   gitops"), HasSubstr("\nstage  gitops")));
  const auto apps = call({"app", "list"});
  EXPECT_EQ(apps.exit_code, 0) << apps.err;
  EXPECT_THAT(apps.out,
              HasSubstr("prod     argocd     shop            OutOfSync  Progressing  ccccccc"));
}

TEST_F(Commands, ARefusedLoginStoresNothing) {
  const auto login = call({"login", bed().program().url()}, "wrong.key\n");
  EXPECT_EQ(login.exit_code, 5);
  EXPECT_THAT(login.err, StartsWith("Error from server (Unauthorized): "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".config"));
  EXPECT_EQ(call({"login", kNowhere}, "a.key\n").exit_code, 3);
  EXPECT_EQ(call({"login", bed().program().url()}).exit_code, 2) << "no key";
  EXPECT_EQ(call({"login", "ftp://x"}, "a.key\n").exit_code, 2);
}

TEST_F(Commands, AKeyMayStayInItsFile) {
  write_file(folder_ / "key", bed().admin_key + "\n");
  ASSERT_EQ(
      call({"login", bed().program().url(), "--name=a", "--token-file", folder_ / "key"}).exit_code,
      0);
  EXPECT_THAT(read_file(folder_ / ".config/gitopsctl/contexts.json"),
              Not(HasSubstr(bed().admin_key)));
  EXPECT_THAT(call({"whoami"}).out, HasSubstr("admin  "));
  write_file(folder_ / "key", bed().bob_key);
  EXPECT_THAT(call({"whoami"}).out, HasSubstr("bob")) << "the file is read each time";

  ASSERT_EQ(call({"login", bed().program().url(), "--name=b"}, bed().admin_key).exit_code, 0);
  EXPECT_THAT(call({"whoami"}).out, HasSubstr("admin"));
  EXPECT_THAT(call({"whoami", "--context=a"}).out, HasSubstr("bob"));
  ASSERT_EQ(call({"context", "use", "a"}).exit_code, 0);
  EXPECT_THAT(call({"whoami"}).out, HasSubstr("bob"));
  EXPECT_EQ(call({"context", "list", "-o", "name"}).out, "a\nb\n");
  ASSERT_EQ(call({"context", "delete", "a"}).exit_code, 0);
  EXPECT_EQ(call({"whoami"}).exit_code, 2) << "no context is the current one";
  EXPECT_EQ(call({"context", "use", "a"}).exit_code, 4);
  EXPECT_EQ(call({"context", "delete", "a"}).exit_code, 4);
  EXPECT_EQ(call({"whoami", "--context=a"}).exit_code, 2);
}

// A command as it succeeds, and with a name that the control plane does not have.
struct Case {
  Words words;
  std::string shows;   // in its output
  Words missing = {};  // empty: the command names nothing
  bool is_for_admins = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {.words = {"whoami"}, .shows = "default"},
      {.words = {"runtime", "list"}, .shows = "prod"},
      {.words = {"runtime", "status", "prod"},
       .shows = "cap-app-proxy",
       .missing = {"runtime", "status", "nothing"}},
      {.words = {"runtime", "add", "new"}, .shows = "global.runtime.name=new"},
      {.words = {"app", "list"}, .shows = "shop"},
      {.words = {"app", "get", "shop"},
       .shows = "Runtime:      prod",
       .missing = {"app", "get", "nothing"}},
      {.words = {"app", "get", "prod/argocd/shop"},
       .shows = "OutOfSync",
       .missing = {"app", "get", "prod/argocd/nothing"}},
      {.words = {"app", "tree", "prod-apps"},
       .shows = "Application argocd/prod-apps",
       .missing = {"app", "tree", "nothing"}},
      {.words = {"app", "history", "shop", "-o", "json"},
       .shows = "gitopsctl/history/v1",
       .missing = {"app", "history", "nothing"}},
      {.words = {"status"}, .shows = "RUNTIME  STATUS"},
      {.words = {"git-source", "list"}, .shows = "prod-apps"},
      {.words = {"cluster", "list"}, .shows = "in-cluster"},
      {.words = {"workflow", "list"}, .shows = "build"},
      {.words = {"workflow", "get", "build"},
       .shows = "Progress:  1/2",
       .missing = {"workflow", "get", "nothing"}},
      {.words = {"rollout", "list", "shop", "-o", "json"},
       .shows = "gitopsctl/rollouts/v1",
       .missing = {"rollout", "list", "nothing"}},
      {.words = {"event", "list", "-o", "json"}, .shows = "gitopsctl/events/v1"},
      {.words = {"events"}, .shows = "APPLICATION"},
      {.words = {"audit"}, .shows = "ACTION", .is_for_admins = true},
      {.words = {"rule", "list", "-o", "json"}, .shows = "gitopsctl/rules/v1"},
      {.words = {"rule", "test", "shop"},
       .shows = "Administrator",
       .missing = {"rule", "test", "nothing"}},
      {.words = {"rule", "test", "shop", "--action=SYNC"},
       .shows = "Administrator",
       .is_for_admins = true},
      {.words = {"user", "list"}, .shows = "bob", .is_for_admins = true},
      {.words = {"team", "list"}, .shows = "NAME"},
      {.words = {"token", "list"}, .shows = "cli"},
      {.words = {"service-account", "list", "-o", "json"},
       .shows = "gitopsctl/service-accounts/v1",
       .is_for_admins = true},
      {.words = {"app", "wait", "gitops-runtime"},
       .shows = "Done: ",
       .missing = {"app", "wait", "nothing"}},
  };
  return all;
}

std::string text_of(const Words& words) {
  std::string text;
  for (const auto& word : words) text += word + ' ';
  return text;
}

TEST_F(Commands, EachOneShowsWhatThereIs) {
  for (const Case& one : cases()) {
    const auto result = call_as(bed().admin_key, one.words);
    EXPECT_EQ(result.exit_code, 0) << text_of(one.words) << result.err;
    EXPECT_THAT(result.out, HasSubstr(one.shows)) << text_of(one.words);
  }
}

TEST_F(Commands, ARefusedKeyIsNamed) {
  for (const Case& one : cases()) {
    const auto result = call_as("wrong.key", one.words);
    EXPECT_EQ(result.exit_code, 5) << text_of(one.words) << result.out;
    EXPECT_THAT(result.err, StartsWith("Error from server (Unauthorized): ")) << text_of(one.words);
    EXPECT_THAT(result.out, IsEmpty()) << text_of(one.words);
  }
}

TEST_F(Commands, WhatAdministratorsMayDoIsRefusedToOthers) {
  for (const Case& one : cases()) {
    if (!one.is_for_admins) continue;
    const auto result = call_as(bed().bob_key, one.words);
    EXPECT_EQ(result.exit_code, 5) << text_of(one.words) << result.out;
    EXPECT_THAT(result.err, StartsWith("Error from server (Forbidden): ")) << text_of(one.words);
  }
}

TEST_F(Commands, WhatIsMissingIsNotFound) {
  for (const Case& one : cases()) {
    if (one.missing.empty()) continue;
    const auto result = call_as(bed().admin_key, one.missing);
    EXPECT_EQ(result.exit_code, 4) << text_of(one.missing) << result.out;
    EXPECT_THAT(result.err, StartsWith("Error from server (NotFound): ")) << text_of(one.missing);
    EXPECT_THAT(result.err, HasSubstr("nothing\" not found")) << text_of(one.missing);
  }
}

TEST_F(Commands, AServerThatIsAwayIsNotKnown) {
  use(kNowhere, "a.key");
  for (const Case& one : cases()) {
    const auto result = call(one.words);
    EXPECT_EQ(result.exit_code, 3) << text_of(one.words) << result.out;
    EXPECT_THAT(result.err, StartsWith("Unable to connect to the server: ")) << text_of(one.words);
    EXPECT_THAT(result.out, IsEmpty()) << text_of(one.words);
  }
}

TEST_F(Commands, ListsComeAsJsonYamlAndNames) {
  const auto apps = call_json(bed().admin_key, {"app", "list"});
  EXPECT_EQ(apps["schema"], "gitopsctl/apps/v1");
  ASSERT_EQ(apps["items"].size(), 3U) << apps;
  EXPECT_THAT(call({"app", "list", "-o", "name"}).out, HasSubstr("prod/argocd/shop\n"));
  EXPECT_THAT(call({"app", "list", "-o", "yaml"}).out, HasSubstr("\nschema: gitopsctl/apps/v1\n"));
  const auto app = call_json(bed().admin_key, {"app", "get", "shop"});
  EXPECT_EQ(app["metadata"]["namespace"], "argocd");
}

TEST_F(Commands, ListsAreReadByPagesAndALimitSaysThatThereIsMore) {
  const auto two = call_as(bed().admin_key, {"app", "list", "--limit=2", "-o", "name"});
  EXPECT_EQ(std::ranges::count(two.out, '\n'), 2);
  EXPECT_THAT(two.err, HasSubstr("2 are shown, and there are more"));
  const auto all = call({"app", "list", "--limit=3"});
  EXPECT_THAT(all.err, Not(HasSubstr("there are more"))) << "all of them";
}

TEST_F(Commands, FiltersTakeTheWordsThatTheTableShows) {
  use(bed().program().url(), bed().admin_key);
  EXPECT_EQ(call({"app", "list", "-o", "name", "--sync=OutOfSync", "--health=Progressing"}).out,
            "prod/argocd/shop\n");
  EXPECT_EQ(call({"app", "list", "-o", "name", "--sync=OUT_OF_SYNC", "-l", "team=a"}).out,
            "prod/argocd/shop\n");
  const auto none = call({"app", "list", "--runtime=stage"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.out + none.err, "No resources found\n");
}

TEST_F(Commands, AWaitThatIsNotFulfilledFails) {
  const auto result = call_as(bed().admin_key, {"app", "wait", "shop", "--timeout=2s"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("not as wanted in time: sync is OutOfSync, health is Progressing"));
  EXPECT_EQ(call({"app", "wait", "shop", "--sync=", "--health=Progressing"}).exit_code, 0);
}

// It would wait for five minutes, and then blame the Application.
TEST_F(Commands, AWaitForAStateThatThereIsNotIsWrongUsage) {
  use(bed().program().url(), bed().admin_key);
  const auto health = call({"app", "wait", "gitops-runtime", "--health=Helthy"});
  EXPECT_EQ(health.exit_code, 2) << health.out;
  EXPECT_THAT(health.err, HasSubstr("flag --health: there is no state Helthy, only Healthy, "));
  const auto sync = call({"app", "wait", "gitops-runtime", "--sync=in-sync"});
  EXPECT_EQ(sync.exit_code, 2) << sync.out;
  EXPECT_THAT(sync.err, HasSubstr("flag --sync: there is no state in-sync, only Synced, "));
  const auto words = call({"app", "wait", "gitops-runtime", "--sync=synced", "--health=HEALTHY"});
  EXPECT_EQ(words.exit_code, 0) << words.err;
}

TEST_F(Commands, AnActionThatThereIsNotIsNoAnswerOfTheRules) {
  use(bed().program().url(), bed().admin_key);
  const auto me = call_json(bed().admin_key, {"whoami"});
  const std::string user = "--user=" + me.value("id", "");
  const auto known = call({"rule", "test", "shop", user, "--action=SYNC"});
  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_THAT(known.out, HasSubstr("SYNC"));
  const auto unknown = call({"rule", "test", "shop", user, "--action=SINK"});
  EXPECT_EQ(unknown.exit_code, 2) << unknown.out;
  EXPECT_THAT(unknown.out, IsEmpty());
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("there is no action SINK, only "), HasSubstr("SYNC")));
}

TEST_F(Commands, AnApplicationIsReportedAgainOnceUntilAnEventArrives) {
  const auto first = call_json(bed().admin_key, {"event", "redeliver", "shop"});
  EXPECT_EQ(first["schema"], "gitopsctl/report-request/v1");
  EXPECT_EQ(first["application"], "prod/argocd/shop");
  EXPECT_EQ(first["state"], "REQUESTED");
  const auto second = call({"event", "redeliver", "prod/argocd/shop"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, AllOf(StartsWith("Done: prod/argocd/shop is to be reported again\n"),
                                HasSubstr("Requested before"), HasSubstr("once more")));
  const auto in_vain = call({"event", "redeliver", "shop", "--wait", "--timeout=2s"});
  EXPECT_EQ(in_vain.exit_code, 1) << in_vain.err;
  EXPECT_THAT(in_vain.err, AllOf(StartsWith("prod/argocd/shop: no newer event yet\n"),
                                 HasSubstr("has arrived in time")));

  EXPECT_EQ(call({"event", "redeliver", "nothing"}).exit_code, 4);
  const auto elsewhere = call({"event", "redeliver", "shop", "--runtime=stage"});
  EXPECT_EQ(elsewhere.exit_code, 4) << elsewhere.out;
  const auto refused = call_as(bed().bob_key, {"event", "redeliver", "shop"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err,
              StartsWith("Refused (Forbidden): no rule of the account allows REFRESH"));
  const auto wrong = call_as("wrong.key", {"event", "redeliver", "shop"});
  EXPECT_EQ(wrong.exit_code, 5);
  EXPECT_THAT(wrong.err, StartsWith("Error from server (Unauthorized): "));
  use(kNowhere, "a.key");
  EXPECT_EQ(call({"event", "redeliver", "shop"}).exit_code, 3);
}

TEST_F(Commands, ARuntimeIsNotAddedByANameThatIsRefusedLater) {
  use(bed().program().url(), bed().admin_key);
  const std::string long_name(39, 'a');
  for (const std::string& name :
       {std::string("My-Runtime"), std::string("a b"), std::string("eu/prod"), std::string("prod-"),
        std::string("a;b"), std::string("9prod"), long_name}) {
    const auto result = call({"runtime", "add", name});
    EXPECT_EQ(result.exit_code, 2) << name << result.out;
    EXPECT_THAT(result.err, HasSubstr("RUNTIME has 1 to 38 lower-case letters")) << name;
    EXPECT_THAT(result.out, IsEmpty()) << name;
  }
  const auto added = call({"runtime", "add", "eu-1"});
  EXPECT_EQ(added.exit_code, 0);
  EXPECT_THAT(added.err, HasSubstr("gitopsctl token create eu-1 >user-token")) << "how to get it";
}

TEST_F(Commands, ARuntimeIsRemovedWhenThatIsConfirmed) {
  use(bed().program().url(), bed().admin_key);
  static_cast<void>(bed().program().register_runtime(bed().admin_key, "old"));
  EXPECT_EQ(call({"runtime", "remove", "old"}).exit_code, 2);
  EXPECT_THAT(call({"runtime", "list"}).out, HasSubstr("\nold "));
  const auto refused = call_as(bed().bob_key, {"runtime", "remove", "old", "--yes"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, StartsWith("Refused (Forbidden): "));
  EXPECT_EQ(call_as(bed().admin_key, {"runtime", "remove", "old", "--yes"}).exit_code, 0);
  EXPECT_EQ(call({"runtime", "remove", "old", "--yes"}).exit_code, 4);
}

}  // namespace
}  // namespace gitops::test
