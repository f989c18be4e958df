#include "support/fake_kube_api.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "common/core/encoding.hpp"
#include "common/http/gzip.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;
using Failure = FakeKubeStore::Failure;

constexpr std::size_t kMaxBody = 3 * 1024 * 1024;
constexpr std::size_t kGzipFrom = 128 * 1024;

std::string status_text(const Failure& failure, Json metadata = Json::object()) {
  Json status{
      {"kind", "Status"},    {"apiVersion", "v1"},         {"metadata", std::move(metadata)},
      {"status", "Failure"}, {"message", failure.message}, {"reason", failure.reason},
      {"code", failure.code}};
  if (!failure.details.is_null()) status["details"] = failure.details;
  return status.dump();
}

http::Response refusal(const Failure& failure, Json metadata = Json::object()) {
  return json_response(failure.code, status_text(failure, std::move(metadata)));
}

Failure bad_request(std::string message) {
  return {.code = 400, .reason = "BadRequest", .message = std::move(message)};
}

http::Response unsupported_media_type() {
  return refusal({.code = 415,
                  .reason = "UnsupportedMediaType",
                  .message = "the body of the request was in an unknown format - accepted media "
                             "types include: application/json, application/json-patch+json, "
                             "application/merge-patch+json, application/apply-patch+yaml"});
}

http::Response page_not_found() {
  http::Response response;
  response.status = 404;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = "404 page not found\n";
  return response;
}

http::Response plain(std::string text) {
  http::Response response;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(text);
  return response;
}

std::optional<std::uint64_t> parse_version(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::size_t parse_size(const std::string& text) {
  return static_cast<std::size_t>(parse_version(text).value_or(0));
}

std::string key_text(const Json& object) {
  return object["metadata"].value("namespace", "") + "/" +
         object["metadata"]["name"].get<std::string>();
}

std::string event_line(std::string_view type, std::string_view object) {
  std::string line = R"({"type":")";
  line.append(type).append(R"(","object":)").append(object).append("}\n");
  return line;
}

std::string bookmark_line(const KubeType& type, std::uint64_t version, bool initial_events_end) {
  Json object{
      {"kind", type.resource.kind},
      {"apiVersion", type.resource.api_version()},
      {"metadata", {{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}}}};
  if (initial_events_end) {
    object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  return event_line("BOOKMARK", object.dump());
}

Failure too_old(std::uint64_t version, std::uint64_t oldest) {
  return {.code = 410,
          .reason = "Expired",
          .message = "too old resource version: " + std::to_string(version) + " (" +
                     std::to_string(oldest) + ")"};
}

Failure invalid_list_options(const std::string& field, const std::string& why) {
  return {.code = 422,
          .reason = "Invalid",
          .message = "ListOptions.meta.k8s.io \"\" is invalid: " + field + ": Forbidden: " + why,
          .details = {{"group", "meta.k8s.io"},
                      {"kind", "ListOptions"},
                      {"causes", Json::array({{{"reason", "FieldValueForbidden"},
                                               {"message", "Forbidden: " + why},
                                               {"field", field}}})}}};
}

struct Selectors {
  LabelSelector labels;
  FieldSelector fields;
  [[nodiscard]] bool matches(const Json& object) const {
    return labels.matches(object) && fields.matches(object);
  }
};

std::expected<Selectors, Failure> parse_selectors(const Query& query, const KubeType& type) {
  auto labels = LabelSelector::parse(query.get("labelSelector"));
  if (!labels) return std::unexpected(bad_request(labels.error()));
  auto fields = FieldSelector::parse(query.get("fieldSelector"), type);
  if (!fields) return std::unexpected(bad_request(fields.error()));
  return Selectors{std::move(*labels), std::move(*fields)};
}

std::string list_item(const KubeType& type, const FakeKubeStore::Stored& object) {
  if (type.custom) return object.text;
  Json item = object.json;
  item.erase("apiVersion");
  item.erase("kind");
  return item.dump();
}

// Where a page ends: the version of its snapshot (0: none, go on with what is there now) and the
// last key that was given out.
struct Continuation {
  std::uint64_t version = 0;
  std::string last;

  [[nodiscard]] std::string token() const {
    return base64_encode(Json{{"v", "meta.k8s.io/v1"}, {"rv", version}, {"start", last}}.dump());
  }
  static std::optional<Continuation> parse(const std::string& token) {
    const auto text = base64_decode(token);
    if (!text) return std::nullopt;
    const auto json = Json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("rv") || !json.contains("start")) return std::nullopt;
    return Continuation{json["rv"].get<std::uint64_t>(), json["start"].get<std::string>()};
  }
};

