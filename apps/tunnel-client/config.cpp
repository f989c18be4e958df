#include "tunnel-client/config.hpp"

#include <algorithm>

#include "common/net/address_list.hpp"

namespace gitops::tunnel {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxLabel = 63;  // of a domain name

std::string prefix_mistake(std::string_view prefix) {
  if (prefix.empty()) return "the prefix is missing: <account id>-<runtime name>";
  if (prefix.size() > kMaxLabel) return "longer than 63 characters, which no domain name allows";
  const bool edges = prefix.front() != '-' && prefix.back() != '-';
  const bool characters = std::ranges::all_of(
      prefix, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  return edges && characters ? std::string() : "not a part of a domain name in lower case";
}

std::string addresses_mistake(const std::vector<std::string>& items) {
  const auto list = net::AddressList::parse(items);
  return list ? std::string() : list.error().message;
}

void bind_server(ConfigReader& reader, Config& config) {
  reader.group("Tunnel server");
  reader.add({"tunnel-server.host", {"TUNNEL_SERVER_HOST"}, "Host name or address of the server"},
             config.server_host);
  reader.add({"tunnel-server.port", {"TUNNEL_SERVER_PORT"}, "Port of the server"},
             config.server_port, 1, 65'535);
  reader.add_choice({"tunnel-server.protocol",
                     {"TUNNEL_SERVER_PROTOCOL"},
                     "How to reach it; wss is TLS with a WebSocket inside"},
                    config.protocol, {"wss", "websocket", "tcp"});
  reader.add(
      {"tunnel-server.tls", {"TUNNEL_SERVER_TLS"}, "Speak TLS with the server; wss always does"},
      config.tls);
  reader.add({"tunnel-server.ca-file",
              {"TUNNEL_SERVER_CA_FILE"},
              "PEM file with the certificate authorities of the server, instead of the system's"},
             config.ca_file);
  reader.add({"tunnel-server.server-name",
              {"TUNNEL_SERVER_NAME"},
              "Name in the server's certificate, when it is not the host"},
             config.server_name);
  reader.add({"tunnel-server.insecure-skip-verify",
              {"TUNNEL_SERVER_INSECURE_SKIP_VERIFY"},
              "Accept any certificate of the server"},
             config.insecure);
  reader.add_secret({"tunnel-server.token",
                     {"TUNNEL_SERVER_TOKEN"},
                     "Token that frp's server shares with its clients; hosted servers have none"},
                    config.server_token);
  reader.add_secret({"authorization",
                     {"AUTHORIZATION"},
                     "Token of the runtime, by which the control plane knows whose tunnel it is"},
                    config.authorization, &config.authorization_file);
}

void bind_tunnel(ConfigReader& reader, Config& config) {
  reader.group("Tunnel");
  reader.add({"tunnel.subdomain-prefix",
              {"TUNNEL_SUBDOMAIN_PREFIX"},
              "First label of the tunnel's host name: <account id>-<runtime name>"},
             config.subdomain_prefix);
  reader.check({"tunnel.subdomain-prefix"},
               [&config] { return prefix_mistake(config.subdomain_prefix); });
  reader.add({"tunnel.ips-allow-list",
              {"TUNNEL_IPS_ALLOW_LIST"},
              "Addresses and networks that may use the tunnel; empty: all"},
             config.ips_allow_list);
  reader.check({"tunnel.ips-allow-list"},
               [&config] { return addresses_mistake(config.ips_allow_list); });
  reader.add({"tunnel.forward-to.host",
              {"TUNNEL_FORWARD_TO_HOST"},
              "Host that the tunnel's connections go to"},
             config.forward_host);
  reader.add({"tunnel.forward-to.port", {"TUNNEL_FORWARD_TO_PORT"}, "Port of that host"},
             config.forward_port, 1, 65'535);
  reader.add({"tunnel.forward-to.location",
              {"TUNNEL_FORWARD_TO_LOCATION"},
              "Paths that the server sends here, by their beginning"},
             config.location);
  reader.check({"tunnel.forward-to.location"}, [&config] {
    return config.location.starts_with('/') ? std::string() : "does not begin with a slash";
  });
  reader.add({"tunnel.pool-size",
              {"TUNNEL_POOL_SIZE"},
              "Connections that the server may keep waiting for requests"},
             config.pool_size, 0, 100);
}

}  // namespace

void bind(ConfigReader& reader, Config& config) {
  bind_server(reader, config);
  bind_tunnel(reader, config);
  reader.group("Limits");
  reader.add({"connect-timeout",
              {"CONNECT_TIMEOUT"},
              "To connect to the server, and to the host that the tunnel leads to"},
             config.connect_timeout, milliseconds(100), milliseconds(300'000));
  reader.add({"idle-timeout",
              {"IDLE_TIMEOUT"},
              "After which a connection through the tunnel that carries nothing is closed"},
             config.idle_timeout, milliseconds(1'000), milliseconds(86'400'000));
}

}  // namespace gitops::tunnel
