#include "doubles/fake_argocd.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "doubles/argocd_objects.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kNode = "sim-0";

// A uid derived from the text.
std::string derived_uid(const std::string& from) {
  const auto a = hex8(from + "a");
  const auto b = hex8(from + "b");
  return a + "-" + b.substr(0, 4) + "-4" + b.substr(5) + "-8" + a.substr(0, 3) + "-" +
         hex8(from + "c") + hex8(from + "d").substr(4);
}

// A Secret as argocd-server shows it: values replaced by runs of '+'.
Json masked(Json object) {
  if (!object.is_object() || object.value("kind", "") != "Secret") return object;
  if (object.contains("data")) {
    for (auto& value : object["data"]) value = "++++++++";
  }
  if (auto& metadata = object["metadata"]; metadata.contains("annotations")) {
    auto& annotations = metadata["annotations"];
    if (annotations.contains(kLastApplied)) annotations[std::string(kLastApplied)] = "++++++++";
  }
  return object;
}

// Adds the ReplicaSet and the pods that Kubernetes creates for a Deployment.
void add_owned_nodes(Json& nodes, const Json& deployment, const Json& object) {
  const auto child = [&deployment](const std::string& kind, const std::string& name,
                                   const Json& parent) {
    Json reference{{"version", parent["version"]},
                   {"kind", parent["kind"]},
                   {"name", parent["name"]},
                   {"namespace", parent["namespace"]},
                   {"uid", parent["uid"]}};
    if (parent.contains("group")) reference["group"] = parent["group"];
    return Json{{"version", "v1"},
                {"kind", kind},
                {"namespace", deployment["namespace"]},
                {"name", name},
                {"uid", derived_uid(kind + name)},
                {"parentRefs", Json::array({std::move(reference)})},
                {"resourceVersion", deployment["resourceVersion"]},
                {"createdAt", deployment["createdAt"]},
                {"health", {{"status", "Healthy"}}}};
  };
  const auto set_name = deployment["name"].get<std::string>() + "-" +
                        hex8(value_at(object, "/spec/template", Json()).dump());
  Json set = child("ReplicaSet", set_name, deployment);
  set["group"] = "apps";
  set["info"] = deployment["info"];
  nodes.push_back(set);
  for (int i = 0; i < replicas_of(object); ++i) {
    const auto suffix = hex8(set_name + std::to_string(i)).substr(0, 5);
    Json pod = child("Pod", set_name + "-" + suffix, set);
    pod["images"] = images_of(object);
    pod["info"] = Json::array({{{"name", "Status Reason"}, {"value", "Running"}},
                               {{"name", "Node"}, {"value", kNode}},
                               {{"name", "Containers"}, {"value", "1/1"}}});
    nodes.push_back(std::move(pod));
  }
}

void sort_nodes(Json& nodes) {
  const auto place = [](const Json& node) {
    return std::array<std::string, 4>{node.value("group", ""), node.value("kind", ""),
                                      node.value("namespace", ""), node.value("name", "")};
  };
  std::sort(nodes.begin(), nodes.end(),
            [&](const Json& a, const Json& b) { return place(a) < place(b); });
}

// The items that the query's filters select, as argocd-server does; an absent one selects any.
Json selected(const Json& items, const Query& query) {
  if (!items.is_array()) return items;
  Json out = Json::array();
  for (const auto& item : items) {
    const bool matches = std::ranges::all_of(
        std::array{"group", "kind", "namespace", "name"}, [&](const char* field) {
          const auto wanted = query.get(field);
          return wanted.empty() || (item.is_object() && item.value(field, "") == wanted);
        });
    if (matches) out.push_back(item);
  }
  return out;
}

http::Response invalid_content_type() {
  http::Response response;
  response.status = 415;
  response.body = "Invalid content type\n";
  return response;
}

http::Response unknown_path() {
  http::Response response;
  response.status = 404;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = "Not Found\n";
  return response;
}

}  // namespace

FakeArgoCd::FakeArgoCd(const Executor& executor, FakeKubeApi& cluster, Options options)
    : DoubleServer(executor, options.server),
      options_(std::move(options)),
      cluster_(cluster),
      folder_("gitops-argocd") {}

FakeArgoCd::~FakeArgoCd() = default;

Json FakeArgoCd::tree_of(const State& state) const {
  if (state.tree) return *state.tree;
  Json nodes = Json::array();
  for (const auto& [id, managed] : state.resources) {
    const Json object = live(managed);
    Json node = node_of(managed, object);
    const bool owns = managed.type.kind == "Deployment" && !object.is_null();
    if (owns) node["info"] = Json::array({{{"name", "Revision"}, {"value", "Rev:1"}}});
    nodes.push_back(node);
    if (owns) add_owned_nodes(nodes, node, object);
  }
  sort_nodes(nodes);
  const bool has_pods = std::ranges::any_of(nodes, [](const Json& node) {
    return node.value("kind", "") == "Pod" && node.contains("info");
  });
  Json tree{{"nodes", std::move(nodes)}};
  if (has_pods) tree["hosts"] = Json::array({{{"name", kNode}}});
  return tree;
}

