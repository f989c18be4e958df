#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::argo {

// The name of an Application in requests to argocd-server.
struct AppRef {
  std::string name;
  std::string ns;
  std::string project;  // empty: not sent; a missing Application is then `forbidden`
};

// Selects objects that an application manages; an empty field selects any.
struct ObjectFilter {
  std::string group = {};
  std::string kind = {};
  std::string ns = {};
  std::string name = {};
  bool operator==(const ObjectFilter&) const = default;
};

// A client for argocd-server (REST, as in its swagger.json), with the calls that this project
// needs. Results are the JSON text as received, at most `max_answer` bytes (too_large); failures contain
// argocd-server's message. A 401 is `unauthenticated` and is never retried, because argocd-server counts failed
// attempts. Loop thread only.
class ArgoCdClient {
 public:
  // `root_path` (argocd-server's --rootpath, with or without slashes) comes before /api.
  struct Options {
    http::Url server;
    std::string root_path;
    std::size_t max_answer = std::size_t{64} << 20;
  };
  // `token` is called before each request, so that a rotated token is used at once; an empty token
  // is not sent.
  ArgoCdClient(http::Client& http, Options options, std::function<Secret()> token);

  Task<Result<std::string>> resource_tree(AppRef app, Deadline deadline);
  Task<Result<std::string>> managed_resources(AppRef app, Deadline deadline,
                                              ObjectFilter only = {});
  // `source_index` counts an Application's sources from 0.
  Task<Result<std::string>> revision_metadata(AppRef app, std::string revision, int source_index,
                                              Deadline deadline);
  // POST /api/v1/session: a token for that account, valid for `users.session.duration` (24 h). A
  // wrong password is `unauthenticated`; after five of them argocd-server refuses all logins.
  Task<Result<Secret>> log_in(std::string username, Secret password, Deadline deadline);
  // Whether the token has this right by argocd-server's RBAC. `object` is "PROJECT/APPLICATION",
  // with "*" for any: can_i("applications", "get", "*/*").
  Task<Result<bool>> can_i(std::string resource, std::string action, std::string object,
                           Deadline deadline);
  // GET /api/version. Needs no token; serves as a liveness check.
  Task<Result<std::string>> version(Deadline deadline);

 private:
  enum class Auth { token, none };
  // Errors name the call by `what`.
  Task<Result<std::string>> get(std::string target, std::string what, Auth auth, Deadline deadline);
  Task<Result<std::string>> send(http::Request request, std::string what, Deadline deadline);
  http::Client& http_;
  Options options_;
  std::function<Secret()> token_;
};

// Parses "argo-cd-server:80", "http://…" or "https://…"; without a scheme, http is meant.
Result<http::Url> parse_server(const std::string& text);

}  // namespace gitops::argo