const std::vector<KubeType>& known_types() {
  using k8s::Resource;
  namespace r = k8s::resources;
  static const std::vector<KubeType> types{
      {r::kNamespaces, true, false},
      {r::kConfigMaps, false, false},
      {r::kSecrets, false, false},
      {r::kServiceAccounts, false, false},
      {r::kPods, true, false},
      {Resource{"", "v1", "services", "Service", true}, true, false},
      {r::kDeployments, true, false},
      {Resource{"apps", "v1", "statefulsets", "StatefulSet", true}, true, false},
      {Resource{"apps", "v1", "replicasets", "ReplicaSet", true}, true, false},
      {Resource{"batch", "v1", "jobs", "Job", true}, true, false},
      {r::kLeases, false, false},
      {Resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                "CustomResourceDefinition", false},
       true, false},
      {r::kApplications, false, true},
      {Resource{"argoproj.io", "v1alpha1", "appprojects", "AppProject", true}, false, true},
  };
  return types;
}

// What kubectl accepts instead of a plural.
std::vector<std::string> short_names(const std::string& plural) {
  static const std::map<std::string, std::string> names{
      {"namespaces", "ns"},    {"configmaps", "cm"},      {"serviceaccounts", "sa"},
      {"pods", "po"},          {"services", "svc"},       {"deployments", "deploy"},
      {"statefulsets", "sts"}, {"replicasets", "rs"},     {"customresourcedefinitions", "crd"},
      {"applications", "app"}, {"appprojects", "appproj"}};
  const auto found = names.find(plural);
  if (found == names.end()) return {};
  return {found->second};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

struct FakeKubeApi::Watch {
  KubeType type;
  std::string ns;
  Selectors selectors;
  std::uint64_t position = 0;  // told up to this version
  std::string pending;         // bytes to write before anything else
  enum class End { none, in_order, cut } end = End::none;
};

FakeKubeApi::FakeKubeApi(const Executor& executor, Options options)
    : DoubleServer(executor, options.server),
      options_(std::move(options)),
      store_(options_.history) {
  for (const auto& type : known_types()) store_.add_type(type);
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

void FakeKubeApi::compact() {
  // What open watches have not written yet is in their buffers already.
  for (auto* watch : watches_) watch->pending += collect(*watch);
  store_.compact();
  snapshots_.clear();
}

void FakeKubeApi::stall_watches(bool stalled) {
  stalled_ = stalled;
  notify_change();
}

void FakeKubeApi::cut_watches() {
  for (auto* watch : watches_) watch->end = Watch::End::cut;
  notify_change();
}

void FakeKubeApi::end_watches() {
  for (auto* watch : watches_) watch->end = Watch::End::in_order;
  notify_change();
}

void FakeKubeApi::send_on_watches(const k8s::Resource& resource, const std::string& bytes) {
  for (auto* watch : watches_) {
    if (watch->type.resource.plural == resource.plural &&
        watch->type.resource.group == resource.group) {
      watch->pending += collect(*watch) + bytes;
    }
  }
  notify_change();
}

void FakeKubeApi::add_list_item(const k8s::Resource& resource, std::string text) {
  list_items_[KubeType{resource, false, false}.id()] = std::move(text);
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
  Target target;
  if (!response) {
    // /api/VERSION/… or /apis/GROUP/VERSION/…, then [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]].
    const bool core = path.front() == "api";
    const std::size_t first = core ? 2 : 3;
    std::vector<std::string> rest(path.begin() + static_cast<std::ptrdiff_t>(first), path.end());
    const bool of_namespace =
        rest[0] == "namespaces" && rest.size() >= 3 && rest[2] != "status" && rest[2] != "finalize";
    if (of_namespace) {
      target.key.ns = rest[1];
      rest.erase(rest.begin(), rest.begin() + 2);
    }
    target.type = store_.find_type(core ? "" : path[1], path[first - 1], rest[0]);
    if (rest.size() > 1) target.key.name = rest[1];
    if (rest.size() > 2) target.subresource = rest[2];
    const bool one = !target.key.name.empty();
    const bool watching = query.get("watch") == "true" || query.get("watch") == "1";
    static const std::map<std::string, std::pair<std::string, std::string>> verbs{
        {"GET", {"list", "get"}},
        {"POST", {"create", "create"}},
        {"PUT", {"", "update"}},
        {"PATCH", {"", "patch"}},
        {"DELETE", {"deletecollection", "delete"}}};
    if (const auto verb = verbs.find(request.method); verb != verbs.end()) {
      target.verb = one ? verb->second.second : verb->second.first;
    }
    if (target.verb == "list" && watching) target.verb = "watch";
    const bool misplaced =
        target.type != nullptr && one && target.type->resource.namespaced && target.key.ns.empty();
    if (target.type == nullptr || rest.size() > 3 || misplaced) response = page_not_found();
  }
  if (!response && allowed_) {
    const auto& resource = target.type->resource;
    const Access access{target.verb,        resource.group, resource.plural,
                        target.subresource, target.key.ns,  target.key.name};
    if (!allowed_(access)) {
      const auto name = target.key.name.empty() ? "" : " \"" + target.key.name + "\"";
      const auto slash = target.subresource.empty() ? "" : "/" + target.subresource;
      response = refusal(
          {.code = 403,
           .reason = "Forbidden",
           .message = target.type->id() + name + " is forbidden: User \"tester\" cannot " +
                      target.verb + " resource \"" + resource.plural + slash +
                      "\" in API group \"" + resource.group + "\"" +
                      (target.key.ns.empty() ? " at the cluster scope"
                                             : " in the namespace \"" + target.key.ns + "\""),
           .details = {
               {"name", target.key.name}, {"group", resource.group}, {"kind", resource.plural}}});
    }
  }
  if (!response && target.verb == "watch") {
    co_await watch(exchange, target, query);
    co_return;
  }
  if (!response) response = answer(request, target, query, body);
  const auto accepts_gzip = request.headers.has_token("Accept-Encoding", "gzip");
  if (accepts_gzip && response->body.size() > kGzipFrom) {
    response->body = http::gzip_compress(response->body);
    response->headers.set("Content-Encoding", "gzip");
  }
  if (auto sent = co_await exchange.reply(std::move(*response)); !sent) co_return;
}

// Everything but objects: probes, version, discovery, reviews, and who may speak at all.
std::optional<http::Response> FakeKubeApi::answer_fixed(const http::Request& request,
                                                        const std::vector<std::string>& path,
                                                        const std::string& body) {
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
  if (!options_.token.empty()) {
    const auto header = request.headers.find("Authorization").value_or("");
    const bool bearer = header.starts_with("Bearer ");
    const std::string token(bearer ? header.substr(7) : std::string_view());
    if (token != options_.token && !issued_tokens_.contains(token)) return failure(401);
  }
  if (path.empty() || (path[0] != "api" && path[0] != "apis")) return page_not_found();
  if (path ==
      std::vector<std::string>{"apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"}) {
    return request.method == "POST" ? review_access(body) : failure(404);
  }
  if (path.size() <= (path[0] == "api" ? 2U : 3U)) return discovery(path);
  return std::nullopt;
}

http::Response FakeKubeApi::discovery(const std::vector<std::string>& path) const {
  const bool core = path[0] == "api";
  if (core && path.size() == 1) {
    return json_response(200, Json{{"kind", "APIVersions"},
                                   {"versions", {"v1"}},
                                   {"serverAddressByClientCIDRs", Json::array()}}
                                  .dump());
  }
  if (core && path[1] != "v1") return page_not_found();
  std::map<std::string, std::set<std::string>> groups;
  for (const auto& [id, type] : store_.types()) {
    if (!type.resource.group.empty()) groups[type.resource.group].insert(type.resource.version);
  }
  groups["authorization.k8s.io"].insert("v1");
  const auto describe = [](const std::string& name, const std::set<std::string>& versions) {
    Json list = Json::array();
    for (const auto& version : versions) {
      list.push_back({{"groupVersion", name + "/" + version}, {"version", version}});
    }
    return Json{{"name", name}, {"versions", list}, {"preferredVersion", list.back()}};
  };
  if (!core && path.size() == 1) {
    Json list = Json::array();
    for (const auto& [name, versions] : groups) list.push_back(describe(name, versions));
    return json_response(
        200,
        Json{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}}.dump());
  }
  const std::string group = core ? "" : path[1];
  if (!core && !groups.contains(group)) return page_not_found();
  if (!core && path.size() == 2) {
    Json described = describe(group, groups[group]);
    described["kind"] = "APIGroup";
    described["apiVersion"] = "v1";
    return json_response(200, described.dump());
  }
  const std::string version = core ? "v1" : path[2];
  if (!core && !groups[group].contains(version)) return page_not_found();
  Json resources = Json::array();
  const auto add = [&](const std::string& name, const k8s::Resource& resource,
                       std::vector<std::string> verbs) {
    resources.push_back({{"name", name},
                         {"singularName", lower(resource.kind)},
                         {"namespaced", resource.namespaced},
                         {"kind", resource.kind},
                         {"shortNames", short_names(name)},
                         {"verbs", std::move(verbs)}});
  };
  for (const auto& [id, type] : store_.types()) {
    const auto& resource = type.resource;
    if (resource.group != group || resource.version != version) continue;
    add(resource.plural, resource,
        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"});
    if (type.status_subresource)
      add(resource.plural + "/status", resource, {"get", "patch", "update"});
    if (resource.plural == "serviceaccounts") {
      add("serviceaccounts/token", {"authentication.k8s.io", "v1", "", "TokenRequest", true},
          {"create"});
    }
  }
  if (group == "authorization.k8s.io") {
    add("selfsubjectaccessreviews", k8s::resources::kSelfSubjectAccessReviews, {"create"});
  }
  return json_response(200, Json{{"kind", "APIResourceList"},
                                 {"apiVersion", "v1"},
                                 {"groupVersion", group.empty() ? version : group + "/" + version},
                                 {"resources", std::move(resources)}}
                                .dump());
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
                                              .name = asked.value("name", "")});
  review["status"] = {{"allowed", allowed}};
  if (allowed) review["status"]["reason"] = "allowed by the test";
  return json_response(201, review.dump());
}

