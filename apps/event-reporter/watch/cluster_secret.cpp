#include "event-reporter/watch/cluster_secret.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::reporter {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes =
    std::size_t{1024} * 1024;  // of a Secret, as the API server has it
constexpr std::size_t kMaxNamespaces = 100;
constexpr std::size_t kMaxName = 128;

// A mistake in what somebody wrote; becomes an Error.
class Mistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The member of that name; null when there is none.
const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string text(const Json& object, const char* key) {
  const auto& value = member(object, key);
  if (value.is_null()) return {};
  if (!value.is_string()) throw Mistake(std::string(key) + " is not a text");
  return value.get<std::string>();
}

bool flag(const Json& object, const char* key) {
  const auto& value = member(object, key);
  if (value.is_null()) return false;
  if (!value.is_boolean()) throw Mistake(std::string(key) + " is not true or false");
  return value.get<bool>();
}

std::string decoded(const Json& object, const char* key) {
  auto bytes = base64_decode(text(object, key));
  if (!bytes) throw Mistake(std::string(key) + " is not base64");
  return std::move(*bytes);
}

std::string printable(std::string_view name) {
  std::string out(name.substr(0, kMaxName));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

http::Url read_url(const std::string& url, const char* what) {
  auto parsed = http::parse_url(url);
  // The text is not shown: it may hold a password.
  if (!parsed || (parsed->scheme != "https" && parsed->scheme != "http")) {
    throw Mistake(std::string(what) + " is not an https:// or http:// URL");
  }
  return std::move(*parsed);
}

http::Url read_server(const std::string& url) {
  auto server = read_url(url, "server");
  if (!server.userinfo.empty()) throw Mistake("server holds a user name");
  while (server.path.ends_with('/')) server.path.pop_back();
  server.query.clear();
  return server;
}

std::vector<std::string> read_namespaces(std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto ns = trimmed(list.substr(begin, end - begin));
    begin = end + 1;
    if (ns.empty() || std::ranges::find(out, ns) != out.end()) continue;
    if (out.size() == kMaxNamespaces) throw Mistake("namespaces are too many");
    out.emplace_back(ns);
  }
  return out;
}

net::TlsOptions read_tls(const Json& config) {
  const auto& given = member(config, "tlsClientConfig");
  if (!given.is_null() && !given.is_object()) throw Mistake("tlsClientConfig is not an object");
  net::TlsOptions tls;
  tls.insecure_skip_verify = flag(given, "insecure");
  tls.server_name = text(given, "serverName");
  tls.ca_pem = decoded(given, "caData");
  tls.certificate_pem = decoded(given, "certData");
  tls.key_pem = Secret(decoded(given, "keyData"));
  if (tls.insecure_skip_verify && !tls.ca_pem.empty()) {
    throw Mistake("insecure and caData are both set");
  }
  if (tls.certificate_pem.empty() != tls.key_pem.empty()) {
    throw Mistake("of certData and keyData one is missing");
  }
  return tls;
}

k8s::ClusterConfig read_config(const Json& config) {
  if (!config.is_object()) throw Mistake("config is not a JSON object");
  for (const auto* key : {"execProviderConfig", "awsAuthConfig"}) {
    if (!member(config, key).is_null()) {
      throw Mistake(std::string("its credentials come from ") + key +
                    ", which is not supported: no program is run");
    }
  }
  k8s::ClusterConfig out;
  out.tls = read_tls(config);
  out.token = Secret(text(config, "bearerToken"));
  if (!http::is_field_value(out.token.reveal())) {
    throw Mistake("bearerToken holds characters that must not be sent");
  }
  out.username = text(config, "username");
  out.password = Secret(text(config, "password"));
  if (out.username.contains(':')) throw Mistake("username holds a colon");
  // As Argo CD's client has it.
  if (!out.token.empty() && !out.username.empty()) {
    throw Mistake("bearerToken and username are both set");
  }
  if (const auto proxy = text(config, "proxyUrl"); !proxy.empty()) {
    out.proxy = read_url(proxy, "proxyUrl");
  }
  return out;
}

Result<k8s::ClusterConfig> read(const Json& data, ClusterSecret& out) {
  try {
    const auto server = read_server(decoded(data, "server"));
    out.server = server.to_string();
    if (out.name.empty()) out.name = printable(out.server);
    out.namespaces = read_namespaces(decoded(data, "namespaces"));
    const auto written = decoded(data, "config");
    auto config =
        read_config(written.empty() ? Json::object() : Json::parse(written, nullptr, false));
    config.server = server;
    return config;
  } catch (const Mistake& mistake) {
    return fail(ErrorCode::invalid_data, mistake.what());
  }
}

}  // namespace

ClusterSecret parse_cluster_secret(std::string_view object) {
  ClusterSecret out;
  const auto secret = object.size() <= kMaxBytes * 2 ? Json::parse(object, nullptr, false) : Json();
  const auto& data = member(secret, "data");
  if (!data.is_object()) {
    out.config = fail(ErrorCode::invalid_data, "the Secret has no data");
    return out;
  }
  if (const auto& name = member(data, "name"); name.is_string()) {
    if (const auto bytes = base64_decode(name.get<std::string>())) out.name = printable(*bytes);
  }
  out.config = read(data, out);
  return out;
}

bool is_own_cluster(std::string_view server, const http::Url& own) {
  static constexpr std::array<std::string_view, 4> inside{"kubernetes", "kubernetes.default",
                                                          "kubernetes.default.svc",
                                                          "kubernetes.default.svc.cluster.local"};
  const auto url = http::parse_url(server);
  if (!url) return false;
  return std::ranges::find(inside, url->host) != inside.end() ||
         (url->host == own.host && url->port == own.port);
}

}  // namespace gitops::reporter
