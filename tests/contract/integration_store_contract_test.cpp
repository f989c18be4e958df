#include "contract/integration_store_contract.hpp"

#include <gtest/gtest.h>

#include "common/core/metrics.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

struct FakeIntegrationStore : testing::TestWithParam<IntegrationStoreCase> {};

TEST_P(FakeIntegrationStore, Holds) {
  run_in_test_time([]() -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    FakeKubeApi api(executor);
    CO_ASSERT_OK(api.start());
    {
      Metrics metrics;
      net::Resolver resolver(metrics);
      k8s::Client cluster(executor, resolver, api.cluster_config(), {}, "test");
      co_await GetParam().run(cluster, "default");
    }
    co_await api.stop();
  });
}

INSTANTIATE_TEST_SUITE_P(Kube, FakeIntegrationStore, testing::ValuesIn(integration_store_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