http::Response FakeKubeApi::answer(const http::Request& request, const Target& target,
                                   const Query& query, const std::string& body) {
  const KubeType& type = *target.type;
  const bool token_request =
      type.resource.plural == "serviceaccounts" && target.subresource == "token";
  if (token_request && request.method == "POST") return issue_token(target, body);
  if (!target.subresource.empty() && (target.subresource != "status" || !type.status_subresource)) {
    return type.custom ? refusal({.code = 404,
                                  .reason = "NotFound",
                                  .message = type.id() + " \"" + target.key.name + "\" not found",
                                  .details = {{"name", target.key.name},
                                              {"group", type.resource.group},
                                              {"kind", type.resource.plural}}})
                       : page_not_found();
  }
  if (target.verb == "list") return list(target, query);
  if (target.verb == "get") {
    const auto found = store_.get(type, target.key);
    return found ? json_response(200, (*found)->text) : refusal(found.error());
  }
  if (request.headers.find("Content-Type").value_or("").contains("protobuf")) {
    return unsupported_media_type();
  }
  Json sent = Json::object();
  if (target.verb != "deletecollection" && !(target.verb == "delete" && body.empty())) {
    sent = Json::parse(body, nullptr, false);
    if (sent.is_discarded()) {
      return refusal(bad_request("the object provided is unrecognized (must be of type " +
                                 type.resource.kind +
                                 "): couldn't get version/kind; json parse error"));
    }
  }
  if (target.verb == "create" && target.key.name.empty()) {
    const auto created = store_.create(type, target.key.ns, std::move(sent));
    return created ? json_response(201, (*created)->text) : refusal(created.error());
  }
  if (target.verb == "update") {
    const auto updated = store_.update(type, target.key, std::move(sent), target.subresource);
    return updated ? json_response(200, (*updated)->text) : refusal(updated.error());
  }
  if (target.verb == "patch") {
    auto media = std::string(request.headers.find("Content-Type").value_or(""));
    media = media.substr(0, media.find(';'));
    static const std::map<std::string, FakeKubeStore::PatchType> patches{
        {"application/merge-patch+json", FakeKubeStore::PatchType::merge},
        {"application/strategic-merge-patch+json", FakeKubeStore::PatchType::merge},
        {"application/json-patch+json", FakeKubeStore::PatchType::json},
        {"application/apply-patch+yaml", FakeKubeStore::PatchType::apply}};
    const auto patch = patches.find(media);
    if (patch == patches.end() || (type.custom && media.contains("strategic"))) {
      return unsupported_media_type();
    }
    if (patch->second == FakeKubeStore::PatchType::apply && query.get("fieldManager").empty()) {
      return refusal({.code = 422,
                      .reason = "Invalid",
                      .message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: "
                                 "Required value: is required for apply patch"});
    }
    const auto patched = store_.patch(type, target.key, patch->second, sent, target.subresource);
    return patched ? json_response(patched->created ? 201 : 200, patched->object->text)
                   : refusal(patched.error());
  }
  if (target.verb == "delete") {
    const auto removed = store_.remove(type, target.key, sent);
    if (!removed) return refusal(removed.error());
    const auto& kind = type.resource.kind;
    if (!removed->gone || kind == "Pod" || kind == "ServiceAccount" || kind == "Namespace") {
      return json_response(200, removed->object->text);
    }
    Json details{{"name", target.key.name},
                 {"kind", type.resource.plural},
                 {"uid", removed->object->json["metadata"]["uid"]}};
    if (!type.resource.group.empty()) details["group"] = type.resource.group;
    return json_response(200, Json{{"kind", "Status"},
                                   {"apiVersion", "v1"},
                                   {"metadata", Json::object()},
                                   {"status", "Success"},
                                   {"details", std::move(details)}}
                                  .dump());
  }
  if (target.verb == "deletecollection") {
    const auto selectors = parse_selectors(query, type);
    if (!selectors) return refusal(selectors.error());
    auto response = list(target, query);
    for (const auto& object : store_.list(type, target.key.ns)) {
      if (!selectors->matches(object->json)) continue;
      const auto& metadata = object->json["metadata"];
      if (auto removed = store_.remove(
              type, {metadata.value("namespace", ""), metadata["name"].get<std::string>()});
          !removed) {
        return refusal(removed.error());
      }
    }
    return response;
  }
  return refusal({.code = 405,
                  .reason = "MethodNotAllowed",
                  .message = "the server does not allow this method on the requested resource",
                  .details = Json::object()});
}

