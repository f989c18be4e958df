#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "common/core/encoding.hpp"
#include "doubles/argocd_objects.hpp"
#include "doubles/fake_argocd.hpp"
#include "support/run_on.hpp"

// The controller part of FakeArgoCd.
namespace gitops::test {

namespace {

using Json = nlohmann::json;

constexpr const char* kHook = "argocd.argoproj.io/hook";
constexpr std::string_view kTracking = "argocd.argoproj.io/tracking-id";
constexpr std::string_view kFinalizer = "resources-finalizer.argocd.argoproj.io";
constexpr std::string_view kServer = "https://kubernetes.default.svc";

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

}  // namespace

Task<Result<GitCommit>> FakeArgoCd::fetch(const App& app) {
  const auto mirror = folder_ / hex8(app.repo_url);
  const GitSource source{.url = app.repo_url,
                         .username = app.git_username,
                         .password = app.git_password,
                         .revision = app.target_revision,
                         .path = app.path};
  auto commit = co_await run_on(git_, [mirror, source] { return read_git_commit(mirror, source); });
  if (commit) revisions_[commit->revision] = commit->metadata;
  co_return commit;
}

Result<void> FakeArgoCd::take_manifests(State& state, const GitCommit& commit) {
  state.revision = commit.revision;
  for (auto& [key, managed] : state.resources) managed.target = nullptr;
  state.hooks.clear();
  for (Json manifest : commit.manifests) {
    const auto api_version = manifest.value("apiVersion", "");
    const auto kind = manifest.value("kind", "");
    if (value_at(manifest, "/metadata/annotations", Json::object()).contains(kHook)) {
      const auto group = api_version.substr(0, api_version.find('/'));
      state.hooks.push_back(group + "/" + kind + "/" + manifest["metadata"].value("name", ""));
      continue;
    }
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
        manifest["data"][key] = base64_encode(value.get<std::string>());
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
  // Drop resources that are neither in Git nor in the cluster.
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

// Syncs one resource with Git; returns its entry in the sync result.
Json FakeArgoCd::sync_resource(Managed& managed, bool prune) {
  const bool left_git = managed.target.is_null();
  const bool existed = !live(managed).is_null();
  std::string kind = managed.type.kind;
  std::ranges::transform(kind, kind.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!managed.type.group.empty()) kind += "." + managed.type.group;
  std::string message = kind + "/" + managed.key.name;
  std::string status = "Synced";
  if (left_git && !prune) {
    message = "ignored (requires pruning)";
    status = "PruneSkipped";
  } else if (left_git) {
    cluster_.remove(managed.type, managed.key);
    message = "pruned";
    status = "Pruned";
  } else if (is_synced(managed)) {
    message += " unchanged";
  } else {
    apply(managed);
    message += existed ? " configured" : " created";
  }
  Json result{{"hookPhase", left_git ? "Succeeded" : "Running"},
              {"kind", managed.type.kind},
              {"group", managed.type.group},
              {"name", managed.key.name},
              {"namespace", managed.key.ns},
              {"message", message},
              {"status", status},
              {"syncPhase", "Sync"},
              {"version", managed.type.version}};
  if (const auto images = images_of(managed.target); !images.empty()) result["images"] = images;
  return result;
}

Result<void> FakeArgoCd::begin_operation(const State& state, const std::string& revision,
                                         bool prune) {
  const auto app = cluster_.find(k8s::resources::kApplications, {options_.ns, state.spec.name});
  if (!app) return fail(ErrorCode::not_found, "no application " + state.spec.name);
  if (app->contains("operation")) {
    return fail(ErrorCode::conflict, "another operation is already in progress");
  }
  edit(state, [&](Json& object) {
    object["operation"] = {
        {"initiatedBy", {{"username", options_.username}}},
        {"retry", Json::object()},
        {"sync", {{"prune", prune}, {"revision", revision}, {"source", object["spec"]["source"]}}}};
  });
  return {};
}

void FakeArgoCd::run_operation(State& state) {
  const auto started = now();
  // The operation stays in place until it has ended.
  Json operation;
  edit(state, [&](Json& object) {
    operation = object["operation"];
    object["status"]["operationState"] = {
        {"operation", operation}, {"phase", "Running"}, {"startedAt", started}};
    if (!state.hooks.empty()) {
      object["status"]["operationState"]["message"] =
          "waiting for completion of hook " + state.hooks.front();
    }
  });
  if (!state.hooks.empty()) return;

  const bool prune = operation["sync"]["prune"];
  Json results = Json::array();
  for (auto& [key, managed] : state.resources) results.push_back(sync_resource(managed, prune));
  if (prune) {
    std::erase_if(state.resources, [](const auto& entry) { return entry.second.target.is_null(); });
  }

  const auto finished = now();
  edit(state, [&](Json& object) {
    auto& history = object["status"]["history"];
    if (history.is_null()) history = Json::array();
    const int id = history.empty() ? 0 : history.back()["id"].get<int>() + 1;
    history.push_back({{"deployStartedAt", started},
                       {"deployedAt", finished},
                       {"id", id},
                       {"initiatedBy", operation["initiatedBy"]},
                       {"revision", state.revision},
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
        {"resources", results}, {"revision", state.revision}, {"source", object["spec"]["source"]}};
  });
}

Task<Result<std::string>> FakeArgoCd::sync(const std::string& app) {
  const auto revision = co_await refresh(app);
  if (!revision) co_return std::unexpected(revision.error());
  auto& state = apps_.at(app);
  if (auto begun = begin_operation(state, *revision, true); !begun) {
    co_return std::unexpected(begun.error());
  }
  run_operation(state);
  write_comparison(state);
  co_return *revision;
}

Task<Result<std::string>> FakeArgoCd::sync_at(State& state, std::string revision, bool prune) {
  auto wanted = state.spec;
  wanted.target_revision = std::move(revision);
  const auto commit = co_await fetch(wanted);
  if (!commit) co_return std::unexpected(commit.error());
  if (auto begun = begin_operation(state, commit->revision, prune); !begun) {
    co_return std::unexpected(begun.error());
  }
  if (auto taken = take_manifests(state, *commit); !taken) {
    co_return std::unexpected(taken.error());
  }
  run_operation(state);
  // The branch is what the Application is compared with.
  co_return co_await refresh(state.spec.name);
}

Task<Result<std::string>> FakeArgoCd::roll_back(State& state, int history_id, bool prune) {
  const auto app = cluster_.find(k8s::resources::kApplications, {options_.ns, state.spec.name});
  const auto history = value_at(app.value_or(Json()), "/status/history", Json::array());
  const auto entry = std::ranges::find_if(
      history, [&](const Json& candidate) { return candidate.value("id", -1) == history_id; });
  if (entry == history.end()) {
    co_return fail(ErrorCode::not_found, "application " + state.spec.name +
                                             " does not have deployment with id " +
                                             std::to_string(history_id));
  }
  co_return co_await sync_at(state, entry->value("revision", ""), prune);
}

Result<void> FakeArgoCd::terminate(const State& state) {
  const auto app = cluster_.find(k8s::resources::kApplications, {options_.ns, state.spec.name});
  if (!app || !app->contains("operation")) {
    return fail(ErrorCode::invalid_argument,
                "Unable to terminate operation. No operation is in progress");
  }
  edit(state, [](Json& object) { object["status"]["operationState"]["phase"] = "Terminating"; });
  edit(state, [](Json& object) {
    object.erase("operation");
    auto& operation_state = object["status"]["operationState"];
    operation_state["phase"] = "Failed";
    operation_state["finishedAt"] = now();
    operation_state["message"] = "Operation terminated";
  });
  return {};
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

}  // namespace gitops::test
