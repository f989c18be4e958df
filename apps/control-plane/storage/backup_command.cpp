#include "control-plane/storage/backup_command.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "common/cli/table.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/sqlite/file_guard.hpp"
#include "common/store/sqlite_connection.hpp"

namespace gitops::control_plane_server {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCacheBytes = 64LL * 1024 * 1024;
constexpr std::size_t kChunk = 1024UL * 1024;
constexpr std::array<std::string_view, 3> kFiles{"-wal", "-shm",
                                                 ""};  // of one database; the main one last
constexpr std::string_view kStandardOutput = "-";
constexpr store::Statement kIntegrity{.name = "backup.integrity",
                                      .sql = "PRAGMA integrity_check(1)"};
constexpr store::Statement kCountRestore{.name = "backup.count_restore",
                                         .sql = "UPDATE instance SET restores = restores + 1"};

struct BackupSettings {
  store::Location database;
  std::string file;
};

std::unexpected<Error> file_error(const std::string& path, int code) {
  return fail(ErrorCode::unavailable, path + ": " + std::system_category().message(code));
}

Result<void> sync_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return file_error(path, errno);
  const bool synced = ::fsync(file) == 0;
  const int code = errno;
  ::close(file);
  if (!synced) return file_error(path, code);
  return {};
}

// Renames a file, also through a power failure.
Result<void> move_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return file_error(to, error.value());
  return sync_file(fs::absolute(to).parent_path().string());
}

Result<std::string> sha256_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Sha256 sum;
  std::string chunk(kChunk, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    sum.add(std::string_view(chunk).substr(0, static_cast<std::size_t>(file.gcount())));
  }
  if (!file.eof()) return fail(ErrorCode::unavailable, path + ": cannot be read");
  const auto bytes = sum.finish();
  return hex_encode(bytes_of(bytes));
}

// Opens a database, and checks every page of it.
Result<std::unique_ptr<store::Connection>> open_checked(const std::string& path,
                                                        store::Access access) {
  auto connection = store::open_sqlite(path, access, kCacheBytes);
  if (!connection) return fail(path, std::move(connection.error()));
  const auto checked = (*connection)->run(kIntegrity);
  if (!checked) return fail(path, checked.error());
  if (checked->empty() || checked->text(0, 0) != "ok") {
    return fail(ErrorCode::invalid_data, path + " is damaged");
  }
  return connection;
}

// Copies a database with what is in its log to a new file that others cannot read. Sees one state of it, and holds up
// nobody who uses it.
Result<void> copy_database(store::Connection& from, const std::string& to) {
  const int file = ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return file_error(to, errno);
  ::close(file);
  const store::Statement copy{.name = "backup.copy", .sql = "VACUUM INTO $1"};
  if (auto off = from.run_script("PRAGMA query_only = OFF"); !off) return off;
  if (auto copied = from.execute(copy, {to}); !copied) return fail(to, std::move(copied.error()));
  return {};
}

Result<void> must_be_sqlite(const store::Location& location, std::string_view instead) {
  if (location.engine == store::Engine::sqlite) return {};
  return fail(ErrorCode::invalid_argument, "the database is PostgreSQL: use " +
                                               std::string(instead) +
                                               ". The control plane notices a restore by itself");
}

// -- backup --

