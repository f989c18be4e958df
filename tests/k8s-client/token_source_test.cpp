#include "k8s-client/token_source.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::k8s {
namespace {

using namespace std::chrono_literals;
using test::run_coro;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string revealed(const Result<Secret>& secret) {
  return secret ? std::string(secret->reveal()) : "error: " + secret.error().message;
}

// A configuration whose plugin is a shell script with this text.
class Plugin {
 public:
  explicit Plugin(const std::string& script) {
    write(folder_ / "plugin", "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder_ / "plugin", std::filesystem::perms::owner_all);
    config.server.scheme = "https";
    config.server.host = "api.example";
    config.server.port = 6443;
    config.exec =
        ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                   .command = folder_ / "plugin",
                   .arguments = {},
                   .environment = {{"DIR", folder_.path().string()}, {"PATH", "/usr/bin:/bin"}},
                   .provide_cluster_info = false};
  }
  [[nodiscard]] std::string file(const std::string& name) const { return read(path(name)); }
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  // Waits until the process whose id the script wrote to "pid" has ended.
  [[nodiscard]] Task<bool> ends() const {
    const std::string process = "/proc/" + file("pid");
    const auto stat = process.substr(0, process.find('\n')) + "/stat";
    const Deadline deadline = deadline_after(20s);
    while (Clock::now() < deadline) {
      const std::string text = read(stat);
      if (text.empty() || text.contains(") Z ")) co_return !file("pid").empty();
      co_await sleep_for(5ms);
    }
    co_return false;
  }

  ClusterConfig config;

 private:
  test::TempDir folder_;
};

std::string credential(const std::string& status) {
  return R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)" +
         status + "}'\n";
}

TEST(TokenSource, GivesWhatTheConfigurationHolds) {
  run_coro([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    ClusterConfig anonymous;
    ClusterConfig token;
    token.token = Secret("abc");
    ClusterConfig basic;
    basic.username = "me";
    basic.password = Secret("p:w");
    const auto given = [&](const ClusterConfig& config) -> Task<std::string> {
      TokenSource source(executor, config);
      auto authorization = co_await source.authorization(kNever);
      if (authorization) EXPECT_FALSE(source.invalidate(*authorization));
      co_return revealed(authorization);
    };
    EXPECT_EQ(co_await given(anonymous), "");
    EXPECT_EQ(co_await given(token), "Bearer abc");
    EXPECT_EQ(co_await given(basic), "Basic " + base64_encode("me:p:w"));
  });
}

TEST(TokenSource, ReadsATokenFileAgainAfterA401) {
  const test::TempDir folder;
  write(folder / "token", " one\n");
  ClusterConfig config;
  config.token_file = folder / "token";
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer one");
    EXPECT_FALSE(source.invalidate(Secret("Bearer one"))) << "the file has not changed";
    write(folder / "token", "two");
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer one") << "within a minute";
    EXPECT_TRUE(source.invalidate(Secret("Bearer one")));
    EXPECT_TRUE(source.invalidate(Secret("Bearer one")))
        << "a second request that used the old one";
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer two");

    std::filesystem::remove(folder / "token");
    EXPECT_FALSE(source.invalidate(Secret("Bearer two")));
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer two") << "keeps the last";
  });
}

TEST(TokenSource, AC28_NamesAnUnusableTokenFileButNotItsContent) {
  const test::TempDir folder;
  run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    for (const std::string content : {"", " \n", "CANARY\r\nX-Evil: 1"}) {
      write(folder / "token", content);
      ClusterConfig config;
      config.token_file = folder / "token";
      TokenSource source(executor, config);
      const auto given = co_await source.authorization(kNever);
      CO_ASSERT_TRUE(!given);
      EXPECT_THAT(given.error().message,
                  AllOf(HasSubstr(config.token_file), Not(HasSubstr("CANARY"))));
    }
  });
}

