#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/sqlite/fault.hpp"

struct sqlite3;       // SQLite's
struct sqlite3_stmt;  // SQLite's

namespace gitops::sqlite {

class Database;

// A prepared statement. One that could not be prepared does nothing; the database records the
// failure.
class Statement {
 public:
  Statement() = default;

  [[nodiscard]] bool is_prepared() const { return handle_ != nullptr; }
  // Binds a parameter; parameters are numbered from 1. The bytes are not copied: they must stay
  // valid until the next execute(), step() or rewind().
  void bind_text(int at, std::string_view text);
  void bind_blob(int at, std::string_view bytes);
  void bind_number(int at, std::int64_t number);
  void bind_null(int at);
  // Advances to the next row; returns true when there is one.
  bool step();
  // Returns a column of the row, from 0, as bytes; valid until the next step.
  [[nodiscard]] std::string_view column(int at) const;
  // Returns the same column as a number; 0 when it is no number.
  [[nodiscard]] std::int64_t number(int at) const;
  enum class ColumnKind { null, number, text, blob };
  [[nodiscard]] ColumnKind kind(int at) const;
  // Returns the number of columns of a row; 0 for a statement that returns none.
  [[nodiscard]] int columns() const;
  // Resets the statement and its parameters for another use.
  void rewind();
  // Runs the statement for its effect, and rewinds it.
  void execute();

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };
  Statement(Database& database, sqlite3_stmt* handle) : database_(&database), handle_(handle) {}

  Database* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

// A connection to an existing SQLite file (FileGuard creates it), or to a database in memory. After
// a failure, every further call does nothing until the failure is taken, so a caller can run
// several statements and check once at the end.
//
// The file is not trusted: triggers and views are off, the schema is untrusted, defensive mode is
// on, and values over the limit are refused.
//
// Every call blocks; one thread at a time. Statements do not outlive their database.
class Database {
 public:
  struct Options {
    std::string path;     // empty: in memory
    std::string what;     // begins every message: "ledger"
    int max_value_bytes;  // limit of a text, a blob or a row; larger ones are refused
    bool read_only = false;
  };
  explicit Database(Options options);
  ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] bool good() const { return !failure_; }
  // Takes the first failure. Requires that there is one.
  [[nodiscard]] Fault take_failure();
  // Records a failure that the caller found, as if SQLite had reported it.
  void fail(Fault::Kind kind, const std::string& why);
  // Counts an error in an SQL text, or a value over the limit, as damage of the file: for a caller
  // whose statements are correct for an undamaged file.
  void take_statement_errors_for_damage();

  // Drops a failure, unless the file is damaged: for optional work.
  void forgive_all_but_damage();

  // Rows that the last INSERT, UPDATE or DELETE changed.
  [[nodiscard]] std::int64_t changed() const;
  // Ends the statement in progress with a failure of the kind other; failure_code() is SQLITE_INTERRUPT. For any thread.
  void interrupt();
  // The primary result code of the failure; SQLITE_OK when there is none.
  [[nodiscard]] int failure_code() const { return failure_ ? failure_code_ : 0; }

  // Runs SQL without results.
  void run(const std::string& sql);
  [[nodiscard]] Statement prepare(const std::string& sql);
  // Calls `row` with the statement for each row of a query.
  template <class Row>
  void each(const std::string& sql, const Row& row);
  // Returns the first column of the last row; empty when there is none.
  std::string value(const std::string& sql);
  // Runs `body` as one transaction: all of it takes effect, or nothing.
  template <class Body>
  void transact(const Body& body);
  // The same in steps, for a caller whose body may fail by itself: begin(), then commit() or roll_back().
  void begin();
  void commit();
  void roll_back();

  // Sets whether the write-ahead log is moved into the file and removed when the database is
  // closed. Off at first: a file that is found to be damaged is not changed.
  void write_at_close(bool on);
  [[nodiscard]] bool is_read_only() const;

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  void check(int code);
  [[nodiscard]] int os_error() const;

  Options options_;
  std::unique_ptr<sqlite3, Close> handle_;
  Statement begin_;  // prepared by the first transact()
  Statement commit_;
  std::optional<Fault> failure_;
  int failure_code_ = 0;
};

template <class Row>
void Database::each(const std::string& sql, const Row& row) {
  auto statement = prepare(sql);
  while (statement.step()) row(statement);
}

template <class Body>
void Database::transact(const Body& body) {
  begin();
  body();
  commit();
}

}  // namespace gitops::sqlite
