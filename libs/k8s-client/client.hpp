#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "k8s-client/api_request.hpp"
#include "k8s-client/config.hpp"
#include "k8s-client/discovery.hpp"
#include "k8s-client/resource.hpp"
#include "k8s-client/retry.hpp"
#include "k8s-client/status.hpp"
#include "k8s-client/token_source.hpp"

namespace gitops::k8s {

// A response that is read while it arrives, in pieces of any size: newline-separated JSON of a
// watch, the text of a log. An empty piece is the end; destroying the stream ends the request. The
// caller sets a deadline for each read.
using WatchStream = http::ClientExchange;
using LogStream = http::ClientExchange;

// The version of an API server ("/version").
struct ServerVersion {
  unsigned major = 0;
  unsigned minor = 0;
  std::string git_version;  // "v1.36.3", with the suffix of a distribution
};

// A client for one API server. Results are the JSON text as received; failures are Errors made from
// the Status object (status.hpp) with a message of one line that names the request. A failed
// request is retried by the rules of retry.hpp, and once after a 401 when there is another
// credential. A response that is a page, or not JSON where the API responds with JSON, is
// `protocol`, also with the status 403 or 404: it comes from an intermediary. `not_found` means
// that the API server itself reports it: a 404 without a Status of the reason NotFound is
// `unavailable`. Bodies over 64 MiB are refused. Loop thread only; outlives its streams.
//
// Order of arguments: the object of the request, the deadline, the options.
class Client {
 public:
  Client(const Executor& executor, net::Resolver& resolver, ClusterConfig config,
         const http::ProxySettings& environment_proxy, std::string user_agent,
         RetryPolicy retry = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Task<Result<std::string>> get(const Resource& resource, ObjectKey key, Deadline deadline);
  // Returns one page, with metadata.continue and metadata.resourceVersion.
  Task<Result<std::string>> list(const Resource& resource, std::string ns, ListOptions options,
                                 Deadline deadline);
  // Calls `on_page` with each page of a list, whose first one `options` describe, until it fails. Some pages may have
  // been handled when there is an error.
  Task<Result<void>> list_pages(const Resource& resource, std::string ns, ListOptions options,
                                Deadline deadline,
                                std::function<Result<void>(std::string_view page)> on_page);
  // Creates an object and returns it as stored. When it exists already: `conflict`,
  // reasons::kAlreadyExists.
  Task<Result<std::string>> create(const Resource& resource, std::string ns, std::string object,
                                   Deadline deadline, CreateOptions options = {});
  // Replaces the object, which contains its resourceVersion; `conflict` when that is stale.
  Task<Result<std::string>> update(const Resource& resource, ObjectKey key, std::string object,
                                   Deadline deadline, UpdateOptions options = {});
  Task<Result<std::string>> patch(const Resource& resource, ObjectKey key, PatchType type,
                                  std::string body, Deadline deadline, PatchOptions options = {});
  // Deletes an object. Returns the object when it remains for now (finalizers, a grace period), or
  // a Status.
  Task<Result<std::string>> remove(const Resource& resource, ObjectKey key, Deadline deadline,
                                   DeleteOptions options = {});
  // Deletes the selected objects of a namespace; empty selectors select all of them. Returns the
  // list of the selected objects.
  Task<Result<std::string>> remove_all(const Resource& resource, std::string ns,
                                       Selectors selectors, Deadline deadline,
                                       DeleteOptions options = {});

  // Opens a watch. The deadline covers the head only.
  Task<Result<WatchStream>> watch(const Resource& resource, std::string ns, WatchOptions options,
                                  Deadline deadline);
  // Opens the log of a container, which is empty while its pod has no node. The deadline covers the
  // head only.
  Task<Result<LogStream>> log(ObjectKey pod, LogOptions options, Deadline deadline);

  // A permission to check by RBAC.
  struct Access {
    std::string verb;
    std::string group;  // empty for the core group
    std::string resource;
    std::string subresource = {};
    std::string ns = {};    // empty: all namespaces
    std::string name = {};  // empty: objects of any name
  };
  // Returns whether we have the permission (SelfSubjectAccessReview).
  Task<Result<bool>> can_i(Access access, Deadline deadline);
  // Returns our user name (SelfSubjectReview, Kubernetes 1.28+).
  Task<Result<std::string>> who_am_i(Deadline deadline);
  struct BoundToken {
    Secret token;
    WallTime expires;
  };
  // Requests a token for a service account (TokenRequest).
  Task<Result<BoundToken>> request_token(ObjectKey service_account,
                                         std::vector<std::string> audiences,
                                         std::chrono::seconds lifetime, Deadline deadline);
  // Returns whether the server has this type now, by discovery of its group and version. After a 404
  // without a Status, the list of groups decides.
  Task<Result<bool>> exists(const Resource& resource, Deadline deadline);
  // Returns all types of the server, in two requests when it has aggregated discovery, else in one
  // for each group and version. Groups that could not be read are in the result as not known.
  Task<Result<Discovery>> discover(Deadline deadline);
  // Returns the version; fails with `protocol` when the peer is not an API server.
  Task<Result<ServerVersion>> server_version(Deadline deadline);

  Task<Result<std::string>> raw(RawRequest request, Deadline deadline);

  [[nodiscard]] const ClusterConfig& config() const { return config_; }

 private:
  enum class Read { whole, stream };
  struct Answer {
    std::string body;                            // Read::whole
    std::optional<http::ClientExchange> stream;  // Read::stream
  };
  [[nodiscard]] Error refused(const http::Response& response, const ApiRequest& request) const;
  // Returns the connections for the current client certificate.
  std::shared_ptr<http::Client> connections();
  Task<Result<void>> authorize(ApiRequest& request, Deadline deadline);
  // Returns whether to send this request again after a 401.
  bool has_other_credential(const http::Request& request);
  Task<Result<Answer>> perform(ApiRequest request, Read read, Deadline deadline);
  Task<Result<std::string>> send(Result<ApiRequest> request, Deadline deadline);
  Task<Result<http::ClientExchange>> open(Result<ApiRequest> request, Deadline deadline);

  ClusterConfig config_;
  RetryPolicy retry_;
  TokenSource tokens_;
  Executor executor_;
  net::Resolver& resolver_;
  http::ClientOptions http_options_;
  std::shared_ptr<http::Client> http_;
  ClientCertificate certificate_;  // from a plugin; http_ was made with it
};

}  // namespace gitops::k8s
