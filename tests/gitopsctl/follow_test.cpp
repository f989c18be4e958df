// Commands that go on until they are interrupted, and the completion of names, beside a real control plane.
#include <algorithm>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gitopsctl/action_bed.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kLimit = std::chrono::seconds(60);

class Follow : public testing::Test {
 protected:
  static ActionBed& bed() { return action_bed(); }
  Environment environment() const {
    return {{"HTTP_PROXY", std::nullopt},
            {"http_proxy", std::nullopt},
            {"HOME", folder_.path()},
            {"CODEFRESH_URL", bed().program().url()},
            {"CODEFRESH_TOKEN", bed().key}};
  }
  Process start(std::vector<std::string> words) const {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    return Process({.argv = std::move(words), .env = environment(), .log_file = folder_ / "log"});
  }
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }

  TempDir folder_;
};

TEST_F(Follow, AWatchPrintsTheListAndThenWhatChanges) {
  bed().report_health("Healthy");
  Process watch = start({"app", "list", "--watch"});
  ASSERT_TRUE(wait_until([&] { return log().contains("moving") && log().contains("shop"); }, kLimit,
                         "the list"));
  bed().report_health("Degraded");
  ASSERT_TRUE(wait_until([&] { return log().contains("Degraded"); }, kLimit, "the change"))
      << log();
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(kLimit), 130);
  const auto text = log();
  EXPECT_EQ(text.find("shop"), text.rfind("shop")) << "it has not changed: " << text;
  EXPECT_EQ(text.find("NAMESPACE"), text.rfind("NAMESPACE")) << text;
}

// An audit log is not read whole every two seconds.
TEST_F(Follow, AWatchKeepsToTheLimit) {
  Process watch = start({"audit", "--watch", "--limit=1", "-o", "name"});
  ASSERT_TRUE(
      wait_until([&] { return log().contains("there are more"); }, kLimit, "the newest entry"))
      << log();
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(kLimit), 130);
  EXPECT_EQ(std::ranges::count(log(), '\n'), 2) << log();
}

TEST_F(Follow, EventsAreLinesAsTheyCome) {
  Process events = start({"events", "--follow"});
  bool is_healthy = false;
  // The stream may begin after the first report.
  ASSERT_TRUE(wait_until(
      [&] {
        is_healthy = !is_healthy;
        bed().report_health(is_healthy ? "Healthy" : "Missing");
        return log().contains("Application  prod/argocd/moving  OutOfSync  Missing");
      },
      kLimit, "the line"))
      << log();
  events.signal(SIGINT);
  EXPECT_EQ(events.wait(kLimit), 130);
  EXPECT_THAT(log(), Not(HasSubstr("\x1b")));
}

constexpr const char* kStream = "Content-Type: text/event-stream\r\n";

constexpr const char* kJson = "Content-Type: application/json\r\n";
// In a body: the address of the server itself, which is the app-proxy, too.
constexpr std::string_view kOwnAddress = "OWN_ADDRESS";
// Instead of header fields: a proxy answers, since the control plane starts again.
constexpr const char* kAway = "";
// The same: the control plane still counts the streams of this user that were cut.
constexpr const char* kBusy = "busy";

// Header fields and body of each.
using Answers = std::vector<std::pair<std::string, std::string>>;

// A control plane that answers as it is told, and then ends the session.
class Script {
 public:
  explicit Script(Answers answers) : answers_(std::move(answers)) {}

  [[nodiscard]] std::string address() const {
    return "http://127.0.0.1:" + std::to_string(server_.port());
  }
  CommandResult run(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    return run_program(words);
  }
  // The same on a terminal of 80 columns, which script(1) makes.
  CommandResult run_on_terminal(const std::string& words) {
    return run_program({"script", "--quiet", "--return", "--flush", "--command",
                        "stty cols 80; " + std::string(GITOPS_BIN_DIR) + "/gitopsctl " + words,
                        "/dev/null"});
  }
  [[nodiscard]] std::vector<RecordedRequest> requests() const { return server_.requests(); }

