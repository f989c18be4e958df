// app-proxy with actions as the chart installs it, for each way in which Argo CD can be reached:
// https, http, https that is not verified, and in another namespace. Installed by the real helm
// into a real API server, run as the node would run it; a sync that it serves happens in the real
// Argo CD.
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "peers/peer_bed.hpp"
#include "peers/rendered_workload.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
constexpr auto kBob = AppProxyHarness::kBob;
constexpr auto kTimeLimit = std::chrono::seconds(40);

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    if (!find_program("nginx")) return "nginx is not installed";
    return PeerBed::missing();
  }
};

int port_of(const std::string& url) {
  return std::stoi(url.substr(url.rfind(':') + 1));
}

// An end of TLS in front of Argo CD, whose certificate an authority of its own has signed.
class TlsFront {
 public:
  explicit TlsFront(int behind) {
    const auto certificate = authority_.issue({.common_name = "argocd-server",
                                               .organization = {},
                                               .alt_names = {"127.0.0.1", "argocd-server"}});
    const auto folder = programs_.folder().string();
    std::string config = "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + folder +
                         "/nginx.pid;\nevents {}\nhttp {\n  access_log off;\n";
    for (const char* name : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      config += std::string("  ") + name + "_temp_path " + folder + "/" + name + ";\n";
    }
    config += "  server {\n    listen 127.0.0.1:" + std::to_string(port) + " ssl;\n" +
              "    ssl_certificate " + certificate.cert_file.string() +
              ";\n    ssl_certificate_key " + certificate.key_file.string() +
              ";\n    location / {\n      proxy_pass http://127.0.0.1:" + std::to_string(behind) +
              ";\n      proxy_http_version 1.1;\n      proxy_buffering off;\n    }\n  }\n}\n";
    write_file(programs_.folder() / "nginx.conf", config);
    programs_.start("nginx", {"nginx", "-p", folder, "-c", folder + "/nginx.conf"});
    programs_.await("nginx", [this] {
      return run_command({"curl", "-sf", "--cacert", authority_.ca_file(),
                          "https://127.0.0.1:" + std::to_string(port) + "/healthz"})
          .ok();
    });
  }

  const int port = free_port();
  std::string authority() const { return read_file(authority_.ca_file()); }

 private:
  CertificateAuthority authority_;
  PeerPrograms programs_{"gitops-tls-front"};
};

struct Address {
  const char* name;
  const char* service;
  bool tls;
  bool insecure;
  const char* authority;  // the Secret in the release's namespace that has it; empty: none has
};

Json server_values(const Address& address, int port) {
  Json server{{"svc", address.service},
              {"port", port},
              {"protocol", address.tls ? "https" : "http"},
              {"tls", {{"insecure", address.insecure}}}};
  if (address.authority == std::string_view("argo-ca")) {
    server["tls"]["caCerts"] = {{"secretKeyRef", {{"name", "argo-ca"}, {"key", "tls.crt"}}}};
  }
  return server;
}

void make_secret(const std::string& ns, const std::string& name, const Json& data) {
  peer_bed().cluster().apply(Json{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", name}, {"namespace", ns}}},
      {"stringData", data}}.dump());
}

// An Application that is out of sync.
void make_application(const std::string& name) {
  auto& bed = peer_bed();
  const auto url = bed.git().create_repository(name);
  bed.git().commit(name,
                   {{"settings.yaml",
                     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
                     "data: {a: b}\n"}},
                   "first");
  bed.argocd().add_repository(bed.git(), name);
  bed.argocd().create_application(name, url, ".", name);
  EXPECT_TRUE(wait_until(
      [&] { return bed.argocd().app_field(name, "{.status.sync.status}") == "OutOfSync"; },
      kTimeLimit, "the first comparison"));
}

class AppProxyAtArgoCd : public testing::TestWithParam<Address> {
 protected:
  void SetUp() override {
    GITOPS_REQUIRE_PEER(Programs);
    (void)peer_bed();
  }

  // Installs a release that reaches Argo CD there, and returns its app-proxy's container.
  std::unique_ptr<RenderedWorkload> install(const std::string& ns, const std::string& platform,
                                            const Json& server) {
    const Json values{{"global",
                       {{"codefresh", {{"url", platform}}},
                        {"runtime", {{"name", "prod"}}},
                        {"integrations", {{"argo-cd", {{"server", server}}}}},
                        {"event-reporters", {{"persistence", {{"enabled", false}}}}}}},
                      {"app-proxy",
                       {{"enabled", true},
                        {"actions", {{"enabled", true}}},
                        {"env", {{"RULES_REFRESH", "1s"}}},
                        {"terminationGracePeriodSeconds", 5}}}};
    write_file(folder_ / "values.json", values.dump());
    const auto done =
        helm_.run({"install", "rt", chart_folder(), "-n", ns, "-f", folder_ / "values.json"},
                  peer_bed().cluster().kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
    EXPECT_THAT(done.err, Not(HasSubstr("arning")));
    notes_ = done.out;
    return std::make_unique<RenderedWorkload>(peer_bed().cluster(), ns,
                                              RenderedWorkload::Deployment{"cap-app-proxy"});
  }

  static Task<> serves_a_sync(AppProxyHarness& world, std::string name) {
    constexpr const char* kSync =
        "query sync($n: String!) { sync(applicationName: $n, options: {}, appNamespace: "
        "\"argocd\") { metadata { name } } }";
    const auto deadline = deadline_after(kTimeLimit);
    AppProxyHarness::Answer answer;
    do {  // the rules come after the account
      answer = co_await world.ask(kSync, AppProxyHarness::as(kBob), {{"n", name}});
      if (!answer.json.contains("errors")) break;
      co_await sleep_for(std::chrono::milliseconds(200));
    } while (Clock::now() < deadline);
    EXPECT_FALSE(answer.json.contains("errors")) << answer.body;
    while (peer_bed().argocd().app_field(name, "{.status.sync.status}") != "Synced" &&
           Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(peer_bed().argocd().app_field(name, "{.status.sync.status}"), "Synced");
  }

  TempDir folder_;
  Helm helm_;
  std::string notes_;
};

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
        AppProxyHarness world(co_await asio::this_coro::executor);
        co_await play_in(world, [&](AppProxyHarness& w) -> Task<> {
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
