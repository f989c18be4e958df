#include "app-proxy/routes.hpp"

#include <utility>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kPrefix = "/app-proxy/";
constexpr std::size_t kMaxRest = 1024 * 1024;  // bytes of a body

http::RouteHandler ok() {
  return http::answer_with([](const http::Exchange&, const http::RouteParameters&) {
    auto response = http::text_response(200, "OK");
    response.headers.set("Cache-Control", "no-store");
    return response;
  });
}

// Routes that clients know and this version does not serve.
http::Route not_yet(std::string method, std::string path) {
  return {std::move(method), std::move(path), http::open_to_all(),
          http::answer_with([](const http::Exchange&, const http::RouteParameters&) {
            return rest_error(501, "this route is not available in this version of app-proxy");
          }),
          kMaxRest};
}

}  // namespace

std::string canonical_path(std::string_view path) {
  std::string canonical;
  canonical.reserve(path.size() + 1);
  for (const char c : path) {
    if (c != '/' || !canonical.ends_with('/')) canonical += c;
  }
  if (canonical.starts_with(kPrefix)) canonical.erase(0, kPrefix.size() - 1);
  while (canonical.size() > 1 && canonical.ends_with('/')) canonical.pop_back();
  return canonical;
}

http::Response rest_error(int status, std::string_view message) {
  http::Response response{.status = status,
                          .headers = {{"Content-Type", "application/json; charset=utf-8"},
                                      {"Cache-Control", "no-store"}},
                          .body = "{\"statusCode\":" + std::to_string(status) + ",\"message\":"};
  append_json_string(response.body, message, JsonEscape::minimal);
  response.body += ",\"error\":";
  append_json_string(response.body, http::reason_phrase(status), JsonEscape::minimal);
  response.body += '}';
  return response;
}

std::vector<http::Route> routes(RouteHandlers handlers) {
  return {
      {"GET", "/api/readyz", http::open_to_all(), ok()},
      {"GET", "/api/healthz", http::open_to_all(), ok()},
      {"POST", "/api/graphql", http::open_to_all(), std::move(handlers.graphql), kMaxRest},
      {"GET", "/api/graphql", http::open_to_all(), std::move(handlers.graphql_opened)},
      not_yet("POST", "/api/clusters"),
      not_yet("GET", "/api/applications/logs"),
      not_yet("GET", "/api/image-report"),
      not_yet("POST", "/api/promotions/commit"),
      not_yet("POST", "/api/promotions/pullRequest"),
      not_yet("GET", "/api/git-auth/{provider}"),
      not_yet("GET", "/api/git-auth/{provider}/callback"),
  };
}

}  // namespace gitops::app_proxy
