#include "k8s-client/client.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/json_value.hpp"
#include "common/http/json_answer.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBody = 64 * 1024 * 1024;
constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kMaxDiscovery = 16 * 1024 * 1024;

Result<Json> parse_answer(const std::string& text, std::string_view what) {
  Json json = parse_json_object(text);
  if (json.is_object()) return json;
  return fail(ErrorCode::protocol, std::string(what) + ": the answer is not a JSON object");
}

// Returns the continue token of the next page; empty: this one is the last.
Result<std::string> next_page(std::string_view list) {
  std::optional<std::string> token;
  for_each_member(list, [&](std::string_view key, std::string_view value) {
    if (key != "metadata") return true;
    JsonParser parser;
    if (const auto metadata = parser.parse_object(value, "metadata of a list")) {
      token = (*metadata)["continue"].text();
    }
    return false;
  });
  if (!token) return fail(ErrorCode::invalid_data, "the answer is not a list");
  return std::move(*token);
}

http::ClientOptions client_options(const ClusterConfig& config,
                                   const http::ProxySettings& environment_proxy,
                                   std::string user_agent) {
  http::ClientOptions options;
  options.tls = config.tls;
  options.proxy = environment_proxy;
  if (config.proxy) {
    options.proxy = {.http = config.proxy, .https = config.proxy, .proxies_loopback = true};
  }
  options.user_agent = std::move(user_agent);
  return options;
}

// Returns whether the request succeeded and the response may be an API server's. Of a stream only
// the head is known.
bool is_success(const http::Response& response, const ApiRequest& request) {
  if (response.status < 200 || response.status >= 300) return false;
  return request.answered_by_json ? http::may_be_json(response) : !http::is_page(response.headers);
}

// Returns the beginning of a refused stream's body, for the error message.
Task<std::string> read_error_body(http::ClientExchange& exchange) {
  std::string body;
  while (body.size() < kMaxErrorBody) {
    auto part = co_await exchange.read_some();
    if (!part || part->empty()) break;
    body += *part;
  }
  co_return body;
}

// Returns false when the text is an API server's list of groups that lacks this group and version.
bool may_have_version(const std::string& groups, const Resource& resource) {
  Discovery discovery;
  const auto known = discovery.add_groups(groups);
  const auto& versions = discovery.versions(resource.group);
  return !known || std::ranges::find(versions, resource.version) != versions.end();
}