// Copies the database to a file that is replaced, and checks the copy. Returns its SHA-256.
Result<std::string> checked_copy(const std::string& database, const std::string& to) {
  std::error_code error;
  fs::remove(to, error);
  {
    const auto from = store::open_sqlite(database, store::Access::read_only, kCacheBytes);
    if (!from) return fail(database, from.error());
    if (auto copied = copy_database(**from, to); !copied) {
      return std::unexpected(std::move(copied.error()));
    }
  }
  if (auto checked = open_checked(to, store::Access::read_only); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (auto synced = sync_file(to); !synced) return std::unexpected(synced.error());
  return sha256_of(to);
}

Result<std::string> back_up(const BackupSettings& settings) {
  std::error_code error;
  if (fs::exists(settings.file, error)) {
    return fail(ErrorCode::conflict, settings.file + " exists: name another file");
  }
  const auto unfinished = settings.file + ".unfinished";
  auto sum = checked_copy(settings.database.path, unfinished);
  if (!sum) return sum;
  if (auto moved = move_file(unfinished, settings.file); !moved) {
    return std::unexpected(std::move(moved.error()));
  }
  return sum;
}

// Writes the backup to standard output, for a pod out of which no file can be copied. The copy is
// beside the database until it can be read.
Result<std::string> print_backup(const BackupSettings& settings, std::ostream& out) {
  const auto copy = settings.database.path + ".backup";
  sqlite::FileGuard guard(copy, "backup");
  if (auto locked = guard.lock(); !locked) {
    return fail(ErrorCode::conflict, locked.error().message);
  }
  auto sum = checked_copy(settings.database.path, copy);
  std::ifstream file(copy, std::ios::binary);
  std::error_code error;
  for (const auto suffix : kFiles) fs::remove(copy + std::string(suffix), error);
  if (!sum) return sum;
  std::string chunk(kChunk, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    out.write(chunk.data(), file.gcount());
  }
  if (!file.eof()) return fail(ErrorCode::unavailable, copy + ": cannot be read");
  if (!out.flush()) {
    return fail(ErrorCode::unavailable, "the backup cannot be written to standard output");
  }
  return sum;
}

int run_back_up(const BackupSettings& settings, cli::Console& console) {
  const bool is_printed = settings.file == kStandardOutput;
  const auto make = [&]() -> Result<std::string> {
    if (auto can = must_be_sqlite(settings.database, "pg_dump or its point-in-time recovery");
        !can) {
      return std::unexpected(std::move(can.error()));
    }
    return is_printed ? print_backup(settings, console.out) : back_up(settings);
  };
  const auto sum = make();
  if (!sum) {
    console.err << "control-plane: " << cli::printable(sum.error().message) << '\n';
    return cli::kFailed;
  }
  // As sha256sum writes it, whose -c checks the line.
  (is_printed ? console.err : console.out) << *sum << "  " << cli::printable(settings.file) << '\n';
  console.err << "backed up. The master key is not in it: keep that apart\n";
  return cli::kDone;
}

// -- restore --

// Leaves the database in place under a second name. A restore that ends after it can be repeated: the database is still
// there. Its log must not stay, since SQLite would apply it to the backup.
Result<void> keep_before(const std::string& path, const std::string& before) {
  std::error_code error;
  if (fs::exists(path, error)) {
    // One that is damaged, or finds no room, keeps its log.
    if (auto connection = store::open_sqlite(path, store::Access::read_write, kCacheBytes)) {
      std::ignore = (*connection)->run_script("PRAGMA wal_checkpoint(TRUNCATE)");
    }
  }
  for (const auto suffix : kFiles) {
    const auto from = path + std::string(suffix);
    const auto to = before + std::string(suffix);
    fs::remove(to, error);
    if (suffix.empty()) {
      fs::create_hard_link(from, to, error);
      if (!error) continue;
    }
    fs::rename(from, to, error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return file_error(to, error.value());
    }
  }
  return {};
}

// Replaces the database by a copy of the backup. The one before stays beside it until the next restore.
Result<void> put_back(const BackupSettings& settings,
                      std::span<const store::Migration> migrations) {
  if (auto can = must_be_sqlite(settings.database, "pg_restore or its point-in-time recovery");
      !can) {
    return can;
  }
  const auto& path = settings.database.path;
  sqlite::FileGuard guard(path, "database");
  if (auto locked = guard.lock(); !locked) {
    return fail(ErrorCode::conflict, path + ": " + locked.error().message +
                                         ": stop control-plane first, since a file of SQLite "
                                         "belongs to one process at a time");
  }
  const auto restoring = path + ".restoring";
  std::error_code error;
  for (const auto suffix : kFiles) fs::remove(restoring + std::string(suffix), error);
  {
    if (!fs::exists(settings.file, error)) return file_error(settings.file, ENOENT);
    const auto backup = open_checked(settings.file, store::Access::read_only);
    if (!backup) return std::unexpected(backup.error());
    if (auto copied = copy_database(**backup, restoring); !copied) return copied;
  }
  {
    auto connection = store::open_sqlite(restoring, store::Access::read_write, kCacheBytes);
    if (!connection) return std::unexpected(std::move(connection.error()));
    if (auto migrated = store::migrate(**connection, migrations); !migrated) {
      return fail(settings.file, std::move(migrated.error()));
    }
    // Another epoch: reporters report again what the backup does not have.
    if (auto counted = (*connection)->execute(kCountRestore); !counted) return counted;
    if (auto cut = (*connection)->run_script("PRAGMA wal_checkpoint(TRUNCATE)"); !cut) return cut;
  }
  if (auto synced = sync_file(restoring); !synced) return synced;
  if (auto kept = keep_before(path, path + ".before-restore"); !kept) return kept;
  return move_file(restoring, path);
}

int run_put_back(const BackupSettings& settings, std::span<const store::Migration> migrations,
                 cli::Console& console) {
  if (const auto done = put_back(settings, migrations); !done) {
    console.err << "control-plane: " << cli::printable(done.error().message) << '\n';
    return cli::kFailed;
  }
  console.out << "restored " << cli::printable(settings.database.path) << " from "
              << cli::printable(settings.file) << '\n';
  console.err << "the database before is beside it, in " << cli::printable(settings.database.path)
              << ".before-restore\n";
  return cli::kDone;
}

// Adds the file's flag and the database's settings.
std::function<void(ConfigReader&)> bind_with(
    std::shared_ptr<BackupSettings> settings,
    std::function<void(ConfigReader&, store::Location&)> add_location, const char* group,
    const char* flag, const char* help) {
  return [=](ConfigReader& reader) {
    reader.group(group);
    reader.add({.flag = flag, .help = help}, settings->file);
    reader.check({flag}, [settings] {
      return settings->file.empty() ? std::string("it is required") : std::string();
    });
    add_location(reader, settings->database);
  };
}

}  // namespace

