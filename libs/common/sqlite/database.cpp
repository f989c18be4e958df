#include "common/sqlite/database.hpp"

#include <filesystem>
#include <initializer_list>
#include <utility>

#include <sqlite3.h>

namespace gitops::sqlite {
namespace {

Fault::Kind kind_of(int code, int error) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Fault::Kind::full;
    case SQLITE_READONLY:
      return Fault::Kind::read_only;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Fault::Kind::locked;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Fault::Kind::damaged;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return fault_of_errno({}, error).kind;
    default:
      return Fault::Kind::other;
  }
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close(handle);
}

Database::Database(Options options) : options_(std::move(options)) {
  const bool memory = options_.path.empty();
  // An absolute path cannot be mistaken for ":memory:" or a URI.
  const auto name =
      memory ? std::string(":memory:") : std::filesystem::absolute(options_.path).string();
  const int flags = (options_.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (memory ? SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY : 0);
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  check(opened);
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    check(sqlite3_db_config(handle, off, 0, nullptr));
  }
  check(sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
  write_at_close(false);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, options_.max_value_bytes);
}

void Database::write_at_close(bool on) {
  check(sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, nullptr));
}

bool Database::is_read_only() const {
  return sqlite3_db_readonly(handle_.get(), "main") == 1;
}

void Database::check(int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE || failure_) return;
  const int error = os_error();
  failure_code_ = code & 0xff;
  std::string message = options_.what + " " + options_.path + ": " + sqlite3_errmsg(handle_.get());
  if (failure_code_ == SQLITE_IOERR || failure_code_ == SQLITE_CANTOPEN) {
    message = fault_of_errno(message, error).message;
  }
  failure_ = Fault{.kind = kind_of(code, error), .message = std::move(message)};
}

// Returns the errno of the last failed call to the operating system; sqlite3_system_errno() has it
// only for some.
int Database::os_error() const {
  auto* handle = handle_.get();
  int error = 0;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  // A journal in memory has no such method.
  if (log != nullptr && log->pMethods != nullptr && log->pMethods->xFileControl != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
  }
  if (error == 0) sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  return error != 0 ? error : sqlite3_system_errno(handle);
}

Fault Database::take_failure() {
  return *std::exchange(failure_, std::nullopt);
}

void Database::fail(Fault::Kind kind, const std::string& why) {
  if (failure_) return;
  failure_code_ = SQLITE_OK;
  failure_ = Fault{.kind = kind, .message = options_.what + " " + options_.path + ": " + why};
}

void Database::take_statement_errors_for_damage() {
  if (failure_ && (failure_code_ == SQLITE_ERROR || failure_code_ == SQLITE_TOOBIG)) {
    failure_->kind = Fault::Kind::damaged;
  }
}

void Database::forgive_all_but_damage() {
  if (failure_ && failure_->kind != Fault::Kind::damaged) failure_.reset();
}

void Database::run(const std::string& sql) {
  if (good()) check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

Statement Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (good()) check(sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr));
  return {*this, statement};
}

std::string Database::value(const std::string& sql) {
  std::string out;
  each(sql, [&out](const Statement& statement) { out = statement.column(0); });
  return out;
}

std::int64_t Database::changed() const {
  return sqlite3_changes64(handle_.get());
}

void Database::interrupt() {
  sqlite3_interrupt(handle_.get());
}

void Database::begin() {
  if (!begin_.is_prepared()) {
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
  }
  begin_.execute();
}

void Database::commit() {
  commit_.execute();
  if (!good()) roll_back();
}

void Database::roll_back() {
  auto* handle = handle_.get();
  if (sqlite3_get_autocommit(handle) == 0) {
    sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const {
  sqlite3_finalize(handle);
}

void Statement::bind_text(int at, std::string_view text) {
  if (!handle_ || !database_->good()) return;
  database_->check(
      sqlite3_bind_text64(handle_.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::bind_blob(int at, std::string_view bytes) {
  if (!handle_ || !database_->good()) return;
  database_->check(
      sqlite3_bind_blob64(handle_.get(), at, bytes.data(), bytes.size(), SQLITE_STATIC));
}

void Statement::bind_number(int at, std::int64_t number) {
  if (!handle_ || !database_->good()) return;
  database_->check(sqlite3_bind_int64(handle_.get(), at, number));
}

void Statement::bind_null(int at) {
  if (!handle_ || !database_->good()) return;
  database_->check(sqlite3_bind_null(handle_.get(), at));
}

bool Statement::step() {
  if (!handle_ || !database_->good()) return false;
  const int code = sqlite3_step(handle_.get());
  database_->check(code);
  return code == SQLITE_ROW;
}

std::string_view Statement::column(int at) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), at));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), at));
  return bytes == nullptr ? std::string_view{} : std::string_view(bytes, size);
}

std::int64_t Statement::number(int at) const {
  return sqlite3_column_int64(handle_.get(), at);
}

Statement::ColumnKind Statement::kind(int at) const {
  switch (sqlite3_column_type(handle_.get(), at)) {
    case SQLITE_NULL:
      return ColumnKind::null;
    case SQLITE_INTEGER:
      return ColumnKind::number;
    case SQLITE_BLOB:
      return ColumnKind::blob;
    default:
      return ColumnKind::text;
  }
}

int Statement::columns() const {
  return handle_ ? sqlite3_column_count(handle_.get()) : 0;
}

void Statement::rewind() {
  if (!handle_) return;
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
}

void Statement::execute() {
  step();
  rewind();
}

}  // namespace gitops::sqlite
