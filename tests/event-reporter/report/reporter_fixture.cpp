#include "event-reporter/report/reporter_fixture.hpp"

#include <utility>

#include "common/core/encoding.hpp"
#include "event-reporter/argo/argocd_token.hpp"
#include "event-reporter/report/requested_reports.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {

using nlohmann::json;

namespace {

json config_map(const SampleApp& app, int number) {
  int content = app.content;
  for (const auto& [other, value] : app.other_content) {
    if (other == number) content = value;
  }
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", "c-" + std::to_string(number)}, {"namespace", "shop"}}},
          {"data", {{"content", std::to_string(content)}}}};
}

json identity(int number) {
  return {{"kind", "ConfigMap"}, {"namespace", "shop"}, {"name", "c-" + std::to_string(number)}};
}

}  // namespace

json SampleApp::application() const {
  json resources_json = json::array();
  for (int i = 0; i < resources; ++i) {
    auto entry = identity(i);
    entry["version"] = "v1";
    entry["status"] = sync_status;
    resources_json.push_back(std::move(entry));
  }
  json out = {{"apiVersion", "argoproj.io/v1alpha1"},
              {"kind", "Application"},
              {"metadata", {{"name", name}, {"namespace", ns}, {"uid", uid}}},
              {"spec",
               {{"project", "default"},
                {"source", {{"repoURL", "https://git.example.com/shop.git"}, {"path", "."}}},
                {"destination", {{"server", "https://kubernetes.default.svc"}}}}},
              {"status",
               {{"sync",
                 {{"status", sync_status},
                  {"revision", revision},
                  {"comparedTo", {{"source", {{"repoURL", "https://git.example.com/shop.git"}}}}}}},
                {"health", {{"status", "Healthy"}}},
                {"reconciledAt", "2026-03-04T09:00:00Z"},
                {"history", json::array({{{"id", 1}, {"revision", revision}}})},
                {"resources", std::move(resources_json)}}}};
  if (!controller.empty()) out["status"]["controllerNamespace"] = controller;
  out["metadata"].merge_patch(metadata);
  return out;
}

json SampleApp::managed() const {
  json items = json::array();
  for (int i = 0; i < resources; ++i) {
    auto item = identity(i);
    auto live = config_map(*this, i);
    live["metadata"]["uid"] = "live-" + std::to_string(i);
    item["targetState"] = config_map(*this, i).dump();
    item["liveState"] = live.dump();
    items.push_back(std::move(item));
  }
  return items;
}

json SampleApp::tree() const {
  json nodes = json::array();
  for (int i = 0; i < resources; ++i) {
    auto node = identity(i);
    node["version"] = "v1";
    node["uid"] = "live-" + std::to_string(i);
    nodes.push_back(std::move(node));
  }
  return {{"nodes", std::move(nodes)}};
}

struct ReporterFixture::Parts {
  Parts(ReporterFixture& fixture)
      : kubernetes(fixture.executor, fixture.resolver, fixture.kube.cluster_config(), {}, "test"),
        argocd_http(fixture.executor, fixture.resolver, {}),
        platform_http(fixture.executor, fixture.resolver, {}),
        argocd_token(fixture.argocd_token_secret.empty()
                         ? Credential::fixed(Secret("argocd.double.token"))
                         : secret_credential(kubernetes,
                                             {.ns = "argocd", .name = fixture.argocd_token_secret},
                                             "token")),
        platform_token(Credential::fixed(Secret("platform-token"))),
        argocd(argocd_http,
               {.server = fixture.argocd.url(),
                .root_path = "",
                .max_answer = fixture.options.argocd_answer},
               [this] { return argocd_token.current(); }),
        platform(platform_http, fixture.platform.url(),
                 [this] { return platform_token.current(); }),
        gatherer(fixture.executor, kubernetes, argocd, argocd_token, "argocd", fixture.metrics,
                 fixture.options.memory),
        ledger(fixture.executor, fixture.options.ledger, fixture.metrics,
               fixture.options.ledger_group),
        delivery(fixture.executor, platform, platform_token, fixture.options.delivery,
                 fixture.metrics),
        reporter(fixture.executor, kubernetes, gatherer, ledger, delivery, fixture.options.reporter,
                 fixture.metrics),
        resync(reporter.changes(), ledger, delivery, platform,
               {.replicas = fixture.options.reporter.changes.replicas,
                .listed = [this] { return reporter.listed(); }},
               fixture.metrics),
        requested(fixture.executor, reporter.changes(), fixture.metrics),
        tasks(fixture.executor, [](const std::string& task, const std::string& what) {
          ADD_FAILURE() << task << ": " << what;
        }) {}

  k8s::Client kubernetes;
  http::Client argocd_http;
  http::Client platform_http;
  Credential argocd_token;
  Credential platform_token;
  argo::ArgoCdClient argocd;
  control_plane::Client platform;
  Gatherer gatherer;
  Ledger ledger;
  Delivery delivery;
  Reporter reporter;
  Resync resync;
  RequestedReports requested;
  TaskGroup tasks;
};

