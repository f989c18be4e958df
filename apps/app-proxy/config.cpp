#include "app-proxy/config.hpp"

#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

std::string url_mistake(const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) return url.error().message;
  if (url->scheme != "http" && url->scheme != "https") return "not http or https";
  if (!url->userinfo.empty() || !url->query.empty()) return "neither user nor query is allowed";
  return {};
}

}  // namespace

void bind(ConfigReader& reader, Config& config) {
  reader.group("Requests");
  reader.add({"listen-address",
              {"LISTEN_ADDRESS"},
              "Address of the main port; :: is IPv6 and IPv4, or IPv4 where there is no IPv6"},
             config.listen_address);
  reader.add({"port", {"PORT"}, "Main port; 0 chooses a free one"}, config.port, 0, 65'535);
  reader.add({"cors", {"CORS"}, "Origins whose web pages may read answers and send credentials"},
             config.cors_origins);
  reader.add({"graphql-playground",
              {"GRAPHQL_PLAYGROUND"},
              "Serve a page for GraphQL queries at /api/graphql"},
             config.playground);
  reader.add({"max-connections", {"MAX_CONNECTIONS"}, "Connections at the same time"},
             config.max_connections, 1, 100'000);

  reader.group("Control plane");
  reader.add({"codefresh-url", {"CF_HOST"}, "Base URL of the control plane"},
             config.control_plane_url);
  reader.check({"codefresh-url"}, [&config] { return url_mistake(config.control_plane_url); });
  reader.add_secret({"runtime-token", {"RUNTIME_TOKEN"}, "Token of the runtime"},
                    config.runtime_token, &config.runtime_token_file);
  reader.add({"ca-file",
              {"NODE_EXTRA_CA_CERTS"},
              "PEM file with the certificate authorities of all peers, instead of the system's"},
             config.ca_file);
  reader.add({"codefresh-tls-insecure",
              {"CODEFRESH_TLS_INSECURE"},
              "Accept any certificate of the control plane"},
             config.control_plane_insecure);

  reader.group("Runtime");
  reader.add({"runtime-name", {"RUNTIME_NAME"}, "Name of the runtime"}, config.runtime_name);
  reader.add({"namespace", {"NAMESPACE"}, "Namespace of the runtime"}, config.own_namespace);
}

}  // namespace gitops::app_proxy
