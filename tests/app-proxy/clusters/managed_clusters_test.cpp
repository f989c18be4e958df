// Without files in Git, in test time, with the double of an API server.
#include "app-proxy/clusters/managed_clusters.hpp"

#include <optional>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/kube_failure.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

AddedCluster edge(std::string host) {
  return {.name = "edge",
          .server = "https://" + std::move(host) + ":6443",
          .config = Secret("{}"),
          .labels = {},
          .annotations = {}};
}

struct Fixture {
  explicit Fixture(const Executor& executor)
      : cluster(executor), names(metrics, {.look_up = look_up}), tasks(executor) {
    EXPECT_TRUE(cluster.start());
    client.emplace(executor, names, cluster.cluster_config(), http::ProxySettings{}, "test");
    ManagedClusters::Options options{.own_namespace = "default"};
    options.special_addresses = net::AddressList::parse({"127.0.0.7"}).value();
    clusters.emplace(executor, *client, nullptr, names, nullptr, files, token, std::move(options));
    tasks.spawn("changes", [this]() -> Task<> {
      while (true) {
        (void)co_await clusters->changed().wait();
        ++changes;
      }
    });
  }
  // On a thread of the resolver.
  static Result<net::Addresses> look_up(const std::string& host) {
    if (host == "unknown.test") return fail(ErrorCode::not_found, "no such host");
    net::Addresses found{asio::ip::make_address("10.1.2.3")};
    if (host == "metadata.test") found.push_back(asio::ip::make_address("169.254.169.254"));
    if (host == "loop.test") found = {asio::ip::make_address("127.0.0.1")};
    if (host == "six.test") found = {asio::ip::make_address("::ffff:127.0.0.1")};
    if (host == "allowed.test") found = {asio::ip::make_address("127.0.0.7")};
    return found;
  }
  Task<Result<void>> add(std::string host) {
    return clusters->add(edge(std::move(host)), "Requested by Ann.", deadline_after(20s));
  }
  Task<> stop() {
    tasks.cancel();
    co_await tasks.join();
    client.reset();
    co_await cluster.stop();
  }
  [[nodiscard]] std::size_t secrets() const {
    return cluster.store().list(*cluster.store().find_type("", "v1", "secrets"), "default").size();
  }

  int changes = 0;
  test::FakeKubeApi cluster;
  Metrics metrics;
  net::Resolver names;
  std::optional<k8s::Client> client;
  RuntimeFiles files;  // without a repository
  RuntimeGitToken token{"", Credential::fixed({})};
  std::optional<ManagedClusters> clusters;
  TaskGroup tasks;
};

void with_fixture(const std::function<Task<>(Fixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Fixture fixture(co_await asio::this_coro::executor);
    co_await body(fixture);
    co_await fixture.stop();
  });
}

TEST(ManagedClusters, AHostThatLeadsToASpecialAddressIsRefused) {
  with_fixture([](Fixture& fixture) -> Task<> {
    for (const char* host : {"metadata.test", "loop.test", "six.test"}) {
      const auto refused = co_await fixture.add(host);
      CO_ASSERT_TRUE(!refused) << host;
      EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
      EXPECT_THAT(refused.error().message, HasSubstr("leads to an address")) << host;
    }
    EXPECT_EQ(fixture.secrets(), 0U);
    co_await sleep_for(1s);
    EXPECT_EQ(fixture.changes, 0);
    // An exception of the operator, and a name that only Argo CD can look up.
    int changes = 0;
    for (const char* host : {"allowed.test", "unknown.test", "edge.test"}) {
      const auto added = co_await fixture.add(host);
      EXPECT_TRUE(added) << host << added.error().message;
      // An event that nobody awaits is lost, so the next one comes after this one was seen.
      ++changes;
      EXPECT_TRUE(co_await test::eventually([&] { return fixture.changes == changes; },
                                            std::string("the change to ") + host));
    }
    EXPECT_EQ(fixture.secrets(), 1U) << "the cluster of that name was replaced";
    co_await sleep_for(1s);
    EXPECT_EQ(fixture.changes, 3);
  });
}

// The API server goes away between the list and the deletion, and a balancer answers for it.
TEST(ManagedClusters, A404OfAnIntermediaryIsNoRemoval) {
  with_fixture([](Fixture& fixture) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const nlohmann::json secret{
        {"metadata", {{"name", "cluster-edge"}, {"namespace", "default"}}},
        {"data",
         {{"name", base64_encode("edge")}, {"server", base64_encode("https://edge.test:6443")}}}};
    const nlohmann::json list{{"metadata", nlohmann::json::object()},
                              {"items", nlohmann::json::array({secret})}};
    http::Server balancer(
        executor, {.address = "127.0.0.1"}, [&list](http::Exchange& exchange) -> Task<> {
          const bool is_list = exchange.request().method == "GET";
          (void)co_await exchange.reply(is_list ? test::json_response(200, list.dump())
                                                : test::page_not_found());
        });
    EXPECT_TRUE(balancer.listen());
    auto config = fixture.cluster.cluster_config();
    config.server.port = balancer.port();
    k8s::Client behind(executor, fixture.names, std::move(config), {}, "test");
    ManagedClusters clusters(executor, behind, nullptr, fixture.names, nullptr, fixture.files,
                             fixture.token, {.own_namespace = "default"});
    const auto removed = co_await clusters.remove("https://edge.test:6443", "Requested by Ann.",
                                                  deadline_after(20s));
    CO_ASSERT_TRUE(!removed);
    EXPECT_EQ(removed.error().code, ErrorCode::unavailable) << removed.error().message;
    EXPECT_THAT(removed.error().message, HasSubstr("Secret of cluster edge"));
    co_await balancer.stop(Clock::now());
  });
}

}  // namespace
}  // namespace gitops::app_proxy
