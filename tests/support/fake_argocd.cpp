#include "support/fake_argocd.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "common/core/encoding.hpp"
#include "support/git_server.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kTracking = "argocd.argoproj.io/tracking-id";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kFinalizer = "resources-finalizer.argocd.argoproj.io";
constexpr std::string_view kServer = "https://kubernetes.default.svc";
constexpr std::string_view kNode = "sim-0";

std::string now() {
  return format_rfc3339(wall_now());
}

std::string resource_key(const k8s::Resource& type, const k8s::ObjectKey& key) {
  return type.group + "/" + type.kind + "/" + key.ns + "/" + key.name;
}

bool has_health(const std::string& kind) {
  constexpr std::array<std::string_view, 9> kKinds{
      "Deployment", "StatefulSet", "ReplicaSet",           "DaemonSet", "Pod", "Service",
      "Job",        "Ingress",     "PersistentVolumeClaim"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

// The value at a pointer, also when there is no object at all.
template <class T>
T value_at(const Json& object, const char* pointer, T otherwise) {
  return object.is_object() ? object.value(Json::json_pointer(pointer), otherwise) : otherwise;
}

int replicas_of(const Json& object) {
  return value_at(object, "/spec/replicas", 1);
}

Json images_of(const Json& object) {
  Json images = Json::array();
  for (const auto& container : value_at(object, "/spec/template/spec/containers", Json::array())) {
    if (container.contains("image")) images.push_back(container["image"]);
  }
  return images;
}

std::string hex8(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (auto hash = fnv1a_32(text); out.size() < 8; hash >>= 4) out += kHex[hash & 15];
  return out;
}

// A uid that is the same each time.
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

Result<std::string> git(const std::filesystem::path& mirror, std::vector<std::string> args,
                        const Environment& environment, std::string_view input = {}) {
  std::vector<std::string> argv{"git", "-C", mirror.string()};
  argv.insert(argv.end(), args.begin(), args.end());
  auto result = run_command(argv, environment, input, std::chrono::seconds(20));
  if (result.ok()) return std::move(result.out);
  return fail(ErrorCode::unavailable, "git " + args.front() + ": " + result.err);
}

}  // namespace

FakeArgoCd::FakeArgoCd(const Executor& executor, FakeKubeApi& cluster, Options options)
    : DoubleServer(executor, options.server),
      options_(std::move(options)),
      cluster_(cluster),
      folder_("gitops-argocd") {}

FakeArgoCd::~FakeArgoCd() = default;

// --- The controller
// -------------------------------------------------------------------------------

Result<FakeArgoCd::Commit> FakeArgoCd::read_git(const std::filesystem::path& mirror,
                                                const App& app) {
  auto environment = isolated_git_environment(mirror);
  if (!app.git_username.empty()) {
    // By the environment, so that no argument list shows the password.
    environment["GIT_CONFIG_COUNT"] = "1";
    environment["GIT_CONFIG_KEY_0"] = "http.extraHeader";
    environment["GIT_CONFIG_VALUE_0"] =
        "Authorization: Basic " + gitops::base64_encode(app.git_username + ":" + app.git_password);
  }
  if (!std::filesystem::exists(mirror)) {
    std::filesystem::create_directories(mirror);
    if (auto made = git(mirror, {"init", "--quiet", "--bare"}, environment); !made) {
      return std::unexpected(made.error());
    }
  }
  auto fetched = git(mirror,
                     {"fetch", "--quiet", "--prune", app.repo_url, "+refs/heads/*:refs/heads/*",
                      "+HEAD:refs/gitops/HEAD"},
                     environment);
  if (!fetched) return std::unexpected(fetched.error());
  const auto wanted = app.target_revision == "HEAD" ? "refs/gitops/HEAD" : app.target_revision;
  auto shown =
      git(mirror, {"show", "-s", "--format=%H%n%an <%ae>%n%at%n%B", wanted, "--"}, environment);
  if (!shown) return std::unexpected(shown.error());
  std::array<std::string, 3> head;
  std::string_view rest = *shown;
  for (auto& line : head) {
    const auto end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  Commit commit;
  commit.revision = head[0];
  commit.metadata = {{"author", head[1]},
                     {"date", format_rfc3339(WallTime(std::chrono::seconds(std::stoll(head[2]))))},
                     {"message", std::string(rest)}};

  std::vector<std::string> listing{"ls-tree", "-z", "--name-only", commit.revision};
  if (app.path != ".") listing.push_back(app.path + "/");
  auto names = git(mirror, std::move(listing), environment);
  if (!names) return std::unexpected(names.error());
  std::string asked;
  std::size_t files = 0;
  for (std::string_view left = *names; !left.empty();) {
    const auto name = left.substr(0, left.find('\0'));
    left.remove_prefix(std::min(name.size() + 1, left.size()));
    if (!name.ends_with(".yaml") && !name.ends_with(".yml") && !name.ends_with(".json")) continue;
    asked += commit.revision + ":" + std::string(name) + "\n";
    ++files;
  }
  if (files == 0) return commit;
  auto contents = git(mirror, {"cat-file", "--batch"}, environment, asked);
  if (!contents) return std::unexpected(contents.error());
  // Per file: "<id> blob <size>\n<content>\n".
  for (std::string_view left = *contents; files > 0; --files) {
    const auto line = left.substr(0, left.find('\n'));
    const auto size = std::stoull(std::string(line.substr(line.rfind(' ') + 1)));
    const auto content = left.substr(line.size() + 1, size);
    left.remove_prefix(line.size() + 1 + size + 1);
    auto documents = parse_manifests(std::string(content));
    if (!documents) return std::unexpected(documents.error());
    for (auto& document : *documents) commit.manifests.push_back(std::move(document));
  }
  return commit;
}

Task<Result<FakeArgoCd::Commit>> FakeArgoCd::fetch(const App& app) {
  const auto mirror = folder_ / hex8(app.repo_url);
  auto commit = co_await run_on(git_, [mirror, app] { return read_git(mirror, app); });
  if (commit) revisions_[commit->revision] = commit->metadata;
  co_return commit;
}

Result<void> FakeArgoCd::take_manifests(State& state, const Commit& commit) {
  state.revision = commit.revision;
  for (auto& [key, managed] : state.resources) managed.target = nullptr;
  for (Json manifest : commit.manifests) {
    const auto api_version = manifest.value("apiVersion", "");
    const auto kind = manifest.value("kind", "");
    const auto& types = cluster_.store().types();
    const auto type = std::ranges::find_if(types, [&](const auto& entry) {
      const auto& resource = entry.second.resource;
      return resource.kind == kind && resource.api_version() == api_version;
    });
    if (type == types.end()) {
      return fail(ErrorCode::unsupported, "the double does not know " + api_version + " " + kind);
    }
    const auto& resource = type->second.resource;
    auto& metadata = manifest["metadata"];
    const auto name = metadata.value("name", "");
    if (resource.namespaced && !metadata.contains("namespace")) {
      metadata["namespace"] = state.spec.destination_namespace;
    }
    const auto ns = metadata.value("namespace", "");
    metadata["annotations"][std::string(kTracking)] =
        state.spec.name + ":" + resource.group + "/" + kind + ":" + ns + "/" + name;
    if (kind == "Secret" && manifest.contains("stringData")) {
      for (const auto& [key, value] : manifest["stringData"].items()) {
        manifest["data"][key] = gitops::base64_encode(value.get<std::string>());
      }
      manifest.erase("stringData");
    }
    const k8s::ObjectKey key{ns, name};
    auto& managed = state.resources[resource_key(resource, key)];
    managed.type = resource;
    managed.key = key;
    managed.target = std::move(manifest);
    if (managed.health.empty() && has_health(kind)) managed.health = "Missing";
  }
  // What is neither in Git nor in the cluster is nobody's business any more.
  std::erase_if(state.resources, [&](const auto& entry) {
    return entry.second.target.is_null() && live(entry.second).is_null();
  });
  return {};
}

Json FakeArgoCd::live(const Managed& managed) const {
  const auto found = cluster_.find(managed.type, managed.key);
  return found ? *found : Json();
}

bool FakeArgoCd::is_synced(const Managed& managed) const {
  const Json current = live(managed);
  if (current.is_null() || managed.target.is_null()) return false;
  const auto applied =
      value_at(current, "/metadata/annotations", Json::object()).value(kLastApplied, "");
  Json wanted = current;
  wanted.merge_patch(managed.target);
  return wanted == current && applied == managed.target.dump() + "\n";
}

std::string FakeArgoCd::health_of(const State& state) {
  static const std::vector<std::string> worst_last{"Healthy", "Suspended", "Progressing",
                                                   "Missing", "Degraded",  "Unknown"};
  std::size_t worst = 0;
  for (const auto& [key, managed] : state.resources) {
    if (managed.target.is_null()) continue;
    const auto found = std::ranges::find(worst_last, managed.health);
    if (found == worst_last.end()) continue;
    worst = std::max(worst, static_cast<std::size_t>(found - worst_last.begin()));
  }
  return worst_last[worst];
}

void FakeArgoCd::edit(const State& state, const std::function<void(Json& app)>& change) {
  auto app = cluster_.find(k8s::resources::kApplications, {options_.ns, state.spec.name});
  if (!app) return;
  change(*app);
  cluster_.put(k8s::resources::kApplications, std::move(*app));
}

void FakeArgoCd::write_comparison(State& state) {
  Json resources = Json::array();
  std::set<std::string> images;
  bool synced = true;
  for (auto& [key, managed] : state.resources) {
    const bool same = is_synced(managed);
    synced = synced && same;
    Json entry{{"kind", managed.type.kind},
               {"name", managed.key.name},
               {"status", same ? "Synced" : "OutOfSync"},
               {"version", managed.type.version}};
    if (!managed.type.group.empty()) entry["group"] = managed.type.group;
    if (!managed.key.ns.empty()) entry["namespace"] = managed.key.ns;
    if (managed.target.is_null()) entry["requiresPruning"] = true;
    resources.push_back(std::move(entry));
    for (const auto& image : images_of(live(managed))) images.insert(image.get<std::string>());
  }
  edit(state, [&](Json& app) {
    auto& status = app["status"];
    const auto& spec = app["spec"];
    const auto health = health_of(state);
    if (value_at(status, "/health/status", std::string()) != health) {
      status["health"] = {{"lastTransitionTime", now()}, {"status", health}};
    }
    status["resources"] = std::move(resources);
    status["sync"] = {
        {"comparedTo", {{"destination", spec["destination"]}, {"source", spec["source"]}}},
        {"revision", state.revision},
        {"status", synced ? "Synced" : "OutOfSync"}};
    status["summary"] = images.empty() ? Json::object() : Json{{"images", images}};
    status["reconciledAt"] = now();
    status["resourceHealthSource"] = "appTree";
    status["controllerNamespace"] = options_.ns;
    status["sourceType"] = "Directory";
    status["sourceHydrator"] = Json::object();
  });
}

Task<Result<void>> FakeArgoCd::create_app(App app) {
  Json object{
      {"metadata",
       {{"name", app.name}, {"namespace", options_.ns}, {"finalizers", {std::string(kFinalizer)}}}},
      {"spec",
       {{"destination", {{"namespace", app.destination_namespace}, {"server", kServer}}},
        {"project", app.project},
        {"source",
         {{"path", app.path},
          {"repoURL", app.repo_url},
          {"targetRevision", app.target_revision}}}}}};
  if (!app.labels.empty()) object["metadata"]["labels"] = app.labels;
  if (!app.annotations.empty()) object["metadata"]["annotations"] = app.annotations;
  cluster_.put(k8s::resources::kApplications, std::move(object));
  const auto name = app.name;
  apps_[name] =
      State{.spec = std::move(app), .revision = {}, .resources = {}, .tree = {}, .managed = {}};
  auto refreshed = co_await refresh(name);
  if (!refreshed) co_return std::unexpected(refreshed.error());
  co_return Result<void>();
}

Task<Result<std::string>> FakeArgoCd::refresh(const std::string& app) {
  const auto state = apps_.find(app);
  if (state == apps_.end()) co_return fail(ErrorCode::not_found, "no application " + app);
  const auto commit = co_await fetch(state->second.spec);
  if (!commit) co_return std::unexpected(commit.error());
  if (auto taken = take_manifests(state->second, *commit); !taken) {
    co_return std::unexpected(taken.error());
  }
  write_comparison(state->second);
  co_return commit->revision;
}

void FakeArgoCd::apply(Managed& managed) {
  Json object = managed.target;
  object["metadata"]["annotations"][std::string(kLastApplied)] = managed.target.dump() + "\n";
  const auto before = live(managed);
  if (managed.type.kind == "Deployment") {
    const int replicas = replicas_of(object);
    object["status"] = {
        {"observedGeneration", value_at(before, "/metadata/generation", 0) + 1},
        {"replicas", replicas},
        {"readyReplicas", replicas},
        {"updatedReplicas", replicas},
        {"availableReplicas", replicas},
        {"conditions", Json::array({{{"type", "Available"},
                                     {"status", "True"},
                                     {"reason", "MinimumReplicasAvailable"},
                                     {"message", "Deployment has minimum availability."},
                                     {"lastTransitionTime", now()},
                                     {"lastUpdateTime", now()}}})}};
  }
  if (has_health(managed.type.kind)) managed.health = "Healthy";
  managed.health_message.clear();
  cluster_.put(managed.type, std::move(object));
}

Task<Result<std::string>> FakeArgoCd::sync(const std::string& app) {
  const auto revision = co_await refresh(app);
  if (!revision) co_return std::unexpected(revision.error());
  auto& state = apps_.at(app);
  const auto started = now();
  const Json by{{"username", options_.username}};
  Json operation{{"initiatedBy", by},
                 {"retry", Json::object()},
                 {"sync", {{"prune", true}, {"revision", *revision}}}};
  // The server writes the operation; the controller takes it up and leaves it in place until the
  // end.
  edit(state, [&](Json& object) {
    operation["sync"]["source"] = object["spec"]["source"];
    object["operation"] = operation;
  });
  edit(state, [&](Json& object) {
    object["status"]["operationState"] = {
        {"operation", operation}, {"phase", "Running"}, {"startedAt", started}};
  });

  Json results = Json::array();
  for (auto& [key, managed] : state.resources) {
    const bool prune = managed.target.is_null();
    const bool existed = !live(managed).is_null();
    std::string kind = managed.type.kind;
    std::ranges::transform(kind, kind.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (!managed.type.group.empty()) kind += "." + managed.type.group;
    std::string message = kind + "/" + managed.key.name;
    if (prune) {
      cluster_.remove(managed.type, managed.key);
      message = "pruned";
    } else if (is_synced(managed)) {
      message += " unchanged";
    } else {
      apply(managed);
      message += existed ? " configured" : " created";
    }
    Json result{{"hookPhase", prune ? "Succeeded" : "Running"},
                {"kind", managed.type.kind},
                {"group", managed.type.group},
                {"name", managed.key.name},
                {"namespace", managed.key.ns},
                {"message", message},
                {"status", prune ? "Pruned" : "Synced"},
                {"syncPhase", "Sync"},
                {"version", managed.type.version}};
    if (const auto images = images_of(managed.target); !images.empty()) result["images"] = images;
    results.push_back(std::move(result));
  }
  std::erase_if(state.resources, [](const auto& entry) { return entry.second.target.is_null(); });

  const auto finished = now();
  edit(state, [&](Json& object) {
    auto& history = object["status"]["history"];
    if (history.is_null()) history = Json::array();
    const int id = history.empty() ? 0 : history.back()["id"].get<int>() + 1;
    history.push_back({{"deployStartedAt", started},
                       {"deployedAt", finished},
                       {"id", id},
                       {"initiatedBy", by},
                       {"revision", *revision},
                       {"source", object["spec"]["source"]}});
    if (history.size() > 10) history.erase(history.begin());
  });
  edit(state, [&](Json& object) {
    object.erase("operation");
    auto& operation_state = object["status"]["operationState"];
    operation_state["phase"] = "Succeeded";
    operation_state["finishedAt"] = finished;
    operation_state["message"] = "successfully synced (all tasks run)";
    operation_state["syncResult"] = {
        {"resources", results}, {"revision", *revision}, {"source", object["spec"]["source"]}};
  });
  write_comparison(state);
  co_return *revision;
}

Result<void> FakeArgoCd::delete_app(const std::string& app) {
  const auto state = apps_.find(app);
  if (state == apps_.end()) return fail(ErrorCode::not_found, "no application " + app);
  const k8s::ObjectKey key{options_.ns, app};
  cluster_.remove(k8s::resources::kApplications, key);
  for (const auto& [id, managed] : state->second.resources) {
    cluster_.remove(managed.type, managed.key);
  }
  state->second.resources.clear();
  write_comparison(state->second);
  auto object = cluster_.find(k8s::resources::kApplications, key);
  apps_.erase(state);
  if (!object) return {};
  (*object)["metadata"].erase("finalizers");
  auto& store = cluster_.store();
  const auto& type = k8s::resources::kApplications;
  const auto gone = store.update(*store.find_type(type.group, type.version, type.plural), key,
                                 std::move(*object));
  if (!gone) return fail(ErrorCode::conflict, gone.error().message);
  return {};
}

Result<void> FakeArgoCd::set_health(const std::string& app, const std::string& kind,
                                    const std::string& name, const std::string& health,
                                    const std::string& message) {
  const auto state = apps_.find(app);
  if (state == apps_.end()) return fail(ErrorCode::not_found, "no application " + app);
  auto& resources = state->second.resources;
  const auto found = std::ranges::find_if(resources, [&](const auto& entry) {
    return entry.second.type.kind == kind && entry.second.key.name == name;
  });
  if (found == resources.end())
    return fail(ErrorCode::not_found, "no resource " + kind + "/" + name);
  const auto before = health_of(state->second);
  found->second.health = health;
  found->second.health_message = message;
  if (health_of(state->second) != before) write_comparison(state->second);
  return {};
}

Result<void> FakeArgoCd::touch(const std::string& app) {
  const auto state = apps_.find(app);
  if (state == apps_.end()) return fail(ErrorCode::not_found, "no application " + app);
  edit(state->second, [](Json& object) { object["status"]["reconciledAt"] = now(); });
  return {};
}

// --- The server
// -----------------------------------------------------------------------------------

Json FakeArgoCd::tree_of(const State& state) const {
  if (state.tree) return *state.tree;
  Json nodes = Json::array();
  int pods = 0;
  for (const auto& [id, managed] : state.resources) {
    const Json object = live(managed);
    Json node{
        {"version", managed.type.version}, {"kind", managed.type.kind}, {"name", managed.key.name}};
    if (!managed.type.group.empty()) node["group"] = managed.type.group;
    if (!managed.key.ns.empty()) node["namespace"] = managed.key.ns;
    if (object.is_null()) {
      node["health"] = {{"status", "Missing"}};
      nodes.push_back(std::move(node));
      continue;
    }
    const auto& metadata = object["metadata"];
    node["uid"] = metadata["uid"];
    node["resourceVersion"] = metadata["resourceVersion"];
    node["createdAt"] = metadata["creationTimestamp"];
    if (!managed.health.empty()) {
      node["health"] = {{"status", managed.health}};
      if (!managed.health_message.empty()) node["health"]["message"] = managed.health_message;
    }
    if (managed.type.kind != "Deployment") {
      nodes.push_back(std::move(node));
      continue;
    }
    node["info"] = Json::array({{{"name", "Revision"}, {"value", "Rev:1"}}});
    nodes.push_back(node);
    const auto derived = [&](const std::string& kind, const std::string& group,
                             const std::string& name, const Json& parent) {
      Json reference{{"version", parent["version"]},
                     {"kind", parent["kind"]},
                     {"name", parent["name"]},
                     {"namespace", parent["namespace"]},
                     {"uid", parent["uid"]}};
      if (parent.contains("group")) reference["group"] = parent["group"];
      Json child{{"version", "v1"},
                 {"kind", kind},
                 {"namespace", managed.key.ns},
                 {"name", name},
                 {"uid", derived_uid(kind + name)},
                 {"parentRefs", Json::array({std::move(reference)})},
                 {"resourceVersion", metadata["resourceVersion"]},
                 {"createdAt", metadata["creationTimestamp"]},
                 {"health", {{"status", "Healthy"}}}};
      if (!group.empty()) child["group"] = group;
      return child;
    };
    const auto set_name =
        managed.key.name + "-" + hex8(value_at(object, "/spec/template", Json()).dump());
    Json set = derived("ReplicaSet", "apps", set_name, node);
    set["info"] = Json::array({{{"name", "Revision"}, {"value", "Rev:1"}}});
    nodes.push_back(set);
    for (int i = 0; i < replicas_of(object); ++i, ++pods) {
      const auto suffix = hex8(set_name + std::to_string(i)).substr(0, 5);
      Json pod = derived("Pod", "", set_name + "-" + suffix, set);
      pod["images"] = images_of(object);
      pod["info"] = Json::array({{{"name", "Status Reason"}, {"value", "Running"}},
                                 {{"name", "Node"}, {"value", kNode}},
                                 {{"name", "Containers"}, {"value", "1/1"}}});
      nodes.push_back(std::move(pod));
    }
  }
  const auto place = [](const Json& node) {
    return std::array<std::string, 4>{node.value("group", ""), node.value("kind", ""),
                                      node.value("namespace", ""), node.value("name", "")};
  };
  std::sort(nodes.begin(), nodes.end(),
            [&](const Json& a, const Json& b) { return place(a) < place(b); });
  Json tree{{"nodes", std::move(nodes)}};
  if (pods > 0) tree["hosts"] = Json::array({{{"name", kNode}}});
  return tree;
}

Json FakeArgoCd::managed_of(const State& state) const {
  if (state.managed) return *state.managed;
  Json items = Json::array();
  for (const auto& [id, managed] : state.resources) {
    const Json object = masked(live(managed));
    const Json target = masked(managed.target);
    // What Argo CD leaves out of both sides before it compares them.
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
  // gRPC's numbers for what the gateway translates.
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
  auto response =
      answer(exchange.request(), path_segments(exchange.path()), Query(exchange.query()), *body);
  if (auto sent = co_await exchange.reply(std::move(response)); !sent) co_return;
}

http::Response FakeArgoCd::answer(const http::Request& request,
                                  const std::vector<std::string>& path, const Query& query,
                                  const std::string& body) {
  using Path = std::vector<std::string>;
  if (path == Path{"healthz"}) return json_response(200, "ok");
  if (path == Path{"api", "version"}) {
    return json_response(200, Json{{"Version", "v3.2.11+unknown"}}.dump());
  }
  if (path == Path{"api", "v1", "session"} && request.method == "POST") {
    const auto type = request.headers.find("Content-Type").value_or("");
    if (!type.starts_with("application/json")) {
      http::Response response;
      response.status = 415;
      response.body = "Invalid content type\n";
      return response;
    }
    const Json login = Json::parse(body, nullptr, false);
    const bool right = login.is_object() && login.value("username", "") == options_.username &&
                       login.value("password", "") == options_.password;
    if (!right) return refuse(401, 16, "Invalid username or password");
    return json_response(200, Json{{"token", options_.token}}.dump());
  }
  const auto authorization = request.headers.find("Authorization").value_or("");
  const auto token = authorization.substr(std::min<std::size_t>(7, authorization.size()));
  if (!authorization.starts_with("Bearer ") || token != options_.token) {
    // The real server looks no further than whether the token is shaped like a JWT.
    const bool shaped = std::ranges::count(token, '.') == 2;
    return refuse(401, 16,
                  shaped ? "invalid session: token signature is invalid: signature is invalid"
                         : "no session information");
  }
  const bool of_app = path.size() >= 5 && path[0] == "api" && path[1] == "v1" &&
                      path[2] == "applications" && request.method == "GET";
  http::Response unknown_path;
  unknown_path.status = 404;
  unknown_path.headers.set("Content-Type", "text/plain; charset=utf-8");
  unknown_path.body = "Not Found\n";
  if (!of_app) return unknown_path;
  const auto& name = path[3];
  const auto ns = query.get("appNamespace");
  const auto project = query.get("project");
  const auto state = apps_.find(name);
  const bool served = ns.empty() || ns == options_.ns;
  const bool known =
      state != apps_.end() && served && (project.empty() || project == state->second.spec.project);
  if (!known) {
    // Only those who name the project, and a namespace that is served, may learn what is missing.
    return project.empty() || !served
               ? refuse(403, 7, "permission denied")
               : refuse(404, 5, "applications.argoproj.io \"" + name + "\" not found");
  }
  if (path.size() == 5 && path[4] == "resource-tree") {
    return json_response(200, tree_of(state->second).dump());
  }
  if (path.size() == 5 && path[4] == "managed-resources") {
    return json_response(200, Json{{"items", managed_of(state->second)}}.dump());
  }
  if (path.size() == 7 && path[4] == "revisions" && path[6] == "metadata") {
    const auto metadata = revisions_.find(path[5]);
    if (metadata == revisions_.end()) {
      return refuse(500, 2,
                    "error acquiring repo lock: failed to initialize repository resources: rpc "
                    "error: code = Internal desc = Failed to checkout revision " +
                        path[5]);
    }
    return json_response(200, metadata->second.dump());
  }
  return unknown_path;
}

}  // namespace gitops::test
