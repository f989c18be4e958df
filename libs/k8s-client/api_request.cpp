#include "k8s-client/api_request.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kJson = "application/json";

// The query of a request target; empty values are left out.
class QueryText {
 public:
  QueryText& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += percent_encode(value);
    return *this;
  }
  QueryText& add_if(bool condition, std::string_view name, std::string_view value) {
    return condition ? add(name, value) : *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// An empty name would address the collection, dots another path.
bool is_path_segment(std::string_view text) {
  return !text.empty() && text != "." && text != "..";
}

Result<void> check_name(const Resource& resource, const ObjectKey& key) {
  if (is_path_segment(key.name) && (!resource.namespaced || is_path_segment(key.ns))) return {};
  return fail(ErrorCode::invalid_argument,
              resource.full_name() + ": '" + key.to_string() + "' names no object");
}

Result<void> check_namespace(const Resource& resource, std::string_view ns) {
  if (!resource.namespaced || is_path_segment(ns)) return {};
  return fail(ErrorCode::invalid_argument,
              resource.full_name() + ": '" + std::string(ns) + "' names no namespace");
}

http::Request make_request(std::string method, std::string target, std::string body = {},
                           std::string_view content_type = kJson, std::string_view accept = kJson) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  // The request refuses gzip: inflating a list costs more than moving it inside a cluster.
  request.headers.set("Accept-Encoding", "identity");
  request.headers.set("Accept", std::string(accept));
  if (!body.empty()) request.headers.set("Content-Type", std::string(content_type));
  request.body = std::move(body);
  return request;
}

// Returns the request with its purpose. PUT and DELETE are idempotent by RFC 9110, section 9.2.2.
ApiRequest describe(std::string_view verb, const Resource& resource, const ObjectKey& key,
                    http::Request request) {
  ApiRequest out;
  out.purpose = std::string(verb) + " " + resource.full_name();
  if (!key.name.empty()) {
    out.purpose += " " + key.to_string();
  } else if (!key.ns.empty()) {
    out.purpose += " in " + key.ns;
  }
  if (resource.group.empty() && resource.plural == "secrets") out.words = Words::hide;
  out.idempotent = request.method != "POST" && request.method != "PATCH";
  out.request = std::move(request);
  return out;
}

std::string_view content_type_of(PatchType type) {
  switch (type) {
    case PatchType::merge:
      return "application/merge-patch+json";
    case PatchType::json:
      return "application/json-patch+json";
    case PatchType::apply:
      return "application/apply-patch+yaml";
  }
  std::unreachable();
}

const char* policy_name(Propagation propagation) {
  switch (propagation) {
    case Propagation::standard:
      return nullptr;
    case Propagation::background:
      return "Background";
    case Propagation::foreground:
      return "Foreground";
    case Propagation::orphan:
      return "Orphan";
  }
  std::unreachable();
}

// Returns the DeleteOptions object; empty when no option is set. When there is a body, the API
// server ignores these options in the query.
std::string delete_body(const DeleteOptions& options) {
  Json body = Json::object();
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period) body["gracePeriodSeconds"] = options.grace_period->count();
  if (const char* policy = policy_name(options.propagation)) body["propagationPolicy"] = policy;
  if (options.dry_run) body["dryRun"] = Json::array({"All"});
  return body.empty() ? std::string() : to_text(body);
}

}  // namespace

Result<ApiRequest> get_request(const Resource& resource, const ObjectKey& key) {
  if (auto usable = check_name(resource, key); !usable) return std::unexpected(usable.error());
  return describe("get", resource, key, make_request("GET", object_path(resource, key)));
}

ApiRequest list_request(const Resource& resource, std::string_view ns, const ListOptions& options) {
  QueryText query;
  query.add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add_if(options.limit > 0, "limit", std::to_string(options.limit));
  // The server refuses a version beside a continue token, which contains it.
  if (options.continue_token.empty()) {
    query.add("resourceVersion", options.resource_version);
  } else {
    query.add("continue", options.continue_token);
  }
  return describe("list", resource, {.ns = std::string(ns), .name = {}},
                  make_request("GET", collection_path(resource, ns) + query.text()));
}

ApiRequest watch_request(const Resource& resource, std::string_view ns,
                         const WatchOptions& options) {
  QueryText query;
  query.add("watch", "1")
      .add("allowWatchBookmarks", "true")
      .add("timeoutSeconds", std::to_string(options.timeout.count()))
      .add("resourceVersion", options.resource_version)
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector);
  if (options.send_initial_events) {
    query.add("sendInitialEvents", "true").add("resourceVersionMatch", "NotOlderThan");
  }
  return describe("watch", resource, {.ns = std::string(ns), .name = {}},
                  make_request("GET", collection_path(resource, ns) + query.text()));
}

