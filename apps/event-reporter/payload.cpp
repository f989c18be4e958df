#include "event-reporter/payload.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <simdjson.h>

#include "common/core/encoding.hpp"
#include "event-reporter/json_text.hpp"
#include "event-reporter/yaml_text.hpp"

namespace gitops::reporter {
namespace {

using simdjson::dom::parser;

constexpr std::string_view kApplicationGroup = "argoproj.io";
constexpr std::string_view kApplicationKind = "Application";
constexpr std::string_view kMask = "++++++++";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

Result<JsonView> parse(parser& with, std::string_view text, std::string_view what) {
  simdjson::dom::element root;
  const auto error = with.parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS || !root.is_object()) {
    const std::string reason =
        error == simdjson::SUCCESS ? "not an object" : simdjson::error_message(error);
    return fail(ErrorCode::invalid_data, std::string(what) + " is not usable JSON: " + reason);
  }
  return JsonView(root);
}

std::string identity_of(std::string_view group, std::string_view kind, std::string_view ns,
                        std::string_view name) {
  std::string out;
  out.reserve(group.size() + kind.size() + ns.size() + name.size() + 3);
  out.append(group).append("/").append(kind).append("/").append(ns).append("/").append(name);
  return out;
}

std::string identity_of(JsonView object) {
  return identity_of(object["group"].text(), object["kind"].text(), object["namespace"].text(),
                     object["name"].text());
}

// A time as Go prints metav1.Time: UTC, whole seconds. Empty when it cannot be read.
std::string normal_time(std::string_view text) {
  const auto time = parse_rfc3339(text);
  return time ? format_rfc3339(*time) : std::string{};
}

// Writes the members of one JSON object in order.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_json_string(out_, value);
  }
  void raw(std::string_view key, std::string_view json) {
    begin(key);
    out_ += json;
  }
  std::string& begin(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += key;  // keys are our own literals
    out_ += "\":";
    return out_;
  }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

struct EventError {
  std::string_view type;
  std::string_view level;
  std::string message;
  std::string last_seen;
  const ResourceId* source = nullptr;
};

void append_errors(std::string& out, std::span<const EventError> errors) {
  out += '[';
  for (const auto& error : errors) {
    if (&error != errors.data()) out += ',';
    ObjectWriter writer(out);
    writer.text("type", error.type);
    writer.text("level", error.level);
    writer.text("message", error.message);
    writer.text("lastSeen", error.last_seen);
    if (error.source != nullptr) {
      ObjectWriter source(writer.begin("sourceReference"));
      source.text("group", error.source->group);
      source.text("version", error.source->version);
      source.text("kind", error.source->kind);
      source.text("namespace", error.source->ns);
      source.text("name", error.source->name);
      source.end();
    }
    writer.end();
  }
  out += ']';
}

std::string mask_values(std::string_view object) {
  if (object == "null") return "null";
  if (!object.starts_with('{')) return json_string(kMask);
  std::string out = "{";
  for_each_member(object, [&out](std::string_view key, std::string_view value) {
    if (out.size() > 1) out += ',';
    out.append("\"").append(key).append("\":");
    const bool masked = value.size() >= 2 && value.front() == '"' &&
                        value.find_first_not_of('+', 1) == value.size() - 1;
    if (masked) {
      out += value;
    } else {
      append_json_string(out, kMask);
    }
    return true;
  });
  return out += '}';
}

bool has_member(std::string_view object, std::string_view key) {
  bool found = false;
  for_each_member(object, [&](std::string_view name, std::string_view) {
    found = found || name == key;
    return !found;
  });
  return found;
}

std::string edit_existing(std::string_view object, std::string_view key,
                          const std::function<std::string(std::string_view value)>& edit) {
  return has_member(object, key) ? edit_member(object, key, edit) : std::string(object);
}

std::string mask_secret_members(std::string_view manifest) {
  return edit_existing(edit_existing(manifest, "data", &mask_values), "stringData", &mask_values);
}

// The value of a last-applied annotation: a JSON string that holds the whole Secret.
std::string mask_applied(std::string_view value) {
  parser own_parser;
  simdjson::dom::element text;
  std::string_view applied;
  if (own_parser.parse(value.data(), value.size()).get(text) != simdjson::SUCCESS ||
      text.get_string().get(applied) != simdjson::SUCCESS || !applied.starts_with('{')) {
    return json_string(kMask);
  }
  return json_string(mask_secret_members(applied));
}

// The manifest with its namespace set; cluster-scoped objects (no namespace) stay as they are.
std::string with_namespace(std::string_view manifest, std::string_view ns) {
  if (ns.empty()) return std::string(manifest);
  return edit_member(manifest, "metadata", [ns](std::string_view metadata) {
    return with_strings(metadata, {{"namespace", ns}});
  });
}

