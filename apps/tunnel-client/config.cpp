#include "tunnel-client/config.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/net/address_list.hpp"

namespace gitops::tunnel_client {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxLabel = 63;  // of a domain name
constexpr std::size_t kMaxServers = 8;
// Maximum number of extra proxies. Our server accepts 16 proxies of a client.
constexpr std::size_t kMaxExtraProxies = 15;

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

Result<ServerAddress> parse_server(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::invalid_argument,
                "'" + std::string(text) + "' is no host, host:port or [address]:port");
  };
  ServerAddress server;
  auto host = text;
  const auto colon = text.rfind(':');
  const auto bracket = text.rfind(']');
  const bool has_port =
      colon != std::string_view::npos &&
      (bracket == std::string_view::npos ? text.find(':') == colon : colon == bracket + 1);
  if (has_port) {
    const auto digits = text.substr(colon + 1);
    const auto* end = digits.data() + digits.size();
    std::uint16_t port = 0;
    const auto [read, error] = std::from_chars(digits.data(), end, port);
    if (error != std::errc() || read != end || port == 0) return wrong();
    server.port = port;
    host = text.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool characters =
      !host.empty() && host.size() <= 253 && std::ranges::all_of(host, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("-._:").contains(c);
      });
  if (!characters) return wrong();
  server.host = host;
  return server;
}

Result<std::vector<ServerAddress>> parse_servers(const std::vector<std::string>& items) {
  if (items.empty()) return fail(ErrorCode::invalid_argument, "no server is given");
  if (items.size() > kMaxServers) return fail(ErrorCode::invalid_argument, "more than 8 servers");
  return parse_each(items, parse_server);
}

Result<std::vector<ExtraProxy>> parse_extra_proxies(const std::vector<std::string>& items) {
  if (items.size() > kMaxExtraProxies) {
    return fail(ErrorCode::invalid_argument, "more than 15 proxies");
  }
  return parse_each(items, parse_extra_proxy);
}

std::string extra_proxies_mistake(const Config& config) {
  for (const auto& proxy : config.extra_proxies) {
    const auto prefix = config.subdomain_prefix + "-" + proxy.name;
    if (auto mistake = prefix_mistake(prefix); !mistake.empty()) return prefix + ": " + mistake;
  }
  return {};
}

void bind_server(ConfigReader& reader, Config& config) {
  reader.group("Tunnel server");
  reader.add_parsed_list(
      {"tunnel-server.host",
       {"TUNNEL_SERVER_HOST"},
       "Host names or addresses of the servers; :port overrides tunnel-server.port"},
      config.servers, config.servers.front().host, parse_servers);
  reader.add({"tunnel-server.port", {"TUNNEL_SERVER_PORT"}, "Port of the servers"},
             config.server_port, 1, 65'535);
  reader.add_choice({"tunnel-server.protocol",
                     {"TUNNEL_SERVER_PROTOCOL"},
                     "Transport to the servers; wss is TLS with a WebSocket inside"},
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
                    config.server_token, &config.server_token_file);
  reader.add_parsed_list({"tunnel-server.auth-scopes",
                          {"TUNNEL_SERVER_AUTH_SCOPES"},
                          "Messages that carry that token besides the login, as in the server's "
                          "auth.additionalScopes: HeartBeats, NewWorkConns"},
                         config.auth_scopes, {}, tunnel::parse_auth_scopes);
  reader.add({"tunnel-server.links",
              {"TUNNEL_SERVER_LINKS"},
              "Links to keep to a server that takes several; others get one"},
             config.links, 1, 8);
  reader.add_secret({"tunnel-server.group-key",
                     {"TUNNEL_SERVER_GROUP_KEY"},
                     "Key of a group of frp's server, by which it takes several links"},
                    config.group_key);
  reader.add({"tunnel-server.tcp-mux",
              {"TUNNEL_SERVER_TCP_MUX"},
              "Multiplex all streams of a link over one connection; must equal the server's "
              "transport.tcpMux"},
             config.tcp_mux);
  reader.add_choice(
      {"tunnel-server.wire-protocol",
       {"TUNNEL_SERVER_WIRE_PROTOCOL"},
       "Version of frp's wire protocol; v2 needs frp 0.69 or our server, and encrypts "
       "the control stream by AES-256-GCM"},
      config.wire, {"v1", "v2"});
  reader.add_secret(
      {"authorization",
       {"AUTHORIZATION"},
       "Token of the runtime; identifies the owner of the tunnel to the control plane"},
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
              "Prefix of the paths that the server sends through the tunnel"},
             config.location);
  reader.check({"tunnel.forward-to.location"}, [&config] {
    return config.location.starts_with('/') ? std::string() : "does not begin with a slash";
  });
  reader.add_parsed_list({"tunnel.extra-proxies",
                          {"TUNNEL_EXTRA_PROXIES"},
                          "Further upstreams as NAME=HOST:PORT; each has the tunnel's host name "
                          "with -NAME after the prefix"},
                         config.extra_proxies, {}, parse_extra_proxies);
  reader.check({"tunnel.extra-proxies", "tunnel.subdomain-prefix"},
               [&config] { return extra_proxies_mistake(config); });
  reader.add(
      {"tunnel.use-encryption",
       {"TUNNEL_USE_ENCRYPTION"},
       "Encrypt connections with the server's token, too, as frp's transport.useEncryption; no "
       "substitute for TLS"},
      config.use_encryption);
  reader.add(
      {"tunnel.use-compression",
       {"TUNNEL_USE_COMPRESSION"},
       "Compress connections by Snappy, as frp's transport.useCompression; for upstreams that "
       "do not compress themselves"},
      config.use_compression);
  reader.add({"tunnel.pool-size",
              {"TUNNEL_POOL_SIZE"},
              "Connections that the server may keep waiting for requests"},
             config.pool_size, 0, 100);
}

}  // namespace

