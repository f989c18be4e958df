#include "event-reporter/ledger/ledger_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "common/core/time.hpp"

namespace gitops::reporter {
namespace {

namespace fs = std::filesystem;

constexpr int kApplicationId = 0x674c6467;  // in the file's header: it is one of ours
constexpr std::string_view kSchemaVersion = "1";
constexpr std::string_view kSchemaName = "schema";
constexpr std::string_view kNotePrefix = "note.";
// In the order of their names. The tables have no rowid: a row then exists in one place only, so a
// damaged one can't disagree with an index.
constexpr std::array<const char*, 2> kTables = {
    "CREATE TABLE application(key TEXT PRIMARY KEY NOT NULL, checksum BLOB NOT NULL, "
    "entry BLOB NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, "
    "checksum BLOB NOT NULL) STRICT, WITHOUT ROWID"};
constexpr std::size_t kKeptAside = 3;
constexpr int kMaxValue = static_cast<int>(kMaxEntryBytes) + 64 * 1024;
constexpr std::array<const char*, 3> kSideFiles = {"-wal", "-journal", "-shm"};

std::string_view view(const RowChecksum& sum) {
  return {reinterpret_cast<const char*>(sum.data()), sum.size()};
}

std::string with_reason(const std::string& what, int error) {
  return error == 0 ? what : what + ": " + std::generic_category().message(error);
}

LedgerFault::Kind kind_of_errno(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return LedgerFault::Kind::full;
    case EROFS:
    case EACCES:
    case EPERM:
      return LedgerFault::Kind::read_only;
    default:
      return LedgerFault::Kind::io;
  }
}

LedgerFault::Kind kind_of(int code, int error) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return LedgerFault::Kind::full;
    case SQLITE_READONLY:
      return LedgerFault::Kind::read_only;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return LedgerFault::Kind::locked;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return LedgerFault::Kind::damaged;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return kind_of_errno(error);
    default:
      return LedgerFault::Kind::other;
  }
}

LedgerFault fault_of_errno(const std::string& what, int error) {
  return {.kind = kind_of_errno(error), .message = with_reason(what, error)};
}

}  // namespace

std::string_view to_string(LedgerFault::Kind kind) {
  switch (kind) {
    case LedgerFault::Kind::full:
      return "full";
    case LedgerFault::Kind::read_only:
      return "read_only";
    case LedgerFault::Kind::io:
      return "io";
    case LedgerFault::Kind::locked:
      return "locked";
    case LedgerFault::Kind::damaged:
      return "damaged";
    case LedgerFault::Kind::other:
      return "other";
  }
  return "other";
}

