#include <gtest/gtest.h>

#include "contract/kube_watch_contract.hpp"
#include "peers/peer_cluster.hpp"

namespace gitops::test {
namespace {

// Starting a cluster takes longer than all cases together. ConfigMaps are not cached, so that a
// compaction of etcd makes their old versions gone at once.
PeerCluster& cluster() {
  static PeerCluster cluster({.uncached_resources = {"configmaps"}});
  return cluster;
}

struct RealKubeWatch : testing::TestWithParam<KubeWatchCase> {};

TEST_P(RealKubeWatch, Behaves) {
  if (const auto missing = PeerCluster::missing()) GTEST_SKIP() << *missing;
  static int count = 0;
  const auto ns = "watch-" + std::to_string(++count);
  cluster().create_namespace(ns);
  run_coro(
      [&]() -> Task<> {
        auto config =
            k8s::kubeconfig({cluster().kubeconfig().string()}, {}, k8s::ExecPolicy::refuse);
        CO_ASSERT_OK(config);
        const KubeWatchPeer peer{
            .config = *config,
            .ns = ns,
            .make_versions_gone = [] { cluster().compact_etcd(); },
            .restart = []() -> Task<> {
              cluster().stop_api_server(PeerCluster::Stop::kill);
              cluster().start_api_server();
              co_return;
            },
            .back_up = []() -> Task<> {
              cluster().back_up_etcd();
              co_return;
            },
            .restore = []() -> Task<> {
              cluster().restore_etcd();
              co_return;
            },
            .allow_streaming_lists = [](bool allow) -> Task<> {
              cluster().stop_api_server(PeerCluster::Stop::kill);
              cluster().start_api_server(std::vector<std::string>{
                  std::string("--feature-gates=WatchList=") + (allow ? "true" : "false")});
              co_return;
            },
            .time_limit = std::chrono::seconds(30),
        };
        co_await GetParam().run(peer);
      },
      std::chrono::seconds(120));
}

INSTANTIATE_TEST_SUITE_P(Kube, RealKubeWatch, testing::ValuesIn(kube_watch_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
