#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "common/core/trace.hpp"
#include "common/http/client.hpp"

namespace gitops::argo {

// The name of an Application in requests to argocd-server, and the work that they are part of.
struct AppRef {
  std::string name;
  std::string ns;
  std::string project = {};  // empty: not sent; a missing Application is then `forbidden`
  SpanContext trace = {};    // each request is a span of it
};

// Selects objects that an application manages; an empty field selects any.
struct ObjectFilter {
  std::string group = {};
  std::string kind = {};
  std::string ns = {};
  std::string name = {};
  bool operator==(const ObjectFilter&) const = default;
};

// Names one object of an Application's resource tree.
struct ResourceRef {
  std::string group = {};
  std::string version = {};
  std::string kind = {};
  std::string ns = {};
  std::string name = {};
};

// Options for the logs of an Application's pods; an empty field leaves the choice to argocd-server.
struct AppLogOptions {
  ResourceRef of = {};   // the pods of this object; without a name: of all objects
  std::string pod = {};  // this pod alone, in the namespace of `of`
  std::string container = {};
  std::string filter = {};  // lines with this text; "!text": lines without it
  bool follow = false;
  bool previous = false;
  std::optional<std::uint64_t> tail_lines = {};
  std::optional<std::chrono::seconds> since = {};
};

// The work that a read of an Application makes the controller do first.
enum class Refresh { none, normal, hard };

// Options of a deletion: its force, and the fate of the dependents.
struct Removal {
  bool force = false;   // at once, without the grace period
  bool orphan = false;  // the dependents stay
};

// A client for argocd-server (REST, as in its swagger.json), with the calls that this project
// needs. Results are the JSON text as received, at most `max_answer` bytes (too_large); a response
// that is not JSON is a failure (`unavailable`). Failures contain argocd-server's message. A 401 is
// `unauthenticated` and is never retried, because argocd-server counts failed attempts. Loop thread
// only.
class ArgoCdClient {
 public:
  // `root_path` (argocd-server's --rootpath, with or without slashes) comes before /api.
  struct Options {
    http::Url server;
    std::string root_path = {};
    std::size_t max_answer = std::size_t{64} << 20;
  };
  // `token` is called before each request, so that a rotated token is used at once; an empty token
  // is not sent.
  ArgoCdClient(http::Client& http, Options options, std::function<Secret()> token);

  Task<Result<std::string>> resource_tree(AppRef app, Deadline deadline);
  Task<Result<std::string>> managed_resources(AppRef app, Deadline deadline,
                                              ObjectFilter only = {});
  // Returns the Application with its health. With a refresh, argocd-server responds after the controller has
  // compared again. A missing Application is `forbidden`, like one that the token may not see.
  Task<Result<std::string>> application(AppRef app, Refresh refresh, Deadline deadline);
  // Returns the metadata of a commit. `source_index` counts an Application's sources from 0: its
  // present ones, or those of this entry of its history. argocd-server knows commits only, and
  // responds with 500 to anything else ("must be resolved").
  Task<Result<std::string>> revision_metadata(AppRef app, std::string revision, int source_index,
                                              Deadline deadline,
                                              std::optional<std::int64_t> history_id = {});