http::Response FakeKubeApi::list(const Target& target, const Query& query) {
  const KubeType& type = *target.type;
  const auto selectors = parse_selectors(query, type);
  if (!selectors) return refusal(selectors.error());
  const auto asked_version = query.get("resourceVersion");
  // As the watch cache does: "any version" is answered whole.
  const auto limit = asked_version == "0" ? 0 : parse_size(query.get("limit"));
  const auto token = query.get("continue");

  Snapshot snapshot{store_.version(), {}};
  std::string after;
  if (token.empty()) {
    const auto version = asked_version.empty() ? 0 : parse_version(asked_version);
    if (!version) return refusal(bad_request("Invalid value: \"" + asked_version + "\""));
    if (*version > store_.version()) {
      return refusal(
          {.code = 504,
           .reason = "Timeout",
           .message = "Timeout: Too large resource version: " + asked_version +
                      ", current: " + std::to_string(store_.version()),
           .details = {{"causes", Json::array({{{"reason", "ResourceVersionTooLarge"},
                                                {"message", "Too large resource version"}}})},
                       {"retryAfterSeconds", 1}}});
    }
    snapshot.objects = store_.list(type, target.key.ns);
  } else {
    const auto place = Continuation::parse(token);
    if (!place) return refusal(bad_request("continue key is not valid"));
    if (!asked_version.empty()) {
      return refusal(bad_request("specifying resource version is not allowed when using continue"));
    }
    after = place->last;
    if (place->version == 0) {
      snapshot.objects = store_.list(type, target.key.ns);
    } else {
      const auto kept =
          snapshots_.find(std::to_string(place->version) + " " + type.id() + " " + target.key.ns);
      if (kept == snapshots_.end()) {
        return refusal(
            {.code = 410,
             .reason = "Expired",
             .message = "The provided continue parameter is too old to display a consistent list "
                        "result. You can start a new list without the continue parameter, or use "
                        "the continue token in this response to retrieve the remainder of the "
                        "results. Continuing with the provided token results in an inconsistent "
                        "list - objects that were created, modified, or deleted between the time "
                        "the first chunk was returned and now may show up in the list."},
            {{"continue", Continuation{0, after}.token()}});
      }
      snapshot = kept->second;
    }
  }

  std::vector<FakeKubeStore::Object> items;
  for (const auto& object : snapshot.objects) {
    if (!after.empty() && key_text(object->json) <= after) continue;
    if (selectors->matches(object->json)) items.push_back(object);
  }
  Json metadata{{"resourceVersion", std::to_string(snapshot.version)}};
  if (limit > 0 && items.size() > limit) {
    if (query.get("labelSelector").empty() && query.get("fieldSelector").empty()) {
      metadata["remainingItemCount"] = items.size() - limit;
    }
    items.resize(limit);
    metadata["continue"] = Continuation{snapshot.version, key_text(items.back()->json)}.token();
    snapshots_[std::to_string(snapshot.version) + " " + type.id() + " " + target.key.ns] =
        std::move(snapshot);
  }
  std::string text = R"({"kind":")" + type.resource.kind + R"(List","apiVersion":")" +
                     type.resource.api_version() + R"(","metadata":)" + metadata.dump() +
                     R"(,"items":[)";
  bool first = true;
  const auto add = [&](std::string_view item) {
    if (!first) text += ',';
    first = false;
    text += item;
  };
  for (const auto& object : items) add(list_item(type, *object));
  if (const auto extra = list_items_.find(type.id());
      extra != list_items_.end() && !extra->second.empty()) {
    add(extra->second);
  }
  return json_response(200, text + "]}");
}

