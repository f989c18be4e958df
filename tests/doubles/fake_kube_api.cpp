#include "doubles/fake_kube_api.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/http/gzip.hpp"
#include "doubles/kube_discovery.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBody = 3 * 1024 * 1024;
constexpr std::size_t kGzipFrom = 128 * 1024;

http::Response plain(std::string text) {
  http::Response response;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(text);
  return response;
}

KubeFailure forbidden(const KubeTarget& target) {
  const auto& resource = target.type->resource;
  const auto name = target.key.name.empty() ? "" : " \"" + target.key.name + "\"";
  const auto slash = target.subresource.empty() ? "" : "/" + target.subresource;
  const auto where = target.key.ns.empty() ? " at the cluster scope"
                                           : " in the namespace \"" + target.key.ns + "\"";
  return {
      .code = 403,
      .reason = "Forbidden",
      .message = target.type->id() + name + " is forbidden: User \"tester\" cannot " + target.verb +
                 " resource \"" + resource.plural + slash + "\" in API group \"" + resource.group +
                 "\"" + where,
      .details = {{"name", target.key.name}, {"group", resource.group}, {"kind", resource.plural}}};
}

// The answer to a deletion: the object for some types, a Status for the others.
http::Response deleted(const KubeTarget& target, const FakeKubeStore::Removed& removed) {
  const auto& resource = target.type->resource;
  const bool gives_object =
      resource.kind == "Pod" || resource.kind == "ServiceAccount" || resource.kind == "Namespace";
  if (!removed.gone || gives_object) return json_response(200, removed.object->text);
  Json details{{"name", target.key.name},
               {"kind", resource.plural},
               {"uid", removed.object->json["metadata"]["uid"]}};
  if (!resource.group.empty()) details["group"] = resource.group;
  return json_response(200, Json{{"kind", "Status"},
                                 {"apiVersion", "v1"},
                                 {"metadata", Json::object()},
                                 {"status", "Success"},
                                 {"details", std::move(details)}}
                                .dump());
}

bool is_dry_run(const Query& query, const Json& sent) {
  if (query.get("dryRun") == "All") return true;
  const bool has_options = sent.is_object() && sent.contains("dryRun");
  return has_options && sent["dryRun"] == Json::array({"All"});
}

// Records the field manager in the object when the request names one.
void note_manager(const KubeTarget& target, const Query& query, std::string_view media,
                  Json& sent) {
  const auto manager = query.get("fieldManager");
  if (manager.empty() || !sent.is_object()) return;
  Json& metadata = sent["metadata"];
  if (!metadata.is_object() && !metadata.is_null()) return;
  metadata["managedFields"] =
      Json::array({{{"manager", manager},
                    {"operation", media.contains("apply-patch") ? "Apply" : "Update"},
                    {"apiVersion", target.type->resource.api_version()},
                    {"time", format_rfc3339(wall_now())},
                    {"fieldsType", "FieldsV1"},
                    {"fieldsV1", Json::object()}}});
}

// The last lines of a text.
std::string_view tail_of(std::string_view text, std::size_t lines) {
  std::size_t begin = text.size();
  while (lines > 0 && begin > 0) {
    const auto newline = begin < 2 ? std::string_view::npos : text.rfind('\n', begin - 2);
    begin = newline == std::string_view::npos ? 0 : newline + 1;
    --lines;
  }
  return text.substr(begin);
}

http::Response stored(const FakeKubeStore::Outcome<FakeKubeStore::Object>& outcome,
                      int status = 200) {
  return outcome ? json_response(status, (*outcome)->text) : refusal(outcome.error());
}

}  // namespace

FakeKubeApi::FakeKubeApi(const Executor& executor, Options options)
    : DoubleServer(executor, options.server),
      options_(std::move(options)),
      store_(options_.history),
      lists_(store_) {
  for (const auto& type : known_kube_types()) store_.add_type(type);
  for (const auto* ns : {"default", "kube-system"}) {
    put(k8s::resources::kNamespaces,
        {{"metadata", {{"name", ns}}}, {"status", {{"phase", "Active"}}}});
  }
  store_.on_change([this] { notify_change(); });
}

FakeKubeApi::~FakeKubeApi() = default;

k8s::ClusterConfig FakeKubeApi::cluster_config() const {
  k8s::ClusterConfig config;
  config.server = url();
  config.token = Secret(options_.token);
  return config;
}