std::string stub(std::string_view group, std::string_view version, std::string_view kind,
                 std::string_view ns, std::string_view name) {
  std::string api_version(group);
  if (!group.empty()) api_version += '/';
  api_version += version;
  std::string out;
  ObjectWriter writer(out);
  writer.text("apiVersion", api_version);
  writer.text("kind", kind);
  ObjectWriter metadata(writer.begin("metadata"));
  metadata.text("name", name);
  if (!ns.empty()) metadata.text("namespace", ns);
  metadata.end();
  writer.end();
  return out;
}

std::string stub(const ResourceId& id) {
  return stub(id.group, id.version, id.kind, id.ns, id.name);
}

// ---------------------------------------------------------------------------------------------

// An Application's JSON, with the answers to the questions that depend on it alone.
struct AppView {
  parser json_parser;
  JsonView root;

  Result<void> read(std::string_view text) {
    auto parsed = parse(json_parser, text, "the Application");
    if (!parsed) return std::unexpected(parsed.error());
    root = *parsed;
    if (name().empty()) return fail(ErrorCode::invalid_data, "the Application has no name");
    return {};
  }

  [[nodiscard]] JsonView metadata() const { return root["metadata"]; }
  [[nodiscard]] JsonView status() const { return root["status"]; }
  [[nodiscard]] JsonView operation_state() const { return status()["operationState"]; }
  [[nodiscard]] std::string_view name() const { return metadata()["name"].text(); }
  [[nodiscard]] std::string_view ns() const { return metadata()["namespace"].text(); }
  [[nodiscard]] std::string_view uid() const { return metadata()["uid"].text(); }
  [[nodiscard]] bool deleting() const { return metadata()["deletionTimestamp"].exists(); }
  [[nodiscard]] std::string_view cluster() const {
    return root["spec"]["destination"]["server"].text();
  }

  // The sync operation that revisions are taken from: the last one, else the one that is asked for.
  [[nodiscard]] JsonView sync_operation() const {
    const auto last = operation_state()["operation"]["sync"];
    return last.exists() ? last : root["operation"]["sync"];
  }

  [[nodiscard]] std::optional<JsonView> last_history() const {
    std::optional<JsonView> last;
    for (const auto entry : status()["history"].items()) last = JsonView(entry);
    return last;
  }

  [[nodiscard]] bool has_sources() const { return root["spec"]["sources"].items().size() > 0; }

  // Of several sources the one that single-value fields speak of: the first that is not only a
  // reference for the others.
  [[nodiscard]] std::size_t main_source() const {
    std::size_t index = 0;
    for (const auto source : root["spec"]["sources"].items()) {
      if (JsonView(source)["ref"].text().empty()) return index;
      ++index;
    }
    return 0;
  }

  [[nodiscard]] JsonView source(std::size_t index) const {
    if (!has_sources()) return root["spec"]["source"];
    std::size_t at = 0;
    for (const auto entry : root["spec"]["sources"].items()) {
      if (at++ == index) return JsonView(entry);
    }
    return {};
  }

  // `object`'s revision, or that of the main source when it has several.
  [[nodiscard]] std::string_view revision_in(JsonView object) const {
    const auto single = object["revision"].text();
    if (!single.empty()) return single;
    std::size_t at = 0;
    for (const auto entry : object["revisions"].items()) {
      if (at++ == main_source()) return JsonView(entry).text();
    }
    return {};
  }

  [[nodiscard]] std::string_view latest_revision() const {
    const auto history = last_history();
    return history ? revision_in(*history) : revision_in(status()["sync"]);
  }

  [[nodiscard]] std::string_view operation_revision() const {
    for (const auto operation :
         {operation_state()["operation"]["sync"], root["operation"]["sync"]}) {
      const auto revision = revision_in(operation);
      if (!revision.empty()) return revision;
    }
    return revision_in(status()["sync"]);
  }

  [[nodiscard]] std::string_view compared_repo_url() const {
    const auto compared = status()["sync"]["comparedTo"];
    const auto single = compared["source"]["repoURL"].text();
    if (!single.empty()) return single;
    std::size_t at = 0;
    for (const auto entry : compared["sources"].items()) {
      if (at++ == main_source()) return JsonView(entry)["repoURL"].text();
    }
    return {};
  }

  // An error in rendering leaves no desired manifests: then a resource must not be called
  // superfluous.
  [[nodiscard]] bool manifests_rendered() const {
    for (const auto entry : status()["conditions"].items()) {
      if (JsonView(entry)["type"].text() == "ComparisonError") return false;
    }
    return true;
  }
};