std::optional<int> run_backup_command(const BackupCommandOptions& options,
                                      const std::vector<std::string>& arguments,
                                      const cli::Environment& environment, cli::Console& console) {
  if (arguments.empty() || (arguments.front() != "backup" && arguments.front() != "restore")) {
    return {};
  }
  const auto settings = std::make_shared<BackupSettings>();
  const cli::Program program{
      .name = "control-plane",
      .summary = "backs the database up and restores it",
      .commands = {
          {.name = "backup",
           .summary = "Copy SQLite's file, while control-plane runs, and check the copy",
           .description = "Prints the SHA-256 of the copy as sha256sum does. The master key is\n"
                          "not in it. PostgreSQL has pg_dump and point-in-time recovery.\n"
                          "With --to=- the copy goes to standard output, and its SHA-256 to\n"
                          "standard error: kubectl exec takes it out of a pod.\n",
           .bind = bind_with(settings, options.add_location, "Target", "to",
                             "File to write; it must not exist; -: standard output"),
           .run = [settings](const cli::Environment&,
                             cli::Console& at) { return run_back_up(*settings, at); }},
          {.name = "restore",
           .summary = "Replace SQLite's file by a backup, while control-plane is stopped",
           .description =
               "The file before is kept beside it, as FILE.before-restore. Afterwards runtimes\n"
               "report by themselves what happened since the backup. Users, keys and rules that\n"
               "were made since then are lost.\n",
           .bind = bind_with(settings, options.add_location, "Source", "from", "The backup"),
           .run = [settings, migrations = options.migrations](const cli::Environment&,
                                                              cli::Console& at) {
             return run_put_back(*settings, migrations, at);
           }}}};
  return cli::run(program, arguments, environment, console);
}

}  // namespace gitops::control_plane_server
