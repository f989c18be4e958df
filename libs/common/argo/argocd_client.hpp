#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::argo {

// Names an Application towards argocd-server.
struct AppRef {
  std::string name;
  std::string ns;
  std::string project;  // when empty it is not sent, and a missing Application is `forbidden`
};

// The calls to argocd-server that this project makes (REST, as in its swagger.json). Answers are
// the JSON text as received, at most 64 MiB; failures carry argocd-server's message. A 401 is
// ErrorCode::unauthenticated and is not repeated here: argocd-server counts failed attempts. Loop
// thread only.
class ArgoCdClient {
 public:
  // `root_path` (argocd-server's --rootpath, with or without slashes) comes before /api.
  struct Options {
    http::Url server;
    std::string root_path;
  };
  // `token` is asked for before each request, so that a rotated one is used at once; an empty one
  // sends none.
  ArgoCdClient(http::Client& http, Options options, std::function<Secret()> token);

  Task<Result<std::string>> resource_tree(AppRef app, Deadline deadline);
  Task<Result<std::string>> managed_resources(AppRef app, Deadline deadline);
  // `source_index` counts an Application's sources from 0.
  Task<Result<std::string>> revision_metadata(AppRef app, std::string revision, int source_index,
                                              Deadline deadline);
  // POST /api/v1/session: a token for that account, good for `users.session.duration` (24 h).
  // unauthenticated for a wrong password: argocd-server refuses everybody after five of them.
  Task<Result<Secret>> log_in(std::string username, Secret password, Deadline deadline);
  // May the token's owner do this (RBAC: "applications", "get", "PROJECT/APPLICATION" with "*" for
  // any)? As for all others, unauthenticated when the token is refused.
  Task<Result<bool>> can_i(std::string resource, std::string action, std::string object,
                           Deadline deadline);
  // GET /api/version. Needs no token; serves as a liveness check.
  Task<Result<std::string>> version(Deadline deadline);

 private:
  enum class Auth { token, none };
  // `what` is how errors name the call.
  Task<Result<std::string>> get(std::string target, std::string what, Auth auth, Deadline deadline);
  Task<Result<std::string>> send(http::Request request, std::string what, Deadline deadline);
  http::Client& http_;
  Options options_;
  std::function<Secret()> token_;
};

// "argo-cd-server:80", "http://…", "https://…" -> URL; text without a scheme means http.
Result<http::Url> parse_server(const std::string& text);

}  // namespace gitops::argo
