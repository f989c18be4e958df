#include "control-plane/http/console_assets.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "common/core/text.hpp"
#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kPage = "/index.html";
constexpr std::string_view kHashed = "/assets/";
// Paths whose clients are programs.
constexpr std::string_view kApis[] = {"/assets",        "/console/api", "/2.0",     "/api",
                                      "/tunnel-plugin", "/app-proxy",   "/webhooks"};

constexpr std::pair<std::string_view, std::string_view> kSecurityFields[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src "
     "'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
     "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
     "trusted-types console"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy",
     "camera=(), display-capture=(), fullscreen=(), geolocation=(), microphone=(), midi=(), "
     "payment=(), publickey-credentials-get=(), usb=()"},
};

// A form of a file: its Content-Encoding and its bytes.
struct Form {
  std::string_view coding;  // empty: raw
  std::string_view bytes;
};

// Returns whether a weight ("0.8") is zero. Malformed ones are not.
bool is_zero(std::string_view weight) {
  return !weight.empty() && weight.front() == '0' && weight.find_first_not_of("0.") == weight.npos;
}

// Returns whether a value of Accept-Encoding allows a coding (RFC 9110, section 12.5.3). "*" stands for those that are
// not named.
bool allows(std::string_view accepted, std::string_view coding) {
  bool is_any_allowed = false;
  while (!accepted.empty()) {
    const auto comma = std::min(accepted.find(','), accepted.size());
    const auto item = accepted.substr(0, comma);
    accepted.remove_prefix(std::min(comma + 1, accepted.size()));
    const auto semicolon = std::min(item.find(';'), item.size());
    const auto name = trimmed(item.substr(0, semicolon));
    const auto weight = item.substr(semicolon);
    const auto equals = weight.find('=');
    const bool is_refused =
        equals != std::string_view::npos && is_zero(trimmed(weight.substr(equals + 1)));
    if (http::equal_ignoring_case(name, coding)) return !is_refused;
    if (name == "*") is_any_allowed = !is_refused;
  }
  return is_any_allowed;
}

Form form_for(const ConsoleAsset& asset, std::string_view accepted) {
  if (!asset.brotli.empty() && allows(accepted, "br")) return {"br", asset.brotli};
  if (!asset.gzip.empty() && allows(accepted, "gzip")) return {"gzip", asset.gzip};
  return {"", asset.raw};
}

std::string etag_of(const ConsoleAsset& asset, std::string_view coding) {
  std::string tag = "\"" + std::string(asset.hash);
  if (!coding.empty()) tag += "-" + std::string(coding);
  return tag + "\"";
}

// Returns whether If-None-Match names the tag. Weak tags compare as strong ones (RFC 9110, section 13.1.2).
bool is_known(const http::Headers& request, std::string_view tag) {
  const auto known = request.find("If-None-Match").value_or("");
  return known == "*" || known.contains(tag);
}

const ConsoleAsset* find(std::span<const ConsoleAsset> assets, std::string_view path) {
  const auto found = std::ranges::find(assets, path, &ConsoleAsset::path);
  return found == assets.end() ? nullptr : &*found;
}

http::Response no_such_path(const http::Exchange& exchange) {
  return api_error(404, "There is no " + exchange.request().method + " " +
                            std::string(exchange.path()) + " on this server.");
}

http::Response serve_path(std::span<const ConsoleAsset> assets, const http::Exchange& exchange) {
  const auto& headers = exchange.request().headers;
  if (const auto* asset = find(assets, exchange.path())) return asset_response(*asset, headers);
  const auto* page = find(assets, kPage);
  if (page == nullptr || !is_console_page(exchange.path(), headers)) return no_such_path(exchange);
  return asset_response(*page, headers);
}

}  // namespace

http::Response asset_response(const ConsoleAsset& asset, const http::Headers& request) {
  const auto form = form_for(asset, request.find("Accept-Encoding").value_or(""));
  const auto tag = etag_of(asset, form.coding);
  http::Response response;
  response.headers.add("ETag", tag);
  response.headers.add("Vary", "Accept-Encoding");
  response.headers.add("Cache-Control", asset.path.starts_with(kHashed)
                                            ? "public, max-age=31536000, immutable"
                                            : "no-cache");
  for (const auto& [name, value] : kSecurityFields) {
    response.headers.add(std::string(name), std::string(value));
  }
  if (is_known(request, tag)) {
    response.status = 304;
    return response;
  }
  response.headers.add("Content-Type", std::string(asset.media_type));
  if (!form.coding.empty()) response.headers.add("Content-Encoding", std::string(form.coding));
  response.body = form.bytes;
  return response;
}

bool is_console_page(std::string_view path, const http::Headers& request) {
  for (const auto api : kApis) {
    if (path == api || (path.starts_with(api) && path[api.size()] == '/')) return false;
  }
  return request.find("Accept").value_or("").contains("text/html");
}

std::vector<http::Route> console_routes(std::span<const ConsoleAsset> assets) {
  std::vector<http::Route> routes;
  const auto add = [&](std::string method, std::string pattern, auto make) {
    routes.push_back(
        {.method = std::move(method),
         .pattern = std::move(pattern),
         .guard = http::open_to_all(),
         .handler = http::answer_with(
             [make](const http::Exchange& exchange, const auto&) { return make(exchange); })});
  };
  const auto serve = [assets](const http::Exchange& exchange) {
    return serve_path(assets, exchange);
  };
  add("GET", "/", serve);
  add("GET", "/{rest...}", serve);
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"})
    add(method, "/{rest...}", no_such_path);
  return routes;
}

}  // namespace gitops::control_plane_server
