#include "request-router/routing.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "common/net/memory_channel.hpp"
#include "request-router/webhooks.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops::router {
namespace {

using namespace std::chrono_literals;

// A resolver that counts what it is asked for; every name exists.
class Names {
 public:
  Names()
      : resolver(metrics_, {.max_names = 3, .look_up = [this](const std::string& host) {
                              const std::lock_guard lock(mutex_);
                              ++lookups_[host];
                              return Result<net::Addresses>(
                                  net::Addresses{asio::ip::make_address("127.0.0.1")});
                            }}) {}
  [[nodiscard]] std::map<std::string, int> lookups() {
    const std::lock_guard lock(mutex_);
    return lookups_;
  }

 private:
  Metrics metrics_;
  std::mutex mutex_;
  std::map<std::string, int> lookups_;

 public:
  net::Resolver resolver;
};

class Fixture {
 public:
  Fixture(const Executor& executor, const RouteSettings& settings)
      : webhooks(executor, metrics, {}),
        routing(names.resolver, event_source_names.resolver, settings,
                std::make_shared<Gates>(GateLimits{}), webhooks, std::make_shared<proxy::Totals>(),
                [] { return std::string(); }) {}

  // Where a webhook for this event source is forwarded to.
  [[nodiscard]] std::shared_ptr<proxy::Upstream> event_source(const std::string& name) {
    const auto text = "POST /webhooks/argo/" + name + " HTTP/1.1\r\nHost: a\r\n\r\n";
    http::RequestHeadParser parser({});
    if (!parser.next(text)) return nullptr;
    const auto decision = routing.decide(parser.head(), {});
    const auto* forward = std::get_if<proxy::Forward>(&decision);
    return forward == nullptr ? nullptr : forward->route->upstream;
  }

  Names names;
  Names event_source_names;
  Metrics metrics;
  Webhooks webhooks;
  Routing routing;
};

RouteSettings settings() {
  RouteSettings settings;
  settings.app_proxy = http::parse_url("http://app-proxy.test:1").value();
  settings.own_namespace = "argo";
  return settings;
}

// Whose names whoever sends a webhook chooses.
TEST(Routing, NamesOfEventSourcesEvictNoConfiguredName) {
  test::run_in_test_time([]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor, settings());
    // The connections fail, because the filter allows no loopback address.
    EXPECT_FALSE(co_await bed.routing.app_proxy().connect());
    for (int i = 0; i < 10; ++i) {
      const auto upstream = bed.event_source("source-" + std::to_string(i));
      CO_ASSERT_TRUE(upstream != nullptr);
      EXPECT_FALSE(co_await upstream->connect());
    }
    EXPECT_FALSE(co_await bed.routing.app_proxy().connect());
    EXPECT_EQ(bed.names.lookups(), (std::map<std::string, int>{{"app-proxy.test", 1}}));
    EXPECT_EQ(bed.event_source_names.lookups().size(), 10U);
  });
}

TEST(Routing, ARedirectionIsOfAsciiOnly) {
  auto with_workflows = settings();
  with_workflows.workflows = http::parse_url("https://argo-server:2746").value();
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor, with_workflows);
    const std::string text = "GET /workflows?q=\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n";
    http::RequestHeadParser parser({});
    CO_ASSERT_OK(parser.next(text));
    const auto decision = bed.routing.decide(parser.head(), {});
    const auto* response = std::get_if<http::Response>(&decision);
    CO_ASSERT_TRUE(response != nullptr);
    EXPECT_EQ(response->headers.find("Location"), "/workflows/?q=%C3%A4");
    co_return;
  });
}