ReporterFixture::ReporterFixture(const Executor& with, Options with_options)
    : executor(with),
      kube(with),
      argocd(with, kube),
      platform(with),
      options(std::move(with_options)) {}

ReporterFixture::~ReporterFixture() = default;

ReporterFixture::Options ReporterFixture::fast_options() {
  using std::chrono::milliseconds;
  Options options;
  auto& reporter = options.reporter;
  reporter.own_namespace = "argocd";
  reporter.queue.backoff = {.initial = milliseconds(5), .max = milliseconds(50)};
  reporter.queue.heartbeat = std::chrono::hours(1);
  reporter.sweep = std::chrono::hours(1);
  reporter.reconcile = std::chrono::hours(24 * 30);
  reporter.application.gap_retry = milliseconds(50);
  reporter.reflector.backoff = {.initial = milliseconds(5), .max = milliseconds(50)};
  options.delivery.backoff = {.initial = milliseconds(5), .max = milliseconds(20)};
  options.delivery.breaker.pauses = {.initial = milliseconds(5), .max = milliseconds(50)};
  options.ledger.commit_interval = milliseconds(5);
  return options;
}

Task<> ReporterFixture::start_doubles() {
  CO_ASSERT_OK(kube.start());
  CO_ASSERT_OK(argocd.start());
  CO_ASSERT_OK(platform.start());
  for (const auto* revision : {"r1", "r2", "r3"}) {
    argocd.set_revision(revision, {{"author", "Dana <dana@example.com>"},
                                   {"date", "2026-03-04T09:12:02Z"},
                                   {"message", std::string("commit ") + revision}});
  }
}

Task<> ReporterFixture::start_reporter() {
  parts = std::make_unique<Parts>(*this);
  CO_ASSERT_OK(co_await parts->ledger.open());
  parts->argocd_token.start(parts->tasks);
  parts->ledger.start(parts->tasks);
  parts->delivery.history().begin("app/0/1", "", {});
  parts->reporter.start(parts->tasks);
  parts->tasks.spawn("resync", [this] { return parts->resync.run(); });
  parts->tasks.spawn("position", [this] { return parts->resync.ask_while_silent(); });
  parts->delivery.on_asked([this](const auto& requests) { parts->requested.take(requests); });
  parts->tasks.spawn("requested reports", [this] { return parts->requested.run(); });
  parts->reporter.changes().claimed(options.shard, options.term);
}

Task<> ReporterFixture::start() {
  co_await start_doubles();
  co_await start_reporter();
}

Task<> ReporterFixture::stop_reporter() {
  if (!parts) co_return;
  parts->reporter.stop();
  EXPECT_TRUE(co_await test::eventually(
      [this] { return parts->delivery.breaker().in_flight() == 0; }, "no event in flight"));
  EXPECT_TRUE(co_await parts->ledger.flush(deadline_after(std::chrono::seconds(5))));
  parts->tasks.cancel();
  co_await parts->tasks.join();
  parts.reset();
}

Task<> ReporterFixture::stop() {
  co_await stop_reporter();
  co_await platform.stop();
  co_await argocd.stop();
  co_await kube.stop();
}

void ReporterFixture::put(const SampleApp& app) {
  argocd.set_tree(app.name, app.tree());
  argocd.set_managed_resources(app.name, app.managed());
  kube.put(k8s::resources::kApplications, app.application());
}

void ReporterFixture::remove(const SampleApp& app) {
  EXPECT_TRUE(kube.remove(k8s::resources::kApplications, {app.ns, app.name}));
}

std::vector<std::string> ReporterFixture::events(const std::string& kind, std::size_t first) const {
  std::vector<std::string> out;
  for (const auto* report : platform.find(kind, "", first)) {
    out.push_back(report->name() + (report->source("actualManifest").empty() ? " gone" : ""));
  }
  return out;
}

Task<bool> ReporterFixture::wait_for_events(std::size_t count) {
  co_return co_await platform.wait_for_count(count, deadline_after(std::chrono::seconds(60)));
}

Task<bool> ReporterFixture::is_quiet() {
  co_return co_await platform.wait_until_quiet(std::chrono::milliseconds(200),
                                               deadline_after(std::chrono::seconds(4)));
}

std::string ReporterFixture::not_ready(const std::string& check) {
  for (const auto& candidate : parts->reporter.ready_checks()) {
    if (candidate.name == check) return candidate.not_ready_because();
  }
  return "no such check";
}

test::StatusPage ReporterFixture::status() const {
  return test::StatusPage(joined({parts->reporter.status(), parts->delivery.status()}));
}

Reporter& ReporterFixture::reporter() const {
  return parts->reporter;
}

const Ledger& ReporterFixture::ledger() const {
  return parts->ledger;
}

double ReporterFixture::metric(const std::string& line_start) {
  const auto text = metrics.expose();
  const auto at = text.find("\n" + line_start);
  if (at == std::string::npos) return 0;
  const auto end = text.find('\n', at + 1);
  const auto line = text.substr(at + 1, end - at - 1);
  return std::stod(line.substr(line.rfind(' ') + 1));
}

}  // namespace gitops::reporter
