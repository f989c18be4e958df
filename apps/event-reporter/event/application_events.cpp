#include "event-reporter/event/application_events.hpp"

#include <map>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "event-reporter/event/commits.hpp"
#include "event-reporter/event/manifest.hpp"

namespace gitops::reporter {
namespace {

// Returns the labels sorted, as Go writes a map; null when there are none.
std::string labels_json(JsonView labels) {
  if (!labels.exists()) return "null";
  std::map<std::string_view, std::string_view> sorted;
  for (const auto [key, value] : labels.members()) sorted[key] = value.text();
  std::string out = "{";
  for (const auto& [key, value] : sorted) {
    if (out.size() > 1) out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  return out += '}';
}

// Reads a response that may be absent, and drops its text, which the view does not need. A response
// of another shape than Argo CD's counts as absent.
template <class View>
Result<void> read_answer(std::optional<View>& view, std::optional<std::string>& answer) {
  if (!answer) return {};
  const auto read = view.emplace().read(*answer);
  answer.reset();
  if (!read) return std::unexpected(read.error());
  if (!*read) view.reset();
  return {};
}

// Returns the fields for the events of the objects that the application manages.
AppFields managing(const AppSnapshot& snapshot) {
  const auto& app = snapshot.app;
  return {.managed = true,
          .repo_url = app.compared_repo_url(),
          .revision = app.latest_revision(),
          .commit = main_commit(snapshot),
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

// Returns the fields for the event of an application that no other one manages.
AppFields root(const AppView& app) {
  return {.repo_url = app.repo_url(),
          .started_at = app.started_at(),
          .finished_at = app.finished_at(),
          .cluster = app.cluster()};
}

bool is_unhealthy(const std::optional<Health>& health) {
  return health && health->status != "Healthy";
}

Digest provisional_digest(const Digest& digest) {
  Hasher hasher;
  hasher.add(to_hex(digest));
  return hasher.finish();
}

}  // namespace

ApplicationEvents::ApplicationEvents(Snapshot snapshot, TrackingSettings settings)
    : snapshot_(std::move(snapshot)),
      settings_(std::move(settings)),
      managing_fields_(managing(snapshot_.app)),
      own_fields_(is_child() ? managing(*snapshot_.parent) : root(app())),
      change_(snapshot_.change ? *snapshot_.change : change_digest(app().text())) {
  synced_.read(app());
  if (is_child()) parent_synced_.read(snapshot_.parent->app);
}

Result<ApplicationEvents> ApplicationEvents::make(Snapshot snapshot, TrackingSettings settings,
                                                  DigestScope scope) {
  ApplicationEvents events(std::move(snapshot), std::move(settings));
  if (auto read = events.read_answers(); !read) return std::unexpected(read.error());
  events.own_state_ = events.own_state();
  events.list_entries();
  if (events.managed_) events.list_resources(scope);
  events.application_digest_ = events.digest_of_application();
  return events;
}

Digest ApplicationEvents::digest_of_application() const {
  const auto errors = application_errors({});
  const EventBody body{own_fields_, own_state_, errors, settings_, {}};
  const auto change = to_hex(change_);
  const std::string_view end = snapshot_.gone ? "gone" : "";
  // The text of the Application covers all but its manifest as the parent defines it. An event
  // without the metadata of a commit is due once more when that is known.
  std::string more(own_state_.desired);
  if (snapshot_.lacks_commits) more += "without commits";
  return more.empty() ? digest_event(body, DigestScope::application, {change, end})
                      : digest_event(body, DigestScope::application, {change, end, more});
}

Result<void> ApplicationEvents::read_answers() {
  if (is_child()) {
    if (auto read = read_answer(parent_managed_, snapshot_.parent->managed); !read) return read;
  }
  if (auto read = read_answer(tree_, snapshot_.tree); !read) return read;
  return read_answer(managed_, snapshot_.app.managed);
}

void ApplicationEvents::list_entries() {
  for (const auto status : app().status()["resources"].items()) {
    auto id = ResourceId::of(status);
    if (id.kind.empty() || id.name.empty()) continue;
    if (is_application(id)) continue;
    auto identity = id.identity();
    entries_.push_back({.id = std::move(id), .identity = std::move(identity), .status = status});
  }
}

void ApplicationEvents::list_resources(DigestScope scope) {
  const bool is_final = app().names_synced_revision();
  for (std::size_t index = 0; index < entries_.size(); ++index) {
    const auto state = state_of(index);
    const auto errors = resource_errors(index, state, {});
    const auto digest = digest_event({managing_fields_, state, errors, settings_, {}}, scope,
                                     {state.id.to_string()});
    resources_.push_back({.id = entries_[index].id,
                          .digest = is_final ? digest : provisional_digest(digest),
                          .final_digest = is_final ? std::nullopt : std::optional(digest),
                          .known = state.known});
  }
}

ResourceState ApplicationEvents::state_of(std::size_t index) const {
  auto state = resource_state(entries_[index].status, entries_[index].identity, app(), *managed_,
                              known_tree(), being_deleted());
  const auto* file =
      snapshot_.git_files && !state.desired.empty() ? snapshot_.git_files->find(state.id) : nullptr;
  if (file != nullptr) {
    state.path = file->path;
    // The values of a Secret are masked in the manifests.
    const bool is_secret = state.id.group.empty() && state.id.kind == "Secret";
    if (!is_secret) state.git_text = file->text;
  }
  return state;
}

ResourceState ApplicationEvents::own_state() const {
  const auto status = app().status();
  ResourceState state{.id = application_id(app().ns(), app().name()),
                      .sync_status = std::string(status["sync"]["status"].text()),
                      .health = read_health(status["health"]),
                      .desired = {},
                      .actual = {},
                      .object = {}};
  state.object = state.keep(annotated_application(snapshot_.app, managing_fields_.commit));
  if (being_deleted()) return state;
  state.actual = is_child() ? app().text() : state.object;
  if (parent_managed_) {
    if (auto states = parent_managed_->find(state.id.identity())) state.desired = states->desired;
  }
  return state;
}

ErrorList ApplicationEvents::application_errors(WallTime now) const {
  ErrorList errors(now);
  const auto& own = own_state_;
  if (is_child()) {
    errors.add_sync_result(snapshot_.parent->app, parent_synced_.find(own.id.identity()));
    errors.add_operation(app());
  }
  errors.add_conditions(app());
  if (!tree_) return errors;
  for (const auto& entry : entries_) {
    if (is_unhealthy(resource_health(entry.status, entry.identity, known_tree()))) {
      errors.add_health(*tree_, entry.id, true);
    }
  }
  if (is_child() && is_unhealthy(own.health)) errors.add_health(*tree_, own.id, false);
  return errors;
}

ErrorList ApplicationEvents::resource_errors(std::size_t index, const ResourceState& resource,
                                             WallTime now) const {
  ErrorList errors(now);
  errors.add_sync_result(app(), synced_.find(entries_[index].identity));
  if (tree_ && is_unhealthy(resource.health)) errors.add_health(*tree_, resource.id, false);
  return errors;
}

std::string ApplicationEvents::application_event(WallTime now) const {
  const auto errors = application_errors(now);
  return write_event({own_fields_, own_state_, errors, settings_, now});
}

std::string ApplicationEvents::resource_event(std::size_t index, WallTime now) const {
  const auto state = state_of(index);
  const auto errors = resource_errors(index, state, now);
  return write_event({managing_fields_, state, errors, settings_, now});
}

std::string ApplicationEvents::gone_event(const ResourceId& id, WallTime now) const {
  const auto object = stub(id);
  const ResourceState state{.id = id,
                            .sync_status = "Unknown",
                            .health = std::nullopt,
                            .desired = {},
                            .actual = {},
                            .object = object};
  return write_event({managing_fields_, state, ErrorList(now), settings_, now});
}

}  // namespace gitops::reporter
