#include "control-plane/projection/event.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kArgoGroup = "argoproj.io";
constexpr std::string_view kApplication = "Application";
constexpr std::size_t kMaxTimelineMessage = 200;  // in the table `timeline`
constexpr std::size_t kMaxUid = 128;
// Kubernetes' limit for the value of a label. The entity is part of an index.
constexpr std::size_t kMaxEntity = 63;

template <class Value>
struct Word {
  std::string_view word;
  Value value;
};

constexpr std::array<Word<SyncStatus>, 4> kSyncWords{{{"Synced", SyncStatus::synced},
                                                      {"OutOfSync", SyncStatus::out_of_sync},
                                                      {"Syncing", SyncStatus::syncing},
                                                      {"Unknown", SyncStatus::unknown}}};
constexpr std::array<Word<HealthStatus>, 7> kHealthWords{
    {{"Healthy", HealthStatus::healthy},
     {"Progressing", HealthStatus::progressing},
     {"Degraded", HealthStatus::degraded},
     {"Suspended", HealthStatus::suspended},
     {"Missing", HealthStatus::missing},
     {"Unknown", HealthStatus::unknown},
     {"Terminated", HealthStatus::terminated}}};
constexpr std::array<Word<Phase>, 13> kPhaseWords{{{"Pending", Phase::pending},
                                                   {"Running", Phase::running},
                                                   {"Succeeded", Phase::succeeded},
                                                   {"Successful", Phase::succeeded},
                                                   {"Failed", Phase::failed},
                                                   {"Error", Phase::error},
                                                   {"Terminating", Phase::terminating},
                                                   {"Healthy", Phase::healthy},
                                                   {"Progressing", Phase::progressing},
                                                   {"Paused", Phase::paused},
                                                   {"Degraded", Phase::degraded},
                                                   {"Inconclusive", Phase::inconclusive},
                                                   {"Unknown", Phase::unknown}}};

