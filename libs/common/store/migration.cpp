#include "common/store/migration.hpp"

#include <string>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/time.hpp"

namespace gitops::store {
namespace {

constexpr Statement kHasTable{
    .name = "migration.has_table",
    .sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migration'",
    .postgres =
        "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND "
        "tablename = 'schema_migration'"};
constexpr std::string_view kTable =
    "CREATE TABLE schema_migration (version BIGINT PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT "
    "NOT "
    "NULL, applied_at BIGINT NOT NULL, took BIGINT NOT NULL)";
constexpr Statement kApplied{
    .name = "migration.applied",
    .sql = "SELECT version, name, sha256 FROM schema_migration ORDER BY version"};
constexpr Statement kRecord{
    .name = "migration.record",
    .sql =
        "INSERT INTO schema_migration (version, name, sha256, applied_at, took) VALUES ($1, $2, "
        "$3, $4, $5)"};
// Lock of the migration, held until the session ends. Other processes wait for it.
constexpr Statement kLock{.name = "migration.lock",
                          .sql = "SELECT 1",
                          .postgres = "SELECT 1 FROM pg_advisory_lock(7239846215)"};
constexpr Statement kUnlock{.name = "migration.unlock",
                            .sql = "SELECT 1",
                            .postgres = "SELECT 1 FROM pg_advisory_unlock(7239846215)"};

std::string_view text_of(const Migration& migration, Engine engine) {
  return engine == Engine::sqlite ? migration.sqlite : migration.postgres;
}

std::string checksum_of(const Migration& migration, Engine engine) {
  return hex_encode(bytes_of(sha256(text_of(migration, engine))));
}

// Returns the number of steps that are already applied.
Result<std::size_t> applied_steps(Connection& connection, std::span<const Migration> migrations) {
  const auto has_table = connection.run(kHasTable);
  if (!has_table) return std::unexpected(has_table.error());
  if (has_table->number(0, 0) == 0) {
    if (auto made = connection.run_script(kTable); !made) return std::unexpected(made.error());
  }
  const auto rows = connection.run(kApplied);
  if (!rows) return std::unexpected(rows.error());
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const auto version = rows->number(i, 0);
    const auto name = rows->string(i, 1);
    if (i >= migrations.size()) {
      return fail(ErrorCode::unsupported,
                  "the database has migration " + std::to_string(version) + " (" + name +
                      "), which this version does not know: use a newer version");
    }
    if (version != migrations[i].version ||
        rows->text(i, 2) != checksum_of(migrations[i], connection.engine())) {
      return fail(ErrorCode::invalid_data,
                  "migration " + std::to_string(version) + " (" + name +
                      ") of the database is not the one of this version: the checksums differ");
    }
  }
  return rows->size();
}

Result<void> apply(Connection& connection, const Migration& migration) {
  const auto began = Clock::now();
  return connection.transact([&]() -> Result<void> {
    // A step may rewrite a large table, which takes longer than any other statement.
    if (connection.engine() == Engine::postgres) {
      if (auto set = connection.run_script("SET LOCAL statement_timeout = 0"); !set) return set;
    }
    if (auto run = connection.run_script(text_of(migration, connection.engine())); !run) return run;
    const auto took =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(wall_now().time_since_epoch())
            .count();
    const auto recorded =
        connection.run(kRecord, {migration.version, migration.name,
                                 checksum_of(migration, connection.engine()), now, took});
    if (!recorded) return std::unexpected(recorded.error());
    return {};
  });
}

Result<void> migrate_locked(Connection& connection, std::span<const Migration> migrations,
                            const std::function<void(std::string_view)>& progress) {
  const auto applied = applied_steps(connection, migrations);
  if (!applied) return std::unexpected(applied.error());
  for (const auto& migration : migrations.subspan(*applied)) {
    const auto what = "migration " + std::to_string(migration.version) + " of " +
                      std::to_string(migrations.size()) + ": " + std::string(migration.name);
    if (progress) progress(what);
    if (auto done = apply(connection, migration); !done) return fail(what, done.error());
  }
  return {};
}

}  // namespace

Result<void> migrate(Connection& connection, std::span<const Migration> migrations,
                     const std::function<void(std::string_view)>& progress) {
  if (const auto locked = connection.run(kLock); !locked) return std::unexpected(locked.error());
  auto done = migrate_locked(connection, migrations, progress);
  const auto unlocked = connection.run(kUnlock);
  if (done && !unlocked) return std::unexpected(unlocked.error());
  return done;
}

Result<bool> is_migrated(Connection& connection, std::span<const Migration> migrations) {
  const auto has_table = connection.run(kHasTable);
  if (!has_table) return std::unexpected(has_table.error());
  if (has_table->number(0, 0) == 0) return false;
  const auto applied = applied_steps(connection, migrations);
  if (!applied) return std::unexpected(applied.error());
  return *applied == migrations.size();
}

}  // namespace gitops::store
