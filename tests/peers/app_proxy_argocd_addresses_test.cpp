// app-proxy with actions as the chart installs it, for each way in which Argo CD can be reached:
// https, http, https that is not verified, and in another namespace. Installed by the real helm
// into a real API server, run as the node would run it; a sync that it serves happens in the real
// Argo CD.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "peers/app_proxy_argocd_addresses_bed.hpp"
#include "peers/peer_bed.hpp"
#include "peers/rendered_workload.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

TEST_P(AppProxyAtArgoCd, ServesASync) {
  const auto& address = GetParam();
  auto& bed = peer_bed();
  const std::string ns = std::string("at-") + address.name;
  const TlsFront front(port_of(bed.argocd().url()));
  bed.cluster().create_namespace(ns, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                      {"pod-security.kubernetes.io/warn", "restricted"}});
  make_secret(ns, "argocd-token", {{"token", bed.argocd().token()}});
  make_secret(ns, "codefresh-token",
              {{"token", AppProxyHarness::kRuntime}, {"encryptionIV", "canary-iv"}});
  if (*address.authority != '\0') {
    make_secret(ns, address.authority, {{"tls.crt", front.authority()}});
  }
  make_application(ns);
  const int port = address.tls ? front.port : port_of(bed.argocd().url());
  run_coro(
      [&]() -> Task<> {
        AppProxyHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, [&](AppProxyHarness& w) -> Task<> {
          auto& accounts = w.platform.accounts();
          accounts.set_team("t1", {"u-bob"});
          accounts.set_rules(
              Json::array({{{"id", "rule"},
                            {"accountId", "acc-1"},
                            {"entityType", "gitopsApplications"},
                            {"teams", {"t1"}},
                            {"actions", {"VIEW", "SYNC"}},
                            {"attributes", {{{"name", "NAMESPACE"}, {"value", "argocd"}}}}}}));
          const auto pod = install(ns, w.platform.url().to_string(), server_values(address, port));
          auto environment = pod->process_environment();
          const std::string url = environment.at("ARGO_CD_URL").value();
          EXPECT_EQ(url, std::string(address.tls ? "https://" : "http://") + address.service + ":" +
                             std::to_string(port));
          // Nothing here resolves the names of a cluster.
          environment["ARGO_CD_URL"] =
              url.substr(0, url.find("://")) + "://127.0.0.1:" + std::to_string(port);
          w.daemon.emplace(environment,
                           std::vector<std::string>(pod->argv().begin() + 1, pod->argv().end()));
          co_await w.account_known();
          co_await serves_a_sync(w, ns);
        });
      },
      std::chrono::seconds(150));
}

// The default names the certificate that Argo CD makes for itself in its own namespace. Elsewhere
// it is missing: the pod starts all the same, and the notes say what to do.
TEST_P(AppProxyAtArgoCd, StartsWithoutTheCertificate) {
  const auto& address = GetParam();
  const std::string ns = std::string("without-") + address.name;
  peer_bed().cluster().create_namespace(ns);
  auto server = server_values(address, 443);
  server["tls"].erase("caCerts");
  const auto pod = install(ns, "https://cp.example.com", server);
  EXPECT_EQ(pod->argv().at(0), "app-proxy");
  const bool trusts = address.tls && !address.insecure;
  EXPECT_EQ(pod->environment().contains("NODE_EXTRA_CA_CERTS"), trusts);
  if (trusts) {
    const fs::path authorities = pod->environment().at("NODE_EXTRA_CA_CERTS");
    ASSERT_TRUE(fs::is_directory(authorities));
    for (const auto& file : fs::directory_iterator(authorities)) {
      EXPECT_TRUE(file.path().filename().string().starts_with("..")) << file;
    }
  }
  EXPECT_EQ(notes_.contains("argocd-server is in namespace argocd"),
            address.name == std::string_view("another-namespace"));
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, AppProxyAtArgoCd,
    testing::Values(Address{"https", "127.0.0.1", true, false, "argocd-secret"},
                    Address{"http", "127.0.0.1", false, false, ""},
                    Address{"insecure", "127.0.0.1", true, true, ""},
                    Address{"another-namespace", "argocd-server.argocd", true, false, "argo-ca"}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace gitops::test
