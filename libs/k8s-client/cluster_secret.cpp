#include "k8s-client/cluster_secret.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes =
    std::size_t{1024} * 1024;  // limit of a Secret, as the API server has it
constexpr std::size_t kMaxNamespaces = 100;
constexpr std::size_t kMaxName = 128;

// Reads the fields of the Secret. Keeps the first mistake; an unreadable field is empty.
class Reader {
 public:
  void note(std::string mistake) {
    if (mistake_.empty()) mistake_ = std::move(mistake);
  }
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

  std::string text(const Json& object, const char* key) {
    const auto& value = value_at(object, {key});
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_null()) note(std::string(key) + " is not a text");
    return {};
  }

  bool flag(const Json& object, const char* key) {
    const auto& value = value_at(object, {key});
    if (value.is_boolean()) return value.get<bool>();
    if (!value.is_null()) note(std::string(key) + " is not true or false");
    return false;
  }

  std::string decoded(const Json& object, const char* key) {
    auto bytes = base64_decode(text(object, key));
    if (bytes) return std::move(*bytes);
    note(std::string(key) + " is not base64");
    return {};
  }

  http::Url url(const std::string& url, const char* what) {
    auto parsed = http::parse_url(url);
    if (parsed && (parsed->scheme == "https" || parsed->scheme == "http")) {
      return std::move(*parsed);
    }
    // The URL is not shown, because it may contain a password.
    note(std::string(what) + " is not an https:// or http:// URL");
    return {};
  }

 private:
  std::string mistake_;
};

std::string printable(std::string_view name) {
  std::string out(name.substr(0, kMaxName));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

http::Url read_server(Reader& reader, const std::string& url) {
  auto server = reader.url(url, "server");
  if (!server.userinfo.empty()) reader.note("server holds a user name");
  while (server.path.ends_with('/')) server.path.pop_back();
  server.query.clear();
  return server;
}

std::vector<std::string> read_namespaces(Reader& reader, std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto ns = trimmed(list.substr(begin, end - begin));
    begin = end + 1;
    if (ns.empty() || std::ranges::find(out, ns) != out.end()) continue;
    if (out.size() == kMaxNamespaces) {
      reader.note("namespaces are too many");
      break;
    }
    out.emplace_back(ns);
  }
  return out;
}

net::TlsOptions read_tls(Reader& reader, const Json& config) {
  const auto& given = value_at(config, {"tlsClientConfig"});
  if (!given.is_null() && !given.is_object()) reader.note("tlsClientConfig is not an object");
  net::TlsOptions tls;
  tls.insecure_skip_verify = reader.flag(given, "insecure");
  tls.server_name = reader.text(given, "serverName");
  tls.ca_pem = reader.decoded(given, "caData");
  tls.certificate_pem = reader.decoded(given, "certData");
  tls.key_pem = Secret(reader.decoded(given, "keyData"));
  if (tls.insecure_skip_verify && !tls.ca_pem.empty()) {
    reader.note("insecure and caData are both set");
  }
  if (tls.certificate_pem.empty() != tls.key_pem.empty()) {
    reader.note("of certData and keyData one is missing");
  }
  return tls;
}

ClusterConfig read_config(Reader& reader, const Json& config) {
  if (!config.is_object()) reader.note("config is not a JSON object");
  for (const auto* key : {"execProviderConfig", "awsAuthConfig"}) {
    if (!value_at(config, {key}).is_null()) {
      reader.note(std::string("its credentials come from ") + key +
                  ", which is not supported: no program is run");
    }
  }
  ClusterConfig out;
  out.tls = read_tls(reader, config);
  out.token = Secret(reader.text(config, "bearerToken"));
  if (!http::is_field_value(out.token.reveal())) {
    reader.note("bearerToken holds characters that must not be sent");
  }
  out.username = reader.text(config, "username");
  out.password = Secret(reader.text(config, "password"));
  if (out.username.contains(':')) reader.note("username holds a colon");
  // Argo CD's client makes the same choice.
  if (!out.token.empty() && !out.username.empty()) {
    reader.note("bearerToken and username are both set");
  }
  if (const auto proxy = reader.text(config, "proxyUrl"); !proxy.empty()) {
    if (auto url = http::parse_proxy_url(proxy); url && !url->is_tls()) {
      out.proxy = std::move(*url);
    } else {
      // The URL is not shown, because it may contain a password.
      reader.note("proxyUrl is not an http://, socks5:// or socks5h:// URL");
    }
  }
  return out;
}

Result<ClusterConfig> read(const Json& data, ClusterSecret& out) {
  Reader reader;
  const auto server = read_server(reader, reader.decoded(data, "server"));
  if (!reader.mistake().empty()) return fail(ErrorCode::invalid_data, reader.mistake());
  out.server = server.to_string();
  if (out.name.empty()) out.name = printable(out.server);
  auto namespaces = read_namespaces(reader, reader.decoded(data, "namespaces"));
  if (!reader.mistake().empty()) return fail(ErrorCode::invalid_data, reader.mistake());
  out.namespaces = std::move(namespaces);
  const auto written = reader.decoded(data, "config");
  auto config =
      read_config(reader, written.empty() ? Json::object() : Json::parse(written, nullptr, false));
  if (!reader.mistake().empty()) return fail(ErrorCode::invalid_data, reader.mistake());
  config.server = server;
  return config;
}

}  // namespace

ClusterSecret parse_cluster_secret(std::string_view object) {
  ClusterSecret out;
  const auto secret = object.size() <= kMaxBytes * 2 ? Json::parse(object, nullptr, false) : Json();
  const auto& data = value_at(secret, {"data"});
  if (!data.is_object()) {
    out.config = fail(ErrorCode::invalid_data, "the Secret has no data");
    return out;
  }
  if (const auto& name = value_at(data, {"name"}); name.is_string()) {
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
  // A proxy such as Rancher serves many clusters at one host, each below a path of its own.
  const auto path = [](std::string_view of) { return of.substr(0, of.find_last_not_of('/') + 1); };
  return std::ranges::find(inside, url->host) != inside.end() ||
         (url->host == own.host && url->port == own.port && path(url->path) == path(own.path));
}

}  // namespace gitops::k8s
