#include "contract/kube_client_contract.hpp"

#include <gtest/gtest.h>

#include "doubles/fake_kube_api.hpp"

namespace gitops::test {
namespace {

struct FakeKubeClient : testing::TestWithParam<KubeClientCase> {};

TEST_P(FakeKubeClient, Behaves) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        FakeKubeApi::Options options;
        options.token = "right";
        FakeKubeApi api(executor, options);
        CO_ASSERT_OK(api.start());
        // Another server, on which nothing is allowed.
        FakeKubeApi strict(executor);
        strict.set_access([](const FakeKubeApi::Access&) { return false; });
        CO_ASSERT_OK(strict.start());
        KubeClientPeer peer{.config = api.cluster_config(),
                            .powerless = strict.cluster_config(),
                            .unknown = api.cluster_config(),
                            .ns = "default"};
        peer.unknown.token = Secret("wrong");
        co_await GetParam().run(peer);
        co_await api.stop();
        co_await strict.stop();
      },
      std::chrono::seconds(30));
}

INSTANTIATE_TEST_SUITE_P(Kube, FakeKubeClient, testing::ValuesIn(kube_client_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
