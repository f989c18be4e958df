#pragma once

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "daemons/router_harness.hpp"
#include "peers/peer_programs.hpp"
#include "peers/rendered_workload.hpp"
#include "peers/shared_cluster.hpp"
#include "support/status_page.hpp"

// The pods of the tunnel and of the router, run from what is installed in the cluster.
namespace gitops::test {

// The prefix is made of the account and the name in the minimal values.
inline constexpr const char* kHost = "acc-demo.tunnels.example.test";
inline constexpr const char* kUser = "127.0.0.7";

// A daemon of a pod, as a child process. Its names are those of a hosts file.
class PodProcess {
 public:
  PodProcess(const RenderedWorkload& pod, const std::string& hosts,
             const std::vector<std::string>& more = {})
      : process_(options(pod, hosts, more)) {}

  bool running() { return process_.running(); }
  std::string log() const { return read_file(folder_ / "log"); }
  Process& process() { return process_; }

 private:
  ProcessOptions options(const RenderedWorkload& pod, const std::string& hosts,
                         const std::vector<std::string>& more) const {
    write_file(folder_ / "hosts", hosts);
    auto argv = pod.argv();
    argv[0] = std::string(GITOPS_BIN_DIR) + "/" + argv[0];
    argv.insert(argv.end(), more.begin(), more.end());
    auto environment = pod.process_environment();
    environment["LD_PRELOAD"] = hosts_library();
    environment["NSS_WRAPPER_HOSTS"] = (folder_ / "hosts").string();
    environment["NSS_WRAPPER_DISABLE_DEEPBIND"] = "1";  // which sanitizers refuse
    return {.argv = std::move(argv), .env = std::move(environment), .log_file = folder_ / "log"};
  }