TEST(TokenSource, RunsAPluginWithItsArgumentsAndOnlyItsEnvironment) {
  Plugin plugin(
      "echo run >> $DIR/runs; env > $DIR/env; cat > $DIR/stdin; echo \"$@\" > $DIR/args\n"
      "ls /proc/self/fd > $DIR/fds\n" +
      credential(R"({"token":"abc"})"));
  plugin.config.exec->arguments = {"get token", "$HOME"};
  plugin.config.exec->provide_cluster_info = true;
  plugin.config.tls.ca_pem = "PEM";
  ::setenv("GITOPS_TEST_CANARY", "CANARY", 1);
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
  });
  ::unsetenv("GITOPS_TEST_CANARY");
  EXPECT_EQ(plugin.file("runs"), "run\n") << "no end was given: kept";
  EXPECT_EQ(plugin.file("args"), "get token $HOME\n");
  EXPECT_EQ(plugin.file("stdin"), "");
  EXPECT_EQ(plugin.file("fds"), "0\n1\n2\n3\n") << "3 is ls's own";
  EXPECT_THAT(plugin.file("env"), Not(HasSubstr("CANARY")));
  EXPECT_THAT(plugin.file("env"),
              HasSubstr(R"(KUBERNETES_EXEC_INFO={"apiVersion":"client.authentication.k8s.io/v1",)"
                        R"("kind":"ExecCredential","spec":{"cluster":{)"
                        R"("certificate-authority-data":"UEVN",)"
                        R"("server":"https://api.example:6443"},"interactive":false}})"));
}

TEST(TokenSource, MergesCallsThatComeWhileAPluginRuns) {
  Plugin plugin("echo run >> $DIR/runs\n" + credential(R"({"token":"abc"})"));
  run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TokenSource source(executor, plugin.config);
    TaskGroup group(executor);
    std::vector<std::string> given;
    for (int i = 0; i < 5; ++i) {
      group.spawn("caller", [&]() -> Task<> {
        given.push_back(revealed(co_await source.authorization(kNever)));
      });
    }
    co_await group.join();
    EXPECT_EQ(given, std::vector<std::string>(5, "Bearer abc"));
  });
  EXPECT_EQ(plugin.file("runs"), "run\n");
}

TEST(TokenSource, SharesAFailureWithThoseWhoWaitedForIt) {
  Plugin plugin("echo run >> $DIR/runs; exit 1\n");
  run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TokenSource source(executor, plugin.config);
    TaskGroup group(executor);
    for (int i = 0; i < 5; ++i) {
      group.spawn("caller", [&]() -> Task<> {
        EXPECT_THAT(revealed(co_await source.authorization(kNever)), HasSubstr("exit code 1"));
      });
    }
    co_await group.join();
    EXPECT_EQ(plugin.file("runs"), "run\n");
    EXPECT_FALSE(co_await source.authorization(kNever));
    EXPECT_EQ(plugin.file("runs"), "run\nrun\n") << "a later caller tries again";
  });
}

TEST(TokenSource, RunsAPluginAgainWhenItsAnswerHasEnded) {
  Plugin plugin("echo run >> $DIR/runs\n" +
                credential(R"({"token":"abc","expirationTimestamp":"2020-01-01T00:00:00Z"})"));
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
    EXPECT_FALSE(source.invalidate(Secret("Bearer abc"))) << "it has just run";
  });
  EXPECT_EQ(plugin.file("runs"), "run\nrun\n");
}

// It is asked ahead of the end, so its failure takes nothing away yet.
TEST(TokenSource, ACredentialOutlivesAPluginThatCannotRenewIt) {
  test::run_in_test_time([]() -> Task<> {
    Plugin plugin("echo run >> $DIR/runs; [ -e $DIR/broken ] && exit 1\n" +
                  credential(R"({"token":"abc","expirationTimestamp":")" +
                             format_rfc3339(wall_now() + std::chrono::hours(1)) + "\"}"));
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    const auto ask = [&]() -> Task<std::string> {
      const Clock::Hold plugin_runs;  // a process of its own, in real time
      co_return revealed(co_await source.authorization(kNever));
    };
    EXPECT_EQ(co_await ask(), "Bearer abc");
    write(plugin.path("broken"), "");
    co_await sleep_for(59min + 30s);
    EXPECT_EQ(co_await ask(), "Bearer abc");
    EXPECT_EQ(plugin.file("runs"), "run\nrun\n");
    EXPECT_EQ(co_await ask(), "Bearer abc");
    EXPECT_EQ(plugin.file("runs"), "run\nrun\n") << "not for each request";
    co_await sleep_for(31s);
    EXPECT_THAT(co_await ask(), HasSubstr("exit code 1"));
  });
}