Json FakeArgoCd::node_of(const Managed& managed, const Json& object) {
  Json node{
      {"version", managed.type.version}, {"kind", managed.type.kind}, {"name", managed.key.name}};
  if (!managed.type.group.empty()) node["group"] = managed.type.group;
  if (!managed.key.ns.empty()) node["namespace"] = managed.key.ns;
  if (object.is_null()) {
    node["health"] = {{"status", "Missing"}};
    return node;
  }
  const auto& metadata = object["metadata"];
  node["uid"] = metadata["uid"];
  node["resourceVersion"] = metadata["resourceVersion"];
  node["createdAt"] = metadata["creationTimestamp"];
  if (!managed.health.empty()) {
    node["health"] = {{"status", managed.health}};
    if (!managed.health_message.empty()) node["health"]["message"] = managed.health_message;
  }
  return node;
}

Json FakeArgoCd::managed_of(const State& state) const {
  if (state.managed) return *state.managed;
  Json items = Json::array();
  for (const auto& [id, managed] : state.resources) {
    const Json object = masked(live(managed));
    const Json target = masked(managed.target);
    // Fields that Argo CD ignores in a comparison.
    Json normalized = object;
    if (normalized.is_object()) {
      normalized.erase("status");
      normalized["metadata"].erase("creationTimestamp");
    }
    Json predicted = target;
    if (normalized.is_object() && target.is_object()) {
      predicted = normalized;
      predicted.merge_patch(target);
    }
    Json item{{"kind", managed.type.kind},
              {"name", managed.key.name},
              {"targetState", target.dump()},
              {"liveState", object.dump()},
              {"normalizedLiveState", normalized.dump()},
              {"predictedLiveState", predicted.dump()}};
    if (!managed.type.group.empty()) item["group"] = managed.type.group;
    if (!managed.key.ns.empty()) item["namespace"] = managed.key.ns;
    if (!object.is_null()) item["resourceVersion"] = object["metadata"]["resourceVersion"];
    if (target.is_object() && !is_synced(managed)) item["modified"] = true;
    items.push_back(std::move(item));
  }
  return items;
}

void FakeArgoCd::set_tree(const std::string& app, Json tree) {
  auto& state = apps_[app];
  state.spec.name = app;
  state.tree = std::move(tree);
}

void FakeArgoCd::set_managed_resources(const std::string& app, Json items) {
  auto& state = apps_[app];
  state.spec.name = app;
  state.managed = std::move(items);
}

void FakeArgoCd::set_revision(const std::string& revision, Json metadata) {
  revisions_[revision] = std::move(metadata);
}

FakeArgoCd::Reads FakeArgoCd::reads() const {
  return {.tree = count("GET", "/resource-tree"),
          .managed = count("GET", "/managed-resources"),
          .revisions = count("GET", "/revisions/")};
}

http::Response FakeArgoCd::refuse(int status, int code, const std::string& message) const {
  return json_response(status,
                       Json{{"error", message}, {"code", code}, {"message", message}}.dump());
}

http::Response FakeArgoCd::failure(int status) const {
  // gRPC codes for the statuses that the gateway translates.
  static const std::map<int, std::pair<int, std::string>> codes{
      {400, {3, "invalid argument"}},         {401, {16, "no session information"}},
      {403, {7, "permission denied"}},        {404, {5, "not found"}},
      {429, {8, "resource exhausted"}},       {503, {14, "connection refused"}},
      {504, {4, "context deadline exceeded"}}};
  const auto code = codes.find(status);
  if (code == codes.end()) return refuse(status, 13, "internal error");
  return refuse(status, code->second.first, code->second.second);
}

Task<> FakeArgoCd::handle(http::Exchange& exchange) {
  auto body = co_await exchange.read_body(1024 * 1024);
  if (!body) co_return;
  auto response = co_await answer(exchange.request(), path_segments(exchange.path()),
                                  Query(exchange.query()), std::move(*body));
  if (auto sent = co_await exchange.reply(std::move(response)); !sent) co_return;
}

Task<http::Response> FakeArgoCd::answer(const http::Request& request, std::vector<std::string> path,
                                        Query query, std::string body) {
  using Path = std::vector<std::string>;
  if (path == Path{"healthz"}) co_return json_response(200, "ok");
  if (path == Path{"api", "version"}) {
    co_return json_response(200, Json{{"Version", "v3.2.11+unknown"}}.dump());
  }
  if (path == Path{"api", "v1", "session"} && request.method == "POST") {
    co_return log_in(request, body);
  }
  const auto authorization = request.headers.find("Authorization").value_or("");
  const auto token = authorization.substr(std::min<std::size_t>(7, authorization.size()));
  if (!authorization.starts_with("Bearer ") || token != options_.token) {
    // The message of the real server depends only on whether the token has the form of a JWT.
    const bool shaped = std::ranges::count(token, '.') == 2;
    co_return refuse(401, 16,
                     shaped ? "invalid session: token signature is invalid: signature is invalid"
                            : "no session information");
  }
  if (path.size() >= 7 && path[0] == "api" && path[1] == "v1" && path[2] == "account" &&
      path[3] == "can-i" && request.method == "GET") {
    co_return json_response(200, Json{{"value", may_get_applications_ ? "yes" : "no"}}.dump());
  }
  const bool of_app =
      path.size() >= 4 && path[0] == "api" && path[1] == "v1" && path[2] == "applications";
  if (!of_app) co_return unknown_path();
  if (request.method == "GET") co_return answer_about_app(path, query);
  co_return co_await change_app(request, path, query, body);
}

