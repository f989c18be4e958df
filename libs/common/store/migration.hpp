#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "common/store/connection.hpp"

namespace gitops::store {

// One step of the schema, forward only. A released step never changes: its checksum is stored in the database.
struct Migration {
  int version;  // from 1, without gaps
  std::string_view name;
  std::string_view sqlite;
  std::string_view postgres;
};

// Migrates the database to the newest version, one transaction for each step, and records version, name, SHA-256 and
// duration in the table schema_migration. Several processes may call it at once; one of them migrates (an advisory lock
// on PostgreSQL, the write lock on SQLite). Errors name a database that is newer than the program, and a step whose
// checksum differs. `progress` is called before each step: "migration 7 of 9: timeline".
Result<void> migrate(Connection& connection, std::span<const Migration> migrations,
                     const std::function<void(std::string_view)>& progress = {});

// Returns whether the database has every step, without a lock and without a change. Errors: those of migrate().
Result<bool> is_migrated(Connection& connection, std::span<const Migration> migrations);

}  // namespace gitops::store
