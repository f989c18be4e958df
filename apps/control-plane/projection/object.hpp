#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gitops::control_plane_server {

// Microseconds since 1970, UTC. 0: not known.
using Micros = std::int64_t;

inline constexpr std::string_view kInCluster = "https://kubernetes.default.svc";

// The reporter that an object comes from. Both report Rollouts: one as a resource of an Application, the other as an
// object of its own with its whole state. Each counts its own sequences.
enum class Origin : std::uint8_t { application = 0, resource = 1 };

// The states of the platform's GraphQL schema. The numbers are stored in the database and never change.
enum class SyncStatus : std::uint8_t { unknown = 0, synced = 1, out_of_sync = 2, syncing = 3 };
enum class HealthStatus : std::uint8_t {
  none = 0,  // the object has no health, or it is not known: null
  healthy = 1,
  progressing = 2,
  degraded = 3,
  suspended = 4,
  missing = 5,
  unknown = 6,
  terminated = 7
};
// The phase of an operation, a Workflow, a Rollout or an AnalysisRun, as Argo spells it.
enum class Phase : std::uint8_t {
  none = 0,
  pending = 1,
  running = 2,
  succeeded = 3,
  failed = 4,
  error = 5,
  terminating = 6,
  healthy = 7,
  progressing = 8,
  paused = 9,
  degraded = 10,
  inconclusive = 11,
  unknown = 12
};
enum class Presence : std::uint8_t { live = 0, gone = 1, stale = 2 };

// The identity of an object within its account. Reporters count sequences for each key (docs/reference/events.md, "Duties of a
// receiver").
struct ObjectKey {
  std::string runtime = {};
  Origin origin = Origin::application;
  // Uid of the Application, for a resource of an Application; else empty. Two Applications that claim one object have a
  // row each.
  std::string owner_uid = {};
  // URL of the cluster's API server, for an object of the resource reporter; kInCluster for the runtime's own cluster.
  // Else empty, since an Application may be moved to another cluster.
  std::string cluster = {};
  std::string group = {};
  std::string kind = {};
  std::string object_namespace = {};
  std::string name = {};

  bool operator==(const ObjectKey&) const = default;
  auto operator<=>(const ObjectKey&) const = default;
};

// The Application that manages an object: the owner of a resource, or the parent of a child Application. Empty: none.
struct Manager {
  std::string name = {};
  std::string application_namespace = {};
  std::string uid = {};

  bool operator==(const Manager&) const = default;
};

// The current state of an object, as the table `object` has it.
struct ObjectState {
  std::int64_t id = 0;  // 0: new
  ObjectKey key = {};
  std::string version = {};  // of its API: "v1alpha1"
  std::string uid = {};
  std::int64_t sequence = 0;  // of the last event that counted; 0: its reporter sends none
  std::string event_id = {};  // of that event
  Manager manager = {};
  std::string destination = {};  // the cluster that it deploys to or runs in: a URL or a name
  std::string revision = {};     // commit in hexadecimal, or a chart's version
  SyncStatus sync = SyncStatus::unknown;
  HealthStatus health = HealthStatus::none;
  std::string health_message = {};
  Phase phase = Phase::none;
  std::int64_t history_id = 0;  // of an Application's last deployment
  Micros created_at = 0;        // of the object, by its creationTimestamp
  Micros changed_at = 0;        // the last milestone: revision, sync, health or phase changed
  Micros seen_at = 0;           // the last event, also a repeated one
  Presence presence = Presence::live;
  std::string entity = {};         // "git-source", "runtime", …: the label codefresh.io/entity
  std::string labels_digest = {};  // 32 bytes; of the labels in the table `label`
  std::string body_digest = {};    // 32 bytes; of the body in the table `body`

  bool operator==(const ObjectState&) const = default;
};

// The texts of an object. `live` is the object in the cluster, or an Application's JSON. The others are empty when they
// equal `live` or are not known.
struct ObjectBody {
  std::string live = {};     // JSON
  std::string desired = {};  // JSON: Git as Argo CD rendered it
  std::string in_git = {};   // YAML or JSON: the file's text
  std::string source = {};   // JSON: the event's `source` without the manifests
  std::string errors = {};   // JSON: the event's `errors`; empty: none

  bool operator==(const ObjectBody&) const = default;
};

// The kind of a milestone.
enum class TimelineStep : std::uint8_t { created = 0, changed = 1, recreated = 2, gone = 3 };

// One row of an object's timeline; the key is (object, sequence or arrival).
struct TimelineRow {
  std::int64_t sequence = 0;  // of the event; the arrival in microseconds when there is none
  Micros at = 0;
  TimelineStep step = TimelineStep::changed;
  std::string revision = {};
  SyncStatus sync = SyncStatus::unknown;
  HealthStatus health = HealthStatus::none;
  Phase phase = Phase::none;
  Micros commit_at = 0;
  std::string author = {};
  std::string message = {};  // at most 200 bytes, cut between characters
  std::string event_id = {};

  bool operator==(const TimelineRow&) const = default;
};

// A deployment of an Application: one row for each id of Argo CD's history. The newest row follows the Application's
// health.
struct Release {
  std::int64_t history_id = 0;  // of Argo CD's history
  std::string revision = {};
  std::string operation_revision = {};
  std::string author = {};
  std::string message = {};  // at most 1,000 bytes
  Micros commit_at = 0;
  Micros started_at = 0;
  Micros finished_at = 0;
  SyncStatus sync = SyncStatus::unknown;
  HealthStatus health = HealthStatus::none;
  Phase phase = Phase::none;
  std::string initiator = {};  // who requested the operation; empty: automated or not known
  std::string images = {};     // JSON: list of texts, from status.summary.images
  bool was_degraded = false;   // at any time while it was the newest

  bool operator==(const Release&) const = default;
};

using Labels = std::vector<std::pair<std::string, std::string>>;

}  // namespace gitops::control_plane_server
