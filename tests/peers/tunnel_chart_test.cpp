// The tunnel as the chart installs it: into a real API server by the real helm, read back from
// there, and run as the nodes would run it, from the user's request to the upstream of the router.
#include <csignal>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "daemons/router_harness.hpp"
#include "peers/peer_programs.hpp"
#include "peers/rendered_workload.hpp"
#include "peers/shared_cluster.hpp"
#include "peers/tunnel_chart_bed.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kTimeLimit = std::chrono::seconds(60);

TEST_F(TunnelChartTest, UsersReachTheRuntimeThroughEachServerUntilItIsStopped) {
  install(values());
  start(2);
  for (const int number : {0, 1}) {
    require_until([&] { return serves(number); }, kTimeLimit,
                  "the client to serve through server " + std::to_string(number));
    const auto path = "/app-proxy/" + std::to_string(number);
    EXPECT_EQ(ask(number, path).out, "app-proxy 200");
    // Address, host and scheme of the user, not those of the tunnel-client.
    const auto request = app_proxy_.requests().back();
    EXPECT_EQ(request.target(), path);
    EXPECT_EQ(request.header("X-Forwarded-For"), std::string(kUser) + ", 127.0.0.1");
    EXPECT_EQ(request.header("X-Forwarded-Proto"), "https");
    EXPECT_EQ(request.header("X-Forwarded-Host"),
              std::string(kHost) + ":" + std::to_string(users_port_));
  }

  // No right, no token.
  EXPECT_TRUE(pods_[0]->kubeconfig().empty());
  EXPECT_TRUE(client_pod_->kubeconfig().empty());

  servers_[0]->process().signal(SIGTERM);
  EXPECT_EQ(servers_[0]->process().wait(kTimeLimit), 0);
  EXPECT_EQ(ask(1, "/app-proxy/later").out, "app-proxy 200");

  // A runtime that is taken from the list loses its host, without a restart.
  cluster().kubectl_ok({"-n", ns_, "patch", "secret", "runtimes", "-p",
                        R"({"stringData":{"list":"someone-else other-token\n"}})"});
  pods_[1]->update_volumes();
  EXPECT_TRUE(wait_until([&] { return ask(1, "/app-proxy/x").out.ends_with(" 404"); }, kTimeLimit,
                         "the host to be gone", milliseconds(100)));
  client_->process().signal(SIGTERM);
  EXPECT_EQ(client_->process().wait(kTimeLimit), 0);
}

// nginx in the place of an ingress controller: it ends TLS and does what the Ingresses in the
// cluster say.
TEST_F(TunnelChartTest, UsersAndClientsComeThroughTheIngresses) {
  if (!find_program("nginx")) GTEST_SKIP() << "nginx is missing (Debian: nginx-light)";
  const int port = free_port();
  auto behind_ingress = values();
  auto& server = behind_ingress["tunnel-server"];
  server["replicaCount"] = 1;
  server["clients"] = {
      {"hosts", {"c-0.example.test"}}, {"port", port}, {"ingress", {{"enabled", true}}}};
  server["users"] = {{"trustedProxies", {"127.0.0.1"}}, {"ingress", {{"enabled", true}}}};
  behind_ingress["tunnel-client"]["tunnelServer"]["port"] = port;
  install(behind_ingress);

  const auto certificate =
      authority_.issue({.common_name = "ingress",
                        .organization = {},
                        .alt_names = {"c-0.example.test", "*.tunnels.example.test"}});
  PeerPrograms ingress("gitops-ingress");
  const auto folder = ingress.folder().string();
  std::string config = "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + folder +
                       "/pid;\nevents {}\nhttp {\naccess_log off;\n"
                       "map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n";
  for (const auto* temporary : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    config += std::string(temporary) + "_temp_path " + folder + "/" + temporary + ";\n";
  }
  int rules = 0;
  for (const auto* name : {"tunnel-server", "tunnel-server-clients"}) {
    const auto object =
        json::parse(cluster().kubectl_ok({"-n", ns_, "get", "ingress", name, "-o", "json"}));
    for (const auto& rule : object.at("/spec/rules"_json_pointer)) {
      const auto& path = rule.at("/http/paths/0"_json_pointer);
      const auto service = path.at("/backend/service/name"_json_pointer).get<std::string>();
      const std::map<std::string, int> behind{{"tunnel-server", users_port_},
                                              {"tunnel-server-0", clients_port_}};
      config += "server { listen 127.0.0.1:" + std::to_string(port) + " ssl; server_name " +
                rule.at("host").get<std::string>() + ";\nssl_certificate " +
                certificate.cert_file.string() + "; ssl_certificate_key " +
                certificate.key_file.string() + ";\nlocation " +
                path.at("path").get<std::string>() +
                " { proxy_pass http://127.0.0.1:" + std::to_string(behind.at(service)) +
                "; proxy_http_version 1.1; proxy_set_header Host $http_host;\n"
                "proxy_set_header Upgrade $http_upgrade;\n"
                "proxy_set_header Connection $connection_upgrade;\n"
                "proxy_set_header X-Forwarded-For $remote_addr;\n"
                "proxy_set_header X-Forwarded-Host $http_host;\n"
                "proxy_set_header X-Forwarded-Proto $scheme; } }\n";
      ++rules;
    }
  }
  EXPECT_EQ(rules, 2);
  write_file(ingress.folder() / "nginx.conf", config + "}\n");
  ingress.start("nginx", {find_program("nginx")->string(), "-p", folder, "-c",
                          (ingress.folder() / "nginx.conf").string()});
  start(1);
  require_until([&] { return serves(0); }, kTimeLimit, "the client to serve");
  EXPECT_EQ(ask_at("127.0.0.1", port, "/app-proxy/x").out, "app-proxy 200");
  const auto request = app_proxy_.requests().back();
  EXPECT_EQ(request.header("X-Forwarded-For"), std::string(kUser) + ", 127.0.0.1, 127.0.0.1");
  EXPECT_EQ(request.header("X-Forwarded-Proto"), "https");
  EXPECT_EQ(request.header("X-Forwarded-Host"), std::string(kHost) + ":" + std::to_string(port));
}

}  // namespace
}  // namespace gitops::test