// Revisions as lists: "revisions" wins over "revision"; empty when the object has neither.
std::vector<std::string_view> revision_list(JsonView object, std::string_view several,
                                            std::string_view single) {
  std::vector<std::string_view> out;
  if (object[several].is_array()) {
    for (const auto entry : object[several].items()) out.push_back(JsonView(entry).text());
  } else if (const auto one = object[single].text(); !one.empty()) {
    out.push_back(one);
  }
  return out;
}

std::vector<Questions::Commit> commits(const AppView& app,
                                       std::span<const std::string_view> revisions) {
  std::vector<Questions::Commit> out;
  for (std::size_t i = 0; i < revisions.size(); ++i) {
    const auto source = app.source(i);
    out.push_back({.revision = std::string(revisions[i]),
                   .source_index = static_cast<int>(i),
                   .repo_url = std::string(source["repoURL"].text()),
                   .ask = !revisions[i].empty() && source["chart"].text().empty()});
  }
  return out;
}

// The Application that this one's tracking marks name as its owner (resource tracking of Argo CD).
std::optional<k8s::ObjectKey> parent_of(const AppView& app, const TrackingSettings& settings) {
  const auto annotations = app.metadata()["annotations"];
  std::string_view owner;
  if (settings.method == "label") {
    owner = app.metadata()["labels"][settings.instance_label_key].text();
  } else {
    const auto id = annotations["argocd.argoproj.io/tracking-id"].text();
    const auto installation = annotations["argocd.argoproj.io/installation-id"].text();
    if (id.contains(':') && installation == settings.installation_id) {
      owner = id.substr(0, id.find(':'));
    }
  }
  if (owner.empty()) return std::nullopt;
  k8s::ObjectKey key{.ns = settings.argocd_namespace, .name = std::string(owner)};
  if (const auto split = owner.find('_'); split != std::string_view::npos) {
    key = {.ns = std::string(owner.substr(0, split)), .name = std::string(owner.substr(split + 1))};
  }
  if (key.name == app.name() && key.ns == app.ns()) return std::nullopt;  // manages itself
  return key;
}

// ---------------------------------------------------------------------------------------------

// The resource tree, indexed: by identity, and children by the identity of their parent.
class TreeView {
 public:
  Result<void> read(std::string_view text) {
    auto parsed = parse(parser_, text, "the answer of resource-tree");
    if (!parsed) return std::unexpected(parsed.error());
    for (const auto entry : (*parsed)["nodes"].items()) {
      const JsonView node(entry);
      const auto index = nodes_.size();
      nodes_.push_back(node);
      by_identity_.try_emplace(identity_of(node), index);
      for (const auto parent : node["parentRefs"].items()) {
        children_[identity_of(JsonView(parent))].push_back(index);
      }
    }
    return {};
  }

  [[nodiscard]] JsonView find(const std::string& identity) const {
    const auto found = by_identity_.find(identity);
    return found == by_identity_.end() ? JsonView{} : nodes_[found->second];
  }

  // Every node below it, in breadth-first order, each once.
  [[nodiscard]] std::vector<JsonView> descendants(const std::string& identity) const {
    std::vector<JsonView> out;
    std::vector<std::string> frontier{identity};
    std::unordered_set<std::string> seen{identity};
    for (std::size_t i = 0; i < frontier.size(); ++i) {
      const auto found = children_.find(frontier[i]);
      if (found == children_.end()) continue;
      for (const auto index : found->second) {
        auto below = identity_of(nodes_[index]);
        if (!seen.insert(below).second) continue;
        out.push_back(nodes_[index]);
        frontier.push_back(std::move(below));
      }
    }
    return out;
  }

 private:
  parser parser_;
  std::vector<JsonView> nodes_;
  std::unordered_map<std::string, std::size_t> by_identity_;
  std::unordered_map<std::string, std::vector<std::size_t>> children_;
};

// managed-resources, indexed by identity.
class ManagedView {
 public:
  Result<void> read(std::string_view text) {
    auto parsed = parse(parser_, text, "the answer of managed-resources");
    if (!parsed) return std::unexpected(parsed.error());
    for (const auto entry : (*parsed)["items"].items()) {
      const JsonView item(entry);
      by_identity_.try_emplace(identity_of(item), item);
    }
    return {};
  }

  struct States {
    std::string desired;  // JSON; empty when there is none
    std::string live;
  };
  [[nodiscard]] std::optional<States> find(const std::string& identity) const {
    const auto found = by_identity_.find(identity);
    if (found == by_identity_.end()) return std::nullopt;
    States states{.desired = state(found->second["targetState"]),
                  .live = state(found->second["liveState"])};
    if (found->second["group"].text().empty() && found->second["kind"].text() == "Secret") {
      states.desired = mask_secret(states.desired);
      states.live = mask_secret(states.live);
    }
    return states;
  }