 private:
  [[nodiscard]] CommandResult run_program(const std::vector<std::string>& words) const {
    return run_command(words,
                       {{"HTTP_PROXY", std::nullopt},
                        {"http_proxy", std::nullopt},
                        {"HOME", "/nowhere"},
                        {"CODEFRESH_URL", address()},
                        {"CODEFRESH_TOKEN", "key"}},
                       {}, kLimit);
  }
  bool answer(RawSocket& socket) {
    const std::lock_guard lock(mutex_);
    if (next_ == answers_.size()) {
      return RecordingUpstream::reply(socket, "event: end\ndata: {}\n\n", kStream);
    }
    auto& [fields, body] = answers_[next_++];
    if (const auto found = body.find(kOwnAddress); found != std::string::npos) {
      body.replace(found, kOwnAddress.size(), "http://127.0.0.1:" + std::to_string(server_.port()));
    }
    if (fields.empty()) {
      return RecordingUpstream::reply(socket, R"({"message":"it starts"})", kJson,
                                      "503 Service Unavailable");
    }
    if (fields == kBusy) {
      return RecordingUpstream::reply(socket, R"({"message":"too many streams of this user"})",
                                      kJson, "429 Too Many Requests");
    }
    return RecordingUpstream::reply(socket, body, fields);
  }

  std::mutex mutex_;
  Answers answers_;
  std::size_t next_ = 0;
  RecordingUpstream server_{"control-plane",
                            [this](const auto&, RawSocket& socket) { return answer(socket); }};
};

TEST(FollowEvents, GoesOnBehindTheLastEventWhenAStreamHasEnded) {
  const std::string row =
      R"({"rows":[{"topic":"index","kind":"Application","uid":"u1","runtime":"prod","namespace":"a","name":"shop"}]})";
  Script script(Answers{
      {kStream, "id: c1\nevent: reset\ndata: {}\n\nid: c2\nevent: patch\ndata: " + row + "\n\n"},
      {kStream, "id: c9\nevent: reset\ndata: {}\n\n"}});
  const auto result = script.run({"event", "list", "--follow"});
  EXPECT_EQ(result.exit_code, 5) << "the session has ended: " << result.err;
  const auto requests = script.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].header("Last-Event-ID").value_or(""), "");
  EXPECT_EQ(requests[1].header("Last-Event-ID").value_or(""), "c2");
  EXPECT_EQ(requests[2].header("Last-Event-ID").value_or(""), "c9");
  const std::string gap = "The control plane could not tell all changes";
  EXPECT_NE(result.err.find(gap), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(gap), result.err.rfind(gap)) << "the first stream begins with a reset";
}

TEST(FollowEvents, GoesOnWhenTheServerWasAway) {
  const std::string row =
      R"({"rows":[{"topic":"index","kind":"Application","uid":"u1","runtime":"prod","namespace":"a","name":"shop"}]})";
  Script script(Answers{{kStream, "id: c1\nevent: reset\ndata: {}\n\n"},
                        {kAway, ""},
                        {kAway, ""},
                        {kStream, "id: c2\nevent: patch\ndata: " + row + "\n\n"}});
  const auto result = script.run({"event", "list", "--follow"});
  EXPECT_EQ(result.exit_code, 5) << "the session has ended: " << result.err;
  EXPECT_THAT(result.out, HasSubstr("prod/a/shop"));
  const std::string said = "The server is asked again until it answers.";
  EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(said), result.err.rfind(said)) << "it is said once";
  const auto requests = script.requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_EQ(requests[3].header("Last-Event-ID").value_or(""), "c1");

  Script never(Answers{{kAway, ""}});
  EXPECT_EQ(never.run({"event", "list", "--follow"}).exit_code, 3) << "it was not there before";
}

TEST(FollowEvents, GoesOnWhenItsOwnCutStreamIsStillCounted) {
  const std::string row =
      R"({"rows":[{"topic":"index","kind":"Application","uid":"u1","runtime":"prod","namespace":"a","name":"shop"}]})";
  Script script(Answers{{kStream, "id: c1\nevent: reset\ndata: {}\n\n"},
                        {kBusy, ""},
                        {kStream, "id: c2\nevent: patch\ndata: " + row + "\n\n"}});
  const auto result = script.run({"event", "list", "--follow"});
  EXPECT_EQ(result.exit_code, 5) << "the session has ended: " << result.err;
  EXPECT_THAT(result.out, HasSubstr("prod/a/shop"));
  EXPECT_EQ(script.requests().size(), 4U);

  Script never(Answers{{kBusy, ""}});
  EXPECT_EQ(never.run({"event", "list", "--follow"}).exit_code, 3) << "it was refused at once";
}

