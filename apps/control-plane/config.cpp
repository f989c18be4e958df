#include "control-plane/config.hpp"

#include <algorithm>

#include "common/core/byte_size.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"
#include "control-plane/runtimes/secrets.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr const char* kDefaultPath = "/var/lib/control-plane/control-plane.db";

std::string together(const std::string& certificate, const std::string& key) {
  return certificate.empty() == key.empty() ? std::string()
                                            : "certificate and key are required together";
}

std::string web_url_mistake(const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) return url.error().message;
  if (url->scheme != "http" && url->scheme != "https") return "not http or https";
  if (!url->userinfo.empty() || !url->query.empty()) return "neither user nor query is allowed";
  return {};
}

// Returns why a database URL is refused. The password comes from a file, so that no URL in a log or a list of processes
// shows it.
std::string database_url_mistake(std::string_view text) {
  const auto scheme = text.find("://");
  if (!text.starts_with("postgresql://") && !text.starts_with("postgres://")) {
    return "not of the form postgresql://USER@HOST/DATABASE";
  }
  const auto authority = text.substr(scheme + 3, text.find('/', scheme + 3) - scheme - 3);
  const auto at = authority.rfind('@');
  const bool has_password =
      (at != std::string_view::npos && authority.substr(0, at).contains(':')) ||
      text.contains("password=");
  return has_password ? "a password is not allowed here: use database.password-file" : "";
}

bool is_domain(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !text.starts_with('.') && !text.ends_with('.') && std::ranges::all_of(text, is_allowed);
}

