#include "request-router/config.hpp"

#include <utility>

#include "common/core/byte_size.hpp"
#include "request-router/route.hpp"

namespace gitops::router {
namespace {

using std::chrono::milliseconds;

Result<http::Url> parse_server(const std::string& text) {
  auto url = http::parse_url(text);
  if (!url) return url;
  if (url->scheme != "http" && url->scheme != "https") {
    return fail(ErrorCode::invalid_argument, "not http or https");
  }
  if (!url->userinfo.empty() || !url->query.empty() || url->path.size() > 1) {
    return fail(ErrorCode::invalid_argument, "only scheme, host and port are allowed");
  }
  return url;
}

Result<std::optional<http::Url>> parse_optional_server(const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto url = parse_server(text);
  if (!url) return std::unexpected(std::move(url.error()));
  return std::move(*url);
}

std::string namespaces_mistake(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (name != "*" && !is_dns_label(name)) return "\"" + name + "\" is not a namespace";
  }
  return {};
}

std::string domain_mistake(std::string_view domain) {
  while (!domain.empty()) {
    const auto dot = domain.find('.');
    if (!is_dns_label(domain.substr(0, dot))) return "not a domain in lower case";
    if (dot == std::string_view::npos) return {};
    domain.remove_prefix(dot + 1);
  }
  return "not a domain in lower case";
}

void bind_targets(ConfigReader& reader, RouteSettings& settings) {
  reader.group("Routes");
  reader.add_parsed({"app-proxy-url", {"APP_PROXY_URL"}, "URL of app-proxy: scheme, host and port"},
                    settings.app_proxy, settings.app_proxy.to_string(), parse_server);
  reader.add({"app-proxy-ca-file",
              {"APP_PROXY_CA_FILE"},
              "PEM file of the certificate authorities for app-proxy; replaces the system's"},
             settings.app_proxy_ca_file);
  reader.add(
      {"cors", {"CORS"}, "Origins allowed to read the error response sent while app-proxy is down"},
      settings.cors_origins);
  reader.add_parsed(
      {"workflows-url",
       {"WORKFLOWS_URL"},
       "URL of Argo Workflows' server: scheme, host and port; empty disables the route"},
      settings.workflows, {}, parse_optional_server);
  reader.add({"workflows-ca-file",
              {"WORKFLOWS_CA_FILE"},
              "PEM file of the certificate authorities for that server; replaces the system's"},
             settings.workflows_ca_file);
  reader.add({"workflows-insecure",
              {"WORKFLOWS_INSECURE"},
              "Do not verify that server's certificate (self-signed by default)"},
             settings.workflows_insecure);
  reader.add({"gzip", {"GZIP"}, "Compress JSON and text for clients that accept it"},
             settings.gzip);

  reader.group("Webhooks");
  reader.add({"webhook-namespaces",
              {"WEBHOOK_ALLOWED_NAMESPACES"},
              "Namespaces whose event sources receive webhooks; empty: the router's own, *: all"},
             settings.webhook_namespaces);
  reader.check({"webhook-namespaces"},
               [&settings] { return namespaces_mistake(settings.webhook_namespaces); });
  reader.add({"namespace", {"POD_NAMESPACE"}, "Namespace of the router"}, settings.own_namespace);
  reader.add({"webhook-port", {"WEBHOOK_PORT"}, "Port of the Services of event sources"},
             settings.webhook_port, 1, 65535);
  reader.add_parsed_list(
      {"webhook-signatures",
       {"WEBHOOK_SIGNATURES"},
       "Event sources that require signed webhooks: namespace/event-source=KIND:FILE; KIND is "
       "github, gitlab, bitbucket or standard-webhooks, FILE contains the secret, or several, one "
       "on each line"},
      settings.webhook_signatures, {}, [](const std::vector<std::string>& items) {
        return parse_each(items, parse_signature_rule);
      });
  reader.add(
      {"webhook-rate",
       {"WEBHOOK_RATE"},
       "Webhooks per second for one event source, with bursts of twice as many; 0: unlimited"},
      settings.webhook_rate, 0, 1'000'000);
  reader.add({"webhook-concurrency",
              {"WEBHOOK_CONCURRENCY"},
              "Concurrent webhooks for one event source; 0: unlimited"},
             settings.webhook_concurrency, 0, 1'000'000);
  reader.add({"cluster-domain", {"CLUSTER_DOMAIN"}, "DNS domain of the cluster"},
             settings.cluster_domain);
  reader.check({"cluster-domain"}, [&settings] { return domain_mistake(settings.cluster_domain); });
  reader.add_parsed_list(
      {"upstream-allowed-addresses",
       {"UPSTREAM_ALLOWED_ADDRESSES"},
       "Loopback, link-local and metadata addresses or networks that upstream names may "
       "resolve to"},
      settings.allowed_addresses, {}, net::AddressList::parse);
}

void bind_limits(ConfigReader& reader, RouteSettings& settings) {
  constexpr milliseconds kShort{1};
  constexpr std::chrono::hours kLong{24};
  reader.group("Limits");
  add_size(reader,
           {"app-proxy-max-body",
            {"APP_PROXY_MAX_BODY"},
            "Largest request body for app-proxy; 0: unlimited"},
           settings.app_proxy_max_body);
  add_size(reader,
           {"webhook-max-body", {"WEBHOOK_MAX_BODY"}, "Largest body of a webhook; 0: unlimited"},
           settings.webhook_max_body);
  reader.add({"connect-timeout",
              {"CONNECT_TIMEOUT"},
              "Time limit for name lookup, connection and TLS handshake with an upstream"},
             settings.connect_timeout, kShort, kLong);
  reader.add(
      {"answer-timeout", {"ANSWER_TIMEOUT"}, "Time limit for an upstream to begin its response"},
      settings.answer_timeout, kShort, kLong);
  reader.add({"body-timeout",
              {"BODY_TIMEOUT"},
              "Longest pause within the body of a request, or of a response of known length"},
             settings.body_timeout, kShort, kLong);
  reader.add({"request-body-deadline",
              {"REQUEST_BODY_DEADLINE"},
              "Time limit for a client to send the whole body of a request"},
             settings.body_deadline, kShort, kLong);
  reader.add(
      {"upstream-idle-timeout",
       {"UPSTREAM_IDLE_TIMEOUT"},
       "How long to keep an idle connection to an upstream whose responses have no Keep-Alive "
       "timeout; must be shorter than the upstream's own limit"},
      settings.upstream_idle_timeout, kShort, kLong);
  reader.add(
      {"websocket-timeout",
       {"WEBSOCKET_TIMEOUT"},
       "How long a WebSocket may be idle in both directions, and a response of unknown length, "
       "such as an event stream, may be silent"},
      settings.stream_timeout, kShort, kLong);
  reader.add_parsed_list(
      {"trusted-proxies",
       {"TRUSTED_PROXIES"},
       "Addresses or networks of proxies whose X-Forwarded-* and X-Request-Id are kept"},
      settings.trusted_proxies, {}, net::AddressList::parse);
  reader.add(
      {"trusted-proxy-names",
       {"TRUSTED_PROXY_NAMES"},
       "DNS names of further trusted proxies, such as a headless Service; looked up every 2 s"},
      settings.trusted_proxy_names);
}

}  // namespace

