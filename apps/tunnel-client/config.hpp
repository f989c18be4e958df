#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/config_reader.hpp"
#include "common/tunnel/authentication.hpp"
#include "common/tunnel/message.hpp"

namespace gitops::tunnel_client {

// The layers below yamux; docs/reference/tunnel/protocol.md.
enum class Protocol : std::uint8_t {
  wss,        // TLS, then WebSocket
  websocket,  // WebSocket, and TLS inside of it when `tls` is set
  tcp,        // TLS when `tls` is set
};
// The name of the protocol in settings and on the wire.
std::string to_string(Protocol protocol);

// Address of a peer.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};
// Parses "host", "host:port" or "[address]:port". Without a port, `port` applies.
Result<Endpoint> parse_endpoint(std::string_view text, std::int64_t port);

// Server that is configured with or without a port.
struct ServerAddress {
  std::string host;
  std::optional<std::uint16_t> port = std::nullopt;  // unset: Config::server_port

  bool operator==(const ServerAddress&) const = default;
};

// Further upstream of the tunnel. The server offers it as the tunnel's host with "-NAME" appended to
// the prefix.
struct ExtraProxy {
  std::string name;
  Endpoint upstream;

  bool operator==(const ExtraProxy&) const = default;
};
// Parses "NAME=HOST:PORT".
Result<ExtraProxy> parse_extra_proxy(std::string_view text);

// The client's configuration in addition to that of every daemon. The names are those of the values
// tunnelServer and tunnel of the chart codefresh-tunnel-client.
struct Config {
  std::vector<ServerAddress> servers = {{.host = "register-tunnels.cf-cd.com"}};
  std::int64_t server_port = 443;
  Protocol protocol = Protocol::wss;
  bool tls = true;
  std::string ca_file;
  std::string server_name;
  bool insecure = false;
  Secret server_token;
  std::string server_token_file;
  tunnel::AuthScopes auth_scopes;
  std::int64_t links = 2;
  Secret group_key;
  bool tcp_mux = true;
  tunnel::Wire wire = tunnel::Wire::v1;
  Secret authorization;
  std::string authorization_file;
  std::string subdomain_prefix;
  std::vector<std::string> ips_allow_list;
  std::string location = "/";
  std::string forward_host = "internal-router";
  std::int64_t forward_port = 80;
  std::vector<ExtraProxy> extra_proxies;
  bool use_encryption = false;
  bool use_compression = false;
  std::int64_t pool_size = 1;
  std::chrono::milliseconds connect_timeout{10'000};

  bool operator==(const Config&) const = default;
};

void bind(ConfigReader& reader, Config& config);

// Returns the addresses of the configured servers.
std::vector<Endpoint> server_endpoints(const Config& config);

// Copies the settings that a running client can apply: servers, links, pool size, and the files of
// tokens and certificate authorities.
void take_over(Config& config, const Config& next);
// Returns the names of the settings that differ and that take_over() does not copy.
std::vector<std::string> need_restart(const Config& config, const Config& next);

}  // namespace gitops::tunnel_client
