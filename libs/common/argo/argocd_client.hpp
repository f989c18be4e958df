#pragma once

#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"

namespace gitops::argo {

// Names an Application towards argocd-server.
struct AppRef {
  std::string name;
  std::string ns;
  std::string project;
};

// The calls to argocd-server that this project makes (REST, as in its swagger.json). Answers are the
// JSON text as received; failures carry argocd-server's code and message. A 401 calls
// `on_unauthenticated` once per token and is not repeated here. Loop thread only.
class ArgoCdClient {
 public:
  // `server` is host:port or a URL; `root_path` comes before /api.
  struct Options {
    http::Url server;
    std::string root_path;
  };
  // `token` is asked for before each request, so that a rotated one is used at once.
  ArgoCdClient(http::Client& http, Options options, std::function<Secret()> token);

  Task<Result<std::string>> resource_tree(AppRef app, Deadline deadline);
  Task<Result<std::string>> managed_resources(AppRef app, Deadline deadline);
  Task<Result<std::string>> revision_metadata(AppRef app, std::string revision, int source_index,
                                              Deadline deadline);
  // GET /api/version, unauthenticated: is anybody there?
  Task<Result<std::string>> version(Deadline deadline);

 private:
  Task<Result<std::string>> get(std::string target, Deadline deadline);
  http::Client& http_;
  Options options_;
  std::function<Secret()> token_;
};

// "argo-cd-server:80", "http://…", "https://…" -> URL; text without a scheme means http.
Result<http::Url> parse_server(const std::string& text);

}  // namespace gitops::argo
