#include "k8s-client/client.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBody = 64 * 1024 * 1024;
constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kMaxMessage = 500;
constexpr std::chrono::seconds kMaxRetryAfter{300};
constexpr std::string_view kJson = "application/json";

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The member of an object; null when there is none.
const Json& member(const Json& json, const char* key) {
  static const Json null;
  if (!json.is_object()) return null;
  const auto found = json.find(key);
  return found == json.end() ? null : *found;
}

std::string text_member(const Json& json, const char* key) {
  const Json& value = member(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

Result<Json> parse_answer(const std::string& text, std::string_view what) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_object()) return json;
  return fail(ErrorCode::protocol, std::string(what) + ": the answer is not a JSON object");
}

// Parameters of a request target; empty values are left out.
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
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Empty names would address the collection, dots another path.
Result<void> check_name(const Resource& resource, const ObjectKey& key) {
  const auto usable = [](const std::string& text) {
    return !text.empty() && text != "." && text != "..";
  };
  if (!usable(key.name) || (resource.namespaced && !usable(key.ns))) {
    return fail(ErrorCode::invalid_argument,
                resource.full_name() + ": '" + key.to_string() + "' names no object");
  }
  return {};
}

http::Request make_request(std::string method, std::string target, std::string body = {},
                           std::string_view content_type = kJson) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  // No gzip: inflating a list costs more than moving it inside a cluster.
  request.headers.set("Accept-Encoding", "identity");
  request.headers.set("Accept", std::string(kJson));
  if (!body.empty()) request.headers.set("Content-Type", std::string(content_type));
  request.body = std::move(body);
  return request;
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

http::ClientOptions client_options(const ClusterConfig& config,
                                   const http::ProxySettings& environment_proxy,
                                   std::string user_agent) {
  http::ClientOptions options;
  options.tls = config.tls;
  options.proxy = environment_proxy;
  if (config.proxy) options.proxy = {.http = config.proxy, .https = config.proxy, .no_proxy = {}};
  options.user_agent = std::move(user_agent);
  return options;
}

// As much of a refused watch's body as an error message needs.
Task<std::string> read_error_body(http::ClientExchange& exchange) {
  std::string body;
  while (body.size() < kMaxErrorBody) {
    auto part = co_await exchange.read_some();
    if (!part || part->empty()) break;
    body += *part;
  }
  co_return body;
}

}  // namespace

Error error_from_status(const http::Response& response, std::string_view what, bool show_message) {
  Error error;
  error.code = error_code_of_status(response.status);
  error.http_status = response.status;
  error.message = std::string(what) + ": " + std::to_string(response.status);
  if (const auto value = response.headers.find("Retry-After")) {
    error.retry_after = parse_retry_after(*value, wall_now());
  }
  Json status;
  if (response.body.size() <= kMaxErrorBody) {
    status = Json::parse(response.body, nullptr, false);
  }
  if (text_member(status, "kind") != "Status") {
    error.message += ' ';
    error.message += http::reason_phrase(response.status);
    return error;
  }
  const std::string reason = text_member(status, "reason");
  error.message += ' ';
  error.message += reason.empty() ? http::reason_phrase(response.status) : std::string_view(reason);
  if (const std::string message = text_member(status, "message");
      show_message && !message.empty()) {
    error.message += ": " + message.substr(0, kMaxMessage);
  }
  const Json& seconds = member(member(status, "details"), "retryAfterSeconds");
  if (seconds.is_number_unsigned()) {
    error.retry_after = std::chrono::seconds(
        std::min(seconds.get<std::uint64_t>(), std::uint64_t{kMaxRetryAfter.count()}));
  }
  return error;
}

Client::Client(const Executor& executor, net::Resolver& resolver, ClusterConfig config,
               const http::ProxySettings& environment_proxy, std::string user_agent)
    : config_(std::move(config)),
      tokens_(executor, config_),
      http_(executor, resolver, client_options(config_, environment_proxy, std::move(user_agent))) {
}

Client::Purpose Client::purpose(std::string_view verb, const Resource& resource,
                                const ObjectKey& key) {
  Purpose purpose{.text = std::string(verb) + " " + resource.full_name(),
                  .secret = resource.group.empty() && resource.plural == "secrets"};
  if (!key.name.empty()) {
    purpose.text += " " + key.to_string();
  } else if (!key.ns.empty()) {
    purpose.text += " in " + key.ns;
  }
  return purpose;
}

