// The program as a whole: first start, restart, readiness and commands.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
#include "support/postgres_server.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string sample_application(const std::string& name) {
  return Json{{"apiVersion", "argoproj.io/v1alpha1"},
              {"kind", "Application"},
              {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
              {"spec",
               {{"destination", {{"server", "https://kubernetes.default.svc"}}},
                {"source", {{"repoURL", "https://git.example/a.git"}, {"path", "apps"}}}}},
              {"status", {{"sync", {{"status", "Synced"}}}, {"health", {{"status", "Healthy"}}}}}}
      .dump();
}

// Returns the password that the first start has printed.
std::string printed_password(const std::string& log) {
  constexpr std::string_view kLabel = "Password (shown once): ";
  const auto at = log.find(kLabel);
  if (at == std::string::npos) return {};
  return log.substr(at + kLabel.size(), log.find('\n', at) - at - kLabel.size());
}

int login_status(const ControlPlaneProcess& program, const std::string& password) {
  return http_call({.method = "POST",
                    .url = program.url() + "/console/api/v1/login",
                    .headers = {"Content-Type: application/json"},
                    .body = Json{{"name", "admin"}, {"password", password}}.dump()})
      .status;
}

TEST(ControlPlaneDaemon, TheFirstStartMakesAnAdministratorAndTellsThePasswordOnce) {
  ControlPlaneProcess program;
  program.start();
  const auto password = printed_password(program.log());
  EXPECT_EQ(password.size(), 26U);
  EXPECT_EQ(login_status(program, password), 200);
  EXPECT_EQ(login_status(program, "wrong"), 401);
  EXPECT_EQ(program.stop(), 0);
  const auto before = program.log().size();
  program.start();
  EXPECT_THAT(program.log().substr(before), Not(HasSubstr("Password")));
  EXPECT_EQ(login_status(program, password), 200);
}

TEST(ControlPlaneDaemon, NothingIsOpenWithoutACredential) {
  ControlPlaneProcess program;
  program.start();
  EXPECT_EQ(http_call({.url = program.url() + "/api/ping"}).status, 200);
  EXPECT_EQ(http_call({.url = program.url() + "/api/user"}).status, 401);
  EXPECT_EQ(program.graphql("nobody.0000", "{me{id}}").status, 401);
  EXPECT_EQ(program.post_application("nobody.0000", sample_application("a"), 1).status, 401);
  EXPECT_EQ(
      http_call({.method = "POST", .url = program.url() + "/tunnel-plugin", .body = "{}"}).status,
      401);
}

// A proxy such as HAProxy adds a field of its own behind the one that its client sent.
TEST(ControlPlaneDaemon, AForgedForwardingFieldGivesNoFurtherAttempts) {
  ControlPlaneProcess program({}, {"--trusted-proxies=127.0.0.1"});
  program.start();
  std::vector<int> statuses;
  for (int i = 0; i < 40; ++i) {
    const auto number = std::to_string(i);
    statuses.push_back(http_call({.url = program.url() + "/api/user",
                                  .headers = {"Authorization: nobody" + number + ".0000",
                                              "X-Forwarded-For: 198.51.100." + number,
                                              "X-Forwarded-For: 203.0.113.7"}})
                           .status);
  }
  EXPECT_EQ(statuses.front(), 401);
  EXPECT_EQ(statuses.back(), 429);
}

TEST(ControlPlaneDaemon, TheAdminPortTellsItsState) {
  ControlPlaneProcess program;
  program.start();
  EXPECT_EQ(program.admin("/readyz").status, 200);
  const auto status = program.admin("/statusz").body;
  EXPECT_THAT(status, HasSubstr("database: SQLite"));
  EXPECT_THAT(status, HasSubstr("events: 0 queued, 0 bytes"));
  EXPECT_THAT(status, HasSubstr("tunnel plugin: refuses all requests"));
  EXPECT_THAT(status, HasSubstr("tunnel bans: a revoked runtime keeps its tunnel"));
  EXPECT_THAT(program.admin("/metrics").body, HasSubstr("gitops_control_plane_"));
}

TEST(ControlPlaneDaemon, AFileOfSqliteBelongsToTheDaemonWhileItRuns) {
  ControlPlaneProcess program;
  program.add_account("acme");
  program.start();
  EXPECT_THROW(program.command({"account", "list"}), std::runtime_error);
  program.stop();
  EXPECT_THAT(program.command({"account", "list"}), HasSubstr("acme"));
}

TEST(ControlPlaneDaemon, AFullDatabaseRefusesEventsFromTheStartOnAndIsRead) {
  ControlPlaneProcess program({}, {"--storage-limit=100k"});
  program.add_account("acme");
  program.add_user("ann", "acme", {"--admin"});
  const auto key = program.create_key("ann", "acme");
  program.start();
  const auto token = program.register_runtime(key, "prod");
  const auto refused = program.post_application(token, sample_application("a"), 1);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("storage limit"));
  EXPECT_EQ(program.graphql(key, "{me{name}}").status, 200);
  EXPECT_EQ(program.admin("/readyz").status, 200) << "pages are served";
  EXPECT_THAT(program.admin("/statusz").body, HasSubstr("full"));
  EXPECT_THAT(program.admin("/metrics").body, HasSubstr("gitops_control_plane_storage_state 3"));
}

TEST(ControlPlaneDaemon, AMalformedConfigurationIsRefused) {
  const auto check = [](const std::string& flag) {
    return run_command({std::string(GITOPS_BIN_DIR) + "/control-plane", "--check-config", flag});
  };
  EXPECT_EQ(check("--port=8080").exit_code, 0);
  for (const auto* flag :
       {"--database.url=mysql://a/b", "--database.url=postgresql://u:secret@h/d",
        "--public-url=ftp://a", "--trusted-proxies=nowhere", "--tunnel.domain=UPPER.example",
        "--tunnel.api-urls=http://a", "--storage-limit=much"}) {
    EXPECT_EQ(check(flag).exit_code, 2) << flag;
  }
}

