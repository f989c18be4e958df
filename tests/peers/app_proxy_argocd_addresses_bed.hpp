#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "peers/peer_bed.hpp"
#include "peers/rendered_workload.hpp"
#include "support/play.hpp"
#include "support/wait.hpp"

// Argo CD behind different addresses, and app-proxy as the chart connects it with each.
namespace gitops::test {

inline constexpr auto kBob = AppProxyHarness::kBob;
inline constexpr auto kTimeLimit = std::chrono::seconds(40);

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    if (!find_program("nginx")) return "nginx is not installed";
    return PeerBed::missing();
  }
};

inline int port_of(const std::string& url) {
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

inline nlohmann::json server_values(const Address& address, int port) {
  nlohmann::json server{{"svc", address.service},
                        {"port", port},
                        {"protocol", address.tls ? "https" : "http"},
                        {"tls", {{"insecure", address.insecure}}}};
  if (address.authority == std::string_view("argo-ca")) {
    server["tls"]["caCerts"] = {{"secretKeyRef", {{"name", "argo-ca"}, {"key", "tls.crt"}}}};
  }
  return server;
}

inline void make_secret(const std::string& ns, const std::string& name,
                        const nlohmann::json& data) {
  peer_bed().cluster().apply(nlohmann::json{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", name}, {"namespace", ns}}},
      {"stringData", data}}.dump());
}

// An Application that is out of sync.
inline void make_application(const std::string& name) {
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
                                            const nlohmann::json& server) {
    const nlohmann::json values{{"global",
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
    EXPECT_THAT(done.err, testing::Not(testing::HasSubstr("arning")));
    notes_ = done.out;
    return std::make_unique<RenderedWorkload>(peer_bed().cluster(), ns,
                                              RenderedWorkload::Deployment{"cap-app-proxy"});
  }

  static Task<> serves_a_sync(AppProxyHarness& harness, std::string name) {
    constexpr const char* kSync =
        "query sync($n: String!) { sync(applicationName: $n, options: {}, appNamespace: "
        "\"argocd\") { metadata { name } } }";
    const auto deadline = deadline_after(kTimeLimit);
    AppProxyHarness::Answer answer;
    do {  // the rules come after the account
      answer = co_await harness.ask(kSync, AppProxyHarness::as(kBob), {{"n", name}});
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

}  // namespace gitops::test
