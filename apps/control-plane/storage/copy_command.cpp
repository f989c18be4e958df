#include "control-plane/storage/copy_command.hpp"

#include <iterator>
#include <memory>
#include <utility>

#include "common/cli/table.hpp"
#include "common/sqlite/file_guard.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/storage/copy_store.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::int64_t kCacheBytes = 64LL * 1024 * 1024;
constexpr store::Statement kSteps{.name = "copy.steps",
                                  .sql = "SELECT count(*) FROM schema_migration"};

enum class Role { source, target };

struct CopySettings {
  store::Location from;
  std::string to;
  std::string to_password_file;
};

// A database that nobody else may write to: the connection, and the lock of SQLite's file.
struct OpenStore {
  std::unique_ptr<sqlite::FileGuard> guard;
  std::unique_ptr<store::Connection> connection;
};

std::unexpected<Error> refused(const store::Location& location, const sqlite::Fault& fault) {
  return fail(ErrorCode::conflict, location.path + ": " + fault.message +
                                       ": stop control-plane first, since a file of SQLite "
                                       "belongs to one process at a time");
}

// Refuses a source that a migration would change: an older version may run with it, and would not start again.
Result<void> must_be_newest(store::Connection& connection,
                            std::span<const store::Migration> migrations) {
  const auto steps = connection.run(kSteps);
  if (!steps) return std::unexpected(steps.error());
  if (steps->number(0, 0) >= std::ssize(migrations)) return {};
  return fail(ErrorCode::conflict,
              "the database is that of an older version: copy it with that version, or start this "
              "one with it first");
}

Result<OpenStore> open_store(const store::Location& location,
                             std::span<const store::Migration> migrations, Role role) {
  OpenStore opened;
  if (location.engine == store::Engine::sqlite) {
    opened.guard = std::make_unique<sqlite::FileGuard>(location.path, "database");
    if (auto locked = opened.guard->lock(); !locked) return refused(location, locked.error());
    if (auto made = opened.guard->prepare(); !made) return refused(location, made.error());
    auto connection = store::open_sqlite(location.path, store::Access::read_write, kCacheBytes);
    if (!connection) return std::unexpected(std::move(connection.error()));
    opened.connection = std::move(*connection);
  } else {
    auto connection = store::open_postgres(location, "control-plane-copy");
    if (!connection) return std::unexpected(std::move(connection.error()));
    opened.connection = std::move(*connection);
    if (role == Role::source) {
      if (auto newest = must_be_newest(*opened.connection, migrations); !newest) {
        return std::unexpected(std::move(newest.error()));
      }
    }
  }
  if (auto migrated = store::migrate(*opened.connection, migrations); !migrated) {
    return std::unexpected(std::move(migrated.error()));
  }
  return opened;
}

Result<CopyReport> copy(const CopyCommandOptions& options, const CopySettings& settings,
                        cli::Console& console) {
  const auto from = open_store(settings.from, options.migrations, Role::source);
  if (!from) return fail("--database", from.error());
  auto location = location_of(settings.to);
  location.password_file = settings.to_password_file;
  const auto to = open_store(location, options.migrations, Role::target);
  if (!to) return fail("--to", to.error());
  return copy_store(*from->connection, *to->connection, options.migrations,
                    [&console](std::string_view line) { console.err << line << '\n'; });
}

int run_copy(const CopyCommandOptions& options, const CopySettings& settings,
             cli::Console& console) {
  const auto report = copy(options, settings, console);
  if (!report) {
    console.err << "control-plane: " << cli::printable(report.error().message) << '\n';
    return cli::kFailed;
  }
  console.out << "copied and compared " << report->rows << " rows of " << report->tables
              << " tables\n";
  return cli::kDone;
}

}  // namespace

store::Location location_of(const std::string& to) {
  if (to.starts_with("postgresql://") || to.starts_with("postgres://")) {
    return {.engine = store::Engine::postgres, .dsn = to};
  }
  return {.engine = store::Engine::sqlite, .path = to};
}

std::optional<int> run_copy_command(const CopyCommandOptions& options,
                                    const std::vector<std::string>& arguments,
                                    const cli::Environment& environment, cli::Console& console) {
  if (arguments.empty() || arguments.front() != "copy") return {};
  const auto settings = std::make_shared<CopySettings>();
  const cli::Program program{
      .name = "control-plane",
      .summary = "copies the database",
      .commands = {
          {.name = "copy",
           .summary = "Copy the database to one of the other engine, and compare both",
           .description =
               "The target is empty or does not exist yet. Stop control-plane first, and start it\n"
               "with the new database afterwards.\n",
           .bind =
               [settings, add_location = options.add_location](ConfigReader& reader) {
                 reader.group("Target");
                 reader.add({.flag = "to",
                             .help = "Address of PostgreSQL (postgresql://…), or a file of SQLite"},
                            settings->to);
                 reader.check({"to"}, [settings] {
                   return settings->to.empty() ? std::string("it is required") : std::string();
                 });
                 reader.add(
                     {.flag = "to-password-file", .help = "File with the password of the target"},
                     settings->to_password_file);
                 add_location(reader, settings->from);
               },
           .run = [settings, options](
                      const cli::Environment&,
                      cli::Console& at) { return run_copy(options, *settings, at); }}}};
  return cli::run(program, arguments, environment, console);
}

}  // namespace gitops::control_plane_server
