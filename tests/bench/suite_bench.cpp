// The whole suite as its users see it, on one machine:
//
// - How long it takes from a synced commit to its row on an open page, at 100 changes a second among 10,000
//   Applications: event-reporter, control plane on SQLite, and the stream of the page. Kubernetes and Argo CD are in this
//   process and do as little as they can, since the real ones do not reach that rate.
// - What a user's request takes through tunnel-server, tunnel-client and request-router to app-proxy, against the same
//   request to app-proxy itself: with the real Argo CD, if it is built (./dev peers), and with the double, which answers
//   in no time, so that the difference of the two is what the way costs.
//
// Arguments, to try it with small numbers: APPLICATIONS SECONDS REQUESTS.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "bench/bench_row.hpp"
#include "bench/changing_applications.hpp"
#include "bench/median.hpp"
#include "bench/reporter_daemon.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"
#include "daemons/control_plane_process.hpp"
#include "demo/narrator.hpp"
#include "demo/open_page.hpp"
#include "demo/world.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_events.hpp"
#include "suite/suite_bed.hpp"
#include "support/git_server.hpp"
#include "support/wait.hpp"

namespace gitops::bench {
namespace {

using test::SuiteBed;
using Kind = std::pair<const char*, const char*>;  // name and document of a request

constexpr int kRate = 100;  // changes per second
constexpr int kResources = 3;
constexpr double kGoalOfPage = 1;       // seconds, p99
constexpr double kGoalOfRequest = 1.5;  // ratio
constexpr auto kTimeLimit = std::chrono::minutes(10);
constexpr const char* kAccount = "acme";

struct Sizes {
  int applications = 10'000;
  int seconds = 60;
  int requests = 2'000;
};

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

double p99(const std::vector<double>& sorted) {
  return sorted.at(static_cast<std::size_t>(0.99 * static_cast<double>(sorted.size() - 1)));
}

Task<> require_eventually(std::function<bool()> condition, std::string what) {
  const auto seen = co_await test::eventually(std::move(condition), std::move(what), kTimeLimit);
  if (!seen) throw std::runtime_error(seen.message());
}

http::Url on_localhost(std::uint16_t port) {
  return {.scheme = "http", .host = "127.0.0.1", .port = port};
}

// -- from a commit to the page --

// A control plane with one runtime.
struct Plane {
  Plane() {
    program.add_account(kAccount);
    program.add_user("ann", kAccount, {"--admin"});
    key = program.create_key("ann", kAccount);
    program.start();
    token = program.register_runtime(key, "bench");
  }
  test::ControlPlaneProcess program;
  std::string key;
  std::string token;
};

struct Written {
  std::string application;
  std::string commit;
  Clock::time_point at;
};

// When the first row with this commit came, by Application and commit.
std::map<std::pair<std::string, std::string>, Clock::time_point> arrivals(
    const demo::OpenPage& page) {
  std::map<std::pair<std::string, std::string>, Clock::time_point> found;
  for (const auto& row : page.rows()) {
    if (row.kind() == "Application") {
      found.try_emplace({row.name(), row.text("revision")}, row.arrived);
    }
  }
  return found;
}

// Changes Applications in turns for that long, and returns what it wrote.
Task<std::vector<Written>> change_for(ChangingApplications& applications, int time) {
  std::vector<Written> written;
  const auto begin = Clock::now();
  for (int i = 0; i < time * kRate; ++i) {
    const auto due = begin + std::chrono::microseconds(1'000'000LL * i / kRate);
    if (due > Clock::now()) co_await sleep_for(due - Clock::now());
    const auto index = static_cast<std::size_t>(i) % applications.size();
    const auto at = Clock::now();
    written.push_back({.application = applications.name(index),
                       .commit = applications.change(index).commit,
                       .at = at});
  }
  co_return written;
}

Task<> measure_page(Sizes sizes) {
  const auto executor = co_await asio::this_coro::executor;
  std::fprintf(stderr, "suite: making %d applications\n", sizes.applications);
  const test::TempDir folder;
  ChangingApplications applications(executor, sizes.applications, kResources);
  test::write_file(folder / "kubeconfig", applications.kubeconfig());
  Plane plane;
  ReporterDaemon reporter({.kubeconfig = (folder / "kubeconfig").string(),
                           .argocd = applications.argocd_url(),
                           .platform = plane.program.url()},
                          {{"CODEFRESH_TOKEN", plane.token},
                           {"LEDGER_FILE", (folder / "ledger.db").string()},
                           {"APP_QUEUE_SIZE", "1000"}});
  Metrics metrics;
  net::Resolver resolver(metrics);
  http::Client http(executor, resolver, {});
  co_await reporter.until_ready(http);
  co_await reporter.until_metric(
      http, R"(gitops_event_reporter_reports_total{part="application",result="acknowledged"})",
      sizes.applications);
  co_await reporter.until_settled(http);

  demo::OpenPage page(executor, http, on_localhost(plane.program.port()), plane.key, "index");
  co_await page.wait_until_live();
  std::fprintf(stderr, "suite: %d changes a second for %d s\n", kRate, sizes.seconds);
  const auto written = co_await change_for(applications, sizes.seconds);
  co_await require_eventually(
      [&] { return arrivals(page).contains({written.back().application, written.back().commit}); },
      "the last row");
  const auto found = arrivals(page);
  std::vector<double> latencies;
  std::size_t skipped = 0;
  for (const auto& change : written) {
    const auto row = found.find({change.application, change.commit});
    if (row == found.end()) {
      ++skipped;
    } else {
      latencies.push_back(seconds(row->second - change.at));
    }
  }
  std::ranges::sort(latencies);
  print_limit(
      "suite, synced commit to its row on an open page, p99", "s", p99(latencies), kGoalOfPage,
      std::to_string(latencies.size()) + " changes at " + std::to_string(kRate) +
          " a second among " + std::to_string(sizes.applications) + " applications; median " +
          rounded(median(latencies)) + " s, most " + rounded(latencies.back()) + " s; " +
          std::to_string(skipped) + " rows came with a later commit only");
  co_await page.stop();
  co_await reporter.stop();
  if (plane.program.stop() != 0) throw std::runtime_error("the control plane ends badly");
  co_await applications.stop();
}

// -- a user's request --

class Requests {
 public:
  Requests(const Executor& executor, SuiteBed& bed)
      : bed_(bed),
        resolver_(metrics_),
        client_(executor, resolver_,
                {.tls = {.ca_file = bed.ca_file().string(), .server_name = bed.host()}}) {}