 private:
  static std::string state(JsonView value) {
    const auto text = value.text();
    return text == "null" ? std::string{} : std::string(text);
  }

  parser parser_;
  std::unordered_map<std::string, JsonView> by_identity_;
};

struct Health {
  std::string status;
  std::string message;
};

// What one resource looks like to a receiver.
struct ResourceFacts {
  ResourceId id;
  std::string sync_status;
  std::optional<Health> health;
  std::string desired;
  std::string actual;
  std::string object;
};

}  // namespace

std::string ResourceId::to_string() const {
  return group + '/' + version + '/' + kind + '/' + ns + '/' + name;
}

ResourceId ResourceId::parse(std::string_view text) {
  ResourceId id;
  for (auto* part : {&id.group, &id.version, &id.kind, &id.ns}) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) return id;
    *part = text.substr(0, slash);
    text.remove_prefix(slash + 1);
  }
  id.name = text;
  return id;
}

std::string ResourceId::identity() const {
  return identity_of(group, kind, ns, name);
}

Result<Questions> questions_about(std::string_view application, const TrackingSettings& settings) {
  AppView app;
  if (auto read = app.read(application); !read) return std::unexpected(read.error());
  Questions questions;
  questions.app = {.name = std::string(app.name()),
                   .ns = std::string(app.ns()),
                   .project = std::string(app.root["spec"]["project"].text())};
  questions.parent = parent_of(app, settings);
  questions.being_deleted = app.deleting();

  auto synced = revision_list(app.sync_operation(), "revisions", "revision");
  if (synced.empty()) synced = revision_list(app.status()["sync"], "revisions", "revision");
  questions.sync_revisions = commits(app, synced);
  questions.change_revisions =
      commits(app, revision_list(app.sync_operation(), "changeRevisions", "changeRevision"));
  return questions;
}

struct Report::State {
  Material material;
  TrackingSettings settings;
  AppView app;
  AppView parent;
  std::optional<TreeView> tree;
  std::optional<ManagedView> managed;
  std::optional<ManagedView> parent_managed;
  std::vector<Resource> resources;
  std::vector<JsonView> resource_status;  // entries of status.resources, beside `resources`
  Digest application_digest{};

  [[nodiscard]] bool is_child() const { return material.parent.has_value(); }
  [[nodiscard]] bool being_deleted() const { return material.gone || app.deleting(); }

  [[nodiscard]] std::optional<Health> health_of(const ResourceId& id, JsonView status) const {
    if (tree) {
      const auto node = tree->find(id.identity());
      if (node.exists()) {
        const auto health = node["health"];
        if (health.exists()) {
          return Health{std::string(health["status"].text()),
                        std::string(health["message"].text())};
        }
        if (node["uid"].text().empty() && node["resourceVersion"].text().empty() &&
            !node["createdAt"].exists()) {
          return Health{"Missing", ""};
        }
      }
    }
    if (const auto health = status["health"]; !tree && health.exists()) {
      return Health{std::string(health["status"].text()), std::string(health["message"].text())};
    }
    // Says that a resource which was Missing before is there now.
    if (status["status"].text() == "Synced") return Health{"Healthy", ""};
    return std::nullopt;
  }

  [[nodiscard]] ResourceFacts facts(std::size_t index) const {
    const auto status = resource_status[index];
    ResourceFacts facts{.id = resources[index].id,
                        .sync_status = std::string(status["status"].text()),
                        .health = health_of(resources[index].id, status),
                        .desired = {},
                        .actual = {},
                        .object = {}};
    const auto identity = facts.id.identity();
    if (auto states = managed->find(identity)) {
      facts.desired = std::move(states->desired);
      facts.actual = std::move(states->live);
    } else if (tree) {
      facts.actual = live_stub(facts.id, tree->find(identity));
    }
    if (!facts.actual.empty()) {
      facts.object = facts.actual;
    } else if (!facts.desired.empty()) {
      facts.object = with_namespace(facts.desired, facts.id.ns);
    } else {
      facts.object = stub(facts.id);
    }
    const bool superfluous =
        status["requiresPruning"].is_true() && !facts.actual.empty() && app.manifests_rendered();
    if (superfluous || being_deleted()) {
      facts.desired.clear();
      facts.actual.clear();
    }
    return facts;
  }

  // managed-resources leaves hooks out: what the tree knows of a live one stands for its manifest.
  static std::string live_stub(const ResourceId& id, JsonView node) {
    if (node["uid"].text().empty()) return {};
    return edit_member(stub(id), "metadata", [node](std::string_view metadata) {
      return with_strings(metadata, {{"resourceVersion", node["resourceVersion"].text()},
                                     {"uid", node["uid"].text()}});
    });
  }