// A connection and what failed on it first: after a failure every further call does nothing, until
// the failure is taken.
struct LedgerFile::Database {
  explicit Database(std::string where) : path(std::move(where)) {
    const bool memory = path.empty();
    // An absolute path is never taken for ":memory:" or an URI.
    const auto name = memory ? std::string(":memory:") : fs::absolute(path).string();
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                      (memory ? SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY : 0);
    check(sqlite3_open_v2(name.c_str(), &handle, flags, nullptr));
    // Whatever the file says, it makes us run nothing and hold no more than our own rows need.
    for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                          SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
      check(sqlite3_db_config(handle, off, 0, nullptr));
    }
    check(sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
    write_at_close(false);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValue);
  }
  ~Database() {
    for (auto* statement : {put_row, drop_row, get_row, put_meta}) sqlite3_finalize(statement);
    sqlite3_close(handle);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Whether the log is moved into the file and removed when it is closed.
  void write_at_close(bool on) {
    check(sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, nullptr));
  }

  [[nodiscard]] bool good() const { return !failure; }
  void check(int code) {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE || failure) return;
    const int error = os_error();
    failure_code = code & 0xff;
    std::string message = "ledger " + path + ": " + sqlite3_errmsg(handle);
    if (failure_code == SQLITE_IOERR || failure_code == SQLITE_CANTOPEN) {
      message = with_reason(message, error);
    }
    failure = LedgerFault{.kind = kind_of(code, error), .message = std::move(message)};
  }
  // Of the last failed call to the system; SQLite tells it only for some of them otherwise.
  [[nodiscard]] int os_error() const {
    int error = 0;
    sqlite3_file* log = nullptr;
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log != nullptr && log->pMethods != nullptr) {
      log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
    }
    if (error == 0) sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
    return error != 0 ? error : sqlite3_system_errno(handle);
  }
  void damaged(const std::string& why) {
    if (failure) return;
    failure =
        LedgerFault{.kind = LedgerFault::Kind::damaged, .message = "ledger " + path + ": " + why};
  }
  void refuse(const std::string& why) {
    if (failure) return;
    failure =
        LedgerFault{.kind = LedgerFault::Kind::other, .message = "ledger " + path + ": " + why};
  }
  [[nodiscard]] LedgerFault take_failure() {
    auto taken = std::move(*failure);
    failure.reset();
    return taken;
  }

  void run(const char* sql) {
    if (good()) check(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr));
  }
  [[nodiscard]] sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (good()) check(sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr));
    return statement;
  }
  // True when there is a row to read.
  bool step(sqlite3_stmt* statement) {
    if (!good()) return false;
    const int code = sqlite3_step(statement);
    check(code);
    return code == SQLITE_ROW;
  }
  void bind_text(sqlite3_stmt* statement, int at, std::string_view text) {
    if (!good()) return;
    check(sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  void bind_blob(sqlite3_stmt* statement, int at, std::string_view bytes) {
    if (good()) {
      check(sqlite3_bind_blob64(statement, at, bytes.data(), bytes.size(), SQLITE_STATIC));
    }
  }
  // Valid until the next step.
  static std::string_view column(sqlite3_stmt* statement, int at) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, at));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, at));
    return bytes == nullptr ? std::string_view{} : std::string_view(bytes, size);
  }
  // Calls `row` for each row of a query.
  template <class Row>
  void each(const char* sql, const Row& row) {
    auto* statement = prepare(sql);
    while (step(statement)) row(statement);
    sqlite3_finalize(statement);
  }
  std::string value(const char* sql) {
    std::string out;
    each(sql, [&](sqlite3_stmt* statement) { out = column(statement, 0); });
    return out;
  }
  static void rewind(sqlite3_stmt* statement) {
    if (statement == nullptr) return;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  }
  void execute(sqlite3_stmt* statement) {
    step(statement);
    rewind(statement);
  }
  // Runs `body` as one transaction.
  template <class Body>
  void transact(const Body& body) {
    run("BEGIN IMMEDIATE");
    body();
    run("COMMIT");
    if (!good() && sqlite3_get_autocommit(handle) == 0) {
      sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }

  void set_meta(std::string_view name, std::string_view text) {
    const auto sum = row_checksum(name, text);
    bind_text(put_meta, 1, name);
    bind_text(put_meta, 2, text);
    bind_blob(put_meta, 3, view(sum));
    execute(put_meta);
  }
  void erase(std::string_view key) {
    bind_text(drop_row, 1, key);
    execute(drop_row);
  }
  void prepare_all() {
    put_row = prepare("REPLACE INTO application(key, checksum, entry) VALUES(?1, ?2, ?3)");
    drop_row = prepare("DELETE FROM application WHERE key = ?1");
    get_row = prepare("SELECT checksum, entry FROM application WHERE key = ?1");
    put_meta = prepare("REPLACE INTO meta(name, value, checksum) VALUES(?1, ?2, ?3)");
  }

  [[nodiscard]] Contents open();
  void create();
  void verify();
  [[nodiscard]] Contents read_all();
  void write(const LedgerBatch& batch);

  std::string path;
  sqlite3* handle = nullptr;
  std::optional<LedgerFault> failure;
  int failure_code = SQLITE_OK;
  sqlite3_stmt* put_row = nullptr;
  sqlite3_stmt* drop_row = nullptr;
  sqlite3_stmt* get_row = nullptr;
  sqlite3_stmt* put_meta = nullptr;
};