std::string to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::wss:
      return "wss";
    case Protocol::websocket:
      return "websocket";
    case Protocol::tcp:
      return "tcp";
  }
  return {};
}

Result<Endpoint> parse_endpoint(std::string_view text, std::int64_t port) {
  auto server = parse_server(text);
  if (!server) return std::unexpected(std::move(server.error()));
  if (!server->port && (port < 1 || port > 65'535)) {
    return fail(ErrorCode::invalid_argument, "'" + std::string(text) + "' has no port");
  }
  return Endpoint{.host = std::move(server->host),
                  .port = server->port.value_or(static_cast<std::uint16_t>(port))};
}

std::vector<Endpoint> server_endpoints(const Config& config) {
  std::vector<Endpoint> endpoints;
  for (const auto& [host, port] : config.servers) {
    endpoints.push_back(
        {.host = host, .port = port.value_or(static_cast<std::uint16_t>(config.server_port))});
  }
  return endpoints;
}

Result<ExtraProxy> parse_extra_proxy(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "'" + std::string(text) + "' is not NAME=HOST:PORT");
  }
  auto upstream = parse_endpoint(text.substr(equals + 1), 0);
  if (!upstream) return std::unexpected(upstream.error());
  return ExtraProxy{.name = std::string(text.substr(0, equals)), .upstream = std::move(*upstream)};
}

void take_over(Config& config, const Config& next) {
  config.servers = next.servers;
  config.server_port = next.server_port;
  config.links = next.links;
  config.pool_size = next.pool_size;
  config.ca_file = next.ca_file;
  config.server_token_file = next.server_token_file;
  config.authorization_file = next.authorization_file;
}

std::vector<std::string> need_restart(const Config& config, const Config& next) {
  std::vector<std::string> names;
  const auto compare = [&](const char* name, auto Config::* member) {
    if (config.*member != next.*member) names.emplace_back(name);
  };
  compare("tunnel-server.protocol", &Config::protocol);
  compare("tunnel-server.tls", &Config::tls);
  compare("tunnel-server.server-name", &Config::server_name);
  compare("tunnel-server.insecure-skip-verify", &Config::insecure);
  compare("tunnel-server.auth-scopes", &Config::auth_scopes);
  compare("tunnel-server.group-key", &Config::group_key);
  compare("tunnel-server.tcp-mux", &Config::tcp_mux);
  compare("tunnel-server.wire-protocol", &Config::wire);
  compare("tunnel.subdomain-prefix", &Config::subdomain_prefix);
  compare("tunnel.ips-allow-list", &Config::ips_allow_list);
  compare("tunnel.forward-to.location", &Config::location);
  compare("tunnel.forward-to.host", &Config::forward_host);
  compare("tunnel.forward-to.port", &Config::forward_port);
  compare("tunnel.extra-proxies", &Config::extra_proxies);
  compare("tunnel.use-encryption", &Config::use_encryption);
  compare("tunnel.use-compression", &Config::use_compression);
  compare("connect-timeout", &Config::connect_timeout);
  return names;
}

void bind(ConfigReader& reader, Config& config) {
  bind_server(reader, config);
  bind_tunnel(reader, config);
  reader.group("Limits");
  reader.add({"connect-timeout",
              {"CONNECT_TIMEOUT"},
              "Time limit for connecting to the server and to the upstream of the tunnel"},
             config.connect_timeout, milliseconds(100), milliseconds(300'000));
}

}  // namespace gitops::tunnel_client