  // Degraded nodes below the resource, or else the resource's own node.
  void add_health_errors(std::vector<EventError>& errors, const ResourceId& id,
                         const ResourceId* source, WallTime now) const {
    if (!tree) return;
    const auto identity = id.identity();
    const auto add = [&](JsonView node) {
      if (node["health"]["status"].text() != "Degraded") return false;
      auto created = normal_time(node["createdAt"].text());
      errors.push_back({.type = "health",
                        .level = "error",
                        .message = std::string(node["health"]["message"].text()),
                        .last_seen = created.empty() ? format_rfc3339(now) : std::move(created),
                        .source = source});
      return true;
    };
    bool found = false;
    for (const auto node : tree->descendants(identity)) found = add(node) || found;
    if (!found) add(tree->find(identity));
  }

  void add_condition_errors(std::vector<EventError>& errors, WallTime now) const {
    const auto results = app.operation_state()["syncResult"]["resources"];
    for (const auto entry : app.status()["conditions"].items()) {
      const JsonView condition(entry);
      const auto message = condition["message"].text();
      const bool about_tasks =
          message.contains("one or more synchronization tasks completed unsuccessfully") ||
          message.contains("one or more synchronization tasks are not valid");
      if (about_tasks && results.exists()) {
        for (const auto result : results.items()) add_task_error(errors, JsonView(result), now);
        continue;
      }
      const auto type = condition["type"].text();
      const bool warning = type.ends_with("Warning");
      if (!warning && !type.ends_with("Error")) continue;
      auto seen = normal_time(condition["lastTransitionTime"].text());
      errors.push_back({.type = "sync",
                        .level = warning ? "warning" : "error",
                        .message = std::string(message),
                        .last_seen = seen.empty() ? format_rfc3339(now) : std::move(seen)});
    }
  }

  static bool failed(JsonView sync_result) {
    const auto phase = sync_result["hookPhase"].text();
    return phase == "Failed" || phase == "Error" || sync_result["status"].text() == "SyncFailed";
  }

  static void add_task_error(std::vector<EventError>& errors, JsonView result, WallTime now) {
    const auto message = result["message"].text();
    if (message.empty() || !failed(result)) return;
    std::string text = "Resource ";
    text.append(result["kind"].text()).append("(").append(result["name"].text());
    text.append("): \n ").append(message);
    errors.push_back({.type = "sync",
                      .level = "error",
                      .message = std::move(text),
                      .last_seen = format_rfc3339(now)});
  }

  void add_resource_sync_errors(std::vector<EventError>& errors, const AppView& owner,
                                const ResourceId& id, WallTime now) const {
    for (const auto entry : owner.operation_state()["syncResult"]["resources"].items()) {
      const JsonView result(entry);
      if (identity_of(result) != id.identity() || result["syncPhase"].text() != "Sync") continue;
      if (failed(result)) {
        errors.push_back({.type = "sync",
                          .level = "error",
                          .message = std::string(result["message"].text()),
                          .last_seen = started_at(owner, now)});
      }
      return;
    }
  }

  static std::string started_at(const AppView& owner, WallTime now) {
    auto time = normal_time(owner.operation_state()["startedAt"].text());
    return time.empty() ? format_rfc3339(now) : time;
  }

  // Errors of the application itself: conditions, and the health of each resource.
  void add_application_errors(std::vector<EventError>& errors, WallTime now) const {
    add_condition_errors(errors, now);
    for (std::size_t i = 0; i < resources.size(); ++i) {
      const auto health = health_of(resources[i].id, resource_status[i]);
      if (health && health->status != "Healthy") {
        add_health_errors(errors, resources[i].id, &resources[i].id, now);
      }
    }
  }

  [[nodiscard]] std::vector<EventError> resource_errors(const ResourceFacts& facts,
                                                        WallTime now) const {
    std::vector<EventError> errors;
    add_resource_sync_errors(errors, app, facts.id, now);
    if (facts.health && facts.health->status != "Healthy") {
      add_health_errors(errors, facts.id, nullptr, now);
    }
    return errors;
  }

  [[nodiscard]] ResourceId own_id() const {
    return {.group = std::string(kApplicationGroup),
            .version = "v1alpha1",
            .kind = std::string(kApplicationKind),
            .ns = std::string(app.ns()),
            .name = std::string(app.name())};
  }

  [[nodiscard]] std::vector<EventError> application_errors(WallTime now) const {
    std::vector<EventError> errors;
    const auto own = own_id();
    if (is_child()) {
      add_resource_sync_errors(errors, parent, own, now);
      const auto phase = app.operation_state()["phase"].text();
      if (phase == "Error" || phase == "Failed") {
        errors.push_back({.type = "sync",
                          .level = "error",
                          .message = std::string(app.operation_state()["message"].text()),
                          .last_seen = started_at(app, now)});
      }
    }
    add_application_errors(errors, now);
    if (is_child() && app.status()["health"]["status"].text() != "Healthy") {
      add_health_errors(errors, own, nullptr, now);
    }
    return errors;
  }

