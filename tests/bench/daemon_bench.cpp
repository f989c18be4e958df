// The event-reporter as a process: time from start to ready, memory when idle, memory with 10,000
// Applications of 8.6 KB. The peers' sides (Kubernetes, Argo CD, control plane) are doubles in this
// process.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "support/fake_argocd.hpp"
#include "support/fake_kube_api.hpp"
#include "support/fake_platform.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kApplications = 10'000;
constexpr std::size_t kApplicationBytes = 8'600;

double resident_mb(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) * 1024 / 1e6;
  }
  throw std::runtime_error("the daemon is gone");
}

void print_row(std::string_view name, std::string_view unit, double ours, double limit,
               std::string_view note) {
  const Json row = {
      {"name", name},           {"unit", unit},
      {"ours", ours},           {"peer", nullptr},
      {"ratio", nullptr},       {"goal", "<= " + std::to_string(static_cast<int>(limit))},
      {"holds", ours <= limit}, {"note", note}};
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

Json application(std::size_t number) {
  const auto name = "app-" + std::to_string(number);
  Json app = {
      {"apiVersion", "argoproj.io/v1alpha1"},
      {"kind", "Application"},
      {"metadata", {{"name", name}, {"namespace", "argocd"}, {"labels", {{"team", "shop"}}}}},
      {"spec",
       {{"project", "default"},
        {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", "demo"}}},
        {"source", {{"repoURL", "https://git.example.com/deploy.git"}, {"path", name}}}}},
      {"status",
       {{"sync", {{"status", "Synced"}, {"revision", "9b2f6a1c0d4e8f7a6b5c4d3e2f1a0b9c8d7e6f50"}}},
        {"health", {{"status", "Healthy"}}},
        {"resources", Json::array({{{"group", "apps"},
                                    {"version", "v1"},
                                    {"kind", "Deployment"},
                                    {"namespace", "demo"},
                                    {"name", name},
                                    {"status", "Synced"}}})},
        {"history", Json::array()}}}};
  // History makes up the rest, as it does in a cluster that has been synced for a while.
  for (int id = 0; app.dump().size() < kApplicationBytes; ++id) {
    app["status"]["history"].push_back({{"id", id},
                                        {"revision", "9b2f6a1c0d4e8f7a6b5c4d3e2f1a0b9c8d7e6f50"},
                                        {"deployedAt", "2026-03-04T09:13:43Z"},
                                        {"deployStartedAt", "2026-03-04T09:13:40Z"},
                                        {"source", app["spec"]["source"]}});
  }
  return app;
}

class Bench {
 public:
  explicit Bench(const Executor& executor)
      : executor_(executor),
        resolver_(executor, pool_),
        http_(executor, resolver_, {}),
        cluster_(executor),
        argocd_(executor, cluster_),
        platform_(executor) {}

  Task<> run() {
    for (const auto& started : {cluster_.start(), argocd_.start(), platform_.start()}) {
      if (!started) throw std::runtime_error(started.error().message);
    }
    write_file(folder_ / "kubeconfig", cluster_.kubeconfig());
    argocd_.set_revision("9b2f6a1c0d4e8f7a6b5c4d3e2f1a0b9c8d7e6f50",
                         {{"author", "A <a@example.com>"},
                          {"date", "2026-03-04T09:12:02Z"},
                          {"message", "scale to two"}});
    co_await measure_start();
    co_await measure_applications();
    http_.close_idle();
    co_await argocd_.stop();
    co_await platform_.stop();
    co_await cluster_.stop();
  }

 private:
  Process start_daemon() {
    admin_port_ = free_port();
    return Process({.argv = {GITOPS_BIN_DIR "/event-reporter"},
                    .env = {{"KUBECONFIG", (folder_ / "kubeconfig").string()},
                            {"POD_NAMESPACE", "argocd"},
                            {"ARGOCD_SERVER", argocd_.url().to_string()},
                            {"ARGOCD_TOKEN", "argocd.double.token"},
                            {"CODEFRESH_URL", platform_.url().to_string()},
                            {"CODEFRESH_TOKEN", "platform-token"},
                            {"LISTEN_ADDRESS", "127.0.0.1"},
                            {"LISTEN_PORT", "0"},
                            {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                            {"METRICS_LISTEN_PORT", std::to_string(admin_port_)}},
                    .log_file = folder_ / "daemon.log"});
  }

  Task<> wait_ready() {
    http::Url admin;
    admin.scheme = "http";
    admin.host = "127.0.0.1";
    admin.port = static_cast<std::uint16_t>(admin_port_);
    const auto give_up = Clock::now() + std::chrono::minutes(1);
    while (Clock::now() < give_up) {
      const auto answer =
          co_await http_.send(admin, {.target = "/readyz", .headers = {}, .body = {}},
                              Clock::now() + std::chrono::seconds(1));
      if (answer && answer->status == 200) co_return;
      co_await sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("the daemon did not become ready: " +
                             read_file(folder_ / "daemon.log"));
  }

  Task<> measure_start() {
    std::vector<double> milliseconds;
    double idle = 0;
    for (int i = 0; i < 9; ++i) {
      const auto begin = Clock::now();
      auto daemon = start_daemon();
      co_await wait_ready();
      milliseconds.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      if (i == 8) {
        co_await sleep_for(std::chrono::seconds(2));
        idle = resident_mb(daemon.pid());
      }
      daemon.stop();
    }
    std::ranges::sort(milliseconds);
    print_row("start-to-ready", "ms", milliseconds[4], 200, "median of 9 starts");
    print_row("idle-rss", "MB", idle, 12, "no Application, 2 s after ready");
  }

  Task<> measure_applications() {
    std::fprintf(stderr, "making %zu Applications\n", kApplications);
    for (std::size_t i = 0; i < kApplications; ++i) {
      auto app = application(i);
      const auto name = app["metadata"]["name"].get<std::string>();
      argocd_.set_tree(name, {{"nodes", Json::array()}});
      argocd_.set_managed_resources(name, Json::array());
      cluster_.put(k8s::resources::kApplications, std::move(app));
    }
    auto daemon = start_daemon();
    const auto begin = Clock::now();
    double peak = 0;
    const std::size_t expected = 2 * kApplications;  // the Application and its one resource
    while (platform_.reports().size() < expected) {
      if (Clock::now() - begin > std::chrono::minutes(10)) {
        throw std::runtime_error("only " + std::to_string(platform_.reports().size()) +
                                 " events arrived");
      }
      co_await sleep_for(std::chrono::milliseconds(100));
      peak = std::max(peak, resident_mb(daemon.pid()));
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    co_await sleep_for(std::chrono::seconds(2));
    print_row("rss-10000-applications", "MB", resident_mb(daemon.pid()), 64,
              "8.6 KB each, all reported in " + std::to_string(static_cast<int>(seconds)) +
                  " s (doubles in one process on the other core); peak " +
                  std::to_string(static_cast<int>(peak)) + " MB");
    daemon.stop();
  }

  Executor executor_;
  asio::thread_pool pool_{1};
  http::Resolver resolver_;
  http::Client http_;
  FakeKubeApi cluster_;
  FakeArgoCd argocd_;
  FakePlatform platform_;
  TempDir folder_;
  int admin_port_ = 0;
};

}  // namespace
}  // namespace gitops::test

int main() {
  gitops::Loop loop;
  std::string failure;
  gitops::test::Bench bench(loop.get_executor());
  gitops::TaskGroup tasks(loop.get_executor(),
                          [&](const std::string&, const std::string& what) { failure = what; });
  tasks.spawn("bench", [&] { return bench.run(); });
  loop.run();
  if (!failure.empty()) std::fprintf(stderr, "daemon bench: %s\n", failure.c_str());
  return failure.empty() ? 0 : 1;
}