TEST(WatchList, TwoOfOneNameAreNotPrintedAgainUntilOneChanges) {
  const std::string keys =
      R"([{"name":"ci","tokenPrefix":"aaaa"},{"name":"ci","tokenPrefix":"bbbb"}])";
  const std::string changed =
      R"([{"name":"ci","tokenPrefix":"aaaa"},{"name":"ci","tokenPrefix":"cccc"}])";
  Script script(Answers{{kJson, keys}, {kJson, keys}, {kJson, changed}});
  const auto result = script.run({"token", "list", "--watch"});
  EXPECT_EQ(result.exit_code, 3) << "an answer that is none ends it: " << result.err;
  EXPECT_EQ(result.out.find("aaaa"), result.out.rfind("aaaa")) << result.out;
  EXPECT_EQ(result.out.find("bbbb"), result.out.rfind("bbbb")) << result.out;
  EXPECT_THAT(result.out, HasSubstr("cccc"));
}

TEST(WatchList, NamesWhatLeavesTheList) {
  Script script(Answers{{kJson, R"([{"name":"ci"},{"name":"ci"},{"name":"laptop"}])"},
                        {kJson, R"([{"name":"ci"}])"}});
  const auto result = script.run({"token", "list", "--watch"});
  EXPECT_THAT(result.err, HasSubstr("laptop is not in the list any more\n"));
  const std::string said = "ci is not in the list any more\n";
  EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(said), result.err.rfind(said)) << "one of the two is left";
}

TEST(WatchList, GoesOnWhenTheServerWasAway) {
  const auto answer = [](const std::string& version) {
    return R"({"data":{"runtimes":{"edges":[{"node":{"metadata":{"name":"prod"},)"
           R"("runtimeVersion":")" +
           version + R"("}}],"pageInfo":{"hasNextPage":false}}}})";
  };
  Script script(Answers{{kJson, answer("1.0.0")}, {kAway, ""}, {kJson, answer("2.0.0")}});
  const auto result = script.run({"runtime", "list", "--watch"});
  EXPECT_EQ(result.exit_code, 3) << "an answer that is none ends it: " << result.err;
  EXPECT_THAT(result.out, HasSubstr("1.0.0"));
  EXPECT_THAT(result.out, HasSubstr("2.0.0"));
  EXPECT_THAT(result.err, HasSubstr("The server is asked again until it answers."));
}

TEST(FollowEvents, PrintsAnObjectOnEachLineAlsoOfWhatIsGone) {
  Script script(Answers{
      {kStream, "id: c1\nevent: gone\ndata: {\"topic\":\"index\",\"uids\":[\"u1\",\"u2\"]}\n\n"}});
  const auto result = script.run({"event", "list", "--follow", "-o", "json"});
  EXPECT_EQ(result.out,
            "{\"gone\":\"u1\",\"topic\":\"index\"}\n{\"gone\":\"u2\",\"topic\":\"index\"}\n");
}

TEST(FollowEvents, NamesWhatIsGoneAndLeavesOutOtherRuntimes) {
  const auto row = [](const std::string& uid, const std::string& runtime) {
    return R"({"topic":"index","kind":"Application","uid":")" + uid + R"(","runtime":")" + runtime +
           R"(","namespace":"a","name":"shop"})";
  };
  Script script(Answers{{kStream, "id: c1\nevent: patch\ndata: {\"rows\":[" + row("u1", "prod") +
                                      "," + row("u2", "stage") +
                                      "]}\n\nid: c2\nevent: gone\ndata: {\"topic\":\"index\","
                                      "\"uids\":[\"u1\",\"u2\",\"u3\"]}\n\nid: c3\nevent: gone\n"
                                      "data: {\"topic\":\"runtimes\",\"uids\":[\"stage\"]}\n\n"}});
  const auto result = script.run({"event", "list", "--follow", "--runtime", "prod"});
  EXPECT_THAT(result.out, HasSubstr("Gone  prod/a/shop\nGone  u3\n")) << "u3 may be of prod";
  EXPECT_THAT(result.out, Not(HasSubstr("u2")));
  EXPECT_THAT(result.out, Not(HasSubstr("stage")));
}

