#include "control-plane/http/console_assets.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/http/gzip.hpp"
#include "control-plane/accounts/user_routes.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kPage = "/index.html";
constexpr std::string_view kHashed = "/assets/";
// Paths whose clients are programs.
constexpr std::string_view kApis[] = {"/assets",        "/console/api", "/2.0",     "/api",
                                      "/tunnel-plugin", "/app-proxy",   "/webhooks"};

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src "
    "'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console; "
    "connect-src 'self'";
constexpr std::size_t kMaxFile = std::size_t{4} * 1024 * 1024;  // the largest has about 70 KB
constexpr std::size_t kTagDigits = 16;  // of the origins in the tag of a page

constexpr std::pair<std::string_view, std::string_view> kSecurityFields[] = {
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
  std::string_view bytes;   // empty: those of the gzip form, inflated
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

Task<http::Response> serve_path(std::span<const ConsoleAsset> assets,
                                const PageOrigins& page_origins, http::Exchange& exchange) {
  const auto& headers = exchange.request().headers;
  const auto* asset = find(assets, exchange.path());
  if (asset == nullptr && is_console_page(exchange.path(), headers)) asset = find(assets, kPage);
  if (asset == nullptr) co_return no_such_path(exchange);
  std::vector<std::string> origins;
  if (asset->path == kPage && page_origins) origins = co_await page_origins(exchange);
  co_return asset_response(*asset, headers, origins);
}

http::RouteHandler file_handler(std::span<const ConsoleAsset> assets, PageOrigins page_origins) {
  return [assets, page_origins = std::move(page_origins)](http::Exchange& exchange,
                                                          const http::RouteParameters&) -> Task<> {
    auto response = co_await serve_path(assets, page_origins, exchange);
    std::ignore = co_await exchange.reply(std::move(response));
  };
}

}  // namespace

http::Response asset_response(const ConsoleAsset& asset, const http::Headers& request,
                              const std::vector<std::string>& origins) {
  const auto form = form_for(asset, request.find("Accept-Encoding").value_or(""));
  std::string policy(kPolicy);
  for (const auto& origin : origins) policy += " " + origin;
  // A browser keeps the policy of a page that has not changed, so that another policy needs another tag.
  auto tag = "\"" + std::string(asset.hash);
  if (!origins.empty()) tag += "-" + hex_encode(bytes_of(sha256(policy))).substr(0, kTagDigits);
  if (!form.coding.empty()) tag += "-" + std::string(form.coding);
  tag += '"';
  http::Response response;
  response.headers.add("ETag", tag);
  response.headers.add("Vary", "Accept-Encoding");
  if (asset.path.starts_with(kHashed)) {
    response.headers.add("Cache-Control", "public, max-age=31536000, immutable");
  } else {
    response.headers.add("Cache-Control", origins.empty() ? "no-cache" : "private, no-cache");
  }
  response.headers.add("Content-Security-Policy", std::move(policy));
  for (const auto& [name, value] : kSecurityFields) {
    response.headers.add(std::string(name), std::string(value));
  }
  if (is_known(request, tag)) {
    response.status = 304;
    return response;
  }
  response.headers.add("Content-Type", std::string(asset.media_type));
  if (!form.coding.empty()) response.headers.add("Content-Encoding", std::string(form.coding));
  response.body = form.bytes.empty() ? http::gzip_decompress(asset.gzip, kMaxFile).value_or("")
                                     : std::string(form.bytes);
  return response;
}

bool is_console_page(std::string_view path, const http::Headers& request) {
  for (const auto api : kApis) {
    if (path == api || (path.starts_with(api) && path[api.size()] == '/')) return false;
  }
  return request.find("Accept").value_or("").contains("text/html");
}

std::vector<http::Route> console_routes(std::span<const ConsoleAsset> assets,
                                        PageOrigins page_origins) {
  std::vector<http::Route> routes;
  const auto add = [&](std::string method, std::string pattern, http::RouteHandler handler) {
    routes.push_back({.method = std::move(method),
                      .pattern = std::move(pattern),
                      .guard = http::open_to_all(),
                      .handler = std::move(handler)});
  };
  const auto serve = file_handler(assets, std::move(page_origins));
  add("GET", "/", serve);
  add("GET", "/{rest...}", serve);
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    add(method, "/{rest...}", http::answer_with([](const http::Exchange& exchange, const auto&) {
          return no_such_path(exchange);
        }));
  }
  return routes;
}

}  // namespace gitops::control_plane_server
