#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/message.hpp"
#include "k8s-client/resource.hpp"
#include "k8s-client/status.hpp"

// The requests of the Kubernetes API as values: their options, and the HTTP requests made of them.
// Pure; client.hpp sends them. Parameters are those of the API reference of Kubernetes
// ("Common Parameters"); an empty field leaves the choice to the server.
namespace gitops::k8s {

struct ListOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};  // "0": any version in the watch cache
  std::size_t limit = 500;            // objects per page; 0: no paging
  std::string continue_token = {};    // excludes resource_version
};

struct WatchOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  std::chrono::seconds timeout{300};  // the server ends the watch then
  bool send_initial_events = false;   // streaming list (Kubernetes 1.32+, KEP-3157)
};

struct CreateOptions {
  std::string field_manager = {};  // empty: the server uses the user agent
  bool dry_run = false;            // nothing is stored
};

struct UpdateOptions {
  std::string field_manager = {};
  bool dry_run = false;
  std::string subresource = {};  // "status", "scale"
};

enum class PatchType { merge, json, apply };  // apply: server-side, needs a field manager

struct PatchOptions {
  std::string field_manager = {};
  bool dry_run = false;
  bool force = false;  // apply: takes over fields of other managers
  std::string subresource = {};
};

enum class Propagation {
  standard,    // the default of the type, mostly background
  background,  // the object first, then its dependents
  foreground,  // its dependents first
  orphan,      // the object alone
};

struct DeleteOptions {
  // Preconditions: the deletion fails with `conflict` when the object has another uid or version.
  std::string uid = {};
  std::string resource_version = {};
  std::optional<std::chrono::seconds> grace_period = {};
  Propagation propagation = Propagation::standard;
  bool dry_run = false;
};

// Selects objects of a collection.
struct Selectors {
  std::string labels = {};
  std::string fields = {};
};

struct LogOptions {
  std::string container = {};                      // needed when the pod has several
  bool follow = false;                             // stays open for further lines
  bool previous = false;                           // the log before the last restart
  bool timestamps = false;                         // RFC 3339 in front of each line
  std::optional<std::chrono::seconds> since = {};  // at least one second
  std::optional<std::uint64_t> tail_lines = {};
  std::optional<std::uint64_t> limit_bytes = {};  // the server ends the stream then
};

// A request for which this library has no function.
struct RawRequest {
  std::string method = "GET";
  std::string target = {};  // below the server's path: "/readyz?verbose"
  std::string body = {};
  std::string content_type = "application/json";
  std::string accept = "application/json";
};

// A request, with the properties that the client needs.
struct ApiRequest {
  http::Request request;
  std::string purpose;        // "get pods shop/web"; error messages begin with it
  Words words = Words::show;  // hide: the server's response may quote a Secret
  // Sending it twice has the same effect as sending it once. The second response may differ, such
  // as `not_found` for a deletion.
  bool idempotent = false;
  // False for logs, and for requests whose form of response only the caller knows.
  bool answered_by_json = true;
};

// The functions below fail with invalid_argument when `key` or a required namespace is empty or not
// a name: the path would address something else.
Result<ApiRequest> get_request(const Resource& resource, const ObjectKey& key);
ApiRequest list_request(const Resource& resource, std::string_view ns, const ListOptions& options);
ApiRequest watch_request(const Resource& resource, std::string_view ns,
                         const WatchOptions& options);
Result<ApiRequest> create_request(const Resource& resource, std::string_view ns, std::string object,
                                  const CreateOptions& options);
Result<ApiRequest> update_request(const Resource& resource, const ObjectKey& key,
                                  std::string object, const UpdateOptions& options);
Result<ApiRequest> patch_request(const Resource& resource, const ObjectKey& key, PatchType type,
                                 std::string body, const PatchOptions& options);
Result<ApiRequest> delete_request(const Resource& resource, const ObjectKey& key,
                                  const DeleteOptions& options);
// Deletes the collection of one namespace; the API server supports no others.
Result<ApiRequest> delete_collection_request(const Resource& resource, std::string_view ns,
                                             const Selectors& selectors,
                                             const DeleteOptions& options);
Result<ApiRequest> log_request(const ObjectKey& pod, const LogOptions& options);
// POST to a subresource of an object, such as "token" of a ServiceAccount.
Result<ApiRequest> subresource_request(const Resource& resource, const ObjectKey& key,
                                       std::string_view subresource, std::string body);
ApiRequest raw_request(RawRequest raw);

}  // namespace gitops::k8s
