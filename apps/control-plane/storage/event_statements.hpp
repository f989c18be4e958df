#pragma once

#include <string_view>

// Texts that the statements of both event stores share.
namespace gitops::control_plane_server {

inline constexpr std::string_view kInsertObject = "INSERT INTO object (id, account, ";
// Updates an object, except for its key, which never changes.
inline constexpr std::string_view kUpdateObject =
    " ON CONFLICT (id) DO UPDATE SET version = excluded.version, uid = excluded.uid, "
    "sequence = excluded.sequence, event_id = excluded.event_id, "
    "manager_name = excluded.manager_name, manager_namespace = excluded.manager_namespace, "
    "manager_uid = excluded.manager_uid, destination = excluded.destination, "
    "revision = excluded.revision, sync = excluded.sync, health = excluded.health, "
    "health_message = excluded.health_message, phase = excluded.phase, "
    "history_id = excluded.history_id, created_at = excluded.created_at, "
    "changed_at = excluded.changed_at, seen_at = excluded.seen_at, presence = excluded.presence, "
    "entity = excluded.entity, labels_digest = excluded.labels_digest, "
    "body_digest = excluded.body_digest";
inline constexpr std::string_view kInsertBody = "INSERT INTO body (object, codec, size, packed) ";
inline constexpr std::string_view kUpdateBody =
    " ON CONFLICT (object) DO UPDATE SET codec = excluded.codec, size = excluded.size, "
    "packed = excluded.packed";
inline constexpr std::string_view kInsertTimeline =
    "INSERT INTO timeline (object, sequence, account, at, step, revision, sync, health, phase, "
    "commit_at, author, message, event_id) ";
inline constexpr std::string_view kInsertRelease =
    "INSERT INTO app_release (object, history_id, account, revision, operation_revision, author, "
    "message, commit_at, started_at, finished_at, sync, health, phase, initiator, images, "
    "was_degraded) ";
// The SQL form of merge() in projection/fold.hpp: values that the newer row does not know stay unchanged, unless it began
// at another time.
inline constexpr std::string_view kMergeRelease =
    " ON CONFLICT (object, history_id) DO UPDATE SET "
    "author = CASE WHEN excluded.author = '' AND excluded.started_at IN (0, "
    "app_release.started_at) "
    "THEN app_release.author ELSE excluded.author END, "
    "message = CASE WHEN excluded.message = '' AND excluded.started_at IN (0, "
    "app_release.started_at) "
    "THEN app_release.message ELSE excluded.message END, "
    "operation_revision = CASE WHEN excluded.operation_revision = '' AND excluded.started_at IN "
    "(0, app_release.started_at) "
    "THEN app_release.operation_revision ELSE excluded.operation_revision END, "
    "initiator = CASE WHEN excluded.initiator = '' AND excluded.started_at IN (0, "
    "app_release.started_at) "
    "THEN app_release.initiator ELSE excluded.initiator END, "
    "commit_at = CASE WHEN excluded.commit_at = 0 AND excluded.started_at IN (0, "
    "app_release.started_at) "
    "THEN app_release.commit_at ELSE excluded.commit_at END, "
    "finished_at = CASE WHEN excluded.finished_at = 0 AND excluded.started_at IN (0, "
    "app_release.started_at) "
    "THEN app_release.finished_at ELSE excluded.finished_at END, "
    "phase = CASE WHEN excluded.phase = 0 AND excluded.started_at IN (0, app_release.started_at) "
    "THEN app_release.phase ELSE excluded.phase END, "
    "started_at = CASE WHEN excluded.started_at = 0 THEN app_release.started_at "
    "ELSE excluded.started_at END, "
    "revision = excluded.revision, sync = excluded.sync, health = excluded.health, "
    "images = excluded.images, was_degraded = CASE WHEN app_release.was_degraded = 1 AND "
    "excluded.started_at IN (0, app_release.started_at) THEN 1 ELSE excluded.was_degraded END";
inline constexpr std::string_view kInsertReporter =
    "INSERT INTO reporter (account, runtime, name, position, sequence, resync, seen_at) ";
inline constexpr std::string_view kUpdateReporter =
    " ON CONFLICT (account, runtime, name) DO UPDATE SET position = excluded.position, "
    "sequence = excluded.sequence, resync = excluded.resync, seen_at = excluded.seen_at";
inline constexpr std::string_view kInsertChange =
    "INSERT INTO change (instance, no, account, kind, object, at) ";

}  // namespace gitops::control_plane_server
