#include "bench/control_plane_bed.hpp"

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/proc.hpp"
#include "common/store/migration.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/storage/retention.hpp"
#include "control-plane/storage/schema.hpp"
#include "support/postgres_server.hpp"

namespace gitops::bench {
namespace {

namespace cp = control_plane_server;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A quiet daemon gives back memory after two periods of 2 s.
constexpr auto kQuiet = std::chrono::seconds(6);
constexpr std::int64_t kCacheBytes = 64LL * 1024 * 1024;

void require(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().message);
}

// Has the room for its cache and its log that docs/operations/sizing.md advises; that of the tests is small.
test::PostgresServer& postgres() {
  static test::PostgresServer server("/tmp", {"shared_buffers=512MB", "max_wal_size=4GB"});
  return server;
}

std::unique_ptr<store::Connection> open_writer(const store::Location& location) {
  if (location.engine == store::Engine::sqlite) {
    auto opened = store::open_sqlite(location.path, store::Access::read_write, kCacheBytes);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  auto opened = store::open_postgres(location, "control-plane-bench");
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

// Rows in steps of equal length up to now, for the Applications that are first by id.
std::string rows_sql(std::size_t applications, std::size_t rows, std::int64_t days) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const auto age = days * 86'400 * 1'000'000;
  return " FROM (SELECT id FROM object WHERE account = 1 AND kind = 'Application' ORDER BY id "
         "LIMIT " +
         std::to_string(applications) +
         ") o CROSS JOIN (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i "
         "< " +
         std::to_string(rows - 1) + ") SELECT i, " + std::to_string(now - age) + " + i * " +
         std::to_string(age / static_cast<std::int64_t>(rows)) + " AS at FROM n) t";
}

}  // namespace

int server_of(store::Engine engine) {
  return engine == store::Engine::sqlite ? 0 : postgres().pid();
}

store::Location make_database(store::Engine engine, const std::string& folder) {
  store::Location location{.engine = engine};
  if (engine == store::Engine::sqlite) {
    location.path = folder + "/loop.db";
    test::write_file(location.path, "");
  } else {
    location.dsn = postgres().new_database();
  }
  require(store::migrate(*open_writer(location), cp::migrations()));
  return location;
}

double compacted_size(store::Connection& connection) {
  require(connection.run_script("DELETE FROM change"));
  require(connection.run_script("VACUUM"));
  const auto size = cp::database_size(connection);
  if (!size) throw std::runtime_error(size.error().message);
  return static_cast<double>(*size) / 1e6;
}

ControlPlaneBed::ControlPlaneBed(store::Engine engine, std::size_t runtimes)
    : location_{.engine = engine,
                .dsn =
                    engine == store::Engine::postgres ? postgres().new_database() : std::string()},
      program_(location_.dsn) {
  if (engine == store::Engine::sqlite) location_.path = program_.database_path();
  program_.start();
  std::this_thread::sleep_for(kQuiet);
  idle_memory_ = memory();
  program_.stop();
  // The first account, of which the first start made the administrator.
  program_.add_user("bench", "default", {"--admin"});
  key_ = program_.create_key("bench", "default");
  program_.start();
  const auto connection = queries();
  for (std::size_t i = 0; i < runtimes; ++i) {
    const auto response = connection->ask(
        R"({"query":"mutation($a: RuntimeInstallationArgs!){createRuntime(installationArgs: $a){newAccessToken}}",)"
        R"("variables":{"a":{"runtimeName":")" +
        runtime_name(i) +
        R"(","runtimeNamespace":"gitops","cluster":"https://kubernetes.default.svc",)"
        R"("installationType":"HELM","runtimeVersion":"0.1.0","componentNames":[]}}})");
    constexpr std::string_view kToken = R"("newAccessToken":")";
    const auto at = response.find(kToken);
    if (at == std::string::npos) throw std::runtime_error("no runtime: " + response);
    const auto begin = at + kToken.size();
    tokens_.push_back(response.substr(begin, response.find('"', begin) - begin));
  }
}

void ControlPlaneBed::fill(std::size_t first, std::size_t count) {
  program_.stop();
  StoreLoop(location_, count, tokens_.size(), 0).fill(first, count);
  start();
}

void ControlPlaneBed::add_history(std::size_t applications, std::size_t rows,
                                  std::size_t releases) {
  program_.stop();
  const auto connection = open_writer(location_);
  require(connection->run_script(
      "INSERT INTO timeline (object, sequence, account, at, step, revision, sync, health, phase, "
      "commit_at, author, message, event_id) SELECT o.id, t.at, 1, t.at, 1, "
      "'5b1e0f2f7c8d9a4b3c6e1d0f9a8b7c6d5e4f3a2b', 1, 1, CASE WHEN t.i % 3 > 0 THEN 0 WHEN t.i % "
      "20 = 0 THEN 4 ELSE 3 END, CASE WHEN t.i % 3 > 0 THEN 0 ELSE t.at - 3600000000 END, "
      "'dana@example.com', 'scale the shop to two replicas', 'e/' || t.at" +
      rows_sql(applications, rows, 89)));
  require(connection->run_script(
      "INSERT INTO app_release (object, history_id, account, revision, operation_revision, "
      "author, message, commit_at, started_at, finished_at, sync, health, phase, initiator, "
      "images, was_degraded) SELECT o.id, t.i + 100, 1, "
      "'5b1e0f2f7c8d9a4b3c6e1d0f9a8b7c6d5e4f3a2b', '', 'dana@example.com', 'scale the shop', t.at "
      "- 3600000000, t.at, t.at + 4000000, 1, 1, 3, '', "
      "'[\"registry.example.com/shop/web:1.4.2\"]', 0" +
      rows_sql(applications, releases, 89)));
  // What a server does by itself within minutes.
  require(connection->run_script(location_.engine == store::Engine::sqlite ? "ANALYZE"
                                                                           : "VACUUM ANALYZE"));
  start();
}

double ControlPlaneBed::restart_after_kill() {
  program_.kill();
  const auto began = Clock::now();
  start();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

void ControlPlaneBed::start() {
  program_.start();
}

std::unique_ptr<QueryConnection> ControlPlaneBed::queries() const {
  return std::make_unique<QueryConnection>(program_.port(), key_);
}

Usage ControlPlaneBed::usage() const {
  const auto program = usage_of_tree(program_.process().pid());
  const auto server = usage_of_tree(server_of(location_.engine));
  return {program.cpu + server.cpu, program.written + server.written};
}

double ControlPlaneBed::memory() const {
  return memory_of(program_.process().pid(), "VmRSS:");
}

double ControlPlaneBed::wal_size() const {
  std::error_code none;
  const auto size = fs::file_size(location_.path + "-wal", none);
  return none || location_.path.empty() ? 0 : static_cast<double>(size);
}

std::size_t ControlPlaneBed::log_lines(const std::string& text) const {
  std::size_t count = 0;
  const auto log = program_.log();
  for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
  return count;
}

std::string ControlPlaneBed::name() const {
  return location_.engine == store::Engine::sqlite ? "SQLite" : "PostgreSQL";
}

}  // namespace gitops::bench
