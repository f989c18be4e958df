#include "daemons/tunnel_processes.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "daemons/daemon_program.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;

// Without the proxies of the machine, through which no port of 127.0.0.1 is reached.
const Environment kNoProxies{{"HTTP_PROXY", std::nullopt},
                             {"http_proxy", std::nullopt},
                             {"HTTPS_PROXY", std::nullopt},
                             {"https_proxy", std::nullopt}};

std::string on_localhost(int port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

ProcessOptions client_options(const std::vector<std::uint16_t>& servers,
                              const std::filesystem::path& ca_file, std::uint16_t upstream_port,
                              const std::vector<std::string>& flags, const TunnelRuntime& runtime,
                              const TempDir& folder) {
  std::string hosts;
  for (const auto port : servers) {
    hosts += (hosts.empty() ? "localhost:" : ",localhost:") + std::to_string(port);
  }
  std::vector<std::string> argv{daemon_program("tunnel-client"),
                                "--tunnel-server.host=" + hosts,
                                "--tunnel-server.protocol=wss",
                                "--tunnel-server.ca-file=" + ca_file.string(),
                                "--tunnel.subdomain-prefix=" + runtime.prefix,
                                "--tunnel.forward-to.host=127.0.0.1",
                                "--tunnel.forward-to.port=" + std::to_string(upstream_port),
                                "--admin-address=127.0.0.1",
                                "--admin-port=0"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  auto environment = kNoProxies;
  environment["AUTHORIZATION"] = runtime.token;
  return {.argv = std::move(argv), .env = std::move(environment), .log_file = folder / "log"};
}

bool is_plugin(const std::string& flag) {
  return flag.starts_with("--plugin.url=");
}

}  // namespace

OwnTunnelServer::OwnTunnelServer(CertificateAuthority& authority, std::vector<std::string> flags) {
  const auto certificate = authority.issue(
      {.common_name = "tunnel", .organization = {}, .alt_names = {"localhost", "*.example.test"}});
  command_ = {daemon_program("tunnel-server"),
              "--subdomain-host=example.test",
              "--tunnel.listen-address=127.0.0.1",
              "--tunnel.port=" + std::to_string(tunnel_port),
              "--tunnel.require-tls=true",
              "--tunnel.tls-certificate-file=" + certificate.cert_file.string(),
              "--tunnel.tls-key-file=" + certificate.key_file.string(),
              "--listen-address=127.0.0.1",
              "--port=" + std::to_string(port),
              "--tls-certificate-file=" + certificate.cert_file.string(),
              "--tls-key-file=" + certificate.key_file.string(),
              "--admin-address=127.0.0.1",
              "--admin-port=" + std::to_string(admin_port_)};
  if (std::ranges::none_of(flags, is_plugin)) {
    write_file(folder_ / "runtimes", std::string(kRuntimePrefix) + " " + kRuntimeToken + "\n");
    command_.push_back("--runtimes-file=" + (folder_ / "runtimes").string());
  }
  command_.insert(command_.end(), flags.begin(), flags.end());
  start();
}

void OwnTunnelServer::start() {
  process_.emplace(
      ProcessOptions{.argv = command_, .env = kNoProxies, .log_file = folder_ / "log"});
  require_until([this] { return admin("/readyz").ok() || !process_->running(); }, seconds(20),
                "the tunnel-server to start");
  if (!process_->running()) throw std::runtime_error("the tunnel-server ended:\n" + log());
}

HttpReply OwnTunnelServer::admin(const std::string& path) const {
  return http_call({.url = on_localhost(admin_port_) + path});
}

bool OwnTunnelServer::serves(const std::string& host) const {
  return status().count_if([&host](const nlohmann::json& entry) {
    return entry["state"] == "ok" && entry.contains("values") &&
           entry["values"].value("hosts", "").starts_with(host);
  }) > 0;
}

OpenTunnelServer::OpenTunnelServer(std::vector<std::string> flags) {
  const auto certificate =
      authority_.issue({.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}});
  command_ = {daemon_program("tunnel-server"),
              "--subdomain-host=example.test",
              "--tunnel.listen-address=127.0.0.1",
              "--tunnel.port=" + std::to_string(tunnel_port),
              "--tunnel.tls-certificate-file=" + certificate.cert_file.string(),
              "--tunnel.tls-key-file=" + certificate.key_file.string(),
              "--listen-address=127.0.0.1",
              "--port=" + std::to_string(port),
              "--admin-address=127.0.0.1",
              "--admin-port=" + std::to_string(admin_port)};
  command_.insert(command_.end(), flags.begin(), flags.end());
  start();
}

void OpenTunnelServer::start() {
  auto environment = kNoProxies;
  environment["TUNNEL_SERVER_TOKEN"] = "s3cret";
  process_.emplace(
      ProcessOptions{.argv = command_, .env = std::move(environment), .log_file = folder_ / "log"});
  require_until([this] { return admin("/readyz").ok() || !process_->running(); }, seconds(20),
                "the tunnel-server to start");
  if (!process_->running()) throw std::runtime_error("the tunnel-server ended:\n" + log());
}

HttpReply OpenTunnelServer::admin(const std::string& path) const {
  return http_call({.url = on_localhost(admin_port) + path});
}

RawResponse OpenTunnelServer::call(const std::string& method, const std::string& target,
                                   const std::string& body, const std::string& host) const {
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return raw_call(static_cast<std::uint16_t>(port), request + "\r\n" + body);
}

OwnTunnelClient::OwnTunnelClient(const std::vector<std::uint16_t>& servers,
                                 const std::filesystem::path& ca_file, std::uint16_t upstream_port,
                                 const std::vector<std::string>& flags,
                                 const TunnelRuntime& runtime)
    : process_(client_options(servers, ca_file, upstream_port, flags, runtime, folder_)) {
  constexpr std::string_view kKey = R"("admin_port":)";
  require_until([&] { return log().contains(kKey) || !process_.running(); }, seconds(20),
                "the tunnel-client to start");
  if (!process_.running()) throw std::runtime_error("the tunnel-client ended:\n" + log());
  admin_port_ = std::atoi(log().c_str() + log().find(kKey) + kKey.size());
}

HttpReply OwnTunnelClient::admin(const std::string& path, const std::string& method) const {
  return http_call({.method = method, .url = on_localhost(admin_port_) + path});
}

std::int64_t OwnTunnelClient::sum(const std::string& metric) const {
  const auto text = admin("/metrics").body;
  const auto name = "\n" + metric + "{";
  std::int64_t sum = 0;
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    sum += std::atoll(text.c_str() + text.find("} ", at) + 2);
  }
  return sum;
}

}  // namespace gitops::test