std::string FakeKubeApi::kubeconfig() const {
  return "apiVersion: v1\n"
         "kind: Config\n"
         "current-context: double\n"
         "clusters:\n"
         "- name: double\n"
         "  cluster:\n"
         "    server: " +
         url().to_string() +
         "\n"
         "users:\n"
         "- name: tester\n"
         "  user:\n"
         "    token: \"" +
         options_.token +
         "\"\n"
         "contexts:\n"
         "- name: double\n"
         "  context:\n"
         "    cluster: double\n"
         "    user: tester\n";
}

const KubeType& FakeKubeApi::type_of(const k8s::Resource& resource) const {
  const auto* type = store_.find_type(resource.group, resource.version, resource.plural);
  if (type == nullptr) throw std::logic_error("the double does not serve " + resource.plural);
  return *type;
}

Json FakeKubeApi::put(const k8s::Resource& resource, Json object) {
  return store_.put(type_of(resource), std::move(object))->json;
}

Json FakeKubeApi::put_secret(const k8s::ObjectKey& key,
                             const std::map<std::string, std::string>& values, Json labels) {
  auto data = Json::object();
  for (const auto& [name, value] : values) data[name] = base64_encode(value);
  return put(
      k8s::resources::kSecrets,
      {{"apiVersion", "v1"},
       {"kind", "Secret"},
       {"metadata", {{"name", key.name}, {"namespace", key.ns}, {"labels", std::move(labels)}}},
       {"data", std::move(data)}});
}

std::optional<Json> FakeKubeApi::find(const k8s::Resource& resource,
                                      const k8s::ObjectKey& key) const {
  const auto found = store_.get(type_of(resource), key);
  if (!found) return std::nullopt;
  return (*found)->json;
}

bool FakeKubeApi::remove(const k8s::Resource& resource, const k8s::ObjectKey& key) {
  return store_.remove(type_of(resource), key).has_value();
}

void FakeKubeApi::add_type(const k8s::Resource& resource, bool status_subresource) {
  store_.add_type({resource, status_subresource, true});
}

void FakeKubeApi::remove_type(const k8s::Resource& resource) {
  store_.remove_type(KubeType{resource, false, true}.id());
}

Task<bool> FakeKubeApi::wait_until(std::function<bool()> condition, Deadline deadline) {
  while (!condition()) {
    if (!co_await wait_for_change(deadline)) co_return condition();
  }
  co_return true;
}

void FakeKubeApi::add_list_item(const k8s::Resource& resource, std::string text) {
  lists_.set_extra_item(type_of(resource).id(), std::move(text));
}

http::Response FakeKubeApi::failure(int status) const {
  static const std::map<int, std::pair<std::string, std::string>> texts{
      {400, {"BadRequest", "the request is malformed"}},
      {401, {"Unauthorized", "Unauthorized"}},
      {403, {"Forbidden", "forbidden: not allowed now"}},
      {404, {"NotFound", "the server could not find the requested resource"}},
      {409, {"Conflict", "the object has been modified"}},
      {410, {"Expired", "The resourceVersion for the provided list is too old."}},
      {422, {"Invalid", "the server rejected our request due to an error in our request"}},
      {429, {"TooManyRequests", "Too many requests, please try again later."}},
      {500, {"InternalError", "Internal error occurred: injected by the test"}},
      {503, {"ServiceUnavailable", "the server is currently unable to handle the request"}},
      {504, {"Timeout", "Timeout: request did not complete within the allotted timeout"}},
  };
  const auto text = texts.find(status);
  return refusal({.code = status,
                  .reason = text == texts.end() ? "InternalError" : text->second.first,
                  .message = text == texts.end() ? "injected by the test" : text->second.second});
}

Task<> FakeKubeApi::handle(http::Exchange& exchange) {
  auto body = co_await exchange.read_body(kMaxBody);
  if (!body) {
    if (body.error().code == ErrorCode::too_large) {
      auto sent = co_await exchange.reply(
          refusal({.code = 413,
                   .reason = "RequestEntityTooLarge",
                   .message = "Request entity too large: limit is " + std::to_string(kMaxBody)}));
      if (!sent) co_return;
    }
    co_return;
  }
  co_await serve(exchange, *body);
}

