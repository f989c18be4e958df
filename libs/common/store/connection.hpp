#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/store/rows.hpp"
#include "common/store/statement.hpp"

namespace gitops::store {

// A connection to a database, of either engine. Every call blocks. One thread at a time, except for interrupt().
//
// Errors: unavailable (connection lost, file locked, disk full, server read-only: retry later), conflict (a unique key exists, or a
// transaction has to be repeated), timeout (interrupted), invalid_data (the database refused a value), internal (an
// error in the statement). An error within a transaction ends the transaction on both engines.
//
// After unavailable the outcome of a COMMIT is not known.
class Connection {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] virtual Engine engine() const = 0;
  // Runs a statement. Prepares it before its first use.
  virtual Result<Rows> run(const Statement& statement, const Params& params = {}) = 0;
  // Runs a statement that returns no rows.
  Result<void> execute(const Statement& statement, const Params& params = {});
  // Runs SQL without parameters and results, such as migrations. It may consist of several statements.
  virtual Result<void> run_script(std::string_view sql) = 0;
  // Runs `body` as one transaction. The transaction is rolled back when `body` returns an error or throws.
  Result<void> transact(const std::function<Result<void>()>& body);
  // Interrupts the call in progress, which returns the error timeout. A connection to PostgreSQL is lost by it. For any
  // thread; does not block.
  virtual void interrupt() = 0;
  // Returns false once the connection is lost; the owner then opens another one.
  [[nodiscard]] virtual bool is_usable() const = 0;

 protected:
  Connection() = default;
  // Begins a transaction. SQLite takes the write lock at once (BEGIN IMMEDIATE).
  virtual Result<void> begin() = 0;
  virtual Result<void> commit() = 0;
  virtual void roll_back() = 0;
};

// The location of a database.
struct Location {
  Engine engine = Engine::sqlite;
  std::string path = {};  // of SQLite's file; empty: in memory
  std::string dsn = {};   // of PostgreSQL: "postgresql://user@host/database", without a password
  std::string password_file = {};
  // The silence of PostgreSQL during a call after which the connection counts as lost. Above the server's own limit of
  // a statement, 30 s.
  std::chrono::milliseconds answer_limit = std::chrono::seconds(40);
};

}  // namespace gitops::store
