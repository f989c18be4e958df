#include "common/daemon/daemon.hpp"

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "support/log_reader.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Environment;
using test::HttpReply;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr milliseconds kTimeLimit = seconds(20);  // long, since a loaded machine may be slow

std::vector<std::string> command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(GITOPS_BIN_DIR) + "/test_daemon");
  return arguments;
}

// The test daemon as a process of its own, on a free admin port.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> arguments, Environment environment = {},
                  const test::LogReader* reader = nullptr)
      : process_({.argv = with_reader(reader, command(with_port(std::move(arguments)))),
                  .env = std::move(environment),
                  .log_file = folder_ / "log"}) {}

  // Resident memory in KiB.
  [[nodiscard]] int memory() const {
    const auto status = test::read_file("/proc/" + std::to_string(process_.pid()) + "/status");
    return std::stoi(status.substr(status.find("VmRSS:") + 6));
  }

  void wait_for_log(const std::string& part) {
    test::require_until([&] { return log().contains(part); }, kTimeLimit, part);
  }
  [[nodiscard]] std::string log() const { return test::read_file(folder_ / "log"); }

  HttpReply call(const std::string& path, const std::string& method = "GET") {
    return test::http_call({.method = method, .url = url(path)});
  }
  // Waits until the daemon has started.
  std::string url(const std::string& path) {
    if (port_.empty()) {
      wait_for_log(R"("message":"started")");
      const std::string text = log();
      const std::string key = R"("admin_port":)";
      const auto start = text.find(key) + key.size();
      port_ = text.substr(start, text.find(',', start) - start);
    }
    return "http://127.0.0.1:" + port_ + path;
  }

  void terminate() { process_.signal(SIGTERM); }
  test::Process& process() { return process_; }
  // -1 when it does not end.
  int exit_code() { return process_.wait(kTimeLimit).value_or(-1); }

 private:
  static std::vector<std::string> with_reader(const test::LogReader* reader,
                                              std::vector<std::string> argv) {
    return reader == nullptr ? std::move(argv) : reader->command(argv);
  }
  static std::vector<std::string> with_port(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--admin-port=0", "--admin-address=127.0.0.1"});
    return arguments;
  }

  test::TempDir folder_;
  std::string port_;
  test::Process process_;
};