Task<> FakeKubeApi::serve(http::Exchange& exchange, const std::string& body) {
  const http::Request& request = exchange.request();
  const auto path = path_segments(exchange.path());
  const Query query(exchange.query());
  std::optional<http::Response> response = answer_fixed(request, path, body);
  if (!response) response = proxied_page(request, path);
  if (!response) {
    const auto target = find_target(store_, request, path, query);
    if (!target) {
      response = page_not_found();
    } else if (!is_allowed(*target, query)) {
      response = refusal(forbidden(*target));
    } else if (target->verb == "watch") {
      co_await watch(exchange, *target, query);
      co_return;
    } else if (target->type->id() == "pods" && target->subresource == "log") {
      co_await serve_log(exchange, *target, query);
      co_return;
    } else {
      response = answer(request, *target, query, body);
    }
  }
  const auto accepts_gzip = request.headers.has_token("Accept-Encoding", "gzip");
  if (accepts_gzip && response->body.size() > kGzipFrom) {
    response->body = http::gzip_compress(response->body);
    response->headers.set("Content-Encoding", "gzip");
  }
  if (auto sent = co_await exchange.reply(std::move(*response)); !sent) co_return;
}

// A page of a pod: /api/v1/namespaces/NS/pods/NAME:PORT/proxy/PAGE.
std::optional<http::Response> FakeKubeApi::proxied_page(
    const http::Request& request, const std::vector<std::string>& path) const {
  if (path.size() < 7 || path[4] != "pods" || path[6] != "proxy") return std::nullopt;
  const std::string name = path[5].substr(0, path[5].find(':'));
  if (allowed_ && !allowed_({.verb = "get",
                             .group = {},
                             .resource = "pods",
                             .subresource = "proxy",
                             .ns = path[3],
                             .name = path[5]})) {
    return failure(403);
  }
  const auto page = pod_pages_.find(request.target.substr(request.target.find("/proxy/") + 6));
  if (!find(k8s::resources::kPods, {.ns = path[3], .name = name})) return failure(404);
  return page == pod_pages_.end() ? failure(503) : plain(page->second);
}

bool FakeKubeApi::is_allowed(const KubeTarget& target, const Query& query) const {
  const auto& resource = target.type->resource;
  auto name = target.key.name;
  // A list of one name is authorized as a request for that object, in RequestInfoFactory.
  constexpr std::string_view kOfName = "metadata.name=";
  const auto fields = query.get("fieldSelector");
  if (name.empty() && fields.starts_with(kOfName)) name = fields.substr(kOfName.size());
  return !allowed_ || allowed_({.verb = target.verb,
                                .group = resource.group,
                                .resource = resource.plural,
                                .subresource = target.subresource,
                                .ns = target.key.ns,
                                .name = name});
}

// Everything except objects: authentication, probes, version, discovery and reviews.
std::optional<http::Response> FakeKubeApi::answer_fixed(const http::Request& request,
                                                        const std::vector<std::string>& path,
                                                        const std::string& body) {
  // A wrong token is refused for every path; without a token, probes are answered.
  const auto header = request.headers.find("Authorization").value_or("");
  const std::string token(header.starts_with("Bearer ") ? header.substr(7) : std::string_view());
  const auto issued = issued_tokens_.find(token);
  const bool known =
      options_.token.empty() || token == options_.token || issued != issued_tokens_.end();
  if (!header.empty() && !known) return failure(401);
  const bool probe =
      path.size() == 1 && (path[0] == "readyz" || path[0] == "livez" || path[0] == "healthz");
  if (probe) return plain("ok");
  if (path == std::vector<std::string>{"version"}) {
    return json_response(200, Json{{"major", "1"},
                                   {"minor", "36"},
                                   {"gitVersion", "v1.36.3"},
                                   {"gitCommit", ""},
                                   {"gitTreeState", "clean"},
                                   {"buildDate", "1970-01-01T00:00:00Z"},
                                   {"goVersion", "none"},
                                   {"compiler", "none"},
                                   {"platform", "double"}}
                                  .dump());
  }
  if (!known) return failure(401);
  if (path.empty() || (path[0] != "api" && path[0] != "apis")) return page_not_found();
  if (path ==
      std::vector<std::string>{"apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"}) {
    return request.method == "POST" ? review_access(body) : failure(404);
  }
  if (path ==
      std::vector<std::string>{"apis", "authentication.k8s.io", "v1", "selfsubjectreviews"}) {
    if (request.method != "POST") return failure(404);
    const std::string user = issued == issued_tokens_.end() ? "double" : issued->second;
    return json_response(201, Json{{"kind", "SelfSubjectReview"},
                                   {"apiVersion", "authentication.k8s.io/v1"},
                                   {"metadata", Json::object()},
                                   {"status", {{"userInfo", {{"username", user}}}}}}
                                  .dump());
  }
  if (path.size() <= (path[0] == "api" ? 2U : 3U)) return kube_discovery(store_.types(), path);
  return std::nullopt;
}