void bind_routes(ConfigReader& reader, RouteSettings& settings) {
  bind_targets(reader, settings);
  bind_limits(reader, settings);
}

void bind(ConfigReader& reader, Config& config) {
  bind_routes(reader, config.routes);
  reader.group("Process");
  reader.add(
      {"routes-file",
       {"ROUTES_FILE"},
       "YAML file with settings of the groups Routes, Webhooks and Limits; overrides all other "
       "sources and is reloaded when it changes"},
      config.routes_file);
  reader.add({"listen-address",
              {"LISTEN_ADDRESS"},
              "Address of the main port; :: is IPv6 and IPv4, or IPv4 alone without IPv6"},
             config.listen_address);
  reader.add({"port", {"LISTEN_PORT"}, "Main port; 0 chooses a free one"}, config.port, 0, 65535);
  reader.add({"max-connections", {"MAX_CONNECTIONS"}, "Concurrent client connections"},
             config.max_connections, 1, 1'000'000);
  reader.add({"loops", {"LOOPS"}, "Event loops that serve clients, one thread each"}, config.loops,
             1, 64);
  reader.add(
      {"head-timeout", {"HEAD_TIMEOUT"}, "Time limit for a client to send the head of a request"},
      config.head_timeout, milliseconds(1), std::chrono::hours(1));
  reader.add({"idle-timeout",
              {"IDLE_TIMEOUT"},
              "How long a client connection may be idle between requests"},
             config.idle_timeout, milliseconds(1), std::chrono::hours(24));
  reader.add({"tls-certificate-file",
              {"TLS_CERTIFICATE_FILE"},
              "PEM file with the certificate chain; enables TLS on the main port"},
             config.tls_certificate_file);
  reader.add({"tls-key-file", {"TLS_KEY_FILE"}, "PEM file with the private key"},
             config.tls_key_file);
  reader.check({"tls-certificate-file", "tls-key-file"}, [&config] {
    return config.tls_certificate_file.empty() == config.tls_key_file.empty()
               ? std::string{}
               : std::string("certificate and key are required together");
  });
  reader.add(
      {"webhook-journal",
       {"WEBHOOK_JOURNAL"},
       "Folder on a volume for webhooks that are to be delivered later, so that they survive "
       "the process; routers may share it; empty: in memory only"},
      config.webhook_journal);
  reader.add({"access-log", {"ACCESS_LOG"}, "Write a line of JSON for each request"},
             config.access_log);
}

}  // namespace gitops::router