  // -- commits --

  static void append_revisions(std::string& out,
                               const std::optional<std::vector<Revision>>& revisions) {
    if (!revisions || revisions->empty()) {
      out += "null";
      return;
    }
    out += '[';
    for (const auto& revision : *revisions) {
      if (&revision != revisions->data()) out += ',';
      ObjectWriter writer(out);
      writer.text("revision", revision.revision);
      if (!revision.metadata.empty()) writer.raw("metadata", revision.metadata);
      writer.end();
    }
    out += ']';
  }

  struct Commit {
    std::string author;
    std::string message;
    std::optional<WallTime> date;
  };
  static std::optional<Commit> main_commit(const AppView& owner, const AppMaterial& material) {
    if (!material.sync_revisions) return std::nullopt;
    const auto index = owner.has_sources() ? owner.main_source() : 0;
    if (index >= material.sync_revisions->size()) return std::nullopt;
    const auto& text = (*material.sync_revisions)[index].metadata;
    parser own_parser;
    const auto metadata = parse(own_parser, text, "revision metadata");
    if (!metadata) return std::nullopt;
    Commit commit{.author = std::string((*metadata)["author"].text()),
                  .message = std::string((*metadata)["message"].text()),
                  .date = std::nullopt};
    if (const auto date = parse_rfc3339((*metadata)["date"].text())) commit.date = *date;
    return commit;
  }

  // The Application with its type, and with what is known of its commits in labels and annotations.
  [[nodiscard]] std::string annotated_application() const {
    std::string out = material.app.application;
    const auto set_type = [&out](std::string_view key, std::string_view value) {
      if (has_member(out, key)) return;
      out = edit_member(out, key, [value](std::string_view) { return json_string(value); });
    };
    set_type("kind", kApplicationKind);
    set_type("apiVersion", "argoproj.io/v1alpha1");
    if (!material.app.sync_revisions && !material.app.change_revisions) return out;

    std::string revisions;
    ObjectWriter writer(revisions);
    append_revisions(writer.begin("syncRevisions"), material.app.sync_revisions);
    append_revisions(writer.begin("changeRevisions"), material.app.change_revisions);
    writer.end();
    const auto commit = main_commit(app, material.app);
    return edit_member(out, "metadata", [&](std::string_view metadata) {
      auto edited = edit_member(metadata, "annotations", [&](std::string_view annotations) {
        return with_strings(annotations, {{"app.meta.revisions-metadata", revisions}});
      });
      if (!commit) return edited;
      return edit_member(edited, "labels", [&](std::string_view labels) {
        auto set = with_strings(labels, {{"app.meta.commit-author", commit->author},
                                         {"app.meta.commit-message", commit->message}});
        if (!commit->date) return set;
        return with_strings(set, {{"app.meta.commit-date", format_rfc3339_millis(*commit->date)}});
      });
    });
  }

  // -- bodies --

  static void append_labels(std::string& out, JsonView labels) {
    if (!labels.exists()) {
      out += "null";
      return;
    }
    std::map<std::string_view, std::string_view> sorted;
    for (const auto [key, value] : labels.members()) sorted[key] = JsonView(value).text();
    out += '{';
    for (const auto& [key, value] : sorted) {
      if (out.back() != '{') out += ',';
      append_json_string(out, key);
      out += ':';
      append_json_string(out, value);
    }
    out += '}';
  }

  static std::string as_yaml(const std::string& manifest) {
    parser own_parser;
    simdjson::dom::element document;
    if (manifest.empty() || own_parser.parse(manifest).get(document) != simdjson::SUCCESS)
      return {};
    return to_yaml(document);
  }