TEST(ControlPlaneDaemon, TheHelpNamesTheCommands) {
  const auto help = run_command({std::string(GITOPS_BIN_DIR) + "/control-plane", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("control-plane user, key, account, copy"));
}

TEST(ControlPlaneDaemon, AMissingFolderIsNamed) {
  const TempDir folder;
  const auto started =
      run_command({std::string(GITOPS_BIN_DIR) + "/control-plane", "--port=0", "--admin-port=0",
                   "--database.path=" + (folder / "absent/cp.db").string()});
  EXPECT_EQ(started.exit_code, 1);
  EXPECT_THAT(started.err + started.out,
              HasSubstr("the folder " + (folder / "absent").string() + " does not exist"));
}

TEST(ControlPlaneDaemon, EveryMistakeIsReportedAtOnce) {
  const auto checked = run_command(
      {std::string(GITOPS_BIN_DIR) + "/control-plane", "--check-config", "--port=x",
       "--public-url=ftp://a", "--database.url=mysql://a/b", "--tunnel.domain=UPPER",
       "--tls-key-file=/nowhere/key", "--master-key-file=/nowhere/master", "--no-such-flag=1"});
  EXPECT_EQ(checked.exit_code, 2);
  for (const auto* mistake :
       {"port", "public-url", "database.url", "tunnel.domain",
        "certificate and key are required together", "/nowhere/master", "no-such-flag"}) {
    EXPECT_THAT(checked.err, HasSubstr(mistake));
  }
}

TEST(ControlPlaneDaemon, AStopAnswersWhatIsQueued) {
  ControlPlaneProcess program;
  program.add_account("acme");
  program.add_user("ann", "acme", {"--admin"});
  const auto key = program.create_key("ann", "acme");
  program.start();
  const auto token = program.register_runtime(key, "prod");
  constexpr int kPosts = 64;
  std::atomic<int> acknowledged = 0;
  std::atomic<int> refused = 0;
  std::vector<std::jthread> senders;
  for (int i = 0; i < kPosts; ++i) {
    senders.emplace_back([&, i] {
      const auto status =
          program.post_application(token, sample_application("app-" + std::to_string(i)), i + 1)
              .status;
      (status == 200 ? acknowledged : refused) += 1;
    });
  }
  require_until([&] { return acknowledged > 0; }, std::chrono::seconds(30), "an acknowledgement");
  EXPECT_EQ(program.stop(), 0);
  senders.clear();
  EXPECT_EQ(acknowledged + refused, kPosts);
  program.start();
  const auto list = program.graphql(
      key, "{applications(pagination: {first: 1000}){edges{node{metadata{name}}}}}");
  const auto json = Json::parse(list.body, nullptr, false);
  EXPECT_GE(json["data"]["applications"]["edges"].size(), static_cast<std::size_t>(acknowledged))
      << list.body;
}

TEST(ControlPlaneDaemon, ARevocationByACommandCountsInTheRunningDaemon) {
  ControlPlaneProcess program(PostgresServer::shared().new_database());
  program.add_account("acme");
  program.add_user("ann", "acme", {"--admin"});
  const auto key = program.create_key("ann", "acme");
  program.start();
  const auto token = program.register_runtime(key, "prod");
  const auto status = [&](const std::string& credential) {
    return program.graphql(credential, "{runtimes{edges{node{metadata{name}}}}}").status;
  };
  ASSERT_EQ(status(key), 200);
  ASSERT_EQ(status(token), 200);
  program.command({"key", "revoke", "--id=" + token.substr(0, 24), "--account=acme"});
  // The daemon would remember the token for 30 seconds.
  require_until([&] { return status(token) == 401; }, std::chrono::seconds(15),
                "the end of the token");
  ASSERT_EQ(status(key), 200);
  program.command({"user", "disable", "--name=ann"});
  require_until([&] { return status(key) == 401; }, std::chrono::seconds(15), "the end of the key");
}

struct ControlPlaneRestart : testing::TestWithParam<bool> {};

TEST_P(ControlPlaneRestart, WhatWasAcknowledgedIsThereAfterAKill) {
  ControlPlaneProcess program(GetParam() ? PostgresServer::shared().new_database() : std::string());
  program.add_account("acme");
  program.add_user("ann", "acme", {"--admin"});
  const auto key = program.create_key("ann", "acme");
  program.start();
  const auto token = program.register_runtime(key, "prod");
  for (int i = 0; i < 5; ++i) {
    const auto name = "app-" + std::to_string(i);
    ASSERT_EQ(program.post_application(token, sample_application(name), i + 1).status, 200);
  }
  program.kill();
  program.start();
  for (int i = 0; i < 5; ++i) {
    const auto reply = program.graphql(
        key,
        "query($name: String!){application(runtime: \"prod\", namespace: \"argocd\", name: "
        "$name){metadata{name runtime} syncStatus healthStatus}}",
        Json{{"name", "app-" + std::to_string(i)}}.dump());
    const auto json = Json::parse(reply.body, nullptr, false);
    EXPECT_EQ(json["data"]["application"]["syncStatus"], "SYNCED") << reply.body;
  }
  EXPECT_EQ(program.graphql(token, "{me{runtimeName}}").body,
            R"({"data":{"me":{"runtimeName":"prod"}}})");
  EXPECT_EQ(program.stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ControlPlaneRestart, testing::Bool(),
                         [](const auto& info) { return info.param ? "Postgres" : "Sqlite"; });

}  // namespace
}  // namespace gitops::test
