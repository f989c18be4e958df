#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/store/rows.hpp"
#include "common/store/statement.hpp"

namespace gitops::store {

// A connection to a database, of either engine. Every call blocks; one thread at a time, except for interrupt().
//
// Errors: unavailable (connection lost, file locked, disk full: try again later), conflict (a unique key is taken, or a
// transaction has to be repeated), timeout (interrupted), invalid_data (the database refused a value), internal (a mistake
// in the statement). After an error within a transaction the transaction is over on both engines.
//
// After unavailable the outcome of a COMMIT is not known.
class Connection {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] virtual Engine engine() const = 0;
  // Prepares a statement when it is used for the first time, and runs it.
  virtual Result<Rows> run(const Statement& statement, const Params& params = {}) = 0;
  // Runs SQL without parameters and without results, which may be several statements: migrations.
  virtual Result<void> run_script(std::string_view sql) = 0;
  // Runs `body` as one transaction: all of it counts, or nothing. It is rolled back when `body` returns an error or
  // throws.
  Result<void> transact(const std::function<Result<void>()>& body);
  // Makes the call in progress return with the error timeout. For any thread.
  virtual void interrupt() = 0;
  // False once the connection is lost; the owner opens another one.
  [[nodiscard]] virtual bool is_usable() const = 0;

 protected:
  Connection() = default;
  // SQLite takes the write lock at once (BEGIN IMMEDIATE).
  virtual Result<void> begin() = 0;
  virtual Result<void> commit() = 0;
  virtual void roll_back() = 0;
};

// Where a database is.
struct Location {
  Engine engine = Engine::sqlite;
  std::string path = {};  // of SQLite's file; empty: in memory
  std::string dsn = {};   // of PostgreSQL: "postgresql://user@host/database", without a password
  std::string password_file = {};
};

}  // namespace gitops::store
