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

// The requests of the Kubernetes API as values: what may be asked for, and the HTTP request that
// asks for it. Pure; client.hpp sends them. Parameters are those of the API reference of Kubernetes
// ("Common Parameters"); an empty field leaves the choice to the server.
namespace gitops::k8s {

struct ListOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};  // "0": any version that a watch cache has
  std::size_t limit = 500;            // objects per page; 0: no paging
  std::string continue_token = {};    // the server takes no resource_version with it
};

struct WatchOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  std::chrono::seconds timeout{300};  // the server ends the watch after it
  bool send_initial_events = false;   // streaming list (Kubernetes 1.32+, KEP-3157)
};

struct CreateOptions {
  std::string field_manager = {};  // empty: the server takes the user agent
  bool dry_run = false;            // all but the storing
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
  bool force = false;  // apply: takes fields over that another manager has applied
  std::string subresource = {};
};

enum class Propagation {
  standard,    // of the type: background, as a rule
  background,  // the object first, then what it owns
  foreground,  // what it owns first
  orphan,      // the object alone
};

struct DeleteOptions {
  // Preconditions: `conflict` when the object is another one or has another version by now.
  std::string uid = {};
  std::string resource_version = {};
  std::optional<std::chrono::seconds> grace_period = {};
  Propagation propagation = Propagation::standard;
  bool dry_run = false;
};

// Which objects of a collection.
struct Selectors {
  std::string labels = {};
  std::string fields = {};
};

struct LogOptions {
  std::string container = {};                      // needed when the pod has several
  bool follow = false;                             // stays open for what the container will write
  bool previous = false;                           // of the container before its last restart
  bool timestamps = false;                         // RFC 3339 in front of each line
  std::optional<std::chrono::seconds> since = {};  // at least a second
  std::optional<std::uint64_t> tail_lines = {};
  std::optional<std::uint64_t> limit_bytes = {};  // the server ends the stream then
};

// A request that this library has no function for.
struct RawRequest {
  std::string method = "GET";
  std::string target = {};  // below the server's path: "/readyz?verbose"
  std::string body = {};
  std::string content_type = "application/json";
  std::string accept = "application/json";
};

// A request, and what the client must know to send it and to speak of it.
struct ApiRequest {
  http::Request request;
  std::string purpose;        // "get pods shop/web"; messages begin with it
  Words words = Words::show;  // hide: the server's answer may quote a Secret
  // Sending it twice has the effect of sending it once. The answer to the second may differ, such as
  // `not_found` for a deletion.
  bool idempotent = false;
};

// Each fails with invalid_argument when `key` (or a namespace that is needed) names no object: such
// a path would address something else.
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
// The API server deletes collections of one namespace only.
Result<ApiRequest> delete_collection_request(const Resource& resource, std::string_view ns,
                                             const Selectors& selectors,
                                             const DeleteOptions& options);
Result<ApiRequest> log_request(const ObjectKey& pod, const LogOptions& options);
// POST to the subresource of an object, as of a token.
Result<ApiRequest> subresource_request(const Resource& resource, const ObjectKey& key,
                                       std::string_view subresource, std::string body);
ApiRequest raw_request(RawRequest raw);

}  // namespace gitops::k8s