Error Client::refused(const http::Response& response, const Purpose& purpose) const {
  return error_from_status(response, purpose.text + " at " + config_.server.host_header(),
                           !purpose.secret);
}

Task<Result<void>> Client::authorize(http::Request& request, const Purpose& purpose,
                                     Deadline deadline) {
  auto authorization = co_await tokens_.authorization(deadline);
  if (!authorization) co_return fail(purpose.text, std::move(authorization.error()));
  if (!authorization->empty()) {
    request.headers.set("Authorization", std::string(authorization->reveal()));
  }
  co_return Result<void>();
}

bool Client::can_retry(const http::Request& request) {
  const auto sent = request.headers.find("Authorization");
  return sent && tokens_.invalidate(Secret(std::string(*sent)));
}

Task<Result<std::string>> Client::send(http::Request request, Purpose purpose, Deadline deadline) {
  request.target = http::join_target(config_.server, request.target);
  for (bool retried = false;; retried = true) {
    auto authorized = co_await authorize(request, purpose, deadline);
    if (!authorized) co_return std::unexpected(std::move(authorized.error()));
    auto response = co_await http_.send(config_.server, request, deadline, kMaxBody);
    if (!response) co_return fail(purpose.text, std::move(response.error()));
    if (response->status >= 200 && response->status < 300) co_return std::move(response->body);
    if (response->status != 401 || retried || !can_retry(request)) {
      co_return std::unexpected(refused(*response, purpose));
    }
  }
}

Task<Result<WatchStream>> Client::watch(const Resource& resource, std::string ns,
                                        WatchOptions options, Deadline deadline) {
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
  http::Request request = make_request(
      "GET", http::join_target(config_.server, collection_path(resource, ns) + query.text()));
  const Purpose what = purpose("watch", resource, {.ns = ns, .name = {}});
  for (bool retried = false;; retried = true) {
    auto authorized = co_await authorize(request, what, deadline);
    if (!authorized) co_return std::unexpected(std::move(authorized.error()));
    auto exchange = co_await http_.open(config_.server, request, deadline);
    if (!exchange) co_return fail(what.text, std::move(exchange.error()));
    auto head = co_await exchange->read_head();
    if (!head) co_return fail(what.text, std::move(head.error()));
    if (head->status == 200) {
      exchange->set_deadline(kNever);
      co_return std::move(*exchange);
    }
    head->body = co_await read_error_body(*exchange);
    if (head->status != 401 || retried || !can_retry(request)) {
      co_return std::unexpected(refused(*head, what));
    }
  }
}

Task<Result<std::string>> Client::get(const Resource& resource, ObjectKey key, Deadline deadline) {
  if (auto usable = check_name(resource, key); !usable) {
    co_return std::unexpected(std::move(usable.error()));
  }
  co_return co_await send(make_request("GET", object_path(resource, key)),
                          purpose("get", resource, key), deadline);
}

Task<Result<std::string>> Client::list(const Resource& resource, std::string ns,
                                       ListOptions options, Deadline deadline) {
  QueryText query;
  query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  if (options.limit > 0) query.add("limit", std::to_string(options.limit));
  // A continue token holds its version; the server refuses both together.
  if (options.continue_token.empty()) {
    query.add("resourceVersion", options.resource_version);
  } else {
    query.add("continue", options.continue_token);
  }
  co_return co_await send(make_request("GET", collection_path(resource, ns) + query.text()),
                          purpose("list", resource, {.ns = ns, .name = {}}), deadline);
}

Task<Result<std::string>> Client::create(const Resource& resource, std::string ns,
                                         std::string object, Deadline deadline) {
  // The name is in the object; only the namespace is needed here.
  if (auto usable = check_name(resource, {.ns = ns, .name = "-"}); !usable) {
    co_return std::unexpected(std::move(usable.error()));
  }
  co_return co_await send(make_request("POST", collection_path(resource, ns), std::move(object)),
                          purpose("create", resource, {.ns = ns, .name = {}}), deadline);
}

Task<Result<std::string>> Client::update(const Resource& resource, ObjectKey key,
                                         std::string object, Deadline deadline,
                                         std::string subresource) {
  if (auto usable = check_name(resource, key); !usable) {
    co_return std::unexpected(std::move(usable.error()));
  }
  co_return co_await send(
      make_request("PUT", object_path(resource, key, subresource), std::move(object)),
      purpose("update", resource, key), deadline);
}