  // The body of an event about something that `owner` manages.
  [[nodiscard]] std::string body_of_managed(const AppView& owner, const AppMaterial& owner_material,
                                            const ResourceFacts& facts,
                                            std::span<const EventError> errors,
                                            WallTime now) const {
    const auto started = started_at(owner, now);
    auto finished = normal_time(owner.operation_state()["finishedAt"].text());
    if (facts.sync_status == "Synced" && facts.health && facts.health->status == "Healthy") {
      finished = started;
    }
    std::string out;
    out.reserve(2048 + 2 * facts.object.size() + 2 * facts.actual.size() +
                3 * facts.desired.size());
    out += "{\"data\":";
    ObjectWriter payload(out);
    payload.text("timestamp", format_rfc3339_millis(now));
    payload.text("object", base64_encode(facts.object));
    ObjectWriter source(payload.begin("source"));
    source.text("desiredManifest", facts.desired);
    source.text("actualManifest", facts.actual);
    source.text("gitManifest", as_yaml(facts.desired));
    source.text("repoURL", owner.compared_repo_url());
    source.text("path", "");
    source.text("revision", owner.latest_revision());
    const auto commit = main_commit(owner, owner_material);
    source.text("commitMessage", commit ? commit->message : "");
    source.text("commitAuthor", commit ? commit->author : "");
    if (commit && commit->date) source.text("commitDate", format_rfc3339(*commit->date));
    source.text("appName", owner.name());
    append_labels(source.begin("appLabels"), owner.metadata()["labels"]);
    source.text("syncStatus", facts.sync_status);
    source.text("syncStartedAt", started);
    if (!finished.empty()) source.text("syncFinishedAt", finished);
    if (facts.health) {
      source.text("healthStatus", facts.health->status);
      source.text("healthMessage", facts.health->message);
    }
    source.text("cluster", owner.cluster());
    const auto history = owner.last_history();
    source.raw("historyId", std::to_string(history ? (*history)["id"].number() : 0));
    source.text("operationSyncRevision", owner.operation_revision());
    source.text("appUID", owner.uid());
    source.text("appNamespace", owner.ns());
    end_of_source(source);
    if (!errors.empty()) append_errors(payload.begin("errors"), errors);
    payload.raw("appVersions", "{}");
    payload.end();
    out += '}';
    return out;
  }

  [[nodiscard]] std::string body_of_root(std::span<const EventError> errors, WallTime now) const {
    const auto object = annotated_application();
    const auto finished = normal_time(app.operation_state()["finishedAt"].text());
    std::string out;
    out.reserve(2048 + 3 * object.size());
    out += "{\"data\":";
    ObjectWriter payload(out);
    payload.text("timestamp", format_rfc3339_millis(now));
    payload.text("object", base64_encode(object));
    ObjectWriter source(payload.begin("source"));
    source.text("desiredManifest", "");
    source.text("actualManifest", being_deleted() ? "" : object);
    source.text("gitManifest", "");
    source.text("repoURL", app.source(0)["repoURL"].text());
    source.text("path", "");
    source.text("revision", "");
    source.text("commitMessage", "");
    source.text("commitAuthor", "");
    source.text("appName", "");
    source.raw("appLabels", "{}");
    source.text("syncStatus", app.status()["sync"]["status"].text());
    source.text("syncStartedAt", started_at(app, now));
    if (!finished.empty()) source.text("syncFinishedAt", finished);
    source.text("healthStatus", app.status()["health"]["status"].text());
    source.text("healthMessage", app.status()["health"]["message"].text());
    source.text("cluster", app.cluster());
    source.raw("historyId", "0");
    source.text("operationSyncRevision", "");
    source.text("appUID", "");
    source.text("appNamespace", "");
    end_of_source(source);
    if (!errors.empty()) append_errors(payload.begin("errors"), errors);
    payload.raw("appVersions", "{}");
    payload.end();
    out += '}';
    return out;
  }

  void end_of_source(ObjectWriter& source) const {
    source.text("appInstanceLabelKey", settings.instance_label_key);
    source.text("trackingMethod", settings.method);
    source.end();
  }

  [[nodiscard]] ResourceFacts child_facts() const {
    const auto status = app.status();
    ResourceFacts facts{.id = own_id(),
                        .sync_status = std::string(status["sync"]["status"].text()),
                        .health = Health{std::string(status["health"]["status"].text()),
                                         std::string(status["health"]["message"].text())},
                        .desired = {},
                        .actual = {},
                        .object = annotated_application()};
    if (being_deleted()) return facts;
    facts.actual = material.app.application;
    if (parent_managed) {
      if (auto states = parent_managed->find(facts.id.identity())) facts.desired = states->desired;
    }
    return facts;
  }

  // -- digests --

  static void add_errors(Hasher& hasher, std::span<const EventError> errors) {
    for (const auto& error : errors) {
      hasher.add(error.type);
      hasher.add(error.level);
      hasher.add(error.message);
      if (error.source != nullptr) hasher.add(error.source->to_string());
    }
  }

  [[nodiscard]] Digest digest_resource(std::size_t index) const {
    const auto facts = this->facts(index);
    Hasher hasher;
    hasher.add(facts.id.to_string());
    hasher.add(app.uid());
    hasher.add(app.cluster());
    hasher.add(app.compared_repo_url());
    hasher.add(facts.sync_status);
    hasher.add(facts.health ? facts.health->status : "-");
    hasher.add(facts.health ? facts.health->message : "");
    hasher.add(facts.desired);
    hasher.add(facts.actual);
    add_errors(hasher, resource_errors(facts, WallTime{}));
    return hasher.finish();
  }