void bind_port(ConfigReader& reader, Config& config) {
  reader.group("Requests");
  reader.add({"listen-address",
              {"LISTEN_ADDRESS"},
              "Address of the main port; :: is IPv6 and IPv4, or IPv4 where there is no IPv6"},
             config.listen_address);
  reader.add({"port", {"PORT"}, "Main port; 0 chooses a free one"}, config.port, 0, 65'535);
  reader.add({"tls-certificate-file",
              {"TLS_CERTIFICATE_FILE"},
              "PEM file with the certificate chain; enables TLS on the main port"},
             config.certificate_file);
  reader.add({"tls-key-file", {"TLS_KEY_FILE"}, "PEM file with its private key"}, config.key_file);
  reader.check({"tls-certificate-file", "tls-key-file"},
               [&config] { return together(config.certificate_file, config.key_file); });
  reader.add({"public-url",
              {"PUBLIC_URL"},
              "URL by which browsers and runtimes reach this server; with https, or with a "
              "certificate of its own, cookies of sessions need TLS"},
             config.public_url);
  reader.check({"public-url"}, [&config] {
    return config.public_url.empty() ? std::string() : web_url_mistake(config.public_url);
  });
  reader.add_parsed_list(
      {"trusted-proxies",
       {"TRUSTED_PROXIES"},
       "Addresses and networks of trusted reverse proxies; their X-Forwarded-For is used"},
      config.trusted_proxies, {}, net::AddressList::parse);
  reader.add({"max-connections", {"MAX_CONNECTIONS"}, "Connections at the same time"},
             config.max_connections, 1, 1'000'000);
  reader.add({"max-operations-per-caller",
              {"MAX_OPERATIONS_PER_CALLER"},
              "GraphQL operations of one user or runtime at the same time"},
             config.max_operations_per_caller, 1, 10'000);
}

void bind_first_start(ConfigReader& reader, Config& config) {
  reader.group("First start");
  reader.add({"first-start.account",
              {"FIRST_START_ACCOUNT"},
              "Name of the account that an empty database gets"},
             config.account);
  reader.add({"first-start.administrator",
              {"FIRST_START_ADMINISTRATOR"},
              "Name of its first administrator"},
             config.administrator);
  reader.add({"first-start.email", {"FIRST_START_EMAIL"}, "Mail address of that administrator"},
             config.administrator_email);
  reader.add_secret({"first-start.password",
                     {"FIRST_START_PASSWORD"},
                     "Password of that administrator; without it one is generated and shown once"},
                    config.administrator_password);
  reader.add({"first-start.password-output",
              {"FIRST_START_PASSWORD_OUTPUT"},
              "New file for a generated password; empty: standard output"},
             config.administrator_password_output);
}

void bind_sso(ConfigReader& reader, Config& config) {
  reader.group("Single sign-on");
  reader.add_list({"sso.providers",
                   {"SSO_PROVIDERS"},
                   "YAML files of identity providers, one for each; docs/guides/single-sign-on.md "
                   "explains their keys"},
                  "", [&config](const std::vector<std::string>& paths) -> std::string {
                    auto providers = sso::read_providers(paths);
                    if (!providers) return providers.error().message;
                    config.providers = std::move(*providers);
                    return {};
                  });
  reader.check({"sso.providers", "public-url"}, [&config] {
    return config.providers.empty() || !config.public_url.empty()
               ? ""
               : "identity providers send browsers back to public-url, which is missing";
  });
}

void bind_tunnels(ConfigReader& reader, Config& config) {
  reader.group("Tunnels");
  reader.add({"tunnel.domain",
              {"TUNNEL_DOMAIN"},
              "Domain below which the hosts of tunnels lie, as subdomain-host of tunnel-server"},
             config.tunnel_domain);
  reader.check({"tunnel.domain"}, [&config] {
    return config.tunnel_domain.empty() || is_domain(config.tunnel_domain)
               ? ""
               : "not a domain in lower case";
  });
  reader.add_secret({"tunnel.plugin-token",
                     {"TUNNEL_PLUGIN_TOKEN"},
                     "Token of tunnel servers that ask at /tunnel-plugin; without one they are not "
                     "answered"},
                    config.tunnel_plugin_token, &config.tunnel_plugin_token_file);
  reader.add({"tunnel.api-urls",
              {"TUNNEL_API_URLS"},
              "URLs of the APIs of all tunnel servers, which take a tunnel away when its token is "
              "revoked"},
             config.tunnel_api_urls);
  reader.check({"tunnel.api-urls"}, [&config]() -> std::string {
    for (const auto& url : config.tunnel_api_urls) {
      if (auto mistake = web_url_mistake(url); !mistake.empty()) return url + ": " + mistake;
    }
    return {};
  });
  reader.add_secret({"tunnel.api-token", {"TUNNEL_API_TOKEN"}, "Token that these APIs ask for"},
                    config.tunnel_api_token, &config.tunnel_api_token_file);
  reader.add({"tunnel.api-ca-file",
              {"TUNNEL_API_CA_FILE"},
              "PEM file of the certificate authorities for them; replaces the system's"},
             config.tunnel_api_ca_file);
  reader.check({"tunnel.api-urls", "tunnel.api-token", "tunnel.domain"}, [&config] {
    const bool has_token =
        !config.tunnel_api_token.empty() || !config.tunnel_api_token_file.empty();
    return config.tunnel_api_urls.empty() || (has_token && !config.tunnel_domain.empty())
               ? ""
               : "the APIs of tunnel servers need tunnel.api-token and tunnel.domain";
  });
}

}  // namespace

void bind_database(ConfigReader& reader, store::Location& location) {
  location.path = kDefaultPath;
  reader.group("Database");
  reader.add({"database.path",
              {"DATABASE_PATH"},
              "File of SQLite, which belongs to one process; not on a network file system"},
             location.path);
  reader.add(
      {"database.url",
       {"DATABASE_URL"},
       "PostgreSQL 14 or newer instead: postgresql://USER@HOST/DATABASE, without a password"},
      "URL", "", [&location](const std::string& text) -> std::string {
        if (auto mistake = database_url_mistake(text); !mistake.empty()) return mistake;
        location.engine = store::Engine::postgres;
        location.dsn = text;
        return {};
      });
  reader.add({"database.password-file",
              {"DATABASE_PASSWORD_FILE"},
              "File with the password for PostgreSQL"},
             location.password_file);
}

void bind(ConfigReader& reader, Config& config) {
  bind_port(reader, config);
  bind_database(reader, config.database);
  reader.add({"database.readers", {"DATABASE_READERS"}, "Connections for reading"},
             config.database_readers, 1, 100);
  add_size(reader,
           {"storage-limit",
            {"STORAGE_LIMIT"},
            "Size of the database, such as 20Gi: above 90 % the oldest history is cut, above 97 % "
            "events are refused until there is room; 0: no limit"},
           config.storage_limit);
  reader.add_secret({"master-key",
                     {"MASTER_KEY"},
                     "Key that seals the runtimes' sealing keys: 32 bytes, or their hexadecimal "
                     "digits or base64; without it none are kept. It is not in a backup of the "
                     "database"},
                    config.master_key);
  reader.check({"master-key"}, [&config]() -> std::string {
    if (config.master_key.empty()) return {};
    const auto made = SecretStore::make(config.master_key);
    return made ? std::string() : made.error().message;
  });
  bind_first_start(reader, config);
  bind_sso(reader, config);
  bind_tunnels(reader, config);
}

}  // namespace gitops::control_plane_server
