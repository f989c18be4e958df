#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "common/store/connection.hpp"

namespace gitops::control_plane_server {

// Dumps of every table that the intake writes, sorted, without ids, which differ between the engines.
inline constexpr std::array<store::Statement, 7> kDumps{{
    {.name = "dump.object",
     .sql = "SELECT account, runtime, origin, owner_uid, cluster, api_group, kind, namespace, "
            "name, version, "
            "uid, sequence, event_id, manager_name, manager_namespace, manager_uid, destination, "
            "revision, sync, health, health_message, phase, history_id, created_at, changed_at, "
            "seen_at, presence, entity, labels_digest, body_digest FROM object ORDER BY account, "
            "runtime, origin, owner_uid, cluster, kind, namespace, name"},
    {.name = "dump.body",
     .sql = "SELECT o.kind, o.name, b.codec, b.size, b.packed FROM body b JOIN object o ON "
            "o.id = b.object ORDER BY o.account, o.runtime, o.origin, o.owner_uid, o.cluster, "
            "o.kind, o.namespace, o.name"},
    {.name = "dump.label",
     .sql = "SELECT o.name, l.account, l.key, l.value FROM label l JOIN object o ON o.id = "
            "l.object ORDER BY o.account, o.runtime, o.origin, o.owner_uid, o.cluster, o.kind, "
            "o.namespace, o.name, l.key, l.value"},
    {.name = "dump.timeline",
     .sql = "SELECT o.name, t.account, t.sequence, t.at, t.step, t.revision, t.sync, t.health, "
            "t.phase, t.commit_at, t.author, t.message, t.event_id FROM timeline t JOIN object o "
            "ON o.id = t.object ORDER BY o.account, o.runtime, o.origin, o.owner_uid, o.cluster, "
            "o.kind, o.namespace, o.name, t.sequence"},
    {.name = "dump.release",
     .sql = "SELECT o.name, r.account, r.history_id, r.revision, r.operation_revision, r.author, "
            "r.message, r.commit_at, r.started_at, r.finished_at, r.sync, r.health, r.phase, "
            "r.initiator, r.images, r.was_degraded FROM app_release r JOIN object o ON o.id = "
            "r.object ORDER BY o.account, o.runtime, o.origin, o.owner_uid, o.cluster, o.kind, "
            "o.namespace, o.name, r.history_id"},
    {.name = "dump.reporter",
     .sql = "SELECT account, runtime, name, position, sequence, resync, seen_at FROM reporter "
            "ORDER BY account, runtime, name"},
    {.name = "dump.change",
     .sql = "SELECT c.instance, c.no, c.account, c.kind, o.runtime, o.name, c.at FROM change c "
            "JOIN object o ON o.id = c.object ORDER BY c.instance, c.no"},
}};

inline std::string dump(store::Connection& connection) {
  std::string text;
  for (const auto& statement : kDumps) {
    const auto rows = connection.run(statement);
    if (!rows) throw std::runtime_error(rows.error().message);
    text += std::string(statement.name) + ": " + std::to_string(rows->size()) + "\n";
    for (std::size_t row = 0; row < rows->size(); ++row) {
      for (std::size_t column = 0;; ++column) {
        try {
          text += std::to_string(rows->number(row, column)) + "|";
        } catch (const std::logic_error&) {
          try {
            text += std::string(rows->text(row, column)) + "|";
          } catch (const std::logic_error&) {
            break;
          }
        }
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace gitops::control_plane_server