Result<ApiRequest> create_request(const Resource& resource, std::string_view ns, std::string object,
                                  const CreateOptions& options) {
  if (auto usable = check_namespace(resource, ns); !usable) return std::unexpected(usable.error());
  QueryText query;
  query.add("fieldManager", options.field_manager).add_if(options.dry_run, "dryRun", "All");
  return describe(
      "create", resource, {.ns = std::string(ns), .name = {}},
      make_request("POST", collection_path(resource, ns) + query.text(), std::move(object)));
}

Result<ApiRequest> update_request(const Resource& resource, const ObjectKey& key,
                                  std::string object, const UpdateOptions& options) {
  if (auto usable = check_name(resource, key); !usable) return std::unexpected(usable.error());
  QueryText query;
  query.add("fieldManager", options.field_manager).add_if(options.dry_run, "dryRun", "All");
  return describe(
      "update", resource, key,
      make_request("PUT", object_path(resource, key, options.subresource) + query.text(),
                   std::move(object)));
}

Result<ApiRequest> patch_request(const Resource& resource, const ObjectKey& key, PatchType type,
                                 std::string body, const PatchOptions& options) {
  if (auto usable = check_name(resource, key); !usable) return std::unexpected(usable.error());
  QueryText query;
  query.add("fieldManager", options.field_manager)
      .add_if(options.force, "force", "true")
      .add_if(options.dry_run, "dryRun", "All");
  ApiRequest request =
      describe("patch", resource, key,
               make_request("PATCH", object_path(resource, key, options.subresource) + query.text(),
                            std::move(body), content_type_of(type)));
  request.idempotent = type == PatchType::apply;
  return request;
}

Result<ApiRequest> delete_request(const Resource& resource, const ObjectKey& key,
                                  const DeleteOptions& options) {
  if (auto usable = check_name(resource, key); !usable) return std::unexpected(usable.error());
  return describe("delete", resource, key,
                  make_request("DELETE", object_path(resource, key), delete_body(options)));
}

Result<ApiRequest> delete_collection_request(const Resource& resource, std::string_view ns,
                                             const Selectors& selectors,
                                             const DeleteOptions& options) {
  if (auto usable = check_namespace(resource, ns); !usable) return std::unexpected(usable.error());
  QueryText query;
  query.add("labelSelector", selectors.labels).add("fieldSelector", selectors.fields);
  return describe(
      "delete", resource, {.ns = std::string(ns), .name = {}},
      make_request("DELETE", collection_path(resource, ns) + query.text(), delete_body(options)));
}

Result<ApiRequest> log_request(const ObjectKey& pod, const LogOptions& options) {
  const Resource& pods = resources::kPods;
  if (auto usable = check_name(pods, pod); !usable) return std::unexpected(usable.error());
  if (options.since && options.since->count() < 1) {
    return fail(ErrorCode::invalid_argument,
                "log of " + pod.to_string() + ": the age of the first line is under a second");
  }
  QueryText query;
  query.add("container", options.container)
      .add_if(options.follow, "follow", "true")
      .add_if(options.previous, "previous", "true")
      .add_if(options.timestamps, "timestamps", "true");
  if (options.since) query.add("sinceSeconds", std::to_string(options.since->count()));
  if (options.tail_lines) query.add("tailLines", std::to_string(*options.tail_lines));
  if (options.limit_bytes) query.add("limitBytes", std::to_string(*options.limit_bytes));
  // A log is plain text, a refusal is JSON.
  auto request = describe("read the log of", pods, pod,
                          make_request("GET", object_path(pods, pod, "log") + query.text(), {},
                                       kJson, "application/json, */*"));
  request.answered_by_json = false;
  return request;
}

Result<ApiRequest> subresource_request(const Resource& resource, const ObjectKey& key,
                                       std::string_view subresource, std::string body) {
  if (auto usable = check_name(resource, key); !usable) return std::unexpected(usable.error());
  return describe("create " + std::string(subresource) + " of", resource, key,
                  make_request("POST", object_path(resource, key, subresource), std::move(body)));
}

ApiRequest raw_request(RawRequest raw) {
  ApiRequest out;
  out.purpose = raw.method + " " + raw.target.substr(0, raw.target.find('?'));
  if (raw.target.contains("/secrets")) out.words = Words::hide;
  out.idempotent = raw.method != "POST" && raw.method != "PATCH";
  out.answered_by_json = false;
  out.request = make_request(std::move(raw.method), std::move(raw.target), std::move(raw.body),
                             raw.content_type, raw.accept);
  return out;
}

}  // namespace gitops::k8s
