#include "peers/tunnel_bed.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;

TunnelAddress address_of(const PeerFrps& server, const TunnelOptions& options) {
  const bool wss = std::string_view(options.stack.protocol) == "wss";
  return {.port = wss ? server.wss_port() : server.port(), .ca_file = server.ca_file()};
}

std::vector<std::string> command(const TunnelAddress& address, int upstream_port,
                                 const TunnelOptions& options) {
  std::vector<std::string> argv{
      std::string(GITOPS_BIN_DIR) + "/tunnel-client",
      "--tunnel-server.port=" + std::to_string(address.port),
      std::string("--tunnel-server.protocol=") + options.stack.protocol,
      std::string("--tunnel-server.tls=") + (options.stack.tls ? "true" : "false"),
      "--tunnel-server.ca-file=" +
          (options.ca_file.empty() ? address.ca_file.string() : options.ca_file),
      "--tunnel.subdomain-prefix=acc-rt",
      "--tunnel.forward-to.host=127.0.0.1",
      "--tunnel.forward-to.port=" + std::to_string(upstream_port),
      "--admin-address=127.0.0.1",
      "--admin-port=0",
      "--drain-timeout=" + options.drain};
  const auto is_host = [](const std::string& flag) {
    return flag.starts_with("--tunnel-server.host=");
  };
  if (std::ranges::none_of(options.flags, is_host)) {
    argv.emplace_back("--tunnel-server.host=localhost");
  }
  argv.insert(argv.end(), options.flags.begin(), options.flags.end());
  return argv;
}

}  // namespace

TunnelClientProcess::TunnelClientProcess(const PeerFrps& server, int upstream_port,
                                         TunnelOptions options)
    : TunnelClientProcess(address_of(server, options), upstream_port, options) {}

TunnelClientProcess::TunnelClientProcess(const TunnelAddress& address, int upstream_port,
                                         TunnelOptions options)
    : process_({.argv = command(address, upstream_port, options),
                .env = std::move(options.env),
                .log_file = folder_ / "log"}) {
  constexpr std::string_view kKey = R"("admin_port":)";
  require_until([&] { return log().contains(kKey); }, seconds(20), "the tunnel-client to start");
  admin_port_ = std::atoi(log().c_str() + log().find(kKey) + kKey.size());
}

HttpReply TunnelClientProcess::admin(const std::string& path, const std::string& method) const {
  return http_call(
      {.method = method, .url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
}

void TunnelClientProcess::await_ready() {
  if (!wait_until([this] { return is_ready(); }, seconds(30), "the tunnel")) {
    throw std::runtime_error("no tunnel: " + admin("/readyz").body + "\n" + log());
  }
}

int TunnelClientProcess::sessions() const {
  const auto text = admin("/metrics").body;
  int sum = 0;
  constexpr std::string_view kName = "\ngitops_tunnel_client_sessions_total{";
  for (auto at = text.find(kName); at != std::string::npos; at = text.find(kName, at + 1)) {
    sum += std::atoi(text.c_str() + text.find("} ", at) + 2);
  }
  return sum;
}

RawResponse tunnel_call(const PeerFrps& server, const std::string& method,
                        const std::string& target, const std::string& body,
                        const std::string& host) {
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return raw_call(static_cast<std::uint16_t>(server.vhost_port()), request + "\r\n" + body);
}

bool tunnel_echo(const RecordedRequest& request, RawSocket& socket) {
  return RecordingUpstream::reply(socket, request.body.empty() ? "hello" : request.body);
}

}  // namespace gitops::test
