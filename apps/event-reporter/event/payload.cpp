#include "event-reporter/event/payload.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/argo_answers.hpp"
#include "event-reporter/event/commits.hpp"
#include "event-reporter/event/error_list.hpp"
#include "event-reporter/event/event_body.hpp"
#include "event-reporter/event/manifest.hpp"
#include "event-reporter/event/resource_state.hpp"

namespace gitops::reporter {
namespace {

// Sorted, as Go writes a map; null when there are none.
std::string labels_json(JsonView labels) {
  if (!labels.exists()) return "null";
  std::map<std::string_view, std::string_view> sorted;
  for (const auto [key, value] : labels.members()) sorted[key] = JsonView(value).text();
  std::string out = "{";
  for (const auto& [key, value] : sorted) {
    if (out.size() > 1) out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  return out += '}';
}

// Reads an answer that may be absent.
template <class View>
Result<void> read_answer(std::optional<View>& view, const std::optional<std::string>& answer) {
  if (!answer) return {};
  return view.emplace().read(*answer);
}

// As events about what the application manages have them.
AppFields managing(const AppMaterial& material) {
  const auto& app = material.app;
  return {.managed = true,
          .repo_url = app.compared_repo_url(),
          .revision = app.latest_revision(),
          .commit = main_commit(material),
          .name = app.name(),
          .labels = labels_json(app.metadata()["labels"]),
          .started_at = app.started_at(),
          .finished_at = app.finished_at(),
          .cluster = app.cluster(),
          .history_id = app.history_id(),
          .operation_revision = app.operation_revision(),
          .uid = app.uid(),
          .ns = app.ns()};
}

// As the event of an application that nobody manages has them.
AppFields root(const AppView& app) {
  return {.repo_url = app.source(0)["repoURL"].text(),
          .started_at = app.started_at(),
          .finished_at = app.finished_at(),
          .cluster = app.cluster()};
}

bool is_unhealthy(const std::optional<Health>& health) {
  return health && health->status != "Healthy";
}

Digest provisional(const Digest& digest) {
  Hasher hasher;
  hasher.add(to_hex(digest));
  return hasher.finish();
}

}  // namespace

struct Report::State {
  Material material;
  TrackingSettings settings;
  SyncResults synced;
  SyncResults parent_synced;
  std::optional<TreeView> tree;
  std::optional<ManagedView> managed;
  std::optional<ManagedView> parent_managed;
  std::vector<Resource> resources;
  // Beside `resources`: their entries in status.resources, and their identities.
  std::vector<JsonView> resource_status;
  std::vector<std::string> identities;
  AppFields as_manager;  // in the events of its resources
  AppFields own_fields;  // in its own event: its parent's, or a root's
  ResourceState own;     // as the object of its own event
  DigestScope scope = DigestScope::resource;
  Digest change{};
  Digest application_digest{};

  Result<void> read_material();
  void list_resources();

  [[nodiscard]] const AppView& app() const { return material.app.app; }
  [[nodiscard]] bool is_child() const { return material.parent.has_value(); }
  [[nodiscard]] bool being_deleted() const { return material.gone || app().deleting(); }
  [[nodiscard]] const TreeView* known_tree() const { return tree ? &*tree : nullptr; }
  [[nodiscard]] ResourceState resource(std::size_t index) const;
  // The application as the object of its own event.
  [[nodiscard]] ResourceState own_state() const;

  [[nodiscard]] ErrorList application_errors(WallTime now) const;
  [[nodiscard]] ErrorList resource_errors(std::size_t index, const ResourceState& resource,
                                          WallTime now) const;