http::Response FakeArgoCd::log_in(const http::Request& request, const std::string& body) const {
  const auto type = request.headers.find("Content-Type").value_or("");
  if (!type.starts_with("application/json")) return invalid_content_type();
  const Json login = Json::parse(body, nullptr, false);
  const bool right = login.is_object() && login.value("username", "") == options_.username &&
                     login.value("password", "") == options_.password;
  if (!right) return refuse(401, 16, "Invalid username or password");
  return json_response(200, Json{{"token", options_.token}}.dump());
}

std::expected<const FakeArgoCd::State*, http::Response> FakeArgoCd::visible_app(
    const std::string& name, const std::string& ns, const std::string& project) const {
  const auto state = apps_.find(name);
  const bool served = ns.empty() || ns == options_.ns;
  if (state != apps_.end() && served &&
      (project.empty() || project == state->second.spec.project)) {
    return &state->second;
  }
  // Only a caller who names the project and a served namespace gets a 404.
  return std::unexpected(
      project.empty() || !served
          ? refuse(403, 7, "permission denied")
          : refuse(404, 5, "applications.argoproj.io \"" + name + "\" not found"));
}

Task<http::Response> FakeArgoCd::change_app(const http::Request& request,
                                            const std::vector<std::string>& path,
                                            const Query& query, const std::string& body) {
  const auto type = request.headers.find("Content-Type").value_or("");
  if (!type.starts_with("application/json")) co_return invalid_content_type();
  const auto& name = path[3];
  const auto call = path.size() == 5 ? request.method + " " + path[4] : "";
  if (call != "POST sync" && call != "POST rollback" && call != "DELETE operation") {
    co_return unknown_path();
  }
  Json wanted = Json::parse(body, nullptr, false);
  if (!wanted.is_object()) wanted = Json::object();
  const bool in_query = request.method == "DELETE";
  const auto field = [&](const char* key) {
    return in_query ? query.get(key) : wanted.value(key, "");
  };
  const auto visible = visible_app(name, field("appNamespace"), field("project"));
  if (!visible) co_return visible.error();
  auto& state = apps_.at(name);
  const bool prune = wanted.value("prune", false);

  Result<void> done;
  if (call == "DELETE operation") {
    done = terminate(state);
    if (done) co_return json_response(200, "{}");
  } else if (call == "POST rollback") {
    auto rolled = co_await roll_back(state, wanted.value("id", 0), prune);
    if (!rolled) done = std::unexpected(rolled.error());
  } else if (const auto at = wanted.value("revision", ""); !at.empty()) {
    auto synced = co_await sync_at(state, at, prune);
    if (!synced) done = std::unexpected(synced.error());
  } else {
    const auto revision = co_await refresh(name);
    done = revision ? begin_operation(state, *revision, prune)
                    : Result<void>(std::unexpected(revision.error()));
    if (done) {
      run_operation(state);
      write_comparison(state);
    }
  }
  if (!done) {
    const bool busy = done.error().code == ErrorCode::conflict;
    co_return refuse(400, busy ? 9 : 3, done.error().message);
  }
  const auto app = cluster_.find(k8s::resources::kApplications, {options_.ns, name});
  co_return json_response(200, app.value_or(Json::object()).dump());
}

http::Response FakeArgoCd::answer_about_app(const std::vector<std::string>& path,
                                            const Query& query) const {
  const auto& name = path[3];
  const auto visible = visible_app(name, query.get("appNamespace"), query.get("project"));
  if (!visible) return visible.error();
  const State& state = **visible;
  if (path.size() == 4) {
    const auto app = cluster_.find(k8s::resources::kApplications, {options_.ns, name});
    return app ? json_response(200, app->dump()) : refuse(403, 7, "permission denied");
  }
  if (path.size() == 5 && path[4] == "resource-tree") {
    return json_response(200, tree_of(state).dump());
  }
  if (path.size() == 5 && path[4] == "managed-resources") {
    return json_response(200, Json{{"items", selected(managed_of(state), query)}}.dump());
  }
  if (path.size() != 7 || path[4] != "revisions" || path[6] != "metadata") return unknown_path();
  const auto metadata = revisions_.find(path[5]);
  if (metadata != revisions_.end()) return json_response(200, metadata->second.dump());
  return refuse(500, 2,
                "error acquiring repo lock: failed to initialize repository resources: rpc error: "
                "code = Internal desc = Failed to checkout revision " +
                    path[5]);
}

}  // namespace gitops::test