http::Response FakeKubeApi::issue_token(const Target& target, const std::string& body) {
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
  const auto token = base64_encode(Json{
      {"sub", "system:serviceaccount:" + target.key.ns + ":" + target.key.name},
      {"exp", expires},
      {"serial",
       issued_tokens_.size()}}.dump());
  issued_tokens_.insert(token);
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

std::string FakeKubeApi::collect(Watch& watch) {
  std::string text;
  const auto& history = store_.history();
  const auto id = watch.type.id();
  auto change =
      std::ranges::upper_bound(history, watch.position, {}, &FakeKubeStore::Change::version);
  for (; change != history.end(); ++change) {
    if (change->type != id || (!watch.ns.empty() && change->ns != watch.ns)) continue;
    const bool matched = change->before && watch.selectors.matches(change->before->json);
    const bool matches = change->kind != FakeKubeStore::ChangeKind::deleted &&
                         watch.selectors.matches(change->object->json);
    if (matches) {
      text += event_line(matched ? "MODIFIED" : "ADDED", change->object->text);
    } else if (matched && change->kind == FakeKubeStore::ChangeKind::deleted) {
      text += event_line("DELETED", change->object->text);
    } else if (matched) {
      // It left the selection: told as it was, with the version of the change.
      Json last = change->before->json;
      last["metadata"]["resourceVersion"] = std::to_string(change->version);
      text += event_line("DELETED", last.dump());
    }
  }
  watch.position = store_.version();
  return text;
}

Task<> FakeKubeApi::watch(http::Exchange& exchange, const Target& target, const Query& query) {
  const auto asked = query.get("resourceVersion");
  const bool initial_events = query.get("sendInitialEvents") == "true";
  const bool bookmarks = query.get("allowWatchBookmarks") == "true";
  const auto match = query.get("resourceVersionMatch");
  auto selectors = parse_selectors(query, *target.type);
  const auto version = asked.empty() ? 0 : parse_version(asked);

  std::optional<Failure> refused;
  if (!selectors) {
    refused = selectors.error();
  } else if (query.has("sendInitialEvents") && match != "NotOlderThan") {
    refused = invalid_list_options(
        "resourceVersionMatch",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  } else if (query.has("sendInitialEvents") && !streaming_lists_) {
    refused = invalid_list_options("sendInitialEvents",
                                   "sendInitialEvents is forbidden for watch unless the WatchList "
                                   "feature gate is enabled");
  } else if (!query.has("sendInitialEvents") && !match.empty()) {
    refused = invalid_list_options(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  } else if (!version) {
    refused = bad_request("Invalid value: \"" + asked + "\"");
  }
  if (refused) {
    if (auto sent = co_await exchange.reply(refusal(*refused)); !sent) co_return;
    co_return;
  }

  if (auto started = co_await exchange.start(json_response(200, {})); !started) co_return;
  Watch watch{.type = *target.type,
              .ns = target.key.ns,
              .selectors = std::move(*selectors),
              .position = *version,
              .pending = {}};
  if (*version == 0 || initial_events) {
    for (const auto& object : store_.list(watch.type, watch.ns)) {
      if (watch.selectors.matches(object->json)) {
        watch.pending += event_line("ADDED", object->text);
      }
    }
    watch.position = store_.version();
    if (initial_events && bookmarks) {
      watch.pending += bookmark_line(watch.type, watch.position, true);
    }
  } else if (*version < store_.oldest_version()) {
    const auto line = event_line("ERROR", status_text(too_old(*version, store_.oldest_version())));
    if (auto sent = co_await exchange.write(line); !sent) co_return;
    if (auto ended = co_await exchange.finish(); !ended) co_return;
    co_return;
  }

  struct Registration {
    std::list<Watch*>& watches;
    std::list<Watch*>::iterator place;
    ~Registration() { watches.erase(place); }
  } const registration{watches_, watches_.insert(watches_.end(), &watch)};
  notify_change();

  const auto timeout = parse_size(query.get("timeoutSeconds"));
  const auto end = deadline_after(std::chrono::seconds(timeout == 0 ? 1800 : timeout));
  auto next_bookmark = deadline_after(options_.bookmarks);
  while (true) {
    // A reader slower than the history is dropped, too.
    if (watch.end == Watch::End::cut || watch.position < store_.oldest_version()) {
      exchange.abort();
      co_return;
    }
    if (stalled_) {
      co_await wait_for_change(kNever);
      continue;
    }
    watch.pending += collect(watch);
    const auto now = Clock::now();
    const bool served = store_.types().contains(watch.type.id());
    const bool ending = now >= end || watch.end == Watch::End::in_order || !served;
    if (bookmarks && served && (now >= next_bookmark || ending)) {
      watch.pending += bookmark_line(watch.type, watch.position, false);
      next_bookmark = now + options_.bookmarks;
    }
    if (!watch.pending.empty()) {
      const auto text = std::exchange(watch.pending, {});
      if (auto sent = co_await exchange.write(text); !sent) co_return;
      if (!ending) continue;
    }
    if (ending) {
      if (auto ended = co_await exchange.finish(); !ended) co_return;
      co_return;
    }
    co_await wait_for_change(bookmarks ? std::min(end, next_bookmark) : end);
  }
}

}  // namespace gitops::test