bool equal_words(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

template <class Value, std::size_t size>
Value value_of(const std::array<Word<Value>, size>& words, std::string_view word, Value absent,
               Value unknown) {
  if (word.empty()) return absent;
  for (const auto& known : words) {
    if (equal_words(known.word, word)) return known.value;
  }
  return unknown;
}

std::string digest_of(std::initializer_list<std::string_view> parts) {
  Sha256 sum;
  for (const auto part : parts) {
    sum.add(std::to_string(part.size()) + ":");
    sum.add(part);
  }
  const auto bytes = sum.finish();
  return std::string(bytes_of(bytes));
}

// Reads one body into an event. Each of the two JSON texts needs its own parser, since a parser's views become invalid
// with its next parse.
class Reader {
 public:
  Reader(const EventHead& head, const EventLimits& limits) : limits_(limits) {
    auto& state = event_.state;
    state.key.runtime = head.runtime;
    state.event_id = display_text(head.event_id);
    state.sequence = head.sequence;
    state.changed_at = head.arrived_at;
    state.seen_at = head.arrived_at;
  }

  Result<Event> read(JsonView data, std::string object_text, JsonView object) {
    const auto source = data["source"];
    auto& state = event_.state;
    state.key.origin = source.exists() ? Origin::application : Origin::resource;
    if (auto read = read_identity(object); !read) return std::unexpected(read.error());
    const bool is_application = state.key.group == kArgoGroup && state.key.kind == kApplication;
    read_labels(object["metadata"]["labels"]);
    event_.body.errors = data["errors"].items().size() > 0 ? data["errors"].to_text() : "";
    if (state.key.origin == Origin::resource) {
      if (auto read = read_resource_event(data, object); !read) {
        return std::unexpected(read.error());
      }
      event_.body.live = std::move(object_text);
    } else {
      if (auto read = read_source(source, is_application); !read) {
        return std::unexpected(read.error());
      }
      read_manifests(source, std::move(object_text), is_application);
    }
    if (is_application) read_application(object);
    finish();
    return std::move(event_);
  }

 private:
  Result<void> read_identity(JsonView object) {
    auto& state = event_.state;
    const auto metadata = object["metadata"];
    auto api_version = key_text(object["apiVersion"], "apiVersion", true, limits_.max_name);
    if (!api_version) return std::unexpected(api_version.error());
    const auto slash = api_version->find('/');
    if (slash == std::string::npos) {
      state.version = std::move(*api_version);
    } else {
      state.key.group = api_version->substr(0, slash);
      state.version = api_version->substr(slash + 1);
    }
    const std::array<std::pair<std::string*, std::pair<std::string_view, JsonView>>, 3> parts{
        {{&state.key.kind, {"kind", object["kind"]}},
         {&state.key.name, {"metadata.name", metadata["name"]}},
         {&state.key.object_namespace, {"metadata.namespace", metadata["namespace"]}}}};
    for (const auto& [part, at] : parts) {
      auto text =
          key_text(at.second, at.first, part != &state.key.object_namespace, limits_.max_name);
      if (!text) return std::unexpected(text.error());
      *part = std::move(*text);
    }
    state.uid = shortened(metadata["uid"].text(), kMaxUid);
    std::ranges::replace(state.uid, '\0', ' ');
    state.created_at = time_of(metadata["creationTimestamp"].text());
    return {};
  }

  void read_labels(JsonView labels) {
    for (const auto& [key, value] : labels.members()) {
      if (event_.labels.size() >= limits_.max_labels) break;
      if (key.size() > limits_.max_label || value.text().size() > limits_.max_label) continue;
      event_.labels.emplace_back(display_text(key, limits_.max_label),
                                 display_text(value.text(), limits_.max_label));
      if (key == "codefresh.io/entity")
        event_.state.entity = display_text(value.text(), kMaxEntity);
    }
    std::ranges::sort(event_.labels);
  }

  // Reads an object of mode `resource`, or of a Sensor of an older chart.
  Result<void> read_resource_event(JsonView data, JsonView object) {
    auto& state = event_.state;
    auto cluster = key_text(data["cluster"], "cluster", false, limits_.max_name);
    if (!cluster) return std::unexpected(cluster.error());
    state.key.cluster = cluster->empty() ? std::string(kInCluster) : std::move(*cluster);
    state.destination = state.key.cluster;
    event_.is_deletion = data["deleted"].is_true();
    const auto status = object["status"];
    state.phase = phase_of(status["phase"].text());
    state.health = health_of_phase(state.key.kind, status["phase"].text());
    state.health_message = display_text(status["message"].text());
    // The revision of a Rollout is an annotation; Workflows and AnalysisRuns have none.
    state.revision = display_text(
        object["metadata"]["annotations"]["rollout.argoproj.io/revision"].text(), kMaxUid);
    for (const auto owner : object["metadata"]["ownerReferences"].items()) {
      if (!owner["controller"].is_true()) continue;
      state.manager = {.name = display_text(owner["name"].text(), limits_.max_name),
                       .application_namespace = state.key.object_namespace,
                       .uid = display_text(owner["uid"].text(), kMaxUid)};
    }
    return {};
  }

  static HealthStatus health_of_phase(std::string_view kind, std::string_view phase) {
    if (kind != "Rollout") return HealthStatus::none;
    return phase == "Paused" ? HealthStatus::suspended : health_status_of(phase);
  }

  // Reads the `source` of an event of mode `app`.
  Result<void> read_source(JsonView source, bool is_application) {
    auto& state = event_.state;
    auto owner = key_text(source["appUID"], "source.appUID", false, limits_.max_name);
    if (!owner) return std::unexpected(owner.error());
    auto manager = key_text(source["appName"], "source.appName", false, limits_.max_name);
    if (!manager) return std::unexpected(manager.error());
    auto manager_namespace =
        key_text(source["appNamespace"], "source.appNamespace", false, limits_.max_name);
    if (!manager_namespace) return std::unexpected(manager_namespace.error());
    if (!is_application) state.key.owner_uid = *owner;
    state.manager = {.name = std::move(*manager),
                     .application_namespace = std::move(*manager_namespace),
                     .uid = std::move(*owner)};
    state.destination = display_text(source["cluster"].text(), limits_.max_name);
    state.revision = display_text(source["revision"].text(), kMaxUid);
    state.sync = sync_status_of(source["syncStatus"].text());
    state.health = health_status_of(source["healthStatus"].text());
    state.health_message = display_text(source["healthMessage"].text());
    state.history_id = source["historyId"].number();
    event_.author = display_text(source["commitAuthor"].text(), kMaxTimelineMessage);
    event_.message = display_text(source["commitMessage"].text());
    event_.commit_at = time_of(source["commitDate"].text());
    return {};
  }

  void read_manifests(JsonView source, std::string object_text, bool is_application) {
    const auto live = source["actualManifest"].text();
    const auto desired = source["desiredManifest"].text();
    event_.is_deletion = live.empty() && desired.empty();
    auto& body = event_.body;
    // `object` has the labels and annotations that the reporter adds to an Application.
    body.live = is_application || live.empty() ? std::move(object_text) : std::string(live);
    if (desired != body.live) body.desired = desired;
    body.in_git = source["gitManifest"].text();
    body.source = "{";
    for (const auto& [key, value] : source.members()) {
      if (key == "actualManifest" || key == "desiredManifest" || key == "gitManifest") continue;
      if (!value.exists()) continue;  // a null, such as the labels of a manager without any
      if (body.source.size() > 1) body.source += ',';
      append_json_string(body.source, key, JsonEscape::minimal);
      body.source += ':';
      body.source += value.to_text();
    }
    body.source += '}';
  }

  // Reads an Application. Its sync, health and deployments are its own, also when `source` contains those of its
  // parent.
  void read_application(JsonView object) {
    auto& state = event_.state;
    const auto status = object["status"];
    const auto operation = status["operationState"];
    state.sync = sync_status_of(status["sync"]["status"].text());
    if (const auto health = status["health"]["status"].text(); !health.empty()) {
      state.health = health_status_of(health);
      state.health_message = display_text(status["health"]["message"].text());
    }
    state.phase = phase_of(operation["phase"].text());
    if (state.phase == Phase::running || state.phase == Phase::terminating) {
      state.sync = SyncStatus::syncing;
    }
    const auto destination = object["spec"]["destination"];
    const auto server = destination["server"].text();
    state.destination =
        display_text(server.empty() ? destination["name"].text() : server, limits_.max_name);
    const auto labels = object["metadata"]["labels"];
    event_.author = display_text(labels["app.meta.commit-author"].text(), kMaxTimelineMessage);
    event_.message = display_text(labels["app.meta.commit-message"].text());
    event_.commit_at = time_of(labels["app.meta.commit-date"].text());
    state.revision = revision_of(status["sync"]);
    state.history_id = 0;
    read_release(status, operation);
  }

  // Returns the revision; with several sources, the first valid one.
  static std::string revision_of(JsonView at) {
    if (const auto one = at["revision"].text(); !one.empty()) return display_text(one, kMaxUid);
    for (const auto item : at["revisions"].items()) {
      if (!item.text().empty()) return display_text(item.text(), kMaxUid);
    }
    return {};
  }

  void read_release(JsonView status, JsonView operation) {
    JsonView newest;
    for (const auto entry : status["history"].items()) {
      if (!newest.exists() || entry["id"].number() >= newest["id"].number()) newest = entry;
    }
    if (!newest.exists()) return;
    auto& state = event_.state;
    auto& release = event_.release;
    release.history_id = newest["id"].number();
    state.history_id = release.history_id;
    release.revision = revision_of(newest);
    release.started_at = time_of(newest["deployStartedAt"].text());
    release.finished_at = time_of(newest["deployedAt"].text());
    if (release.started_at == 0) release.started_at = release.finished_at;
    if (!newest["initiatedBy"]["automated"].is_true()) {
      release.initiator = display_text(newest["initiatedBy"]["username"].text(), limits_.max_name);
    }
    const auto synced = revision_of(operation["syncResult"]);
    release.operation_revision = synced;
    // The running operation may already be the next one. The health and the images are then the work of that one.
    const bool is_running = state.sync == SyncStatus::syncing;
    event_.has_release = !is_running || synced == release.revision;
    if (synced == release.revision) {
      release.phase = state.phase;
      release.author = event_.author;
      release.message = event_.message;
      release.commit_at = event_.commit_at;
    }
    release.sync = sync_status_of(status["sync"]["status"].text());
    release.health = state.health;
    release.was_degraded = state.health == HealthStatus::degraded;
    release.images = images_of(status["summary"]["images"]);
  }

  [[nodiscard]] std::string images_of(JsonView images) const {
    std::string out = "[";
    std::size_t count = 0;
    for (const auto image : images.items()) {
      if (++count > limits_.max_images) break;
      if (out.size() > 1) out += ',';
      append_json_string(out, shortened(image.text(), limits_.max_name), JsonEscape::minimal);
    }
    out += ']';
    return out;
  }

  void finish() {
    auto& state = event_.state;
    const auto& body = event_.body;
    std::string labels;
    for (const auto& [key, value] : event_.labels) labels += key + '\n' + value + '\n';
    state.labels_digest = digest_of({labels});
    state.body_digest = digest_of({body.live, body.desired, body.in_git, body.source, body.errors});
    if (event_.is_deletion) state.presence = Presence::gone;
  }

  const EventLimits& limits_;
  Event event_;
};

}  // namespace