// Returns the number at the beginning of a text such as "27+".
unsigned leading_number(const std::string& text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Client::Client(const Executor& executor, net::Resolver& resolver, ClusterConfig config,
               const http::ProxySettings& environment_proxy, std::string user_agent,
               RetryPolicy retry)
    : config_(std::move(config)),
      retry_(retry),
      tokens_(executor, config_),
      executor_(executor),
      resolver_(resolver),
      http_options_(client_options(config_, environment_proxy, std::move(user_agent))),
      http_(std::make_shared<http::Client>(executor_, resolver_, http_options_)) {}

Error Client::refused(const http::Response& response, const ApiRequest& request) const {
  const auto what = request.purpose + " at " + config_.server.host_header();
  // The status of a page counts when it asks for credentials or for a pause.
  const bool is_known = response.status == 401 || response.status == 429 || response.status >= 500;
  if (response.status < 300 || (http::is_page(response.headers) && !is_known)) {
    return {.code = ErrorCode::protocol, .message = what + ": " + http::not_json(response)};
  }
  Error error = error_of(response, what, request.words);
  // The API server names its reason. Without it the answer is that of an intermediary, or of an API
  // server that does not serve the kind, and says nothing about the object.
  const bool is_unexplained =
      error.code == ErrorCode::not_found && error.reason != reasons::kNotFound;
  if (is_unexplained) error.code = ErrorCode::unavailable;
  return error;
}

std::shared_ptr<http::Client> Client::connections() {
  if (tokens_.certificate() == certificate_) return http_;
  // A connection keeps the identity of its certificate, so the old ones are not used again.
  certificate_ = tokens_.certificate();
  http_options_.tls = config_.tls;
  if (!certificate_.certificate_pem.empty()) {
    http_options_.tls.certificate_file.clear();
    http_options_.tls.key_file.clear();
    http_options_.tls.certificate_pem = certificate_.certificate_pem;
    http_options_.tls.key_pem = certificate_.key_pem;
  }
  http_ = std::make_shared<http::Client>(executor_, resolver_, http_options_);
  return http_;
}

Task<Result<void>> Client::authorize(ApiRequest& request, Deadline deadline) {
  auto authorization = co_await tokens_.authorization(deadline);
  if (!authorization) {
    Error error = std::move(authorization.error());
    error.subcode = subcodes::kNoCredential;
    co_return fail(request.purpose, std::move(error));
  }
  if (!authorization->empty()) {
    request.request.headers.set("Authorization", std::string(authorization->reveal()));
  }
  co_return Result<void>();
}

bool Client::has_other_credential(const http::Request& request) {
  return tokens_.invalidate(
      Secret(std::string(request.headers.find("Authorization").value_or(std::string_view()))));
}

Task<Result<Client::Answer>> Client::perform(ApiRequest request, Read read, Deadline deadline) {
  request.request.target = http::join_target(config_.server, request.request.target);
  Retry retry(retry_, request.idempotent, random_seed());
  bool reauthorized = false;
  while (true) {
    if (auto authorized = co_await authorize(request, deadline); !authorized) {
      co_return std::unexpected(std::move(authorized.error()));
    }
    const auto connections = this->connections();
    auto exchange = co_await connections->open(config_.server, request.request, deadline);
    Result<http::Response> response;
    if (!exchange) {
      response = std::unexpected(exchange.error());
    } else if (read == Read::whole) {
      response = co_await exchange->read_all(kMaxBody);
    } else {
      response = co_await exchange->read_head();
    }
    if (response && is_success(*response, request)) {
      if (read == Read::whole) co_return Answer{.body = std::move(response->body), .stream = {}};
      exchange->set_deadline(kNever);
      co_return Answer{.body = {}, .stream = std::move(*exchange)};
    }
    if (response && read == Read::stream) response->body = co_await read_error_body(*exchange);
    if (response && response->status == 401 && !std::exchange(reauthorized, true) &&
        has_other_credential(request.request)) {
      continue;
    }
    Error error = response ? refused(*response, request)
                           : fail(request.purpose, std::move(response.error())).error();
    const auto sent = exchange ? Retry::Sent::maybe : Retry::Sent::nothing;
    const auto wait = retry.after(error, sent, Clock::now(), deadline);
    if (!wait) co_return std::unexpected(std::move(error));
    co_await sleep_for(*wait);
  }
}

Task<Result<std::string>> Client::send(Result<ApiRequest> request, Deadline deadline) {
  if (!request) co_return std::unexpected(std::move(request.error()));
  auto answer = co_await perform(std::move(*request), Read::whole, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return std::move(answer->body);
}

Task<Result<http::ClientExchange>> Client::open(Result<ApiRequest> request, Deadline deadline) {
  if (!request) co_return std::unexpected(std::move(request.error()));
  auto answer = co_await perform(std::move(*request), Read::stream, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return std::move(*answer->stream);
}

Task<Result<std::string>> Client::get(const Resource& resource, ObjectKey key, Deadline deadline) {
  return send(get_request(resource, key), deadline);
}

Task<Result<std::string>> Client::list(const Resource& resource, std::string ns,
                                       ListOptions options, Deadline deadline) {
  return send(list_request(resource, ns, options), deadline);
}

Task<Result<void>> Client::list_pages(const Resource& resource, std::string ns, ListOptions options,
                                      Deadline deadline,
                                      std::function<Result<void>(std::string_view page)> on_page) {
  do {
    const auto page = co_await list(resource, ns, options, deadline);
    if (!page) co_return std::unexpected(page.error());
    auto next = next_page(*page);
    if (!next) co_return std::unexpected(std::move(next.error()));
    if (auto handled = on_page(*page); !handled) co_return handled;
    options.continue_token = std::move(*next);
  } while (!options.continue_token.empty());
  co_return Result<void>();
}

Task<Result<std::string>> Client::create(const Resource& resource, std::string ns,
                                         std::string object, Deadline deadline,
                                         CreateOptions options) {
  return send(create_request(resource, ns, std::move(object), options), deadline);
}

Task<Result<std::string>> Client::update(const Resource& resource, ObjectKey key,
                                         std::string object, Deadline deadline,
                                         UpdateOptions options) {
  return send(update_request(resource, key, std::move(object), options), deadline);
}

Task<Result<std::string>> Client::patch(const Resource& resource, ObjectKey key, PatchType type,
                                        std::string body, Deadline deadline, PatchOptions options) {
  return send(patch_request(resource, key, type, std::move(body), options), deadline);
}

Task<Result<std::string>> Client::remove(const Resource& resource, ObjectKey key, Deadline deadline,
                                         DeleteOptions options) {
  return send(delete_request(resource, key, options), deadline);
}

Task<Result<std::string>> Client::remove_all(const Resource& resource, std::string ns,
                                             Selectors selectors, Deadline deadline,
                                             DeleteOptions options) {
  return send(delete_collection_request(resource, ns, selectors, options), deadline);
}

Task<Result<WatchStream>> Client::watch(const Resource& resource, std::string ns,
                                        WatchOptions options, Deadline deadline) {
  return open(watch_request(resource, ns, options), deadline);
}

Task<Result<LogStream>> Client::log(ObjectKey pod, LogOptions options, Deadline deadline) {
  return open(log_request(pod, options), deadline);
}

Task<Result<std::string>> Client::raw(RawRequest request, Deadline deadline) {
  return send(raw_request(std::move(request)), deadline);
}

Task<Result<bool>> Client::can_i(Access access, Deadline deadline) {
  const Resource& reviews = resources::kSelfSubjectAccessReviews;
  Json asked{{"verb", access.verb}, {"group", access.group}, {"resource", access.resource}};
  if (!access.subresource.empty()) asked["subresource"] = access.subresource;
  if (!access.ns.empty()) asked["namespace"] = access.ns;
  if (!access.name.empty()) asked["name"] = access.name;
  const Json review{{"apiVersion", reviews.api_version()},
                    {"kind", reviews.kind},
                    {"spec", {{"resourceAttributes", std::move(asked)}}}};
  auto answer = co_await create(reviews, {}, to_text(review), deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, "access review");
  if (!json) co_return std::unexpected(std::move(json.error()));
  const Json& allowed = value_at(*json, {"status", "allowed"});
  if (!allowed.is_boolean()) {
    co_return fail(ErrorCode::protocol, "access review: the answer has no status.allowed");
  }
  co_return allowed.get<bool>();
}

Task<Result<std::string>> Client::who_am_i(Deadline deadline) {
  const Resource& reviews = resources::kSelfSubjectReviews;
  const Json review{{"apiVersion", reviews.api_version()}, {"kind", reviews.kind}};
  auto answer = co_await create(reviews, {}, to_text(review), deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, "review of oneself");
  if (!json) co_return std::unexpected(std::move(json.error()));
  std::string name = string_at(*json, {"status", "userInfo", "username"});
  if (name.empty()) {
    co_return fail(ErrorCode::protocol, "review of oneself: the answer names no user");
  }
  co_return name;
}

Task<Result<Client::BoundToken>> Client::request_token(ObjectKey service_account,
                                                       std::vector<std::string> audiences,
                                                       std::chrono::seconds lifetime,
                                                       Deadline deadline) {
  const Json wanted{{"apiVersion", "authentication.k8s.io/v1"},
                    {"kind", "TokenRequest"},
                    {"spec", {{"audiences", audiences}, {"expirationSeconds", lifetime.count()}}}};
  const std::string what = "token of service account " + service_account.to_string();
  auto answer = co_await send(
      subresource_request(resources::kServiceAccounts, service_account, "token", to_text(wanted)),
      deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, what);
  if (!json) co_return std::unexpected(std::move(json.error()));
  std::string token = string_at(*json, {"status", "token"});
  const auto expires = parse_rfc3339(string_at(*json, {"status", "expirationTimestamp"}));
  if (token.empty() || !expires) {
    co_return fail(ErrorCode::protocol, what + ": the answer lacks the token or its end");
  }
  co_return BoundToken{.token = Secret(std::move(token)), .expires = *expires};
}

Task<Result<bool>> Client::exists(const Resource& resource, Deadline deadline) {
  auto answer = co_await raw({.target = group_version_path(resource)}, deadline);
  if (!answer && answer.error().code == ErrorCode::not_found) co_return false;
  // An API server has no Status for a group that it does not serve, and an intermediary has none at
  // all. The list of groups tells them apart.
  if (!answer && answer.error().http_status == 404 && !resource.group.empty()) {
    const auto groups = co_await raw({.target = "/apis"}, deadline);
    if (!groups) co_return std::unexpected(groups.error());
    if (!may_have_version(*groups, resource)) co_return false;
  }
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, "discovery of " + resource.api_version());
  if (!json) co_return std::unexpected(std::move(json.error()));
  for (const Json& known : value_at(*json, {"resources"})) {
    if (string_at(known, {"name"}) == resource.plural) co_return true;
  }
  co_return false;
}

Task<Result<Discovery>> Client::discover(Deadline deadline) {
  Discovery discovery;
  std::vector<Discovery::GroupVersion> rest;
  for (const char* target : {"/api", "/apis"}) {
    auto text = co_await raw({.target = target, .accept = kAggregatedDiscovery}, deadline);
    if (!text) co_return std::unexpected(std::move(text.error()));
    if (text->size() > kMaxDiscovery) {
      co_return fail(ErrorCode::too_large, "discovery: the answer is over 16 MiB");
    }
    if (discovery.add_aggregated(*text)) continue;
    auto groups = discovery.add_groups(*text);
    if (!groups) co_return std::unexpected(std::move(groups.error()));
    rest.insert(rest.end(), groups->begin(), groups->end());
  }
  for (const Discovery::GroupVersion& each : rest) {
    const Resource any{.group = each.group, .version = each.version, .plural = {}, .kind = {}};
    auto text = co_await raw({.target = group_version_path(any)}, deadline);
    if (!text && text.error().code == ErrorCode::timeout && Clock::now() >= deadline) {
      co_return std::unexpected(std::move(text.error()));
    }
    // The failure of one aggregated API must not hide the types of the others.
    if (!text || !discovery.add_resources(each, *text)) discovery.set_not_known(each);
  }
  co_return discovery;
}

Task<Result<ServerVersion>> Client::server_version(Deadline deadline) {
  auto answer = co_await raw({.target = "/version"}, deadline);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto json = parse_answer(*answer, "version of the API server");
  if (!json) co_return std::unexpected(std::move(json.error()));
  ServerVersion version{.major = leading_number(string_at(*json, {"major"})),
                        .minor = leading_number(string_at(*json, {"minor"})),
                        .git_version = string_at(*json, {"gitVersion"})};
  if (version.git_version.empty()) {
    co_return fail(ErrorCode::protocol, "version of the API server: the answer has no gitVersion");
  }
  co_return version;
}

}  // namespace gitops::k8s