TEST(Daemon, HelpListsTheProgramsAndTheCommonSettings) {
  const auto result = test::run_command(command({"--help", "--size=99"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("test-daemon: Does nothing, in several ways\n"));
  EXPECT_THAT(result.out, HasSubstr("--size NUMBER"));
  EXPECT_THAT(result.out, HasSubstr("--token-file FILE"));
  EXPECT_THAT(result.out, HasSubstr("--admin-port NUMBER"));
  EXPECT_THAT(result.out, HasSubstr("METRICS_LISTEN_ADDRESS"));
  EXPECT_EQ(result.err, "");
}

TEST(Daemon, AnEmptySettingsFileCountsWhenItStaysEmpty) {
  const test::TempDir folder;
  const std::string file = (folder / "config.yaml").string();
  test::write_file(file, "size: 4\n");
  Daemon daemon({"--config=" + file});
  EXPECT_EQ(daemon.call("/settings", "POST").body, "size 4");
  EXPECT_EQ(daemon.call("/settings", "POST").body, "unchanged");
  test::write_file(file, "");
  EXPECT_EQ(daemon.call("/settings", "POST").body, "unchanged") << "it may be being written";
  EXPECT_EQ(daemon.call("/settings", "POST").body, "size 3") << "the default";
}

TEST(Daemon, TellsItsVersion) {
  const auto result = test::run_command(command({"--version"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, MatchesRegex("test-daemon [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Daemon, PrintsItsSettingsAsATable) {
  const auto result = test::run_command(command({"--print-config-table"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("| `--size NUMBER` | `TEST_SIZE` | `3` | How many |\n"));
}

TEST(Daemon, ChecksAGoodConfiguration) {
  const auto result =
      test::run_command(command({"--check-config", "--size=5"}), {{"TEST_TOKEN", "t"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "configuration is valid\n");
}

TEST(Daemon, AWrongConfigurationPrintsEveryMistakeAndEndsWith2) {
  const test::TempDir folder;
  test::write_file(folder / "config.yaml", "size: many\ncolour: red\n");
  const std::string file = (folder / "config.yaml").string();
  for (const bool check : {false, true}) {
    std::vector<std::string> arguments = {"--config", file, "--admin-port=70000", "--sise=2"};
    if (check) arguments.emplace_back("--check-config");
    const auto result = test::run_command(
        command(arguments), {{"TEST_SIZE", "6"}, {"LOG_LEVEL", "loud"}, {"TEST_TOKEN", "CANARY"}});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err,
              "test-daemon: the configuration has 6 mistakes:\n"
              "  flag \"--sise\": unknown, did you mean --size?\n"
              "  flag --admin-port: \"70000\" is out of range, expected 0 to 65535\n"
              "  environment TEST_SIZE: \"6\" is out of range, expected 1 to 5\n"
              "  environment LOG_LEVEL: not a log level; use debug, info, warn or error\n"
              "  " +
                  file + ":2 colour: unknown setting\n" + "  " + file +
                  ":1 size: \"many\" is not a whole number, expected 1 to 5\n");
  }
}

TEST(Daemon, ARuleOverSeveralSettingsIsAMistakeToo) {
  const auto result = test::run_command(command({"--check-config", "--size=5"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "test-daemon: the configuration has 1 mistake:\n  flag --size: 5 needs a token\n");
}

TEST(Daemon, ServesItsAdminPages) {
  Daemon daemon({});
  EXPECT_EQ(daemon.call("/healthz").body, "ok");
  const auto ready = daemon.call("/readyz");
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, "ready\n");
  const auto metrics = daemon.call("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr(R"(gitops_build_info{program="test-daemon",version=")"));
  EXPECT_THAT(metrics.body, HasSubstr("\nprocess_resident_memory_bytes "));
  const auto status = daemon.call("/statusz");
  EXPECT_EQ(status.status, 200);
  EXPECT_THAT(status.body, MatchesRegex("test-daemon [0-9.]+\nup [0-9hms]+\nready\n\nthings: 3\n"));
  EXPECT_EQ(daemon.call("/statusz?format=text").body.substr(0, 12), "test-daemon ");
  EXPECT_EQ(daemon.call("/statusz?format=xml").status, 400);
  EXPECT_EQ(daemon.call("/").status, 404);
  EXPECT_EQ(daemon.call("/debug/pprof").status, 404);
  EXPECT_EQ(daemon.call("/healthz", "POST").status, 405);
  EXPECT_EQ(daemon.call("/metrics", "DELETE").status, 405);
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 0) << daemon.log();
}

TEST(Daemon, TellsItsStatusAsJson) {
  Daemon daemon({"--fault=not-ready"});
  const auto reply = daemon.call("/statusz?format=json");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(
      test::run_command({"curl", "--silent", "--head", daemon.url("/statusz?format=json")}).out,
      HasSubstr("Content-Type: application/json\r\n"));
  const auto page = nlohmann::json::parse(reply.body);
  EXPECT_EQ(page["program"], "test-daemon");
  EXPECT_THAT(page["version"].get<std::string>(), MatchesRegex("[0-9.]+"));
  EXPECT_TRUE(page["uptime_ms"].is_number_unsigned());
  EXPECT_EQ(page["ready"], false);
  EXPECT_EQ(page["not_ready"],
            nlohmann::json::parse(R"([{"check":"cache","reason":"the cache is empty"}])"));
  EXPECT_EQ(page["entries"],
            nlohmann::json::parse(
                R"([{"name":"things","state":"ok","message":"","values":{"count":3}}])"));
}

TEST(Daemon, ServesThePagesOfItsApp) {
  Daemon daemon({"--drain-delay=10m"});
  const auto page = daemon.call("/things?object=a%2Fb&limit=3");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, R"({"asked":"object=a%2Fb&limit=3"})");
  EXPECT_THAT(test::run_command({"curl", "--silent", "--head", daemon.url("/things")}).out,
              HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(daemon.call("/things").body, R"({"asked":""})");
  EXPECT_EQ(daemon.call("/things", "POST").status, 405);
  EXPECT_EQ(daemon.call("/things/more").status, 404);
  EXPECT_EQ(daemon.call("/healthz").body, "ok") << "the frame's own pages come first";
  daemon.terminate();
  test::require_until([&] { return daemon.call("/things").status == 503; }, kTimeLimit, "503");
}

TEST(Daemon, IsNotReadyForAReasonThatItNames) {
  Daemon daemon({"--fault=not-ready"});
  const auto ready = daemon.call("/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, "cache: the cache is empty\n");
  EXPECT_EQ(daemon.call("/healthz").status, 200);
  EXPECT_THAT(daemon.call("/statusz").body, HasSubstr("not ready:\ncache: the cache is empty\n"));
}

TEST(Daemon, SigtermDrainsAndEndsWith0) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Daemon daemon({"--stop-takes=300ms"});
    EXPECT_EQ(daemon.call("/readyz").status, 200);
    daemon.process().signal(signal);
    EXPECT_EQ(daemon.exit_code(), 0) << daemon.log();
    EXPECT_THAT(daemon.log(), HasSubstr(R"("message":"stopped","exit_code":0)"));
    EXPECT_THAT(daemon.log(), Not(HasSubstr(R"("level":"error")")));
  }
}

// A terminal that closes, or an operator who hopes for a reload: files are read again without it.
TEST(Daemon, SighupDoesNotEndIt) {
  Daemon daemon({});
  EXPECT_EQ(daemon.call("/healthz").status, 200);
  daemon.process().signal(SIGHUP);
  EXPECT_EQ(daemon.call("/healthz").status, 200);
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 0) << daemon.log();
}

TEST(Daemon, IsNotReadyButAliveWhileItDrains) {
  Daemon daemon({"--drain-delay=10m"});
  EXPECT_EQ(daemon.call("/readyz").status, 200);
  daemon.terminate();
  test::require_until([&] { return daemon.call("/readyz").status == 503; }, kTimeLimit, "503");
  EXPECT_EQ(daemon.call("/readyz").body, "daemon: stopping\n");
  EXPECT_EQ(daemon.call("/healthz").status, 200);
  EXPECT_TRUE(daemon.process().running());
}

TEST(Daemon, ASecondSignalEndsItAtOnce) {
  Daemon daemon({"--drain-delay=10m"});
  daemon.wait_for_log("started");
  daemon.terminate();
  daemon.wait_for_log("stopping");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 1);
}

TEST(Daemon, AnswersProbesThoughItsAdminPortIsFullOfIdleConnections) {
  Daemon daemon({});
  const std::string url = daemon.url("");
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  std::vector<int> idle;
  for (int i = 0; i < 150; ++i) {
    idle.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(idle.back(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  }
  EXPECT_EQ(daemon.call("/healthz").status, 200);
  EXPECT_EQ(daemon.call("/readyz").status, 200);
  for (const int descriptor : idle) ::close(descriptor);
}

TEST(Daemon, StopsThoughItsStartHangs) {
  Daemon daemon({"--fault=start-hangs", "--log-level=debug"});
  daemon.wait_for_log("listening");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 0) << daemon.log();
}

TEST(Daemon, AFailedStartEndsWith1) {
  for (const auto& [fault, reason] :
       std::vector<std::pair<std::string, std::string>>{{"make", "no App today"},
                                                        {"start", "start: nobody there"},
                                                        {"start-throws", "start went wrong"}}) {
    Daemon daemon({"--fault=" + fault});
    EXPECT_EQ(daemon.exit_code(), 1) << daemon.log();
    EXPECT_THAT(daemon.log(), HasSubstr(reason));
  }
}

TEST(Daemon, AFailedTaskEndsWith1) {
  Daemon daemon({"--fault=task"});
  EXPECT_EQ(daemon.exit_code(), 1);
  EXPECT_THAT(daemon.log(), HasSubstr(R"("reason":"work: lost its way")"));
  EXPECT_THAT(daemon.log(), HasSubstr(R"("message":"stopped","exit_code":1)"));
}

TEST(Daemon, AnExceptionOutOfAHandlerEndsWith1) {
  Daemon daemon({"--fault=handler"});
  EXPECT_EQ(daemon.exit_code(), 1);
  EXPECT_THAT(daemon.log(),
              HasSubstr(R"("message":"uncaught exception","error":"out of a handler")"));
}

TEST(Daemon, AnExceptionThatNobodyCatchesIsTheLastLine) {
  Daemon daemon({"--fault=thread", "--log-level=debug"});
  EXPECT_EQ(daemon.exit_code(), 128 + SIGABRT);
  EXPECT_THAT(daemon.log(), HasSubstr("admin port is listening"));
  EXPECT_TRUE(daemon.log().ends_with("the process aborts: out of a thread\n")) << daemon.log();
}

TEST(Daemon, AStopThatFailsEndsWith1) {
  Daemon daemon({"--fault=stop-throws"});
  daemon.wait_for_log("started");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 1);
  EXPECT_THAT(daemon.log(), HasSubstr("stop went wrong"));
}

TEST(Daemon, AStopThatHangsIsCancelled) {
  Daemon daemon({"--fault=stop-hangs", "--drain-timeout=10ms"});
  daemon.wait_for_log("started");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 1);
  EXPECT_THAT(daemon.log(), HasSubstr("stop exceeded its deadline; cancelling its tasks"));
  EXPECT_THAT(daemon.log(), HasSubstr(R"("message":"stopped","exit_code":1)"));
}

TEST(Daemon, AStopThatIgnoresCancellationEndsAllTheSame) {
  Daemon daemon({"--fault=stop-deaf", "--drain-timeout=10ms"});
  daemon.wait_for_log("started");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 1);
  EXPECT_THAT(daemon.log(), HasSubstr("cancelled tasks did not end; ending the process"));
}

TEST(Daemon, ABlockedPoolDoesNotHoldTheEndUp) {
  Daemon daemon({"--fault=pool"});
  daemon.wait_for_log("started");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 0) << daemon.log();
}

TEST(Daemon, CommandsAreForProgramsAndNotForWebPages) {
  Daemon daemon({});
  EXPECT_EQ(daemon.call("/flood").status, 405);
  for (const char* field :
       {"Origin: https://page.example", "Origin: null", "Sec-Fetch-Site: cross-site"}) {
    const auto refused = test::http_call(
        {.method = "POST", .url = daemon.url("/flood"), .headers = {field}, .body = ""});
    EXPECT_EQ(refused.status, 403) << field;
  }
  EXPECT_EQ(daemon.log().find(R"("logger":"flood")"), std::string::npos);
  EXPECT_EQ(daemon.call("/flood", "POST").status, 200);
}

TEST(Daemon, AStandardErrorThatNobodyReadsHoldsNothingUp) {
  constexpr int kLines = 20'000;
  const std::string counter = "\ngitops_log_lines_dropped_total ";
  test::LogReader reader;
  // Without quarantine: the sanitizer's own memory would hide the daemon's.
  Daemon daemon({}, {{"ASAN_OPTIONS", "quarantine_size_mb=1"}}, &reader);
  const auto dropped = [&] {
    const auto metrics = daemon.call("/metrics").body;
    const auto at = metrics.find(counter);
    return at == std::string::npos ? -1 : std::stoi(metrics.substr(at + counter.size()));
  };
  EXPECT_EQ(dropped(), 0);
  reader.stop();
  EXPECT_EQ(daemon.call("/flood", "POST").body, "done");
  const int before = daemon.memory();  // with what a sanitizer needs for so many lines
  EXPECT_EQ(daemon.call("/flood", "POST").body, "done");
  EXPECT_EQ(daemon.call("/healthz").body, "ok");
  const int lost = dropped();
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, kLines);
  EXPECT_LT(daemon.memory() - before, 1'024) << "KiB";

  reader.go_on();
  daemon.wait_for_log(R"("n":19999)");
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 0);
  std::istringstream log(daemon.log());
  int told = 0;
  int read = 0;
  int last = -1;
  for (std::string line; std::getline(log, line);) {
    if (line.empty()) continue;  // of the reader
    const auto parsed = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << line;
    if (parsed["logger"] == "log") told += parsed["lines"].get<int>();
    if (parsed["logger"] != "flood") continue;
    ++read;
    EXPECT_GT(parsed["n"].get<int>(), last);
    last = parsed["n"];
  }
  EXPECT_EQ(told, lost);
  EXPECT_EQ(read + lost, kLines);
}

TEST(Daemon, EndsThoughNobodyReadsItsStandardError) {
  for (const auto& [arguments, code] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{}, 0}, {{"--fault=pool"}, 0}, {{"--stop-takes=1h"}, 1}}) {
    test::LogReader reader;
    Daemon daemon(arguments, {}, &reader);
    EXPECT_EQ(daemon.call("/flood", "POST").body, "done");
    reader.stop();
    EXPECT_EQ(daemon.call("/flood", "POST").body, "done");
    daemon.terminate();
    if (code == 1) {
      test::require_until([&] { return daemon.call("/readyz").status == 503; }, kTimeLimit, "503");
      daemon.terminate();
    }
    EXPECT_EQ(daemon.exit_code(), code);
  }
}

TEST(Daemon, ATakenAdminPortEndsWith1) {
  Daemon first({});
  EXPECT_EQ(first.call("/healthz").status, 200);
  const std::string log = first.log();
  const std::string key = R"("admin_port":)";
  const auto start = log.find(key) + key.size();
  const std::string port = log.substr(start, log.find(',', start) - start);
  const auto second =
      test::run_command(command({"--admin-address=127.0.0.1", "--admin-port=" + port}));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("admin port: "));
  EXPECT_THAT(second.err, HasSubstr("127.0.0.1:" + port));
}

TEST(Daemon, WritesTextLogsForPeople) {
  Daemon daemon({}, {{"LOG_FORMAT", "text"}});
  daemon.wait_for_log(" INFO  daemon: started program=test-daemon version=");
}

// No output of a daemon contains its secrets: pages, logs, argv; and it writes no core file.
TEST(AC28_Daemon, ShowsItsSecretsNowhere) {
  const std::string canary = "CANARY-77f0c1";
  Daemon daemon({"--log-level=debug"}, {{"TEST_TOKEN", canary}});
  std::string visible;
  for (const auto* path : {"/healthz", "/readyz", "/metrics", "/statusz", "/nothing"}) {
    visible += daemon.call(path).body;
  }
  const std::string process = "/proc/" + std::to_string(daemon.process().pid());
  visible += test::read_file(process + "/cmdline");
  EXPECT_THAT(test::read_file(process + "/limits"),
              HasSubstr("Max core file size        0                    0  "));
  daemon.terminate();
  EXPECT_EQ(daemon.exit_code(), 0);
  visible += daemon.log();
  EXPECT_THAT(visible, Not(HasSubstr(canary)));
}

}  // namespace
}  // namespace gitops
