#include "tunnel-server/config.hpp"

#include <algorithm>
#include <array>

#include "common/core/text.hpp"
#include "common/http/url.hpp"
#include "tunnel-server/host_table.hpp"

namespace gitops::tunnel_server {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMega = 1024 * 1024;

std::string together(const std::string& certificate, const std::string& key) {
  return certificate.empty() == key.empty() ? std::string()
                                            : "certificate and key are required together";
}

// Its end may be a token from a file, with the line end of that file.
Result<std::optional<http::Url>> parse_plugin_url(const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto url = http::parse_url(trimmed(text));
  if (!url) return std::unexpected(std::move(url.error()));
  if (url->scheme != "http" && url->scheme != "https") {
    return fail(ErrorCode::invalid_argument, "not http or https");
  }
  if (!url->userinfo.empty()) {
    return fail(ErrorCode::invalid_argument, "a user and a password are not supported");
  }
  return std::move(*url);
}

std::string operations_mistake(const std::vector<std::string>& operations) {
  constexpr std::array<std::string_view, 5> kKnown{"Login", "NewProxy", "CloseProxy", "Ping",
                                                   "NewWorkConn"};
  for (const auto& operation : operations) {
    if (operation == "NewUserConn") {
      return "NewUserConn is not asked about proxies of type http, and there are no others here";
    }
    if (std::ranges::find(kKnown, operation) == kKnown.end()) {
      return "\"" + operation + "\" is none of Login, NewProxy, CloseProxy, Ping and NewWorkConn";
    }
  }
  return {};
}

Result<std::vector<std::string>> parse_servers(const std::vector<std::string>& items) {
  for (const auto& item : items) {
    const auto address = http::parse_host_port(item, 0);
    if (!address || address->second == 0) {
      return fail(ErrorCode::invalid_argument, "\"" + item + "\" is not of the form host:port");
    }
  }
  return items;
}

void bind_clients(ConfigReader& reader, Config& config) {
  reader.group("Tunnel");
  reader.add({"tunnel.listen-address",
              {"TUNNEL_LISTEN_ADDRESS"},
              "Address of the port for tunnel clients; :: is IPv6 and IPv4"},
             config.tunnel_address);
  reader.add({"tunnel.port", {"TUNNEL_PORT"}, "Port for tunnel clients; 0 chooses a free one"},
             config.tunnel_port, 0, 65'535);
  reader.add({"tunnel.tls-certificate-file",
              {"TUNNEL_TLS_CERTIFICATE_FILE"},
              "PEM file with the certificate chain for tunnel clients that speak TLS"},
             config.tunnel_certificate_file);
  reader.add({"tunnel.tls-key-file", {"TUNNEL_TLS_KEY_FILE"}, "PEM file with the private key"},
             config.tunnel_key_file);
  reader.check({"tunnel.tls-certificate-file", "tunnel.tls-key-file"}, [&config] {
    return together(config.tunnel_certificate_file, config.tunnel_key_file);
  });
  reader.add({"tunnel.client-ca-file",
              {"TUNNEL_CLIENT_CA_FILE"},
              "PEM file of the certificate authorities of clients; clients must then present a "
              "certificate"},
             config.tunnel_client_ca_file);
  reader.check({"tunnel.client-ca-file", "tunnel.tls-certificate-file"}, [&config] {
    return !config.tunnel_client_ca_file.empty() && config.tunnel_certificate_file.empty()
               ? "TLS needs a certificate"
               : "";
  });
  reader.add({"tunnel.require-tls",
              {"TUNNEL_REQUIRE_TLS"},
              "Refuse clients without TLS; leave it off behind a proxy that ends TLS"},
             config.tunnel_requires_tls);
  reader.check({"tunnel.require-tls", "tunnel.tls-certificate-file"}, [&config] {
    return config.tunnel_requires_tls && config.tunnel_certificate_file.empty()
               ? "TLS needs a certificate"
               : "";
  });
  reader.add({"tunnel.heartbeat-timeout",
              {"TUNNEL_HEARTBEAT_TIMEOUT"},
              "Silence after which a client is disconnected; it is pinged before"},
             config.heartbeat_timeout, milliseconds(1'000), milliseconds(600'000));
  reader.add({"tunnel.max-clients", {"TUNNEL_MAX_CLIENTS"}, "Maximum number of clients"},
             config.max_clients, 1, 1'000'000);
  reader.add({"tunnel.max-strangers",
              {"TUNNEL_MAX_STRANGERS"},
              "Maximum number of connections that have not logged in"},
             config.max_unauthenticated, 1, 1'000'000);
  reader.add({"tunnel.max-strangers-per-address",
              {"TUNNEL_MAX_STRANGERS_PER_ADDRESS"},
              "Maximum number of such connections from one address; 0: max-strangers, as needed "
              "behind a proxy"},
             config.max_unauthenticated_per_address, 0, 1'000'000);
  reader.add({"tunnel.max-streams",
              {"TUNNEL_MAX_STREAMS"},
              "Maximum number of concurrent user connections through one client"},
             config.max_streams, 16, 1'000'000);
  reader.add({"tunnel.max-pool",
              {"TUNNEL_MAX_POOL"},
              "Connections that a client may keep waiting for users"},
             config.max_pool, 0, 1'000);
  reader.add({"tunnel.links",
              {"TUNNEL_LINKS"},
              "Links that tunnel-client keeps to this server for redundancy; needs runtimes-file "
              "or a plugin"},
             config.links, 1, static_cast<std::int64_t>(HostTable::kMaxEntries) / 2);
  reader.add_parsed_list({"tunnel.servers",
                          {"TUNNEL_SERVERS"},
                          "Other servers (host:port) that tunnel-client also connects to"},
                         config.servers, {}, parse_servers);
  reader.add({"tunnel.stream-window",
              {"TUNNEL_STREAM_WINDOW"},
              "Window of a stream in bytes, which a client may send to a user who does not read; "
              "limits the rate of one connection on a path with high latency"},
             config.stream_window, kMega / 4, 64 * kMega);
}

void bind_authority(ConfigReader& reader, Config& config) {
  reader.group("Clients");
  reader.add_secret(
      {"token", {"TUNNEL_SERVER_TOKEN"}, "Token that all clients share, frp's auth.token"},
      config.token, &config.token_file);
  reader.add_parsed_list({"auth-scopes",
                          {"AUTH_SCOPES"},
                          "Messages that carry that token besides the login, as in the clients' "
                          "auth.additionalScopes: HeartBeats, NewWorkConns"},
                         config.auth_scopes, {}, tunnel::parse_auth_scopes);
  reader.check({"auth-scopes", "token"}, [&config] {
    return config.auth_scopes != tunnel::AuthScopes{} && config.token.empty() &&
                   config.token_file.empty()
               ? "without a token they prove nothing"
               : "";
  });
  reader.add({"runtimes-file",
              {"RUNTIMES_FILE"},
              "File of the runtimes and their tokens, read again when it changes: a line "
              "\"PREFIX[,DOMAIN...] TOKEN\" for each"},
             config.runtimes_file);
  reader.add_parsed(
      {"plugin.url",
       {"PLUGIN_URL"},
       "URL of an authorization plugin, which speaks the protocol of frp's server plugins"},
      config.plugin_url, {}, parse_plugin_url);
  reader.add({"plugin.ca-file",
              {"PLUGIN_CA_FILE"},
              "PEM file of the certificate authorities for the plugin; replaces the system's"},
             config.plugin_ca_file);
  reader.add({"plugin.operations",
              {"PLUGIN_OPERATIONS"},
              "Operations that the plugin decides: Login, NewProxy, CloseProxy, Ping, NewWorkConn"},
             config.plugin_operations);
  reader.check({"plugin.operations"},
               [&config] { return operations_mistake(config.plugin_operations); });
  reader.add({"plugin.timeout", {"PLUGIN_TIMEOUT"}, "Time limit for a response of the plugin"},
             config.plugin_timeout, milliseconds(10), milliseconds(60'000));
  reader.add({"insecure-any-client",
              {"INSECURE_ANY_CLIENT"},
              "Start without token, runtimes-file and plugin: any client may offer any host"},
             config.any_client);
  reader.check({"token", "runtimes-file", "plugin.url", "insecure-any-client"}, [&config] {
    const bool any = !config.token.empty() || !config.token_file.empty() ||
                     !config.runtimes_file.empty() || config.plugin_url;
    return any || config.any_client
               ? ""
               : "one of token, runtimes-file and plugin.url is required (or insecure-any-client)";
  });
}

void bind_users(ConfigReader& reader, Config& config) {
  reader.group("Users");
  reader.add(
      {"listen-address", {"LISTEN_ADDRESS"}, "Address of the port for users; :: is IPv6 and IPv4"},
      config.listen_address);
  reader.add({"port", {"LISTEN_PORT"}, "Port for users; 0 chooses a free one"}, config.port, 0,
             65'535);
  reader.add({"tls-certificate-file",
              {"TLS_CERTIFICATE_FILE"},
              "PEM file with the certificate chain; enables TLS on the port for users"},
             config.certificate_file);
  reader.add({"tls-key-file", {"TLS_KEY_FILE"}, "PEM file with the private key"}, config.key_file);
  reader.check({"tls-certificate-file", "tls-key-file"},
               [&config] { return together(config.certificate_file, config.key_file); });
  reader.add(
      {"subdomain-host", {"SUBDOMAIN_HOST"}, "Domain below which the subdomains of clients lie"},
      config.subdomain_host);
  reader.check({"subdomain-host"}, [&config] {
    return config.subdomain_host.empty() ||
                   canonical_host(config.subdomain_host) == config.subdomain_host
               ? ""
               : "not a domain in lower case";
  });
  reader.add_parsed_list(
      {"trusted-proxies",
       {"TRUSTED_PROXIES"},
       "Addresses and networks of trusted reverse proxies; their X-Forwarded-* fields are kept"},
      config.trusted_proxies, {}, net::AddressList::parse);
  reader.group("Limits");
  reader.add(
      {"max-connections", {"MAX_CONNECTIONS"}, "Maximum number of concurrent user connections"},
      config.max_connections, 1, 1'000'000);
  reader.add(
      {"max-requests-per-host",
       {"MAX_REQUESTS_PER_HOST"},
       "Maximum number of concurrent requests and upgraded connections of one host; 0: unlimited"},
      config.max_requests_per_host, 0, 1'000'000);
  reader.add({"max-body", {"MAX_BODY"}, "Largest request body in bytes; 0: unlimited"},
             config.max_body, 0, std::int64_t{1} << 50);
  reader.add({"connect-timeout",
              {"CONNECT_TIMEOUT"},
              "Time limit for the client of a host to provide a connection"},
             config.connect_timeout, milliseconds(100), milliseconds(300'000));
  reader.add({"answer-timeout",
              {"ANSWER_TIMEOUT"},
              "Time limit from the end of a request to the head of its response"},
             config.answer_timeout, milliseconds(100), std::chrono::hours(24));
  reader.add({"stream-timeout",
              {"STREAM_TIMEOUT"},
              "Silence after which a streamed response or an upgraded connection is closed"},
             config.stream_timeout, milliseconds(1'000), std::chrono::hours(24));
  reader.add({"idle-timeout",
              {"IDLE_TIMEOUT"},
              "How long a user's connection may be idle between requests"},
             config.idle_timeout, milliseconds(1), std::chrono::hours(24));
}

void bind_api(ConfigReader& reader, Config& config) {
  reader.group("API");
  reader.add({"api.listen-address",
              {"API_LISTEN_ADDRESS"},
              "Address of the API that lists, disconnects and bans clients"},
             config.api_address);
  reader.add({"api.port", {"API_PORT"}, "Port of the API; 0 disables it"}, config.api_port, 0,
             65'535);
  reader.add_secret(
      {"api.token", {"API_TOKEN"}, "Token that the API requires (Authorization: Bearer)"},
      config.api_token, &config.api_token_file);
  reader.check({"api.port", "api.token"}, [&config] {
    return config.api_port > 0 && config.api_token.empty() && config.api_token_file.empty()
               ? "the API needs a token"
               : "";
  });
}

}  // namespace

void bind(ConfigReader& reader, Config& config) {
  bind_clients(reader, config);
  bind_authority(reader, config);
  bind_users(reader, config);
  bind_api(reader, config);
}

}  // namespace gitops::tunnel_server
