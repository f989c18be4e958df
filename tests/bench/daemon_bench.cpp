// The event-reporter as a process: time from start to ready, memory when idle, memory with 10,000
// Applications of 8.6 KB and 19 resources each. Its peers are a second process: the double of the
// Kubernetes API, and an Argo CD and a control plane that give every application the same answer.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/proc.hpp"
#include "bench/reporter_daemon.hpp"
#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/process.hpp"
#include "support/sample_application.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using bench::cpu_of;
using bench::memory_of;
using bench::ReporterDaemon;

constexpr int kApplications = 10'000;
constexpr int kResources = 19;
constexpr int kStarts = 9;

// --- the peers' process ---

// argocd-server's answers, the same for each application of sample_application().
class Answers {
 public:
  Answers() {
    Json nodes = Json::array();
    Json managed = Json::array();
    for (int i = 0; i < kResources; ++i) {
      const auto name = "web-" + std::to_string(i);
      nodes.push_back({{"group", "apps"},
                       {"version", "v1"},
                       {"kind", "Deployment"},
                       {"namespace", "shop"},
                       {"name", name},
                       {"uid", "uid-" + name},
                       {"resourceVersion", "7"},
                       {"createdAt", "2026-03-04T09:15:27Z"},
                       {"health", {{"status", "Healthy"}}}});
      Json manifest = {
          {"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", {{"name", name}, {"namespace", "shop"}, {"labels", {{"app", name}}}}},
          {"spec",
           {{"replicas", 2},
            {"selector", {{"matchLabels", {{"app", name}}}}},
            {"template",
             {{"metadata", {{"labels", {{"app", name}}}}},
              {"spec",
               {{"containers",
                 Json::array({{{"name", "web"},
                               {"image", "registry.example.com/shop/web:1.4.2"},
                               {"ports", Json::array({{{"containerPort", 8080}}})}}})}}}}}}}};
      const auto target = manifest.dump();
      manifest["metadata"]["uid"] = "uid-" + name;
      manifest["status"] = {{"replicas", 2}, {"readyReplicas", 2}, {"observedGeneration", 1}};
      managed.push_back({{"group", "apps"},
                         {"kind", "Deployment"},
                         {"namespace", "shop"},
                         {"name", name},
                         {"targetState", target},
                         {"liveState", manifest.dump()},
                         {"normalizedLiveState", manifest.dump()},
                         {"predictedLiveState", manifest.dump()}});
    }
    tree_ = Json{{"nodes", nodes}}.dump();
    managed_ = Json{{"items", managed}}.dump();
  }

  [[nodiscard]] std::string to(std::string_view path) const {
    if (path.ends_with("/resource-tree")) return tree_;
    if (path.ends_with("/managed-resources")) return managed_;
    if (path.ends_with("/metadata")) {
      return R"({"author":"A <a@example.com>","date":"2026-03-04T09:12:02Z","message":"scale"})";
    }
    return R"({"Version":"v3.0.0"})";
  }

 private:
  std::string tree_, managed_;
};

// Serves until it is killed; the first line of output tells where.
int serve_peers(const std::string& kubeconfig_file, int applications) {
  Loop loop(1);
  FakeKubeApi cluster(loop.get_executor());
  const Answers answers;
  http::Server argocd(loop.get_executor(), {}, [&](http::Exchange& exchange) -> Task<> {
    std::ignore = co_await exchange.reply(
        {.headers = {{"Content-Type", "application/json"}}, .body = answers.to(exchange.path())});
  });
  http::Server platform(loop.get_executor(), {}, [](http::Exchange& exchange) -> Task<> {
    if (!co_await exchange.read_body(std::size_t{16} * 1024 * 1024)) co_return;
    std::ignore = co_await exchange.reply({.body = "{}"});
  });
  if (!cluster.start() || !argocd.listen() || !platform.listen()) return 1;
  for (int i = 0; i < applications; ++i) {
    const auto name = "app-" + std::to_string(i);
    cluster.put(k8s::resources::kApplications,
                Json::parse(sample_application("argocd", name, "1", kResources)));
  }
  write_file(kubeconfig_file, cluster.kubeconfig());
  std::printf("%d %d\n", argocd.port(), platform.port());
  std::fflush(stdout);
  loop.run();
  return 0;
}

