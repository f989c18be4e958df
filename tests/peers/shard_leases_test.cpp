#include "event-reporter/shards/shard_leases.hpp"

#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "peers/peer_cluster.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"
#include "support/wait.hpp"

namespace gitops::reporter {
namespace {

using namespace std::chrono_literals;
using test::PeerCluster;
using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

// Exactly the permissions on Leases that the reporter needs.
constexpr const char* kAccount = R"(
apiVersion: v1
kind: ServiceAccount
metadata: {name: event-reporter, namespace: shards}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: event-reporter, namespace: shards}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, create, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: event-reporter, namespace: shards}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: event-reporter}
subjects: [{kind: ServiceAccount, name: event-reporter, namespace: shards}]
)";

// A pod with the timing of production and its own connection to the API server.
class Pod {
 public:
  Pod(const Executor& executor, k8s::ClusterConfig config, Shard own)
      : relay_(executor, config.server.host, config.server.port),
        client_(executor, resolver_, through_relay(std::move(config)), {}, "test"),
        group_(executor),
        leases(client_,
               {.ns = "shards",
                .name = "event-reporter-app",
                .identity = "event-reporter-" + std::to_string(own.ordinal),
                .own = own},
               reports_) {
    leases.start(group_);
  }
  Task<> stop() {
    group_.cancel();
    co_await group_.join();
    co_await relay_.stop();
  }
  // Like SIGKILL: the release of its Leases does not reach the server.
  Task<> kill() {
    relay_.close();
    co_await stop();
  }

 private:
  struct Reports final : ShardObserver {
    void claimed(std::uint32_t shard, Term term, Sequence) override { terms[shard] = term; }
    void released(std::uint32_t) override {}
    [[nodiscard]] bool busy(std::uint32_t) const override { return false; }
    std::map<std::uint32_t, Term> terms;
  };

  k8s::ClusterConfig through_relay(k8s::ClusterConfig config) const {
    config.server.port = relay_.port();
    return config;
  }

  test::TcpRelay relay_;
  Metrics metrics_;
  net::Resolver resolver_{metrics_};
  k8s::Client client_;
  TaskGroup group_;
  Reports reports_;

 public:
  std::map<std::uint32_t, Term>& terms = reports_.terms;
  ShardLeases leases;
};

Task<Seconds> time_to(std::function<bool()> condition, std::string what) {
  const auto start = Clock::now();
  EXPECT_TRUE(co_await test::eventually(std::move(condition), std::move(what)));
  co_return Clock::now() - start;
}

TEST(ShardLeasesOnTheRealServer, ADeadShardMovesWithinFifteenSecondsAndComesBack) {
  if (const auto missing = PeerCluster::missing()) GTEST_SKIP() << *missing;
  PeerCluster cluster;
  cluster.create_namespace("shards");
  cluster.apply(kAccount);
  const auto token = cluster.service_account_token("shards", "event-reporter");
  const auto config = k8s::kubeconfig({cluster.write_kubeconfig("shards", token).string()}, {},
                                      k8s::ExecPolicy::refuse);
  ASSERT_TRUE(config);
  const auto patch = [&](const std::string& spec) {
    return cluster
        .request("PATCH",
                 "/apis/coordination.k8s.io/v1/namespaces/shards/leases/event-reporter-app-1",
                 R"({"spec":)" + spec + "}", "application/merge-patch+json")
        .status;
  };

  const auto body = [&]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    std::map<std::uint32_t, std::unique_ptr<Pod>> pods;
    const auto start = [&](std::uint32_t ordinal) {
      pods[ordinal] =
          std::make_unique<Pod>(executor, *config, Shard{.replicas = 3, .ordinal = ordinal});
    };
    const auto holds_own = [&](std::uint32_t ordinal) {
      return pods.at(ordinal)->leases.held() == std::vector{ordinal};
    };
    for (const std::uint32_t ordinal : {0U, 1U, 2U}) start(ordinal);
    for (const std::uint32_t ordinal : {0U, 1U, 2U}) {
      co_await time_to([&] { return holds_own(ordinal); }, "the own shard at each pod");
    }
    const Term before = pods.at(1)->terms.at(1);

    co_await pods.at(1)->kill();
    pods.erase(1);
    // A manual edit. The counter is then at the highest value that the server accepts.
    EXPECT_EQ(patch(R"({"holderIdentity":5})"), 422);
    EXPECT_EQ(patch(R"({"leaseDurationSeconds":0})"), 422);
    const auto moved =
        co_await time_to([&] { return pods.at(0)->leases.holds(1) || pods.at(2)->leases.holds(1); },
                         "shard 1 at another pod");
    EXPECT_LT(moved, 15s);

    start(1);
    const auto back = co_await time_to([&] { return holds_own(1); }, "shard 1 at its own pod");
    EXPECT_LT(back, 15s);
    EXPECT_TRUE(holds_own(0));
    EXPECT_TRUE(holds_own(2));
    EXPECT_FALSE(nobody_between(before, pods.at(1)->terms.at(1)));
    testing::Test::RecordProperty("moved_after_seconds", std::to_string(moved.count()));
    testing::Test::RecordProperty("back_after_seconds", std::to_string(back.count()));

    // An orderly restart moves nothing.
    const Term first = pods.at(1)->terms.at(1);
    co_await pods.at(1)->stop();
    pods.erase(1);
    EXPECT_EQ(patch(R"({"leaseTransitions":2147483647})"), 200);
    start(1);
    co_await time_to([&] { return holds_own(1); }, "shard 1 at its own pod");
    EXPECT_FALSE(nobody_between(first, pods.at(1)->terms.at(1))) << "somebody turned the counter";
    EXPECT_TRUE(holds_own(0));
    EXPECT_TRUE(holds_own(2));
    for (const auto& [ordinal, pod] : pods) co_await pod->stop();
  };
  test::run_coro(body, 120s);
}

}  // namespace
}  // namespace gitops::reporter
