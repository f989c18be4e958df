#include "common/store/sqlite_connection.hpp"

#include <cctype>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/sqlite/database.hpp"

namespace gitops::store {
namespace {

// Limit of a value in bytes, instead of SQLite's own limit of a billion. Bodies have at most 10 MiB before they are
// compressed.
constexpr int kMaxValue = 64 * 1024 * 1024;
constexpr int kInterrupted = 9;  // SQLITE_INTERRUPT
constexpr int kConstraint = 19;  // SQLITE_CONSTRAINT
constexpr int kTooBig = 18;      // SQLITE_TOOBIG
constexpr int kMismatch = 20;    // SQLITE_MISMATCH

ErrorCode code_of(sqlite::Fault::Kind kind, int code) {
  if (code == kInterrupted) return ErrorCode::timeout;
  if (code == kConstraint) return ErrorCode::conflict;
  if (code == kTooBig || code == kMismatch) return ErrorCode::invalid_data;
  switch (kind) {
    case sqlite::Fault::Kind::other:
      return ErrorCode::internal;
    case sqlite::Fault::Kind::full:
    case sqlite::Fault::Kind::read_only:
    case sqlite::Fault::Kind::io:
    case sqlite::Fault::Kind::locked:
    case sqlite::Fault::Kind::damaged:
      return ErrorCode::unavailable;
  }
  return ErrorCode::internal;
}

// Returns a statement in SQLite's dialect: parameters "$1" become "?1", since SQLite would take "$1" as a name and number
// it by its first use, and PostgreSQL's strpos becomes instr.
std::string in_sqlite_dialect(std::string_view sql) {
  constexpr std::string_view kStrpos = "strpos(";
  std::string out;
  out.reserve(sql.size());
  bool quoted = false;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    const char c = sql[i];
    if (c == '\'') quoted = !quoted;
    const bool is_parameter = c == '$' && !quoted && i + 1 < sql.size() &&
                              std::isdigit(static_cast<unsigned char>(sql[i + 1])) != 0;
    if (!quoted && sql.substr(i).starts_with(kStrpos)) {
      out += "instr(";
      i += kStrpos.size() - 1;
      continue;
    }
    out += is_parameter ? '?' : c;
  }
  return out;
}

class SqliteConnection final : public Connection {
 public:
  explicit SqliteConnection(sqlite::Database::Options options) : database_(std::move(options)) {}

  [[nodiscard]] Engine engine() const override { return Engine::sqlite; }
  [[nodiscard]] bool is_usable() const override { return is_usable_; }
  void interrupt() override { database_.interrupt(); }

  Result<void> prepare_file(Access access, std::int64_t cache_bytes) {
    database_.run("PRAGMA busy_timeout = 5000");
    if (access == Access::read_write) {
      // The setting takes effect only on an empty file.
      database_.run("PRAGMA auto_vacuum = INCREMENTAL");
      database_.run("PRAGMA journal_mode = WAL");
      database_.run("PRAGMA synchronous = FULL");
      database_.run("PRAGMA wal_autocheckpoint = 1000");
      database_.run("PRAGMA journal_size_limit = 33554432");
      database_.write_at_close(true);
    } else {
      database_.run("PRAGMA query_only = ON");
    }
    database_.run("PRAGMA cache_size = -" + std::to_string(cache_bytes / 1024));
    database_.run("PRAGMA temp_store = MEMORY");
    return outcome();
  }

  Result<Rows> run(const Statement& statement, const Params& params) override {
    auto& prepared = statement_of(statement);
    bind(prepared, params);
    Rows rows(static_cast<std::size_t>(prepared.columns()));
    while (prepared.step()) add_row(rows, prepared);
    if (prepared.columns() == 0) rows.set_changed(database_.changed());
    prepared.rewind();
    if (auto done = outcome(); !done) {
      return fail(statement.name, std::move(done.error()));
    }
    return rows;
  }

  Result<void> run_script(std::string_view sql) override {
    database_.run(std::string(sql));
    return outcome();
  }

 protected:
  Result<void> begin() override {
    database_.begin();
    return outcome();
  }
  Result<void> commit() override {
    database_.commit();
    return outcome();
  }
  void roll_back() override { database_.roll_back(); }

 private:
  sqlite::Statement& statement_of(const Statement& statement) {
    const auto known = prepared_.find(statement.name.data());
    if (known != prepared_.end() && known->second.is_prepared()) return known->second;
    return prepared_[statement.name.data()] =
               database_.prepare(in_sqlite_dialect(statement.text(Engine::sqlite)));
  }

  static void bind(sqlite::Statement& prepared, const Params& params) {
    int at = 0;
    for (const Param& param : params) {
      ++at;
      const auto& content = param.content();
      if (const auto* number = std::get_if<std::int64_t>(&content)) {
        prepared.bind_number(at, *number);
      } else if (const auto* text = std::get_if<std::string_view>(&content)) {
        prepared.bind_text(at, *text);
      } else if (const auto* bytes = std::get_if<Param::Bytes>(&content)) {
        prepared.bind_blob(at, bytes->bytes);
      } else {
        prepared.bind_null(at);
      }
    }
  }

  static void add_row(Rows& rows, const sqlite::Statement& prepared) {
    using Kind = sqlite::Statement::ColumnKind;
    for (int column = 0; column < prepared.columns(); ++column) {
      switch (prepared.kind(column)) {
        case Kind::null:
          rows.add_null();
          break;
        case Kind::number:
          rows.add_number(prepared.number(column));
          break;
        case Kind::text:
        case Kind::blob:
          rows.add_text(prepared.column(column));
          break;
      }
    }
  }

  // Returns the failure of the calls since the last outcome, and resets it.
  Result<void> outcome() {
    if (database_.good()) return {};
    const int code = database_.failure_code();
    auto fault = database_.take_failure();
    if (fault.kind == sqlite::Fault::Kind::damaged || fault.kind == sqlite::Fault::Kind::io) {
      is_usable_ = false;
    }
    return fail(code_of(fault.kind, code), std::move(fault.message));
  }

  sqlite::Database database_;
  // Prepared statements by the address of the statement's name. Names are literals, and each text has one.
  std::unordered_map<const void*, sqlite::Statement> prepared_;
  bool is_usable_ = true;
};

}  // namespace

Result<std::unique_ptr<Connection>> open_sqlite(const std::string& path, Access access,
                                                std::int64_t cache_bytes) {
  auto made = std::make_unique<SqliteConnection>(
      sqlite::Database::Options{.path = path,
                                .what = "database",
                                .max_value_bytes = kMaxValue,
                                .read_only = access == Access::read_only});
  if (auto prepared = made->prepare_file(access, cache_bytes); !prepared) {
    return std::unexpected(std::move(prepared.error()));
  }
  return made;
}

}  // namespace gitops::store
