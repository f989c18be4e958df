#include "app-proxy/http/routes.hpp"

#include <utility>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kPrefix = "/app-proxy/";
constexpr std::size_t kMaxBody = 1024 * 1024;  // bytes

http::RouteHandler ok() {
  return http::answer_with([](const http::Exchange&, const http::RouteParameters&) {
    auto response = http::text_response(200, "OK");
    response.headers.set("Cache-Control", "no-store");
    return response;
  });
}

enum class Does {
  ok,
  graphql,
  graphql_opened,
  promotion_commit,
  promotion_pull_request,
  clusters,
  image_report,
  logs,
  source_files,
  git_login,
  git_login_form,
  git_login_callback
};

struct RouteRow {
  const char* method;
  const char* path;
  Does does;
  const char* purpose;
};

// List of all routes.
constexpr RouteRow kRoutes[] = {
    {"GET", "/api/readyz", Does::ok, "readiness: `OK`"},
    {"GET", "/api/healthz", Does::ok, "liveness: `OK`"},
    {"POST", "/api/graphql", Does::graphql, "GraphQL"},
    {"GET", "/api/graphql", Does::graphql_opened, "GraphQL over WebSocket; the page for queries"},
    {"POST", "/api/clusters", Does::clusters, "adds a cluster, or changes it"},
    {"GET", "/api/applications/logs", Does::logs,
     "a log as server-sent events; the runtime's own logs as an archive"},
    {"GET", "/api/image-report", Does::image_report, "reports an image, as server-sent events"},
    {"POST", "/api/promotions/commit", Does::promotion_commit, "promotes by a commit"},
    {"POST", "/api/promotions/pullRequest", Does::promotion_pull_request,
     "promotes by a pull request"},
    {"POST", "/api/source-files", Does::source_files,
     "for event-reporter, with the runtime's token: the files of an Application's folder in Git"},
    {"GET", "/api/git-auth/{provider}", Does::git_login,
     "in a browser: the user's login at a Git host, by OAuth"},
    {"POST", "/api/git-auth/{provider}", Does::git_login_form, "the form of that page"},
    {"GET", "/api/git-auth/{provider}/callback", Does::git_login_callback,
     "where the Git host sends the browser back to"},
};

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

int status_of_unread_body(const Error& error) {
  return error.http_status == 0 ? 408 : error.http_status;
}

std::vector<http::Route> routes(RouteHandlers handlers) {
  const auto handler_of = [&handlers](Does does) {
    switch (does) {
      case Does::ok:
        return ok();
      case Does::graphql:
        return handlers.graphql;
      case Does::graphql_opened:
        return handlers.graphql_opened;
      case Does::promotion_commit:
        return handlers.promotion_commit;
      case Does::promotion_pull_request:
        return handlers.promotion_pull_request;
      case Does::clusters:
        return handlers.clusters;
      case Does::image_report:
        return handlers.image_report;
      case Does::logs:
        return handlers.logs;
      case Does::source_files:
        return handlers.source_files;
      case Does::git_login:
        return handlers.git_login;
      case Does::git_login_form:
        return handlers.git_login_form;
      case Does::git_login_callback:
        break;
    }
    return handlers.git_login_callback;
  };
  std::vector<http::Route> made;
  for (const RouteRow& row : kRoutes) {
    // GraphQL authenticates by field, and other handlers by themselves; the remaining routes are
    // public.
    made.push_back({row.method, row.path, http::open_to_all(), handler_of(row.does), kMaxBody});
  }
  return made;
}

std::vector<ListedRoute> route_list() {
  std::vector<ListedRoute> list;
  for (const RouteRow& row : kRoutes) list.push_back({row.method, row.path, row.purpose});
  return list;
}

}  // namespace gitops::app_proxy