TEST(ListEvents, SaysThatThereAreMore) {
  Script script(Answers{{"Content-Type: application/json\r\n",
                         R"({"data":{"gitopsReleases":{"edges":[{"node":{"historyId":7}}],)"
                         R"("pageInfo":{"hasNextPage":true,"endCursor":"c"}}}})"}});
  const auto result = script.run({"event", "list", "--limit=1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "1 are shown, and there are more; with --limit 0 all are listed\n");
}

TEST(AppList, WhatIsNotReportedAnyMoreIsNotCalledHealthy) {
  const auto node = [](const std::string& name, const std::string& presence) {
    return R"({"node":{"metadata":{"runtime":"prod","namespace":"a","name":")" + name +
           R"("},"syncStatus":"SYNCED","healthStatus":"HEALTHY","presence":")" + presence +
           R"("}})";
  };
  const std::string apps = R"({"data":{"applications":{"edges":[)" + node("shop", "LIVE") + "," +
                           node("old", "STALE") + R"(],"pageInfo":{"hasNextPage":false}}}})";
  Script list(Answers{{kJson, apps}});
  const auto listed = list.run({"app", "list"});
  EXPECT_THAT(listed.out, HasSubstr("Synced   Healthy")) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("Unknown  Unknown"));
  const std::string runtimes =
      R"({"data":{"runtimes":{"edges":[{"node":{"metadata":{"name":"prod"},"available":true}}],)"
      R"("pageInfo":{"hasNextPage":false}}}})";
  Script script(Answers{{kJson, runtimes}, {kJson, apps}});
  const auto status = script.run({"status", "-o", "json"});
  EXPECT_THAT(status.out, HasSubstr("\"applications\": 2")) << status.err;
  EXPECT_THAT(status.out, HasSubstr("\"healthy\": 1"));
}

TEST(AppList, NamesTheRuntimesThatAreSilent) {
  const auto app = [](const std::string& runtime) {
    return R"({"node":{"metadata":{"runtime":")" + runtime +
           R"(","namespace":"a","name":"shop"},"syncStatus":"SYNCED","healthStatus":"HEALTHY"}})";
  };
  const auto runtime = [](const std::string& name, const std::string& available) {
    return R"({"node":{"metadata":{"name":")" + name + R"("},"available":)" + available + "}}";
  };
  const auto slice = [](const std::string& member, const std::string& edges) {
    return R"({"data":{")" + member + R"(":{"edges":[)" + edges +
           R"(],"pageInfo":{"hasNextPage":false}}}})";
  };
  const auto apps = slice("applications", app("prod") + "," + app("stage"));
  const auto runtimes =
      slice("runtimes", runtime("prod", "true") + "," + runtime("stage", "false") + "," +
                            runtime("empty", "false"));
  Script table(Answers{{kJson, apps}, {kJson, runtimes}});
  const auto told = table.run({"app", "list"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_EQ(told.err, "silent, so that what is known of their Applications may be old: stage\n");
  Script names(Answers{{kJson, apps}});
  EXPECT_EQ(names.run({"app", "list", "-o", "name"}).err, "");
  EXPECT_EQ(names.requests().size(), 1U) << "names have no state";
}

// A cut message hides what is to be done.
TEST(AppGet, WhatIsWrongIsWholeOnATerminal) {
  if (!find_program("script")) GTEST_SKIP() << "script(1) is missing";
  const std::string message =
      "one or more objects failed to apply, reason: " + std::string(80, 'x') +
      " and this is the end of it";
  Script script(Answers{
      {kJson, R"({"data":{"application":{"metadata":{"runtime":"prod","namespace":"argocd",)"
              R"("name":"shop"},"syncStatus":"SYNCED","healthStatus":"DEGRADED",)"
              R"("healthMessage":"a pod failed: )" +
                  message + R"(","operationState":{"phase":"Failed","message":")" + message +
                  R"("}}}})"}});
  const auto result = script.run_on_terminal("app get prod/argocd/shop");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Degraded: a pod failed: " + message));
  EXPECT_THAT(result.out, HasSubstr("Failed: " + message));
}

