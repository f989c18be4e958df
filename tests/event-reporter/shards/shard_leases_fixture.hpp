#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "doubles/fake_kube_api.hpp"
#include "event-reporter/shards/shard_leases.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"
#include "support/wait.hpp"

// An API server and the pods of a StatefulSet, of which each holds its shard.
namespace gitops::reporter {

using namespace std::chrono_literals;

using Shards = std::vector<std::uint32_t>;

// A process: its own way to the API server, and what it was told.
class Pod {
 public:
  Pod(const Executor& executor, const test::FakeKubeApi& api, Shard own)
      : api_(api.cluster_config()),
        relay(executor, "127.0.0.1", api_.server.port),
        client_(executor, resolver_, through(relay), {}, "test"),
        group_(executor),
        leases(client_,
               {.ns = "runtime",
                .name = "reporter",
                .identity = "reporter-" + std::to_string(own.ordinal),
                .own = own,
                .lease_duration = 2s,
                .renew_deadline = 1500ms,
                .retry_period = 300ms,
                .rank_delay = 500ms,
                .handover_grace = 1s,
                .layout_duration = 20s},
               reports_) {
    leases.start(group_);
  }
  // As SIGTERM.
  Task<> stop() {
    group_.cancel();
    co_await group_.join();
    EXPECT_TRUE(claimed.empty());
    co_await relay.stop();
  }
  // As SIGKILL: nothing that it wants to give back arrives.
  Task<> kill() {
    relay.close();
    co_await stop();
  }

 private:
  k8s::ClusterConfig through(const test::TcpRelay& relay_to) const {
    auto config = api_;
    config.server.port = relay_to.port();
    return config;
  }
  k8s::ClusterConfig api_;

 public:
  test::TcpRelay relay;
  std::set<std::uint32_t> claimed;
  std::map<std::uint32_t, std::vector<Term>> terms;
  std::map<std::uint32_t, std::vector<Sequence>> floors;
  bool busy = false;

 private:
  struct Reports final : ShardObserver {
    explicit Reports(Pod& of) : pod(of) {}
    void claimed(std::uint32_t shard, Term term, Sequence floor) override {
      EXPECT_TRUE(pod.claimed.insert(shard).second);
      pod.terms[shard].push_back(term);
      pod.floors[shard].push_back(floor);
      EXPECT_TRUE(pod.leases.holds(shard));
    }
    void released(std::uint32_t shard) override {
      EXPECT_EQ(pod.claimed.erase(shard), 1U);
      EXPECT_FALSE(pod.leases.holds(shard));
    }
    [[nodiscard]] bool busy(std::uint32_t shard) const override {
      EXPECT_FALSE(pod.claimed.contains(shard));
      return pod.busy;
    }
    Pod& pod;
  };

  Metrics metrics_;
  net::Resolver resolver_{metrics_};
  k8s::Client client_;
  TaskGroup group_;
  Reports reports_{*this};

 public:
  ShardLeases leases;
};

// An API server and the pods of a StatefulSet.
class ShardLeasesFixture {
 public:
  ShardLeasesFixture(const Executor& executor, std::uint32_t replicas)
      : api(executor), replicas_(replicas) {}

  Task<> begin() {
    if (!api.start()) throw std::runtime_error("no API server");
    api.put(k8s::resources::kNamespaces, {{"metadata", {{"name", "runtime"}}}});
    for (std::uint32_t i = 0; i < replicas_; ++i) co_await start(i);
    EXPECT_TRUE(
        co_await eventually([this] { return all_home(); }, "each pod with its own shard alone"));
  }
  Task<> start(std::uint32_t ordinal) {
    pods[ordinal] = std::make_unique<Pod>(co_await asio::this_coro::executor, api,
                                          Shard{.replicas = replicas_, .ordinal = ordinal});
  }
  Task<> kill(std::uint32_t ordinal) {
    co_await pods.at(ordinal)->kill();
    pods.erase(ordinal);
  }
  Task<> stop(std::uint32_t ordinal) {
    co_await pods.at(ordinal)->stop();
    pods.erase(ordinal);
  }
  Task<> end() {
    for (auto& [ordinal, pod] : pods) co_await pod->stop();
    pods.clear();
    co_await api.stop();
  }

  // As test::eventually(), and checks at each poll that no shard is held by two pods.
  Task<testing::AssertionResult> eventually(std::function<bool()> condition, std::string what,
                                            Clock::duration limit = 12s) {
    const auto checked = [this, condition = std::move(condition)] {
      if (condition()) return true;
      std::set<std::uint32_t> seen;
      for (const auto& [ordinal, pod] : pods) {
        for (const auto shard : pod->leases.held()) EXPECT_TRUE(seen.insert(shard).second) << shard;
      }
      return false;
    };
    co_return co_await test::eventually(checked, std::move(what), limit);
  }
  bool has(std::uint32_t ordinal, const Shards& shards) const {
    return pods.at(ordinal)->leases.held() == shards;
  }
  bool all_home() const {
    return std::ranges::all_of(pods,
                               [this](const auto& pod) { return has(pod.first, {pod.first}); });
  }
  nlohmann::json lease(std::uint32_t shard) const {
    return api.find(k8s::resources::kLeases, key(shard)).value_or(nlohmann::json());
  }
  nlohmann::json layout() const {
    return api.find(k8s::resources::kLeases, {"runtime", "reporter-layout"})
        .value_or(nlohmann::json());
  }
  // renewTime of the Lease with this name.
  Result<WallTime> renewed(const std::string& name) const {
    const auto lease = api.find(k8s::resources::kLeases, {"runtime", name}).value();
    return parse_rfc3339(lease["spec"]["renewTime"].get<std::string>());
  }
  k8s::ObjectKey key(std::uint32_t shard) const {
    return {"runtime", "reporter-" + std::to_string(shard)};
  }

  test::FakeKubeApi api;
  std::map<std::uint32_t, std::unique_ptr<Pod>> pods;

 private:
  std::uint32_t replicas_;
};

inline void play(std::uint32_t replicas, const std::function<Task<>(ShardLeasesFixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    ShardLeasesFixture fixture(co_await asio::this_coro::executor, replicas);
    co_await fixture.begin();
    co_await body(fixture);
    co_await fixture.end();
  });
}

}  // namespace gitops::reporter