  [[nodiscard]] Digest digest_resource(std::size_t index) const;
  [[nodiscard]] Digest digest_application() const;
};

Result<void> Report::State::read_material() {
  synced.read(app());
  if (material.parent) {
    parent_synced.read(material.parent->app);
    if (auto read = read_answer(parent_managed, material.parent->managed); !read) return read;
  }
  if (auto read = read_answer(tree, material.tree); !read) return read;
  return read_answer(managed, material.app.managed);
}

void Report::State::list_resources() {
  for (const auto entry : app().status()["resources"].items()) {
    const JsonView status(entry);
    auto id = ResourceId::of(status);
    if (id.kind.empty() || id.name.empty()) continue;
    if (id.group == kApplicationGroup && id.kind == kApplicationKind) continue;
    identities.push_back(id.identity());
    resources.push_back({.id = std::move(id), .digest = {}});
    resource_status.push_back(status);
  }
}

ResourceState Report::State::resource(std::size_t index) const {
  return resource_state(resource_status[index], identities[index], app(), *managed, known_tree(),
                        being_deleted());
}

ResourceState Report::State::own_state() const {
  const auto status = app().status();
  ResourceState state{.id = application_id(app().ns(), app().name()),
                      .sync_status = std::string(status["sync"]["status"].text()),
                      .health = read_health(status["health"]),
                      .desired = {},
                      .actual = {},
                      .object = annotated_application(material.app, as_manager.commit)};
  if (being_deleted()) return state;
  state.actual = is_child() ? app().text() : state.object;
  if (parent_managed) {
    if (auto states = parent_managed->find(state.id.identity())) state.desired = states->desired;
  }
  return state;
}

ErrorList Report::State::application_errors(WallTime now) const {
  ErrorList errors(now);
  const auto id = application_id(app().ns(), app().name());
  if (is_child()) {
    errors.add_sync_result(material.parent->app, parent_synced.find(id.identity()));
    errors.add_operation(app());
  }
  errors.add_conditions(app());
  if (!tree) return errors;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (is_unhealthy(resource_health(resource_status[i], identities[i], known_tree()))) {
      errors.add_health(*tree, resources[i].id, true);
    }
  }
  if (is_child() && is_unhealthy(read_health(app().status()["health"]))) {
    errors.add_health(*tree, id, false);
  }
  return errors;
}

ErrorList Report::State::resource_errors(std::size_t index, const ResourceState& resource,
                                         WallTime now) const {
  ErrorList errors(now);
  errors.add_sync_result(app(), synced.find(identities[index]));
  if (tree && is_unhealthy(resource.health)) errors.add_health(*tree, resource.id, false);
  return errors;
}

Digest Report::State::digest_resource(std::size_t index) const {
  const auto state = resource(index);
  const auto errors = resource_errors(index, state, {});
  return digest_event({as_manager, state, errors, settings, {}}, scope, {state.id.to_string()});
}

Digest Report::State::digest_application() const {
  const auto errors = application_errors({});
  return digest_event({own_fields, own, errors, settings, {}}, DigestScope::application,
                      {to_hex(change), material.gone ? "gone" : ""});
}

Result<Report> Report::read(Material material, TrackingSettings settings, bool revision_counts) {
  auto state = std::make_unique<State>();
  state->material = std::move(material);
  state->settings = std::move(settings);
  if (revision_counts) state->scope = DigestScope::resource_and_revision;
  if (auto read = state->read_material(); !read) return std::unexpected(read.error());
  state->as_manager = managing(state->material.app);
  state->own_fields = state->is_child() ? managing(*state->material.parent) : root(state->app());
  state->own = state->own_state();
  state->change = change_digest(state->app().text());
  if (state->managed) state->list_resources();
  for (std::size_t i = 0; i < state->resources.size(); ++i) {
    auto& resource = state->resources[i];
    resource.digest = state->digest_resource(i);
    if (!state->app().names_synced_revision()) {
      resource.settled_digest = resource.digest;
      resource.digest = provisional(resource.digest);
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
  return state_->app().name();
}
std::string_view Report::ns() const {
  return state_->app().ns();
}
std::string_view Report::uid() const {
  return state_->app().uid();
}
std::string_view Report::resource_version() const {
  return state_->app().metadata()["resourceVersion"].text();
}
const Digest& Report::change() const {
  return state_->change;
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
  return write_event({state_->own_fields, state_->own, errors, state_->settings, now});
}

std::string Report::resource_event(std::size_t index, WallTime now) const {
  const auto resource = state_->resource(index);
  const auto errors = state_->resource_errors(index, resource, now);
  return write_event({state_->as_manager, resource, errors, state_->settings, now});
}

std::string Report::gone_event(const ResourceId& id, WallTime now) const {
  const ResourceState resource{.id = id,
                               .sync_status = "Unknown",
                               .health = std::nullopt,
                               .desired = {},
                               .actual = {},
                               .object = stub(id)};
  const ErrorList errors(now);
  return write_event({state_->as_manager, resource, errors, state_->settings, now});
}

}  // namespace gitops::reporter