  TempDir folder_;
  Process process_;
};

class TunnelChartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
    if (const auto lacking = PeerCluster::missing()) GTEST_SKIP() << "peers: " << *lacking;
    static int number = 0;
    ns_ = "tunnel-" + std::to_string(++number);
    cluster().create_namespace(ns_, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                     {"pod-security.kubernetes.io/warn", "restricted"}});
    const auto clients = authority_.issue({.common_name = "clients",
                                           .organization = {},
                                           .alt_names = {"c-0.example.test", "c-1.example.test"}});
    const auto users = authority_.issue(
        {.common_name = "users", .organization = {}, .alt_names = {"*.tunnels.example.test"}});
    add_tls_secret("clients-tls", clients);
    add_tls_secret("users-tls", users);
    add_secret("codefresh-token", "token=runtime-token");
    add_secret("runtimes", "list=acc-demo runtime-token\n");
    add_secret("tunnel-ca", "ca.pem=" + read_file(authority_.ca_file()));
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& server : servers_) std::cerr << "server:\n" << server->log();
    if (client_) std::cerr << "client:\n" << client_->log();
    if (router_) std::cerr << "router:\n" << router_->log();
  }

  static PeerCluster& cluster() { return shared_cluster(); }
  void add_secret(const std::string& name, const std::string& literal) const {
    cluster().kubectl_ok(
        {"-n", ns_, "create", "secret", "generic", name, "--from-literal=" + literal});
  }
  void add_tls_secret(const std::string& name, const Certificate& certificate) const {
    cluster().kubectl_ok({"-n", ns_, "create", "secret", "tls", name,
                          "--cert=" + certificate.cert_file.string(),
                          "--key=" + certificate.key_file.string()});
  }

  // Two servers; a client that is told of the second one by the first; the router.
  nlohmann::json values() const {
    const nlohmann::json address{{"METRICS_LISTEN_ADDRESS", "127.0.0.1"}, {"ADMIN_PORT", 0}};
    auto server_env = address;
    server_env["LISTEN_PORT"] = users_port_;
    server_env["TUNNEL_PORT"] = clients_port_;
    server_env["ADMIN_PORT"] = admin_port_;
    auto router_env = address;
    router_env["LISTEN_PORT"] = router_port_;
    const auto secret = [](const char* name, const char* key) {
      return nlohmann::json{{"secretKeyRef", {{"name", name}, {"key", key}}}};
    };
    return {{"global", {{"codefresh", {{"accountId", "acc"}}}}},
            {"internal-router",
             {{"service", {{"port", router_port_}}},
              {"routing",
               {{"app-proxy",
                 {{"internalUrl", "http://127.0.0.1:" + std::to_string(app_proxy_.port())}}}}},
              {"env", router_env}}},
            {"tunnel-client",
             {{"tunnelServer",
               {{"host", "c-0.example.test"},
                {"port", clients_port_},
                {"subdomainHost", "tunnels.example.test"},
                {"caCerts", secret("tunnel-ca", "ca.pem")}}},
              {"env", address}}},
            {"tunnel-server",
             {{"enabled", true},
              {"replicaCount", 2},
              {"subdomainHost", "tunnels.example.test"},
              {"auth", {{"runtimes", secret("runtimes", "list")}}},
              {"clients",
               {{"hosts", {"c-0.example.test", "c-1.example.test"}},
                {"port", clients_port_},
                {"tls", {{"secretName", "clients-tls"}}}}},
              {"users", {{"tls", {{"secretName", "users-tls"}}}}},
              {"terminationGracePeriodSeconds", 20},
              {"env", server_env}}}};
  }

  void install(const nlohmann::json& values) {
    TempDir folder;
    write_file(folder / "values.json", values.dump());
    const auto done = helm_.run({"upgrade", "--install", "rt", chart_folder(), "-n", ns_, "-f",
                                 values_file("minimal.yaml"), "-f", folder / "values.json"},
                                cluster().kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
    EXPECT_THAT(done.err, testing::Not(testing::HasSubstr("arning")));
  }

  // Where server `number` is on this machine.
  static std::string address(int number) { return "127.0.0." + std::to_string(number + 1); }

  void start(int servers) {
    const std::string hosts =
        address(0) + " c-0.example.test internal-router\n" + address(1) + " c-1.example.test\n";
    for (int number = 0; number < servers; ++number) {
      const RenderedWorkload& pod = *pods_.emplace_back(
          std::make_unique<RenderedWorkload>(cluster(), ns_, "tunnel-server", number));
      servers_.push_back(std::make_unique<PodProcess>(
          pod, hosts,
          std::vector<std::string>{"--listen-address=" + address(number),
                                   "--tunnel.listen-address=" + address(number),
                                   "--admin-address=" + address(number)}));
    }
    router_pod_ = std::make_unique<RenderedWorkload>(
        cluster(), ns_, RenderedWorkload::Deployment{"internal-router"});
    auto argv = router_pod_->argv();
    argv[0] = std::string(GITOPS_BIN_DIR) + "/" + argv[0];
    // The headless Service of the client's pod.
    const auto pods = "codefresh-tunnel-client-pods." + ns_ + ".svc.cluster.local";
    router_ = std::make_unique<RouterProcess>(std::move(argv), router_pod_->process_environment(),
                                              "127.0.0.1 " + pods + "\n");
    client_pod_ = std::make_unique<RenderedWorkload>(
        cluster(), ns_, RenderedWorkload::Deployment{"codefresh-tunnel-client"});
    client_ = std::make_unique<PodProcess>(*client_pod_, hosts);
  }

  // Whether the client serves its host through server `number`.
  bool serves(int number) const {
    const auto reply = http_call(
        {.url = "http://" + address(number) + ":" + std::to_string(admin_port_) + kStatusPath});
    return StatusPage(reply.body).count_if([](const nlohmann::json& entry) {
      return entry["state"] == "ok" && entry.contains("values") &&
             entry["values"].value("hosts", "").starts_with(kHost);
    }) > 0;
  }
  // A request of a user by way of server `number`; the status behind the body.
  CommandResult ask(int number, const std::string& path) const {
    return ask_at(address(number), users_port_, path);
  }
  CommandResult ask_at(const std::string& to, int port, const std::string& path) const {
    const auto host = std::string(kHost) + ":" + std::to_string(port);
    return run_command({"curl", "-s", "-m", "20", "--interface", kUser, "--cacert",
                        authority_.ca_file().string(), "--resolve", host + ":" + to, "-w",
                        " %{http_code}", "https://" + host + path});
  }

  RecordingUpstream app_proxy_{"app-proxy"};
  CertificateAuthority authority_;
  Helm helm_;
  std::string ns_;
  const int users_port_ = free_port();
  const int clients_port_ = free_port();
  const int admin_port_ = free_port();
  const int router_port_ = free_port();
  std::vector<std::unique_ptr<RenderedWorkload>> pods_;
  std::unique_ptr<RenderedWorkload> router_pod_;
  std::unique_ptr<RenderedWorkload> client_pod_;
  std::vector<std::unique_ptr<PodProcess>> servers_;
  std::unique_ptr<RouterProcess> router_;
  std::unique_ptr<PodProcess> client_;
};

}  // namespace gitops::test