SyncStatus sync_status_of(std::string_view word) {
  return value_of(kSyncWords, word, SyncStatus::unknown, SyncStatus::unknown);
}

HealthStatus health_status_of(std::string_view word) {
  return value_of(kHealthWords, word, HealthStatus::none, HealthStatus::unknown);
}

Phase phase_of(std::string_view word) {
  return value_of(kPhaseWords, word, Phase::none, Phase::unknown);
}

std::string_view to_string(SyncStatus status) {
  constexpr std::array<std::string_view, 4> kWords{"UNKNOWN", "SYNCED", "OUT_OF_SYNC", "SYNCING"};
  return kWords.at(static_cast<std::size_t>(status));
}

std::string_view to_string(HealthStatus status) {
  constexpr std::array<std::string_view, 8> kWords{
      "", "HEALTHY", "PROGRESSING", "DEGRADED", "SUSPENDED", "MISSING", "UNKNOWN", "TERMINATED"};
  return kWords.at(static_cast<std::size_t>(status));
}

std::string_view to_string(Presence presence) {
  constexpr std::array<std::string_view, 3> kWords{"LIVE", "GONE", "STALE"};
  return kWords.at(static_cast<std::size_t>(presence));
}

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, 13> kWords{
      "",        "Pending",     "Running", "Succeeded", "Failed",       "Error",  "Terminating",
      "Healthy", "Progressing", "Paused",  "Degraded",  "Inconclusive", "Unknown"};
  return kWords.at(static_cast<std::size_t>(phase));
}

Result<Event> read_event(JsonParser& parser, std::string_view body, const EventHead& head,
                         const EventLimits& limits) {
  const auto envelope = parser.parse_object(body, "the event");
  if (!envelope) return std::unexpected(envelope.error());
  const auto data = (*envelope)["data"];
  if (!data.is_object()) return fail(ErrorCode::invalid_data, "data is not an object");
  if (!data["object"].is_text()) return fail(ErrorCode::invalid_data, "data.object is not a text");
  // The application reporter sends base64, which never begins with a brace.
  std::string object_text(data["object"].text());
  if (!object_text.starts_with('{')) {
    auto decoded = base64_decode(object_text);
    if (!decoded) return fail("data.object", decoded.error());
    object_text = std::move(*decoded);
  }
  JsonParser object_parser(limits.max_depth);
  const auto object = object_parser.parse_object(object_text, "data.object");
  if (!object) return std::unexpected(object.error());
  return Reader(head, limits).read(data, object_text, *object);
}

}  // namespace gitops::control_plane_server
