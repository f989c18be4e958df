#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/store/connection.hpp"

namespace gitops::store {

// An array parameter of PostgreSQL, sent in binary form; borrowed until the call has returned.
using ArrayParam = std::variant<std::span<const std::int64_t>, std::span<const std::string_view>>;
struct BytesArray {
  std::span<const std::string_view> items;  // bytea[]
};
using PostgresParam = std::variant<Param, ArrayParam, BytesArray>;

// A connection to PostgreSQL 14 or newer by libpq, with prepared statements and results in text form.
class PostgresConnection : public Connection {
 public:
  // One statement of a pipeline. Statements are sent without waiting for their results (pipeline mode), in one round
  // trip. The results are returned in order; the first failure is returned instead of them.
  struct Step {
    const Statement* statement;
    std::vector<PostgresParam> params;
  };
  virtual Result<std::vector<Rows>> run_pipeline(std::span<const Step> steps) = 0;
  // Waits for a notification of `LISTEN channel`, at most for `timeout_ms`, and returns the payloads.
  virtual Result<std::vector<std::string>> wait_for_notifications(int timeout_ms) = 0;
  // Returns a number that no other connection of this process has. What a session was given, such as values of a
  // sequence, may be unknown to the server of the next one.
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  inline static std::atomic<std::uint64_t> last_number_ = 0;
  const std::uint64_t number_ = ++last_number_;
};

// Connects and checks the settings that durable commits need: synchronous_commit, fsync and full_page_writes on, UTF-8,
// not in recovery, version 14 or newer. An error names the setting and the remedy. Sets lock_timeout, statement_timeout,
// idle_in_transaction_session_timeout and client_connection_check_interval. Of several hosts in the address it takes the
// primary.
Result<std::unique_ptr<PostgresConnection>> open_postgres(const Location& location,
                                                          const std::string& application_name);

}  // namespace gitops::store