  [[nodiscard]] Digest digest_application() const {
    Hasher hasher;
    const auto change = change_digest(material.app.application);
    hasher.add(to_hex(change));
    hasher.add(material.gone ? "gone" : "");
    hasher.add(is_child() ? parent.uid() : "");
    add_errors(hasher, application_errors(WallTime{}));
    return hasher.finish();
  }
};

Result<Report> Report::read(Material material, TrackingSettings settings) {
  auto state = std::make_unique<State>();
  state->material = std::move(material);
  state->settings = std::move(settings);
  const auto& given = state->material;
  if (auto read = state->app.read(given.app.application); !read) {
    return std::unexpected(read.error());
  }
  if (given.parent) {
    if (auto read = state->parent.read(given.parent->application); !read) {
      return std::unexpected(read.error());
    }
    if (given.parent->managed) {
      auto read = state->parent_managed.emplace().read(*given.parent->managed);
      if (!read) return std::unexpected(read.error());
    }
  }
  if (given.tree) {
    if (auto read = state->tree.emplace().read(*given.tree); !read) {
      return std::unexpected(read.error());
    }
  }
  if (given.app.managed) {
    if (auto read = state->managed.emplace().read(*given.app.managed); !read) {
      return std::unexpected(read.error());
    }
    for (const auto entry : state->app.status()["resources"].items()) {
      const JsonView status(entry);
      ResourceId id{.group = std::string(status["group"].text()),
                    .version = std::string(status["version"].text()),
                    .kind = std::string(status["kind"].text()),
                    .ns = std::string(status["namespace"].text()),
                    .name = std::string(status["name"].text())};
      if (id.kind.empty() || id.name.empty()) continue;
      if (id.group == kApplicationGroup && id.kind == kApplicationKind) continue;
      state->resources.push_back({.id = std::move(id), .digest = {}});
      state->resource_status.push_back(status);
    }
    for (std::size_t i = 0; i < state->resources.size(); ++i) {
      state->resources[i].digest = state->digest_resource(i);
    }
  }
  state->application_digest = state->digest_application();
  return Report(std::move(state));
}

Report::Report(std::unique_ptr<State> state) : state_(std::move(state)) {}
Report::~Report() = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(Report&&) noexcept = default;

std::string_view Report::name() const {
  return state_->app.name();
}
std::string_view Report::ns() const {
  return state_->app.ns();
}
std::string_view Report::uid() const {
  return state_->app.uid();
}
std::string_view Report::resource_version() const {
  return state_->app.metadata()["resourceVersion"].text();
}
const Digest& Report::application_digest() const {
  return state_->application_digest;
}
std::span<const Report::Resource> Report::resources() const {
  return state_->resources;
}
bool Report::resources_known() const {
  return state_->managed.has_value();
}

std::string Report::application_event(WallTime now) const {
  const auto errors = state_->application_errors(now);
  if (!state_->is_child()) return state_->body_of_root(errors, now);
  return state_->body_of_managed(state_->parent, *state_->material.parent, state_->child_facts(),
                                 errors, now);
}

std::string Report::resource_event(std::size_t index, WallTime now) const {
  const auto facts = state_->facts(index);
  return state_->body_of_managed(state_->app, state_->material.app, facts,
                                 state_->resource_errors(facts, now), now);
}

std::string Report::gone_event(const ResourceId& id, WallTime now) const {
  const ResourceFacts facts{.id = id,
                            .sync_status = "Unknown",
                            .health = std::nullopt,
                            .desired = {},
                            .actual = {},
                            .object = stub(id)};
  return state_->body_of_managed(state_->app, state_->material.app, facts, {}, now);
}

std::string application_stub(const k8s::ObjectKey& key, std::string_view uid,
                             std::string_view resource_version) {
  return edit_member(stub(kApplicationGroup, "v1alpha1", kApplicationKind, key.ns, key.name),
                     "metadata", [&](std::string_view metadata) {
                       return with_strings(metadata,
                                           {{"resourceVersion", resource_version}, {"uid", uid}});
                     });
}

std::string mask_secret(std::string_view manifest) {
  std::string_view kind;
  std::string_view api_version;
  for_each_member(manifest, [&](std::string_view key, std::string_view value) {
    if (key == "kind") kind = value;
    if (key == "apiVersion") api_version = value;
    return true;
  });
  if (kind != "\"Secret\"" || api_version != "\"v1\"") return std::string(manifest);
  return edit_existing(mask_secret_members(manifest), "metadata", [](std::string_view metadata) {
    return edit_existing(metadata, "annotations", [](std::string_view annotations) {
      return edit_existing(annotations, kLastApplied, &mask_applied);
    });
  });
}

}  // namespace gitops::reporter