  // Seconds that one takes through the tunnel, or directly. Throws when it is not answered.
  Task<double> take(bool by_tunnel, const std::string& document) {
    http::Url url = on_localhost(by_tunnel ? bed_.user_port() : bed_.app_proxy_port());
    if (by_tunnel) url.scheme = "https";
    const auto begin = Clock::now();
    const auto response =
        co_await client_.send(url,
                              {.method = "POST",
                               .target = by_tunnel ? "/app-proxy/api/graphql" : "/api/graphql",
                               .headers = {{"Host", bed_.host()},
                                           {"Content-Type", "application/json"},
                                           {"Authorization", bed_.plane().key()}},
                               .body = document},
                              deadline_after(std::chrono::seconds(20)));
    const auto took = seconds(Clock::now() - begin);
    if (!response) throw std::runtime_error(response.error().message);
    if (response->status != 200 || response->body.contains("\"errors\"")) {
      throw std::runtime_error("a request was answered with " + std::to_string(response->status) +
                               ": " + response->body);
    }
    co_return took;
  }

 private:
  SuiteBed& bed_;
  Metrics metrics_;
  net::Resolver resolver_;
  http::Client client_;
};

// The peers of app-proxy.
enum class Peers : std::uint8_t { real, doubles };

Task<> measure_kind(Requests& requests, int count, Kind kind, Peers peers) {
  std::fprintf(stderr, "suite: %d requests %s\n", count, kind.first);
  const std::string document = kind.second;
  std::vector<double> by_tunnel;
  std::vector<double> direct;
  // In turns: what else the machine does meets both.
  for (int i = 0; i < count; ++i) {
    direct.push_back(co_await requests.take(false, document));
    by_tunnel.push_back(co_await requests.take(true, document));
  }
  std::ranges::sort(by_tunnel);
  const std::string name = "suite, " + std::string(kind.first) + " through the tunnel : directly";
  const std::string note =
      "median of " + std::to_string(count) +
      " requests one after the other, on kept connections; p99 through the tunnel " +
      rounded(p99(by_tunnel) * 1000) + " ms";
  if (peers == Peers::real) {
    print_at_most(name + ", real Argo CD", "ms", median(by_tunnel) * 1000, median(direct) * 1000,
                  kGoalOfRequest, note);
  } else {
    print_ratio(name + ", double of Argo CD", "ms", median(by_tunnel) * 1000, median(direct) * 1000,
                note);
  }
}

Task<> measure_requests(Sizes sizes, Peers peers) {
  const auto executor = co_await asio::this_coro::executor;
  test::GitServer git;
  asio::thread_pool pool(2);
  demo::Narrator narrator;
  auto world = co_await (peers == Peers::real ? demo::real_world(narrator)(pool, git)
                                              : demo::embedded_world(git));
  SuiteBed bed(executor, world, git, SuiteBed::Network::direct);
  co_await bed.start();
  const auto repository = git.create_repository("shop");
  git.commit("shop", {{"a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}}, "a");
  co_await world.create_app("shop", repository);
  Requests requests(executor, bed);
  const auto deadline = deadline_after(std::chrono::seconds(60));
  constexpr std::array kKinds{
      Kind{"versionInfo", R"({"query":"{ versionInfo { version } }"})"},
      Kind{
          "applicationProxyQuery",
          R"({"query":"{ applicationProxyQuery(name: \"shop\") { status { sync { status } } } }"})"}};
  while (true) {  // until the tunnel serves and app-proxy has its rules
    try {
      for (const auto& kind : kKinds) std::ignore = co_await requests.take(true, kind.second);
      break;
    } catch (const std::runtime_error&) {
      if (Clock::now() > deadline) throw;
    }
    co_await sleep_for(std::chrono::milliseconds(50));
  }
  for (const auto& kind : kKinds) co_await measure_kind(requests, sizes.requests, kind, peers);
  co_await bed.stop();
  co_await world.stop();
}

Task<> measure(Sizes sizes) {
  co_await measure_page(sizes);
  co_await measure_requests(sizes, Peers::doubles);
  const auto lacking = test::PeerBed::missing();
  if (lacking || test::PeerEvents::missing()) {
    std::fprintf(stderr, "suite: without the real Argo CD: %s\n",
                 (lacking ? *lacking : *test::PeerEvents::missing()).c_str());
    co_return;
  }
  co_await measure_requests(sizes, Peers::real);
}

}  // namespace
}  // namespace gitops::bench

int main(int argc, char** argv) {
  gitops::bench::Sizes sizes;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  std::size_t at = 1;
  for (int* size : {&sizes.applications, &sizes.seconds, &sizes.requests}) {
    if (at < arguments.size()) *size = std::atoi(arguments[at++]);
  }
  return gitops::bench::run("suite", [sizes] { return gitops::bench::measure(sizes); });
}