http::Response FakeKubeApi::review_access(const std::string& body) const {
  Json review = Json::parse(body, nullptr, false);
  if (!review.is_object() || !review.contains("spec") || !review["spec"].is_object()) {
    return refusal(bad_request("the body is not a SelfSubjectAccessReview"));
  }
  const auto asked = review["spec"].value("resourceAttributes", Json::object());
  const bool allowed = !allowed_ || allowed_({.verb = asked.value("verb", ""),
                                              .group = asked.value("group", ""),
                                              .resource = asked.value("resource", ""),
                                              .subresource = asked.value("subresource", ""),
                                              .ns = asked.value("namespace", ""),
                                              .name = asked.value("name", ""),
                                              .is_review = true});
  review["status"] = {{"allowed", allowed}};
  if (allowed) review["status"]["reason"] = "allowed by the test";
  return json_response(201, review.dump());
}

http::Response FakeKubeApi::answer(const http::Request& request, const KubeTarget& target,
                                   const Query& query, const std::string& body) {
  const KubeType& type = *target.type;
  const auto media = request.headers.find("Content-Type").value_or("");
  const bool token_request =
      type.resource.plural == "serviceaccounts" && target.subresource == "token";
  if (token_request && request.method == "POST") return issue_token(target, body);
  if (!target.subresource.empty() && (target.subresource != "status" || !type.status_subresource)) {
    return type.custom ? refusal(not_found(type, target.key.name)) : page_not_found();
  }
  if (target.verb == "list") return lists_.list(target, query);
  if (target.verb == "get") return stored(store_.get(type, target.key));
  if (media.contains("protobuf")) return refusal(unsupported_media_type());

  Json sent = Json::object();
  const bool deletes = target.verb == "delete" || target.verb == "deletecollection";
  if (!deletes || !body.empty()) {
    sent = Json::parse(body, nullptr, false);
    if (sent.is_discarded()) {
      return refusal(bad_request("the object provided is unrecognized (must be of type " +
                                 type.resource.kind +
                                 "): couldn't get version/kind; json parse error"));
    }
  }
  std::optional<FakeKubeStore::DryRun> dry_run;
  if (is_dry_run(query, sent)) dry_run.emplace(store_);
  note_manager(target, query, media, sent);
  if (target.verb == "deletecollection") return delete_collection(target, query);
  if (target.verb == "create" && target.key.name.empty()) {
    return stored(store_.create(type, target.key.ns, std::move(sent)), 201);
  }
  if (target.verb == "update") {
    return stored(store_.update(type, target.key, std::move(sent), target.subresource));
  }
  if (target.verb == "patch") return patch(target, query, media, sent);
  if (target.verb == "delete") {
    const auto removed = store_.remove(type, target.key, sent);
    return removed ? deleted(target, *removed) : refusal(removed.error());
  }
  return refusal({.code = 405,
                  .reason = "MethodNotAllowed",
                  .message = "the server does not allow this method on the requested resource",
                  .details = Json::object()});
}

http::Response FakeKubeApi::patch(const KubeTarget& target, const Query& query,
                                  std::string_view media, const Json& body) {
  using PatchType = FakeKubeStore::PatchType;
  static const std::map<std::string, PatchType, std::less<>> patches{
      {"application/merge-patch+json", PatchType::merge},
      {"application/strategic-merge-patch+json", PatchType::merge},
      {"application/json-patch+json", PatchType::json},
      {"application/apply-patch+yaml", PatchType::apply}};
  const auto patch = patches.find(http::media_type(media));
  if (patch == patches.end() || (target.type->custom && media.contains("strategic"))) {
    return refusal(unsupported_media_type());
  }
  if (patch->second == PatchType::apply && query.get("fieldManager").empty()) {
    return refusal({.code = 422,
                    .reason = "Invalid",
                    .message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: "
                               "Required value: is required for apply patch"});
  }
  const auto patched =
      store_.patch(*target.type, target.key, patch->second, body, target.subresource);
  return patched ? json_response(patched->created ? 201 : 200, patched->object->text)
                 : refusal(patched.error());
}

