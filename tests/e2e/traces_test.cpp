// Traces through the real programs: a change from the watch to the row of an open page, and a request through the tunnel,
// the router and app-proxy to Argo CD. A collector holds every span to OTLP.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/task_group.hpp"
#include "common/core/trace.hpp"
#include "daemons/control_plane_bed.hpp"
#include "daemons/router_harness.hpp"
#include "daemons/tunnel_processes.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/reporter_harness.hpp"
#include "test_http/otlp_collector.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kCaller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

Environment tracing(const OtlpCollector& collector) {
  return {{"OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()},
          {"OTEL_TRACES_SAMPLER_ARG", "1"},
          {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=canary-collector"}};
}

// Follows the changes of an account as an open page does.
class OpenPage {
 public:
  OpenPage(const Executor& executor, const ControlPlaneBed& bed)
      : client_(executor, resolver_, {.tls = {.ca_file = bed.ca_file().string()}}),
        url_(http::parse_url(bed.url()).value()),
        tasks_(executor) {
    tasks_.spawn("page", [this] { return follow(); });
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  Task<> close() {
    tasks_.cancel();
    co_await tasks_.join();
  }

 private:
  Task<> follow() {
    auto stream = co_await client_.open(
        url_,
        {.target = "/console/api/v1/stream?topics=index", .headers = {{"Authorization", kAnnKey}}},
        deadline_after(std::chrono::seconds(100)));
    CO_ASSERT_OK(stream);
    const auto head = co_await stream->read_head();
    CO_ASSERT_OK(head);
    EXPECT_EQ(head->status, 200);
    while (auto part = co_await stream->read_some()) {
      if (part->empty()) break;
      text_ += *part;
    }
  }

  Metrics metrics_;
  net::Resolver resolver_{metrics_};
  http::Client client_;
  http::Url url_;
  std::string text_;
  TaskGroup tasks_;
};

TEST(Traces, FollowAChangeFromTheWatchToTheRowOfAPage) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        OtlpCollector collector(executor);
        ControlPlaneBed bed({.flags = {"--otlp-endpoint=" + collector.url(), "--trace-ratio=1"}});
        ReporterHarness harness(executor);
        co_await harness.start_doubles();
        write_file(harness.folder / "platform-token", kProdToken);
        harness.put_app("shop", 1);
        auto environment = tracing(collector);
        environment["CODEFRESH_URL"] = bed.url();
        environment["CODEFRESH_SSL_CERT_PATH"] = bed.ca_file().string();
        harness.start_daemon(std::move(environment));
        OpenPage page(executor, bed);
        CO_ASSERT_TRUE(co_await eventually([&] { return page.text().contains("shop"); },
                                           "the Application on the page"))
            << harness.logs() << bed.program().log() << page.text();
        harness.put_app("shop", 2, {.sync_status = "OutOfSync", .revision = "r2"});
        CO_ASSERT_TRUE(co_await eventually(
            [&] { return collector.find("control-plane", "update open pages") != nullptr; },
            "the span of the page"))
            << bed.program().log() << page.text();
        const auto trace = collector.find("control-plane", "update open pages")->trace;
        CO_ASSERT_TRUE(co_await eventually(
            [&] {
              return collector.find("event-reporter", "report application", trace) != nullptr;
            },
            "the whole trace"));
        const auto* report = collector.find("event-reporter", "report application", trace);
        EXPECT_EQ(report->parent, "");
        EXPECT_EQ(report->attributes["k8s.object"], "argocd/shop");
        const auto* read = collector.find("event-reporter", "GET argocd-server", trace);
        CO_ASSERT_TRUE(read != nullptr);
        EXPECT_EQ(read->parent, report->id);
        EXPECT_EQ(read->kind, 3);
        EXPECT_THAT(read->attributes["url.path"].get<std::string>(),
                    HasSubstr("/api/v1/applications/shop/"));
        const auto* post = collector.find("event-reporter", "POST event", trace);
        CO_ASSERT_TRUE(post != nullptr);
        EXPECT_EQ(post->parent, report->id);
        const auto* intake = collector.find("control-plane", "POST event", trace);
        CO_ASSERT_TRUE(intake != nullptr);
        EXPECT_EQ(intake->kind, 2);
        EXPECT_EQ(intake->attributes["gitops.runtime"], "prod");
        const auto* store = collector.find("control-plane", "store", trace);
        CO_ASSERT_TRUE(store != nullptr);
        EXPECT_EQ(collector.find("control-plane", "update open pages", trace)->parent,
                  store->parent);
        bool was_told = false;  // to Argo CD
        for (const auto& request : harness.argocd.requests()) {
          was_told =
              was_told ||
              SpanContext::parse(request.headers.find("traceparent").value_or("")).trace_id() ==
                  trace;
        }
        EXPECT_TRUE(was_told);
        EXPECT_THAT(collector.mistakes(), IsEmpty());
        EXPECT_THAT(collector.text(), Not(HasSubstr("canary")));
        co_await page.close();
        co_await harness.stop();
        EXPECT_EQ(bed.program().stop(), 0);
        co_await collector.stop();
      },
      std::chrono::seconds(120));
}

// The router before a real app-proxy.
RouterProcess router_to(const AppProxyHarness& app_proxy, Environment environment) {
  environment["APP_PROXY_URL"] = app_proxy.daemon->url();
  environment["UPSTREAM_ALLOWED_ADDRESSES"] = "127.0.0.0/8";
  environment["POD_NAMESPACE"] = "argo";
  return {{std::string(GITOPS_BIN_DIR) + "/request-router"}, std::move(environment), ""};
}

// Argo CD with the Application "shop", and an app-proxy that uses it.
struct RequestFixture {
  explicit RequestFixture(const Executor& executor)
      : collector(executor),
        kube(executor),
        argocd(executor, kube),
        app_proxy(executor),
        client(executor, names, {.tls = {.ca_file = authority.ca_file()}}) {}

  Task<> start() {
    CO_ASSERT_OK(argocd.start());
    kube.put(k8s::resources::kApplications,
             {{"apiVersion", "argoproj.io/v1alpha1"},
              {"kind", "Application"},
              {"metadata", {{"name", "shop"}, {"namespace", "argocd"}}},
              {"spec", {{"destination", {{"server", "https://kubernetes.default.svc"}}}}},
              {"status", Json::object()}});
    argocd.set_tree("shop", {{"nodes", Json::array()}});
    argocd.set_managed_resources("shop", Json::array());
    auto environment = tracing(collector);
    environment["ARGO_CD_URL"] = argocd.url().to_string();
    environment["ARGO_CD_TOKEN"] = "argocd.double.token";
    app_proxy.start(std::move(environment));
    co_await app_proxy.account_known();
  }
  // Sends a refresh of the Application to the users' port of a tunnel-server, as a client with a trace of its own.
  Task<> refresh(std::uint16_t port) {
    auto sent = co_await client.send(
        {.scheme = "https", .host = kRuntimeHost, .port = port},
        {.method = "POST",
         .target = "/app-proxy/api/graphql?token=canary-query",
         .headers = {{"Authorization", AppProxyHarness::kAnn},
                     {"Content-Type", "application/json"},
                     {"traceparent", kCaller}},
         .body = Json{{"query",
                       "mutation{refresh(applicationName:\"shop\",appNamespace:\"argocd\")"
                       "{metadata{name}}}"}}
                     .dump()},
        deadline_after(std::chrono::seconds(30)));
    CO_ASSERT_OK(sent);
    EXPECT_EQ(sent->status, 200);
    EXPECT_EQ(sent->body, R"({"data":{"refresh":{"metadata":{"name":"shop"}}}})");
  }
  Task<> stop() {
    co_await app_proxy.stop();
    co_await argocd.stop();
    co_await collector.stop();
  }

  OtlpCollector collector;
  FakeKubeApi kube;
  FakeArgoCd argocd;
  AppProxyHarness app_proxy;
  CertificateAuthority authority;
  Metrics metrics;
  net::Resolver names{metrics, {.look_up = [](const std::string&) -> Result<net::Addresses> {
                        return net::Addresses{asio::ip::make_address("127.0.0.1")};
                      }}};
  http::Client client;
};

TEST(Traces, FollowARequestThroughTunnelAndRouterToArgoCd) {
  run_coro(
      []() -> Task<> {
        RequestFixture fixture(co_await asio::this_coro::executor);
        auto& collector = fixture.collector;
        co_await fixture.start();
        std::optional<RouterProcess> router(router_to(fixture.app_proxy, tracing(collector)));
        std::optional<OwnTunnelServer> server(
            std::in_place, fixture.authority,
            std::vector<std::string>{"--otlp-endpoint=" + collector.url(), "--trace-ratio=1"});
        std::optional<OwnTunnelClient> client(std::in_place,
                                              std::vector<std::uint16_t>{server->tunnel_port},
                                              fixture.authority.ca_file(), router->port());
        EXPECT_TRUE(co_await eventually([&] { return client->is_ready(); }, "the tunnel"))
            << client->log() << server->log();
        co_await fixture.refresh(server->port);
        const std::vector<std::pair<std::string, std::string>> way{
            {"tunnel-server", "POST acc-rt.example.test"},
            {"request-router", "POST app-proxy"},
            {"app-proxy", "POST graphql"},
            {"app-proxy", "GET argocd-server"}};
        EXPECT_TRUE(co_await eventually(
            [&] {
              return std::ranges::all_of(way, [&](const auto& step) {
                return collector.find(step.first, step.second, kTrace) != nullptr;
              });
            },
            "the whole trace"))
            << collector.names();
        // Each span is below the one before, and the first below the client's.
        std::string parent = "00f067aa0ba902b7";
        for (const auto& [service, name] : way) {
          const auto* span = collector.find(service, name, kTrace);
          EXPECT_TRUE(span != nullptr && span->parent == parent) << service << "\n"
                                                                 << collector.names();
          if (span != nullptr) parent = span->id;
        }
        if (const auto* routed = collector.find("request-router", "POST app-proxy", kTrace)) {
          EXPECT_EQ(routed->attributes["http.response.status_code"], "200");
          EXPECT_FALSE(routed->failed);
        }
        bool was_told = false;
        for (const auto& request : fixture.argocd.requests()) {
          const auto sent = SpanContext::parse(request.headers.find("traceparent").value_or(""));
          was_told = was_told || sent.trace_id() == kTrace;
        }
        EXPECT_TRUE(was_told);
        EXPECT_THAT(collector.mistakes(), IsEmpty());
        EXPECT_THAT(collector.text(), Not(HasSubstr("canary")));
        // Before the loop ends that answers them.
        client.reset();
        server.reset();
        router.reset();
        co_await fixture.stop();
      },
      std::chrono::seconds(120));
}

}  // namespace
}  // namespace gitops::test