TEST(AppGet, SaysThatItsRuntimeIsSilent) {
  const std::string app =
      R"({"data":{"application":{"metadata":{"runtime":"prod","namespace":"argocd","name":"shop"},)"
      R"("syncStatus":"SYNCED","healthStatus":"HEALTHY"}}})";
  const auto runtime = [](const std::string& available) {
    return R"({"data":{"runtime":{"available":)" + available + "}}}";
  };
  Script silent(Answers{{kJson, app}, {kJson, runtime("false")}});
  const auto old = silent.run({"app", "get", "prod/argocd/shop"});
  EXPECT_EQ(old.exit_code, 0) << old.err;
  EXPECT_THAT(old.out, HasSubstr("Healthy"));
  EXPECT_EQ(old.err, "runtime prod is silent, so what is known may be old\n");
  Script online(Answers{{kJson, app}, {kJson, runtime("true")}});
  EXPECT_EQ(online.run({"app", "get", "prod/argocd/shop"}).err, "");
}

// Else `app sync && app wait` would be done at once with an Application that was synced before.
TEST(AppSync, EndsWhenItsOperationIsReported) {
  const auto answer = [](const std::string& started) {
    return R"({"data":{"application":{"syncStatus":"SYNCED","healthStatus":"HEALTHY",)"
           R"("operationState":{"startedAt":")" +
           started + R"("}}}})";
  };
  const Answers answers{{kJson, answer("2026-03-04T09:00:00Z")},
                        {kJson, R"({"data":{"runtime":{"ingressHost":"OWN_ADDRESS"}}})"},
                        {kJson, R"({"data":{"sync":{"metadata":{"name":"shop"}}}})"},
                        {kJson, answer("2026-03-04T09:00:00Z")},
                        {kJson, answer("2026-03-04T10:00:00Z")}};
  Script script(answers);
  const auto result = script.run({"app", "sync", "prod/argocd/shop"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "Done: the sync of prod/argocd/shop has begun\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(script.requests().size(), 5U);

  Script late(Answers(answers.begin(), answers.begin() + 4));
  const auto told = late.run({"app", "sync", "prod/argocd/shop", "--timeout=3s"});
  EXPECT_EQ(told.exit_code, 0) << "the sync has begun: " << told.err;
  EXPECT_THAT(told.err, HasSubstr("the operation is not reported yet"));
}

TEST(AppWait, AnOperationThatIsBeingTerminatedHasNotEnded) {
  Script script(
      Answers{{"Content-Type: application/json\r\n",
               R"({"data":{"application":{"syncStatus":"SYNCED","healthStatus":"HEALTHY",)"
               R"("operationState":{"phase":"Terminating"}}}})"}});
  const auto result = script.run({"app", "wait", "prod/argocd/shop", "--timeout=2s"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.err, HasSubstr("an operation runs"));
}

TEST(AppWait, SaysWhyTheLastOperationFailed) {
  Script script(Answers{
      {kJson, R"({"data":{"application":{"syncStatus":"OUT_OF_SYNC","healthStatus":"HEALTHY",)"
              R"("operationState":{"phase":"Failed","message":"no such kind"}}}})"}});
  const auto result = script.run({"app", "wait", "prod/argocd/shop", "--timeout=2s"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.err, HasSubstr("prod/argocd/shop: sync is OutOfSync, its last operation is "
                                    "Failed: no such kind\n"));
}

TEST(AppWait, GoesOnWhenTheServerWasAway) {
  const auto answer = [](const std::string& sync) {
    return R"({"data":{"application":{"syncStatus":")" + sync + R"(","healthStatus":"HEALTHY"}}})";
  };
  Script script(Answers{{kJson, answer("OUT_OF_SYNC")},
                        {kAway, ""},
                        {kJson, answer("SYNCED")},
                        {kJson, R"({"data":{"runtime":{"available":true}}})"}});
  const auto result = script.run({"app", "wait", "prod/argocd/shop"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Done: prod/argocd/shop is as wanted"));
}

TEST(AppWait, WhatMayBeOldIsNotAsWanted) {
  const auto answer = [](const std::string& presence) {
    return R"({"data":{"application":{"syncStatus":"SYNCED","healthStatus":"HEALTHY",)"
           R"("presence":")" +
           presence + R"("}}})";
  };
  Script silent(
      Answers{{kJson, answer("LIVE")}, {kJson, R"({"data":{"runtime":{"available":false}}})"}});
  const auto old = silent.run({"app", "wait", "prod/argocd/shop", "--timeout=2s"});
  EXPECT_EQ(old.exit_code, 1) << old.out;
  EXPECT_THAT(old.err, HasSubstr("its runtime is silent"));
  Script stale(Answers{{kJson, answer("STALE")}});
  const auto lost = stale.run({"app", "wait", "prod/argocd/shop", "--timeout=2s"});
  EXPECT_EQ(lost.exit_code, 1) << lost.out;
  EXPECT_THAT(lost.err, HasSubstr("it is not reported any more"));
}

