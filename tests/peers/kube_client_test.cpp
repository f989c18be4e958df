#include <fstream>
#include <iterator>
#include <stdexcept>

#include <gtest/gtest.h>

#include "contract/kube_client_contract.hpp"
#include "peers/peer_cluster.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

// Starting a cluster takes longer than all cases together.
PeerCluster& cluster() {
  static PeerCluster cluster;
  static const bool prepared = [] {
    std::ifstream file(peers_folder() / "share/argo-cd/application-crd.yaml");
    cluster.apply(std::string{std::istreambuf_iterator<char>(file), {}});
    const auto served = [] {
      return cluster.request("GET", "/apis/argoproj.io/v1alpha1/applications").status == 200;
    };
    require_until(served, std::chrono::seconds(20), "Applications to be served");
    return true;
  }();
  static_cast<void>(prepared);
  return cluster;
}

k8s::ClusterConfig with_token(const std::string& name, const std::string& token) {
  auto config = k8s::kubeconfig({cluster().write_kubeconfig(name, token).string()}, {},
                                k8s::ExecPolicy::refuse);
  if (!config) throw std::runtime_error(config.error().message);
  return *config;
}

struct RealKubeClient : testing::TestWithParam<KubeClientCase> {};

TEST_P(RealKubeClient, Behaves) {
  if (const auto missing = PeerCluster::missing()) GTEST_SKIP() << *missing;
  static int count = 0;
  const auto ns = "client-" + std::to_string(++count);
  cluster().create_namespace(ns);
  const KubeClientPeer peer{
      .config = with_token("admin", cluster().admin_token()),
      .powerless = with_token(ns, cluster().service_account_token(ns, "default")),
      .unknown = with_token("unknown", "wrong"),
      .ns = ns};
  run_coro([&]() -> Task<> { co_await GetParam().run(peer); }, std::chrono::seconds(120));
}

INSTANTIATE_TEST_SUITE_P(Kube, RealKubeClient, testing::ValuesIn(kube_client_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