LedgerFile::Contents LedgerFile::Database::open() {
  run("PRAGMA locking_mode=EXCLUSIVE");
  run("PRAGMA temp_store=MEMORY");
  run("PRAGMA cell_size_check=ON");
  run("PRAGMA cache_size=-2000");
  run("PRAGMA synchronous=NORMAL");
  run("PRAGMA journal_size_limit=4194304");
  const auto id = value("PRAGMA application_id");
  const bool empty = value("SELECT count(*) FROM sqlite_schema") == "0";
  if (good() && id == "0" && empty) {
    create();
  } else if (good() && id != std::to_string(kApplicationId)) {
    refuse("the file is a database of another program; it is left alone");
  } else {
    verify();
  }
  prepare_all();
  auto contents = read_all();
  // An error in the SQL is an error in the file: no statement of ours has one.
  if (failure && (failure_code == SQLITE_ERROR || failure_code == SQLITE_TOOBIG)) {
    failure->kind = LedgerFault::Kind::damaged;
  }
  if (good()) write_at_close(true);
  return contents;
}

void LedgerFile::Database::create() {
  run("PRAGMA page_size=8192");  // a row of 2 KB, some 50 resources, lies on one page
  run("PRAGMA auto_vacuum=FULL");
  run("PRAGMA journal_mode=WAL");
  transact([this] {
    run(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
    for (const auto* table : kTables) run(table);
    put_meta = prepare("INSERT INTO meta(name, value, checksum) VALUES(?1, ?2, ?3)");
    set_meta(kSchemaName, kSchemaVersion);
    sqlite3_finalize(std::exchange(put_meta, nullptr));
  });
}

void LedgerFile::Database::verify() {
  bool has_version = false;
  each("SELECT value, checksum FROM meta WHERE name = 'schema'", [&](sqlite3_stmt* statement) {
    const auto version = column(statement, 0);
    has_version = column(statement, 1) == view(row_checksum(kSchemaName, version));
    if (has_version && version != kSchemaVersion) {
      refuse("the file was written by a newer version (schema " + std::string(version) +
             ", this version knows " + std::string(kSchemaVersion) + "); it is left alone");
    }
  });
  if (!has_version) damaged("the schema version is damaged");
  std::size_t tables = 0;
  each("SELECT sql FROM sqlite_schema ORDER BY name", [&](sqlite3_stmt* statement) {
    if (tables >= kTables.size() || column(statement, 0) != kTables.at(tables)) {
      damaged("the schema is damaged");
    }
    ++tables;
  });
  if (tables != kTables.size()) damaged("the schema is damaged");
  each("PRAGMA integrity_check(1)", [&](sqlite3_stmt* statement) {
    const auto verdict = column(statement, 0);
    if (verdict != "ok") damaged(std::string(verdict));
  });
  // The path is writable; that much is known.
  if (good() && sqlite3_db_readonly(handle, "main") == 1) damaged("its header is damaged");
  run("PRAGMA journal_mode=WAL");
}

LedgerFile::Contents LedgerFile::Database::read_all() {
  Contents contents;
  std::vector<std::string> bad_rows;
  each("SELECT key, checksum, entry FROM application", [&](sqlite3_stmt* statement) {
    const auto key = column(statement, 0);
    const auto entry = column(statement, 2);
    auto head = decode_head(entry);
    if (!head || column(statement, 1) != view(row_checksum(key, entry))) {
      bad_rows.emplace_back(key);
    } else {
      contents.heads.insert_or_assign(std::string(key), std::move(*head));
    }
  });
  std::vector<std::string> bad_notes;
  each("SELECT name, value, checksum FROM meta", [&](sqlite3_stmt* statement) {
    const auto name = column(statement, 0);
    const auto text = column(statement, 1);
    if (column(statement, 2) != view(row_checksum(name, text))) {
      bad_notes.emplace_back(name);
    } else if (name.starts_with(kNotePrefix)) {
      contents.notes.insert_or_assign(std::string(name.substr(kNotePrefix.size())),
                                      std::string(text));
    }
  });
  contents.damaged_rows = bad_rows.size() + bad_notes.size();
  if (contents.damaged_rows == 0 || !good()) return contents;
  transact([&] {
    for (const auto& key : bad_rows) erase(key);
    auto* drop_note = prepare("DELETE FROM meta WHERE name = ?1");
    for (const auto& name : bad_notes) {
      bind_text(drop_note, 1, name);
      execute(drop_note);
    }
    sqlite3_finalize(drop_note);
  });
  // They can stay where nothing can be written now: they will be found again.
  if (failure && failure->kind != LedgerFault::Kind::damaged) failure.reset();
  return contents;
}

void LedgerFile::Database::write(const LedgerBatch& batch) {
  transact([&] {
    for (const auto& [key, entry] : batch.rows) {
      if (!entry) {
        erase(key);
        continue;
      }
      const auto sum = row_checksum(key, *entry);
      bind_text(put_row, 1, key);
      bind_blob(put_row, 2, view(sum));
      bind_blob(put_row, 3, *entry);
      execute(put_row);
    }
    for (const auto& [name, text] : batch.notes) set_meta(std::string(kNotePrefix) + name, text);
  });
}

LedgerFile::LedgerFile(std::string path) : path_(std::move(path)) {}

LedgerFile::~LedgerFile() {
  database_.reset();
  if (lock_ >= 0) ::close(lock_);
}

Result<LedgerFile::Contents> LedgerFile::open() {
  auto opened = lock();
  std::expected<Contents, LedgerFault> contents = std::unexpected(LedgerFault{});
  if (opened) contents = open_or_rebuild();
  if (contents) return std::move(*contents);
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
  auto& fault = opened ? contents.error() : opened.error();
  switch (fault.kind) {
    case LedgerFault::Kind::locked:
      return fail(ErrorCode::conflict, std::move(fault.message));
    case LedgerFault::Kind::other:
      return fail(ErrorCode::unsupported, std::move(fault.message));
    default:
      return fail(ErrorCode::unavailable, std::move(fault.message));
  }
}

// The lock is on a file of its own, so that it also covers the moment in which a damaged database
// is replaced.
LedgerFile::Outcome LedgerFile::lock() {
  if (path_.empty()) return {};
  const auto name = path_ + ".lock";
  lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) return std::unexpected(fault_of_errno("ledger " + name, errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
  const int error = errno;
  if (error != EWOULDBLOCK) return std::unexpected(fault_of_errno("ledger " + name, error));
  return std::unexpected(LedgerFault{.kind = LedgerFault::Kind::locked,
                                     .message = "ledger " + path_ + ": in use by another process"});
}

// A regular file that can be read and written; made when there is none.
LedgerFile::Outcome LedgerFile::check_file() const {
  if (path_.empty()) return {};
  const int made = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) {
    ::close(made);
    return {};
  }
  const auto what = "ledger " + path_;
  struct stat found{};
  if (errno != EEXIST) return std::unexpected(fault_of_errno(what, errno));
  if (::stat(path_.c_str(), &found) != 0) return std::unexpected(fault_of_errno(what, errno));
  if (!S_ISREG(found.st_mode)) {
    return std::unexpected(LedgerFault{.message = what + ": not a regular file"});
  }
  if (::faccessat(AT_FDCWD, path_.c_str(), R_OK | W_OK, AT_EACCESS) != 0) {
    return std::unexpected(fault_of_errno(what, errno));
  }
  return {};
}

std::expected<LedgerFile::Contents, LedgerFault> LedgerFile::open_or_rebuild() {
  std::string rebuilt;
  while (true) {
    if (auto usable = check_file(); !usable) return std::unexpected(std::move(usable.error()));
    database_ = std::make_unique<Database>(path_);
    auto contents = database_->open();
    if (database_->good()) {
      contents.rebuilt = std::move(rebuilt);
      return contents;
    }
    auto fault = database_->take_failure();
    database_.reset();
    const bool again = rebuilt.empty() && fault.kind == LedgerFault::Kind::damaged;
    if (!again) return std::unexpected(std::move(fault));
    if (auto moved = set_aside(); !moved) return std::unexpected(std::move(moved.error()));
    rebuilt = std::move(fault.message);
  }
}

LedgerFile::Outcome LedgerFile::set_aside() const {
  if (path_.empty()) return {};
  const fs::path file = fs::absolute(path_);
  const auto prefix = file.string() + ".corrupt-";
  auto stamp = format_rfc3339_millis(wall_now());
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  std::error_code error;
  auto target = prefix + stamp;
  for (int i = 2; fs::exists(fs::symlink_status(target, error)); ++i) {
    target = prefix + stamp + "-" + std::to_string(i);
  }
  // What belongs to it goes with it, and goes first: nothing of it may meet the new file.
  for (const auto* side : kSideFiles) fs::rename(file.string() + side, target + side, error);
  fs::rename(file, target, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    return std::unexpected(fault_of_errno("ledger " + path_ + ": set aside", error.value()));
  }

  std::vector<std::string> aside;
  for (fs::directory_iterator it(file.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    auto name = it->path().string();
    const bool side =
        std::ranges::any_of(kSideFiles, [&](const char* suffix) { return name.ends_with(suffix); });
    if (name.starts_with(prefix) && !side && name != target) aside.push_back(std::move(name));
  }
  // By name, which is by time unless the clock went back.
  std::ranges::sort(aside);
  for (std::size_t i = 0; i + kKeptAside <= aside.size(); ++i) {
    fs::remove(aside[i], error);
    for (const auto* side : kSideFiles) fs::remove(aside[i] + side, error);
  }
  return {};
}

std::expected<LedgerFile::Read, LedgerFault> LedgerFile::read(const std::string& key) {
  if (auto ready = make_ready(); !ready) return std::unexpected(std::move(ready.error()));
  auto& database = *database_;
  Read out;
  database.bind_text(database.get_row, 1, key);
  if (database.step(database.get_row)) {
    const auto entry = Database::column(database.get_row, 1);
    if (Database::column(database.get_row, 0) == view(row_checksum(key, entry))) {
      if (auto decoded = decode_entry(entry)) out.entry = std::move(*decoded);
    }
    out.damaged = !out.entry;
  }
  Database::rewind(database.get_row);
  if (database.good()) return out;
  return std::unexpected(give_up());
}

std::expected<LedgerFile::Written, LedgerFault> LedgerFile::write(const LedgerBatch& batch) {
  const auto begin = Clock::now();
  for (bool again = false;; again = true) {
    if (auto ready = make_ready(); !ready) return std::unexpected(std::move(ready.error()));
    database_->write(batch);
    if (database_->good()) break;
    auto fault = give_up();
    if (again || fault.kind != LedgerFault::Kind::damaged) return std::unexpected(std::move(fault));
  }
  return Written{
      .rebuilt = std::exchange(damage_, {}), .took = Clock::now() - begin, .file_bytes = bytes()};
}

// What failed. A damaged file is not used any further.
LedgerFault LedgerFile::give_up() {
  auto fault = database_->take_failure();
  if (fault.kind == LedgerFault::Kind::damaged) {
    damage_ = fault.message;
    database_->write_at_close(false);
    database_.reset();
  }
  return fault;
}

// Makes the file anew when it was damaged while it was open.
LedgerFile::Outcome LedgerFile::make_ready() {
  if (database_) return {};
  if (!damage_set_aside_) {
    if (auto moved = set_aside(); !moved) return moved;
    damage_set_aside_ = true;
  }
  auto opened = open_or_rebuild();
  if (!opened) return std::unexpected(std::move(opened.error()));
  damage_set_aside_ = false;
  return {};
}

std::uint64_t LedgerFile::bytes() const {
  std::uint64_t sum = 0;
  if (path_.empty()) {
    if (!database_) return 0;
    const auto number = [this](const char* sql) {
      const auto text = database_->value(sql);
      return text.empty() ? std::uint64_t{0} : std::stoull(text);
    };
    return number("PRAGMA page_count") * number("PRAGMA page_size");
  }
  for (const auto& name : {path_, path_ + "-wal"}) {
    std::error_code error;
    const auto size = fs::file_size(name, error);
    if (!error) sum += size;
  }
  return sum;
}

}  // namespace gitops::reporter