TEST(TokenSource, KeepsACredentialThatLastsForCenturies) {
  Plugin plugin("echo run >> $DIR/runs\n" +
                credential(R"({"token":"abc","expirationTimestamp":"9999-12-31T23:59:59Z"})"));
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
  });
  EXPECT_EQ(plugin.file("runs"), "run\n");
}

TEST(TokenSource, AC28_SaysWhyAPluginFailedWithoutWhatMayBeSecret) {
  Plugin plugin(
      "echo 'no session for eyJhbGciOiJSUzI1NiIsImtpZCI6IkNBTkFSWSJ9: log in' >&2\n"
      "echo 'second line' >&2\nexit 3\n");
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    const auto given = co_await source.authorization(kNever);
    CO_ASSERT_TRUE(!given);
    EXPECT_EQ(given.error().code, ErrorCode::unavailable);
    EXPECT_EQ(given.error().message, "exec plugin " + plugin.config.exec->command +
                                         ": ended with exit code 3 (no session for [...] log in)");
  });
}

TEST(TokenSource, NamesAPluginThatIsNotThere) {
  Plugin plugin("");
  plugin.config.exec->command = "/nowhere/plugin";
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)),
              "error: exec plugin /nowhere/plugin: cannot be started: No such file or directory");
  });
}

TEST(TokenSource, SaysHowToInstallAPluginThatIsNotThere) {
  Plugin plugin("");
  plugin.config.exec->command = "/nowhere/plugin";
  plugin.config.exec->install_hint = "Install it:\n\n  $ get plugin\n";
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)),
              "error: exec plugin /nowhere/plugin: cannot be started: No such file or directory; "
              "how to install it: Install it: $ get plugin");
  });
}

TEST(TokenSource, GivesTheClientCertificateOfAPlugin) {
  Plugin plugin("echo run >> $DIR/runs\n" +
                credential(R"({"clientCertificateData":"CERT","clientKeyData":"KEY"})"));
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(source.certificate(), ClientCertificate());
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "") << "no token";
    EXPECT_EQ(source.certificate(),
              (ClientCertificate{.certificate_pem = "CERT", .key_pem = Secret("KEY")}));
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "");
    EXPECT_FALSE(source.invalidate(Secret())) << "it has just run";
  });
  EXPECT_EQ(plugin.file("runs"), "run\n");
}

TEST(TokenSource, EndsAPluginThatPrintsTooMuch) {
  Plugin plugin("echo $$ > $DIR/pid\nexec yes\n");
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    const auto given = co_await source.authorization(kNever);
    CO_ASSERT_TRUE(!given);
    EXPECT_EQ(given.error().code, ErrorCode::too_large);
    EXPECT_TRUE(co_await plugin.ends());
  });
}

TEST(TokenSource, EndsAPluginAndItsChildrenAtTheDeadline) {
  Plugin plugin("sleep 1000 &\necho $! > $DIR/pid\nwait\n");
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    const auto given = co_await source.authorization(deadline_after(3s));
    CO_ASSERT_TRUE(!given);
    EXPECT_EQ(given.error().code, ErrorCode::timeout);
    EXPECT_TRUE(co_await plugin.ends());
  });
}

TEST(TokenSource, DoesNotWaitForWhatAPluginLeavesBehind) {
  Plugin plugin("sleep 1000 &\necho $! > $DIR/pid\n" + credential(R"({"token":"abc"})"));
  run_coro([&]() -> Task<> {
    TokenSource source(co_await asio::this_coro::executor, plugin.config);
    EXPECT_EQ(revealed(co_await source.authorization(kNever)), "Bearer abc");
    EXPECT_TRUE(co_await plugin.ends());
  });
}

TEST(TokenSource, EndsAPluginWhenItsCallerIsCancelled) {
  Plugin plugin("echo $$ > $DIR/pid\nmkfifo $DIR/never; exec cat $DIR/never\n");
  run_coro([&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    TokenSource source(executor, plugin.config);
    TaskGroup group(executor);
    group.spawn("caller", [&]() -> Task<> {
      const auto given = co_await source.authorization(kNever);
      ADD_FAILURE() << revealed(given);
    });
    EXPECT_TRUE(co_await test::eventually([&] { return !plugin.file("pid").empty(); },
                                          "the plugin's process"));
    group.cancel();
    co_await group.join();
    EXPECT_TRUE(co_await plugin.ends());
  });
}

}  // namespace
}  // namespace gitops::k8s
