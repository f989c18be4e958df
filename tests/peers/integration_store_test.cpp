// Git integrations in Secrets of a real API server.
#include <gtest/gtest.h>

#include "common/core/metrics.hpp"
#include "contract/integration_store_contract.hpp"
#include "peers/shared_cluster.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

struct RealIntegrationStore : testing::TestWithParam<IntegrationStoreCase> {};

TEST_P(RealIntegrationStore, Holds) {
  if (const auto missing = PeerCluster::missing()) GTEST_SKIP() << *missing;
  static int count = 0;
  const auto ns = "integrations-" + std::to_string(++count);
  auto& peer = shared_cluster();
  peer.create_namespace(ns);
  const auto config = k8s::kubeconfig({peer.write_kubeconfig("admin", peer.admin_token()).string()},
                                      {}, k8s::ExecPolicy::refuse);
  ASSERT_TRUE(config) << config.error().message;
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        Metrics metrics;
        net::Resolver resolver(metrics);
        k8s::Client cluster(executor, resolver, *config, {}, "test");
        co_await GetParam().run(cluster, ns);
      },
      std::chrono::seconds(60));
}

INSTANTIATE_TEST_SUITE_P(Kube, RealIntegrationStore, testing::ValuesIn(integration_store_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