http::Response FakeKubeApi::delete_collection(const KubeTarget& target, const Query& query) {
  const KubeType& type = *target.type;
  const auto selectors = parse_selectors(query, type);
  if (!selectors) return refusal(selectors.error());
  auto response = lists_.list(target, query);
  for (const auto& object : store_.list(type, target.key.ns)) {
    if (!selectors->matches(object->json)) continue;
    const auto& metadata = object->json["metadata"];
    const k8s::ObjectKey key{.ns = metadata.value("namespace", ""),
                             .name = metadata["name"].get<std::string>()};
    if (auto removed = store_.remove(type, key); !removed) return refusal(removed.error());
  }
  return response;
}

void FakeKubeApi::append_pod_log(std::string_view text) {
  pod_log_ += text;
  notify_change();
}

Task<> FakeKubeApi::serve_log(http::Exchange& exchange, const KubeTarget& target,
                              const Query& query) {
  const auto pod = store_.get(*target.type, target.key);
  std::optional<http::Response> refused;
  if (!pod) {
    refused = refusal(pod.error());
  } else if (const auto asked = query.get("container"); !asked.empty()) {
    const auto spec = (*pod)->json.value("spec", Json::object());
    const auto containers = spec.value("containers", Json::array());
    const bool known = std::ranges::any_of(
        containers, [&](const Json& container) { return container.value("name", "") == asked; });
    if (!known) {
      refused =
          refusal(bad_request("container " + asked + " is not valid for pod " + target.key.name));
    }
  }
  if (refused) {
    if (auto sent = co_await exchange.reply(std::move(*refused)); !sent) co_return;
    co_return;
  }
  // The connection of a log with this annotation breaks before its end.
  const bool is_cut = (*pod)
                          ->json.value("metadata", Json::object())
                          .value("annotations", Json::object())
                          .contains("fake.test/cut-log");
  std::string_view text = pod_log_;
  if (query.has("tailLines")) text = tail_of(text, parse_size(query.get("tailLines")));
  if (query.has("limitBytes")) text = text.substr(0, parse_size(query.get("limitBytes")));
  auto sent = co_await exchange.start(plain({}));
  if (sent && !text.empty()) sent = co_await exchange.write(std::string(text));
  if (is_cut) co_return;
  std::size_t shown = pod_log_.size();
  while (sent && query.get("follow") == "true") {
    co_await wait_for_change(kNever);
    if (shown < pod_log_.size()) {
      sent = co_await exchange.write(pod_log_.substr(std::exchange(shown, pod_log_.size())));
    }
  }
  if (sent) sent = co_await exchange.finish();
}

http::Response FakeKubeApi::issue_token(const KubeTarget& target, const std::string& body) {
  const auto account = store_.get(*target.type, target.key);
  if (!account) return refusal(account.error());
  const Json asked = Json::parse(body, nullptr, false);
  if (!asked.is_object()) return refusal(bad_request("the body is not a TokenRequest"));
  const auto spec = asked.value("spec", Json::object());
  const auto seconds = spec.value("expirationSeconds", 3600);
  if (seconds < 600) {
    return refusal({.code = 422,
                    .reason = "Invalid",
                    .message = "TokenRequest.authentication.k8s.io \"\" is invalid: "
                               "spec.expirationSeconds: Invalid value: " +
                               std::to_string(seconds) +
                               ": may not specify a duration less than 10 minutes"});
  }
  const auto expires = format_rfc3339(wall_now() + std::chrono::seconds(seconds));
  const auto user = "system:serviceaccount:" + target.key.ns + ":" + target.key.name;
  const auto token = base64_encode(
      Json{{"sub", user}, {"exp", expires}, {"serial", issued_tokens_.size()}}.dump());
  issued_tokens_.emplace(token, user);
  return json_response(201, Json{{"kind", "TokenRequest"},
                                 {"apiVersion", "authentication.k8s.io/v1"},
                                 {"metadata",
                                  {{"name", target.key.name},
                                   {"namespace", target.key.ns},
                                   {"creationTimestamp", format_rfc3339(wall_now())}}},
                                 {"spec",
                                  {{"audiences", spec.value("audiences", Json::array())},
                                   {"expirationSeconds", seconds},
                                   {"boundObjectRef", nullptr}}},
                                 {"status", {{"token", token}, {"expirationTimestamp", expires}}}}
                                .dump());
}

}  // namespace gitops::test
