#include "bench/reporter_daemon.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace gitops::bench {
namespace {

constexpr const char* kToken = "a-token";

// `more` overrides the variables here.
test::Environment environment(const PeerAddresses& peers, int admin_port, test::Environment more) {
  test::Environment out{{"KUBECONFIG", peers.kubeconfig},
                        {"POD_NAMESPACE", "argocd"},
                        {"ARGOCD_SERVER", peers.argocd},
                        {"ARGOCD_TOKEN", kToken},
                        {"CODEFRESH_URL", peers.platform},
                        {"CODEFRESH_TOKEN", kToken},
                        {"LISTEN_ADDRESS", "127.0.0.1"},
                        {"LISTEN_PORT", "0"},
                        {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                        {"ADMIN_PORT", std::to_string(admin_port)},
                        // As the chart sets them.
                        {"THREADINESS", "100"},
                        {"RESOURCE_THREADINESS", "10"}};
  more.merge(out);
  return more;
}

}  // namespace

ReporterDaemon::ReporterDaemon(const PeerAddresses& peers, test::Environment more,
                               const std::string& program)
    : admin_port_(test::free_port()),
      process_({.argv = {program},
                .env = environment(peers, admin_port_, std::move(more)),
                .working_dir = folder_.path(),
                .log_file = folder_ / "daemon.log"}) {}

Task<> ReporterDaemon::wait_for(http::Client& http, std::string target,
                                std::chrono::milliseconds interval,
                                std::function<bool(const http::Response&)> satisfies) {
  http::Url admin;
  admin.scheme = "http";
  admin.host = "127.0.0.1";
  admin.port = static_cast<std::uint16_t>(admin_port_);
  const auto give_up = deadline_after(std::chrono::minutes(5));
  std::string last = "no answer";
  while (Clock::now() < give_up && process_.running()) {
    const auto answer = co_await http.send(
        admin, {.method = "GET", .target = target, .headers = {}, .body = {}}, give_up);
    if (answer && satisfies(*answer)) co_return;
    if (answer) last = answer->body;
    co_await sleep_for(interval);
  }
  throw std::runtime_error(target + " does not become what it should:\n" + last +
                           "\nthe daemon's log:\n" + test::read_file(folder_ / "daemon.log"));
}

Task<> ReporterDaemon::until_ready(http::Client& http) {
  return wait_for(http, "/readyz", std::chrono::milliseconds(1),
                  [](const http::Response& answer) { return answer.status == 200; });
}

Task<> ReporterDaemon::until_metric(http::Client& http, std::string series, double at_least) {
  return wait_for(http, "/metrics", std::chrono::milliseconds(100),
                  [series, at_least](const http::Response& answer) {
                    return value_of(answer.body, series).value_or(-1) >= at_least;
                  });
}

Task<> ReporterDaemon::until_settled(http::Client& http) {
  const std::string bookmarks =
      R"(gitops_event_reporter_watch_events_total{resource="applications",type="bookmark"})";
  double before = 0;
  co_await wait_for(http, "/metrics", std::chrono::milliseconds(100),
                    [&](const http::Response& answer) {
                      before = value_of(answer.body, bookmarks).value_or(0);
                      return true;
                    });
  co_await until_metric(http, bookmarks, before + 3);
}

Task<> ReporterDaemon::stop() {
  process_.signal(SIGTERM);
  while (process_.running()) co_await sleep_for(std::chrono::milliseconds(5));
}

int run(const char* name, std::function<Task<>()> measure) {
  Loop loop(1);
  int exit_code = 0;
  asio::co_spawn(loop, std::move(measure), [&](const std::exception_ptr& failure) {
    loop.stop();
    if (!failure) return;
    exit_code = 1;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", name, error.what());
    }
  });
  loop.run();
  return exit_code;
}

std::optional<double> value_of(const std::string& metrics, const std::string& series) {
  const auto line = metrics.find("\n" + series + " ");
  if (line == std::string::npos) return std::nullopt;
  return std::strtod(metrics.c_str() + line + series.size() + 2, nullptr);
}

namespace {

void print(std::string_view name, std::string_view unit, double ours, const char* relation,
           double limit, bool holds, std::string_view note) {
  char goal[64];
  std::snprintf(goal, sizeof goal, "%s %g %.*s", relation, limit, static_cast<int>(unit.size()),
                unit.data());
  const nlohmann::json row = {{"name", name},    {"unit", unit},     {"ours", ours},
                              {"peer", nullptr}, {"ratio", nullptr}, {"goal", goal},
                              {"holds", holds},  {"note", note}};
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

void print_row(std::string_view name, std::string_view unit, double ours, double limit,
               std::string_view note) {
  print(name, unit, ours, "<=", limit, ours <= limit, note);
}

void print_row_at_least(std::string_view name, std::string_view unit, double ours, double limit,
                        std::string_view note) {
  print(name, unit, ours, ">=", limit, ours >= limit, note);
}

}  // namespace gitops::bench