Task<Result<std::string>> Client::patch(const Resource& resource, ObjectKey key, PatchType type,
                                        std::string body, Deadline deadline,
                                        std::string subresource, std::string field_manager,
                                        bool force) {
  if (auto usable = check_name(resource, key); !usable) {
    co_return std::unexpected(std::move(usable.error()));
  }
  QueryText query;
  query.add("fieldManager", field_manager);
  if (force) query.add("force", "true");
  co_return co_await send(
      make_request("PATCH", object_path(resource, key, subresource) + query.text(), std::move(body),
                   content_type_of(type)),
      purpose("patch", resource, key), deadline);
}

Task<Result<std::string>> Client::remove(const Resource& resource, ObjectKey key, Deadline deadline,
                                         std::string options) {
  if (auto usable = check_name(resource, key); !usable) {
    co_return std::unexpected(std::move(usable.error()));
  }
  co_return co_await send(make_request("DELETE", object_path(resource, key), std::move(options)),
                          purpose("delete", resource, key), deadline);
}

Task<Result<bool>> Client::can_i(const Resource& resource, std::string verb, std::string ns,
                                 Deadline deadline) {
  const Resource& reviews = resources::kSelfSubjectAccessReviews;
  const Json review{{"apiVersion", reviews.api_version()},
                    {"kind", reviews.kind},
                    {"spec",
                     {{"resourceAttributes",
                       {{"namespace", ns},
                        {"verb", verb},
                        {"group", resource.group},
                        {"version", resource.version},
                        {"resource", resource.plural}}}}}};
  auto answer = co_await create(reviews, {}, to_text(review), deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, "access review");
  if (!json) co_return std::unexpected(std::move(json.error()));
  const Json& allowed = member(member(*json, "status"), "allowed");
  if (!allowed.is_boolean()) {
    co_return fail(ErrorCode::protocol, "access review: the answer has no status.allowed");
  }
  co_return allowed.get<bool>();
}

Task<Result<Client::BoundToken>> Client::request_token(ObjectKey service_account,
                                                       std::vector<std::string> audiences,
                                                       std::chrono::seconds lifetime,
                                                       Deadline deadline) {
  if (auto usable = check_name(resources::kServiceAccounts, service_account); !usable) {
    co_return std::unexpected(std::move(usable.error()));
  }
  const Json wanted{{"apiVersion", "authentication.k8s.io/v1"},
                    {"kind", "TokenRequest"},
                    {"spec", {{"audiences", audiences}, {"expirationSeconds", lifetime.count()}}}};
  const std::string what = "request a token for service account " + service_account.to_string();
  auto answer = co_await send(
      make_request("POST", object_path(resources::kServiceAccounts, service_account, "token"),
                   to_text(wanted)),
      {.text = what, .secret = false}, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, what);
  if (!json) co_return std::unexpected(std::move(json.error()));
  const Json& status = member(*json, "status");
  std::string token = text_member(status, "token");
  const auto expires = parse_rfc3339(text_member(status, "expirationTimestamp"));
  if (token.empty() || !expires) {
    co_return fail(ErrorCode::protocol, what + ": the answer lacks the token or its end");
  }
  co_return BoundToken{.token = Secret(std::move(token)), .expires = *expires};
}

Task<Result<bool>> Client::exists(const Resource& resource, Deadline deadline) {
  const std::string what = "discover " + resource.api_version();
  auto answer = co_await send(make_request("GET", group_version_path(resource)),
                              {.text = what, .secret = false}, deadline);
  if (!answer && answer.error().code == ErrorCode::not_found) co_return false;
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, what);
  if (!json) co_return std::unexpected(std::move(json.error()));
  for (const Json& known : member(*json, "resources")) {
    if (text_member(known, "name") == resource.plural) co_return true;
  }
  co_return false;
}

Task<Result<std::string>> Client::raw(std::string method, std::string target, std::string body,
                                      std::string content_type, Deadline deadline) {
  Purpose what{.text = method + " " + target.substr(0, target.find('?')),
               .secret = target.contains("/secrets")};
  co_return co_await send(
      make_request(std::move(method), std::move(target), std::move(body), content_type),
      std::move(what), deadline);
}

}  // namespace gitops::k8s