// --- measuring ---

class Peers {
 public:
  explicit Peers(int applications)
      : process_({.argv = {"/proc/self/exe", "--peers", kubeconfig(), std::to_string(applications)},
                  .log_file = folder_ / "peers.log"}) {
    require_until(
        [&] {
          if (!process_.running()) throw std::runtime_error("the peers' process has ended");
          std::ifstream(folder_ / "peers.log") >> argocd_port_ >> platform_port_;
          return platform_port_ != 0;
        },
        std::chrono::minutes(2), "the peers");
  }

  [[nodiscard]] std::string kubeconfig() const { return (folder_ / "kubeconfig").string(); }
  [[nodiscard]] bench::PeerAddresses addresses() const {
    return {.kubeconfig = kubeconfig(),
            .argocd = local(argocd_port_),
            .platform = local(platform_port_)};
  }

 private:
  static std::string local(int port) { return "http://127.0.0.1:" + std::to_string(port); }

  TempDir folder_;
  Process process_;
  int argocd_port_ = 0;
  int platform_port_ = 0;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Task<> measure_start(http::Client& http) {
  const Peers peers(0);
  std::vector<double> milliseconds;
  double idle = 0;
  for (int i = 0; i < kStarts; ++i) {
    const auto begin = Clock::now();
    ReporterDaemon daemon(peers.addresses());
    co_await daemon.until_ready(http);
    milliseconds.push_back(seconds_since(begin) * 1000);
    if (i + 1 < kStarts) continue;
    co_await daemon.until_settled(http);
    idle = memory_of(daemon.pid(), "VmRSS:");
  }
  std::ranges::sort(milliseconds);
  bench::print_row("event-reporter, start to ready", "ms", milliseconds[kStarts / 2], 200,
                   "median of 9 starts; no applications");
  bench::print_row("event-reporter, idle", "MB", idle, 12, "resident, no applications");
}

Task<> measure_applications(http::Client& http) {
  std::fprintf(stderr, "daemon: making %d applications\n", kApplications);
  const Peers peers(kApplications);
  const auto begin = Clock::now();
  ReporterDaemon daemon(peers.addresses());
  co_await daemon.until_ready(http);
  const double listed = memory_of(daemon.pid(), "VmRSS:");
  std::fprintf(stderr, "daemon: listed after %.1f s, waiting for the reports\n",
               seconds_since(begin));
  co_await daemon.until_metric(http, "gitops_event_reporter_report_seconds_count", kApplications);
  const double seconds = seconds_since(begin);
  const double cpu = cpu_of(daemon.pid());
  co_await daemon.until_settled(http);
  char note[200];
  std::snprintf(
      note, sizeof note,
      "resident; 8.6 KB and %d resources each, %d events acknowledged in %.0f s with %.1f s "
      "of CPU; %.1f MB when listed, %.1f MB at most",
      kResources, kApplications * (1 + kResources), seconds, cpu, listed,
      memory_of(daemon.pid(), "VmHWM:"));
  bench::print_row("event-reporter, 10,000 applications", "MB", memory_of(daemon.pid(), "VmRSS:"),
                   64, note);
}

Task<> measure() {
  const auto executor = co_await asio::this_coro::executor;
  Metrics metrics;
  net::Resolver resolver(metrics);
  http::Client http(executor, resolver, {});
  co_await measure_start(http);
  co_await measure_applications(http);
}

}  // namespace
}  // namespace gitops::test

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--peers") {
    return gitops::test::serve_peers(argv[2], std::atoi(argv[3]));
  }
  return gitops::bench::run("daemon", [] { return gitops::test::measure(); });
}