TEST(UserAdd, TheLinkIsOneAlsoForAnAddressWithASlashAtItsEnd) {
  Script script(Answers{
      {kJson, R"({"data":{"me":{"activeAccount":{"id":"acme"}}}})"},
      {kJson, R"({"_id":"u1","userName":"ann","inviteUrl":"/invitation?token=canary-1"})"}});
  const auto result = script.run(
      {"user", "add", "ann@example.test", "--control-plane-url", script.address() + "/"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, script.address() + "/invitation?token=canary-1\n");
}

// token list shows the caller's own keys alone.
TEST(ServiceAccountKeys, ALostAnswerNamesTheCommandThatShowsTheKey) {
  const std::string accounts = R"([{"_id":"s1","userName":"ci"}])";
  Script created(Answers{{kJson, accounts}, {kAway, ""}});
  const auto create = created.run({"service-account", "create-key", "ci", "pipeline"});
  EXPECT_EQ(create.exit_code, 3) << create.out;
  EXPECT_THAT(create.err, HasSubstr("gitopsctl service-account revoke-key ci pipeline, which"));
  Script revoked(
      Answers{{kJson, accounts}, {kJson, R"([{"_id":"k1","name":"pipeline"}])"}, {kAway, ""}});
  const auto revoke = revoked.run({"service-account", "revoke-key", "ci", "pipeline", "--yes"});
  EXPECT_EQ(revoke.exit_code, 3) << revoke.out;
  EXPECT_THAT(revoke.err, HasSubstr("gitopsctl service-account revoke-key ci pipeline, which"));
}

// The root wants two Applications, and one of them has not been reported.
TEST(AppTree, ShowsAChildThatIsNotThereYet) {
  const auto answer = [](const std::string& name, const std::string& rest) {
    return R"({"data":{"application":{"metadata":{"name":")" + name +
           R"("},"syncStatus":"SYNCED","healthStatus":"HEALTHY")" + rest + "}}}";
  };
  const std::string child =
      R"({"kind":"Application","namespace":"argocd","syncStatus":"SYNCED","name":")";
  Script script(Answers{
      {kJson, answer("root", R"(,"resources":[)" + child + R"(one"},)" + child + R"(two"}],)" +
                                 R"("appsRelations":{"children":[)"
                                 R"({"runtime":"prod","namespace":"argocd","name":"one"}]})")},
      {kJson, answer("one", "")}});
  const auto result = script.run({"app", "tree", "prod/argocd/root"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Application argocd/two"));
  EXPECT_EQ(result.out.find("argocd/one"), result.out.rfind("argocd/one")) << result.out;
}

TEST(AppTree, SaysThatApplicationsAreLeftOut) {
  Answers answers(1);
  std::string children;
  for (int i = 0; i < 1'000; ++i) {
    children += std::string(i == 0 ? "" : ",") +
                R"({"runtime":"prod","namespace":"argocd","name":"c)" + std::to_string(i) + R"("})";
    answers.emplace_back(kJson, R"({"data":{"application":{"syncStatus":"SYNCED"}}})");
  }
  answers[0] = {kJson,
                R"({"data":{"application":{"appsRelations":{"children":[)" + children + "]}}}}"};
  Script script(std::move(answers));
  const auto result = script.run({"app", "tree", "prod/argocd/root"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "1000 Applications are shown; those beyond are left out\n");
  EXPECT_THAT(result.out, HasSubstr("argocd/c998"));
  EXPECT_THAT(result.out, Not(HasSubstr("argocd/c999")));
}

TEST(WebhookList, HoldsNoControlCharacterOfThePeer) {
  const RecordingUpstream router("router", [](const auto&, RawSocket& socket) {
    return RecordingUpstream::reply(socket, "{\"kept\":1,\"sources\":[\"a\u009B2J\"]}",
                                    "Content-Type: application/json\r\n");
  });
  const auto result =
      run_command({std::string(GITOPS_BIN_DIR) + "/gitopsctl", "webhook", "list", "-o", "json",
                   "--router-url", "http://127.0.0.1:" + std::to_string(router.port())},
                  {{"HTTP_PROXY", std::nullopt}, {"http_proxy", std::nullopt}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("\u009B")));
  EXPECT_THAT(result.out, HasSubstr("a\\u009b2J"));
}

TEST_F(Follow, BashCompletesTheNamesOfTheServer) {
  const auto completed = [&](const std::string& words, int at) {
    const std::string script = "PATH=" + std::string(GITOPS_BIN_DIR) +
                               ":$PATH; source <(gitopsctl completion bash); compopt() { :; }; "
                               "COMP_WORDS=(gitopsctl " +
                               words + "); COMP_CWORD=" + std::to_string(at) +
                               "; _gitopsctl; printf '%s\\n' \"${COMPREPLY[@]}\"";
    return run_or_throw({"bash", "-u", "-c", script}, environment());
  };
  EXPECT_EQ(completed("app get sh", 3), "shop");
  EXPECT_EQ(completed("app sync prod/argocd/s", 3), "prod/argocd/shop");
  EXPECT_EQ(completed("runtime status p", 3), "prod");
  EXPECT_EQ(completed("app list --runtime si", 4), "silent");
}

TEST_F(Follow, ATokenIsAskedForWithoutAnEcho) {
  // The pseudo-terminal of script(1) echoes what is typed, unless the program switches that off.
  if (!find_program("script")) GTEST_SKIP() << "script(1) is missing";
  const std::string login =
      std::string(GITOPS_BIN_DIR) + "/gitopsctl login " + bed().program().url() + " --name=here";
  const std::string command =
      "(until grep -q 'not shown' " + (folder_ / "typed").string() +
      " 2>/dev/null; do sleep 0.1; done; printf '%s\\n' \"$KEY\"; sleep 3) | "
      "script --quiet --return --flush --command '" +
      login + "' " + (folder_ / "typed").string();
  auto with_key = environment();
  with_key["KEY"] = bed().key;
  const auto result = run_command({"bash", "-c", command}, with_key);
  EXPECT_THAT(result.out, HasSubstr("API key (it is not shown): "));
  EXPECT_THAT(result.out, HasSubstr("Logged in as ann of account acme"));
  EXPECT_THAT(result.out + read_file(folder_ / "typed"), Not(HasSubstr(bed().key)));
}

TEST_F(Follow, AnInterruptedLoginGivesTheEchoBack) {
  if (!find_program("script")) GTEST_SKIP() << "script(1) is missing";
  const auto typed = (folder_ / "typed").string();
  const auto session = (folder_ / "session").string();
  write_file(session, "trap : INT\n" + std::string(GITOPS_BIN_DIR) + "/gitopsctl login " +
                          bed().program().url() + " --name=here\nstty -a\n");
  const std::string command = "(until grep -q 'not shown' " + typed +
                              " 2>/dev/null; do sleep 0.1; done; printf '\\003'; sleep 3) | "
                              "script --quiet --return --flush --command 'exec bash " +
                              session + "' " + typed;
  const auto result = run_command({"bash", "-c", command}, environment());
  EXPECT_THAT(result.out, HasSubstr("API key (it is not shown): "));
  EXPECT_THAT(result.out, HasSubstr("iexten echo "));
}

}  // namespace
}  // namespace gitops::test
