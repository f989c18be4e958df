#include "contract/kube_watch_contract.hpp"

#include <gtest/gtest.h>

#include "doubles/fake_kube_api.hpp"

namespace gitops::test {
namespace {

struct FakeKubeWatch : testing::TestWithParam<KubeWatchCase> {};

TEST_P(FakeKubeWatch, Behaves) {
  run_coro(
      []() -> Task<> {
        FakeKubeApi api(co_await asio::this_coro::executor);
        CO_ASSERT_OK(api.start());
        const KubeWatchPeer peer{
            .config = api.cluster_config(),
            .ns = "default",
            .make_versions_gone = [&api]() -> Task<> {
              api.compact();
              co_return;
            },
            .restart = [&api]() -> Task<> { CO_ASSERT_OK(co_await api.restart()); },
        };
        co_await GetParam().run(peer);
        co_await api.stop();
      },
      std::chrono::seconds(30));
}

INSTANTIATE_TEST_SUITE_P(Kube, FakeKubeWatch, testing::ValuesIn(kube_watch_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
