#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "k8s-client/config.hpp"
#include "k8s-client/resource.hpp"
#include "k8s-client/token_source.hpp"

namespace gitops::k8s {

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;  // "0": any version a watch cache has
  std::size_t limit = 500;       // objects per page; 0: no paging
  std::string continue_token;
};

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  std::chrono::seconds timeout{300};  // the server ends the watch after it
  bool send_initial_events = false;   // streaming list (Kubernetes 1.32+, KEP-3157)
};

enum class PatchType { merge, json, apply };  // apply: server-side, needs a field manager

// What a watch is read from: an exchange whose body is newline-separated JSON.
using WatchStream = http::ClientExchange;

// One API server. Answers are the JSON text as received; failures are Errors made from the Status
// object (code, reason, message, Retry-After), their message one line that says what was attempted.
// A 401 re-reads the credential and is tried once more; 429 and 5xx are not retried here, callers
// have a Backoff. Bodies over 64 MiB are refused. Loop thread only; outlives its watches.
class Client {
 public:
  Client(const Executor& executor, net::Resolver& resolver, ClusterConfig config,
         const http::ProxySettings& environment_proxy, std::string user_agent);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Task<Result<std::string>> get(const Resource& resource, ObjectKey key, Deadline deadline);
  // One page; metadata.continue and .resourceVersion are in the text.
  Task<Result<std::string>> list(const Resource& resource, std::string ns, ListOptions options,
                                 Deadline deadline);
  Task<Result<std::string>> create(const Resource& resource, std::string ns, std::string object,
                                   Deadline deadline);
  // Replaces; the object carries its resourceVersion.
  Task<Result<std::string>> update(const Resource& resource, ObjectKey key, std::string object,
                                   Deadline deadline, std::string subresource = {});
  Task<Result<std::string>> patch(const Resource& resource, ObjectKey key, PatchType type,
                                  std::string body, Deadline deadline, std::string subresource = {},
                                  std::string field_manager = {}, bool force = false);
  Task<Result<std::string>> remove(const Resource& resource, ObjectKey key, Deadline deadline,
                                   std::string options = {});

  // Opens a watch. The deadline covers the head only; then the caller sets one per read.
  Task<Result<WatchStream>> watch(const Resource& resource, std::string ns, WatchOptions options,
                                  Deadline deadline);

  // May we? (SelfSubjectAccessReview)
  Task<Result<bool>> can_i(const Resource& resource, std::string verb, std::string ns,
                           Deadline deadline);
  struct BoundToken {
    Secret token;
    WallTime expires;
  };
  // A token for a service account (TokenRequest).
  Task<Result<BoundToken>> request_token(ObjectKey service_account,
                                         std::vector<std::string> audiences,
                                         std::chrono::seconds lifetime, Deadline deadline);
  // Does the server know this type now? (discovery of its group and version)
  Task<Result<bool>> exists(const Resource& resource, Deadline deadline);

  // Any other path, e.g. "/version", "/readyz".
  Task<Result<std::string>> raw(std::string method, std::string target, std::string body,
                                std::string content_type, Deadline deadline);

  [[nodiscard]] const ClusterConfig& config() const { return config_; }

 private:
  // What a request is for, as its errors name it.
  struct Purpose {
    std::string text;
    bool secret = false;  // the peer's words may quote what they complain about: leave them out
  };
  [[nodiscard]] static Purpose purpose(std::string_view verb, const Resource& resource,
                                       const ObjectKey& key);
  [[nodiscard]] Error refused(const http::Response& response, const Purpose& purpose) const;
  Task<Result<void>> authorize(http::Request& request, const Purpose& purpose, Deadline deadline);
  // Whether a 401 to this request is worth another attempt.
  bool can_retry(const http::Request& request);
  Task<Result<std::string>> send(http::Request request, Purpose purpose, Deadline deadline);

  ClusterConfig config_;
  TokenSource tokens_;
  http::Client http_;
};

// The Error behind an HTTP answer that is not 2xx: `what` was attempted, then status, reason and,
// when `show_message`, the message of the Status object if the body is one.
Error error_from_status(const http::Response& response, std::string_view what,
                        bool show_message = true);

}  // namespace gitops::k8s