  // Start a sync or a rollback. `options` is the JSON object of the request in argocd-server's swagger.json
  // (applicationApplicationSyncRequest, applicationApplicationRollbackRequest) without the names of the
  // Application, which are added. An operation in progress, or an auto-sync that excludes a rollback, is
  // `invalid_argument`.
  Task<Result<std::string>> sync(AppRef app, std::string options, Deadline deadline);
  Task<Result<std::string>> rollback(AppRef app, std::string options, Deadline deadline);
  // Fails with `invalid_argument` when no operation is in progress.
  Task<Result<void>> terminate_operation(AppRef app, Deadline deadline);
  // Deletes the Application; with `cascade` also the objects that it has deployed. `propagation` is "foreground",
  // "background" or empty for argocd-server's choice.
  Task<Result<void>> remove(AppRef app, bool cascade, std::string propagation, Deadline deadline);
  // Returns an object of the Application's tree; `manifest` of the response is its JSON as text.
  Task<Result<std::string>> resource(AppRef app, ResourceRef which, Deadline deadline);
  // Patches an object of the tree; `patch_type` is a media type, as "application/merge-patch+json".
  Task<Result<std::string>> patch_resource(AppRef app, ResourceRef which, std::string patch_type,
                                           std::string patch, Deadline deadline);
  Task<Result<void>> delete_resource(AppRef app, ResourceRef which, Removal how, Deadline deadline);
  // Returns the actions that argocd-server knows for the object:
  // {"actions":[{"name","disabled","params"}]}.
  Task<Result<std::string>> actions(AppRef app, ResourceRef which, Deadline deadline);
  // Runs an action; `parameters` is a JSON array of {"name","value"}. Argo CD has had parameters since 3.1,
  // by another path (pull request 22822 of argoproj/argo-cd); before, they are `unsupported` unless there
  // are none.
  Task<Result<void>> run_action(AppRef app, ResourceRef which, std::string action,
                                std::string parameters, Deadline deadline);

  // Requests logs (GET …/logs) and returns before the head of the response is read, since it may come with the
  // first line only. Each line of the body is {"result":{"content","podName","timeStampStr","last"}} or
  // {"error":{"message"}}.
  Task<Result<http::ClientExchange>> logs(AppRef app, AppLogOptions options, Deadline deadline);

  // GET /api/v1/clusters: the clusters that the token may see, with Argo CD's data about each; without
  // credentials.
  Task<Result<std::string>> clusters(Deadline deadline);

  // POST /api/v1/session: a token for that account, valid for `users.session.duration` (24 h). A
  // wrong password is `unauthenticated`; after five of them argocd-server refuses all logins.
  Task<Result<Secret>> log_in(std::string username, Secret password, Deadline deadline);
  // POST /api/v1/account/{name}/token: a token for that account that does not expire, by the permission of the
  // current one. The account needs the capability apiKey.
  Task<Result<Secret>> create_token(std::string account, Deadline deadline);
  // Returns whether argocd-server accepts this token (GET /api/v1/session/userinfo).
  Task<Result<bool>> is_accepted(Secret token, Deadline deadline);
  // Returns whether argocd-server's RBAC grants the token this permission. `object` is
  // "PROJECT/APPLICATION", with "*" for any: can_i("applications", "get", "*/*").
  Task<Result<bool>> can_i(std::string resource, std::string action, std::string object,
                           Deadline deadline);
  // GET /api/version. Needs no token; serves as a liveness check.
  Task<Result<std::string>> version(Deadline deadline);

 private:
  enum class Auth { token, none };
  // Sends a GET; errors name the call by `what`.
  Task<Result<std::string>> get(std::string target, std::string what, Auth auth, Deadline deadline,
                                SpanContext trace = {});
  // Sends a request with the token; `body` is JSON.
  Task<Result<std::string>> call(std::string method, std::string target, std::string body,
                                 std::string what, Deadline deadline, SpanContext trace = {});
  Task<Result<std::string>> send(http::Request request, std::string what, Deadline deadline,
                                 SpanContext trace = {});
  // Requests the version, and returns whether the server has the newer path for actions.
  Task<Result<bool>> has_action_parameters(Deadline deadline);
  http::Client& http_;
  Options options_;
  std::string at_server_;  // " at <host>:<port>", for errors
  std::function<Secret()> token_;
};

// Returns whether GET /api/version names a release with parameters of actions: 3.1 or later. A text that
// names no release counts as a newer one. Pure.
bool has_action_parameters(std::string_view version);

// Parses "argo-cd-server:80", "http://…" or "https://…"; the default scheme is http.
Result<http::Url> parse_server(const std::string& text);

}  // namespace gitops::argo