TEST(Routing, IdleConnectionsToUpstreamsAreKeptAsLongAsTheSettingSays) {
  for (const auto& [kept, idle] : {std::pair{true, 19s}, std::pair{false, 21s}}) {
    test::run_in_test_time([kept, idle]() -> Task<> {
      const auto executor = co_await asio::this_coro::executor;
      auto with_timeout = settings();
      with_timeout.upstream_idle_timeout = 20s;
      Fixture bed(executor, with_timeout);
      const auto event_source = bed.event_source("github");
      CO_ASSERT_TRUE(event_source != nullptr);
      for (auto* upstream : {&bed.routing.app_proxy(), event_source.get()}) {
        auto [near, far] = net::MemoryChannel::pair(executor, 1024);
        upstream->put(std::make_unique<proxy::UpstreamConnection>(std::move(near)));
        co_await sleep_for(idle);
        EXPECT_EQ(upstream->take() != nullptr, kept);
      }
    });
  }
}

// After a restart of the router and the name servers: without a lookup it is unknown whether the
// event source exists, unless the webhook is signed.
TEST(Routing, ASignedWebhookIsKeptBeforeItsSourceCanBeLookedUp) {
  const test::TempDir folder;
  test::write_file(folder / "secret", "canary");
  auto with_signature = settings();
  with_signature.webhook_signatures.push_back({.ns = "argo",
                                               .event_source = "signed",
                                               .kind = SignatureKind::gitlab,
                                               .secret_file = (folder / "secret").string()});
  const std::vector<std::pair<std::string, bool>> cases{{"signed", true}, {"open", false}};
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor, with_signature);
    for (const auto& [name, is_kept] : cases) {
      const auto text =
          "POST /webhooks/argo/" + name + " HTTP/1.1\r\nHost: a\r\nX-Gitlab-Token: canary\r\n\r\n";
      http::RequestHeadParser parser({});
      CO_ASSERT_OK(parser.next(text));
      const auto decision = bed.routing.decide(parser.head(), {});
      const auto* forward = std::get_if<proxy::Forward>(&decision);
      CO_ASSERT_TRUE(forward != nullptr);
      const proxy::WholeRequest request{
          .head = parser.head(), .request_id = "r", .forwarded_head = text};
      const proxy::Problem problem{.failure = proxy::Failure::connect_timeout,
                                   .status = 504,
                                   .detail = "lookup took too long"};
      const auto response = co_await forward->inspection->undelivered(request, problem);
      EXPECT_EQ(response ? response->status : 0, is_kept ? 202 : 0) << name;
    }
    EXPECT_EQ(bed.webhooks.size(), 1U);
  });
}

// New routes do not lose the secret of a file that is being written.
TEST(Routing, NewRoutesKeepTheSecretsInForce) {
  const test::TempDir folder;
  test::write_file(folder / "secret", "canary");
  auto with_signature = settings();
  with_signature.webhook_signatures.push_back({.ns = "argo",
                                               .event_source = "github",
                                               .kind = SignatureKind::gitlab,
                                               .secret_file = (folder / "secret").string()});
  test::run_in_test_time([&]() -> Task<> {
    Fixture bed(co_await asio::this_coro::executor, with_signature);
    const std::string text =
        "POST /webhooks/argo/github HTTP/1.1\r\nHost: a\r\nX-Gitlab-Token: canary\r\n\r\n";
    http::RequestHeadParser parser({});
    CO_ASSERT_OK(parser.next(text));
    const auto is_forwarded = [&parser](Routing& routing) {
      return std::holds_alternative<proxy::Forward>(routing.decide(parser.head(), {}));
    };
    EXPECT_TRUE(is_forwarded(bed.routing));
    test::write_file(folder / "secret", "");
    Routing next(
        bed.names.resolver, bed.event_source_names.resolver, with_signature,
        std::make_shared<Gates>(GateLimits{}), bed.webhooks, std::make_shared<proxy::Totals>(),
        [] { return std::string(); }, &bed.routing);
    EXPECT_TRUE(is_forwarded(next));
    co_await sleep_for(1s);
    EXPECT_TRUE(is_forwarded(next)) << "the empty file was read once";
    co_await sleep_for(1s);
    EXPECT_FALSE(is_forwarded(next)) << "the file is meant to be empty";
  });
}

}  // namespace
}  // namespace gitops::router
