#include "contract/kube_watch_contract.hpp"

#include <gtest/gtest.h>

#include "doubles/fake_kube_api.hpp"

namespace gitops::test {
namespace {

struct FakeKubeWatch : testing::TestWithParam<KubeWatchCase> {};

TEST_P(FakeKubeWatch, Behaves) {
  run_in_test_time([]() -> Task<> {
    FakeKubeApi api(co_await asio::this_coro::executor);
    CO_ASSERT_OK(api.start());
    FakeKubeStore::Backup backup;
    const KubeWatchPeer peer{
        .config = api.cluster_config(),
        .ns = "default",
        .make_versions_gone = [&api] { api.compact(); },
        .restart = [&api]() -> Task<> { CO_ASSERT_OK(co_await api.restart()); },
        .back_up = [&]() -> Task<> {
          backup = api.store().back_up();
          co_return;
        },
        .restore = [&]() -> Task<> {
          api.restore(backup);
          co_return;
        },
        .allow_streaming_lists = [&](bool allow) -> Task<> {
          api.refuse_streaming_lists(!allow);
          co_return;
        },
    };
    co_await GetParam().run(peer);
    co_await api.stop();
  });
}

INSTANTIATE_TEST_SUITE_P(Kube, FakeKubeWatch, testing::ValuesIn(kube_watch_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
