#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/worker_pool.hpp"
#include "common/store/connection.hpp"

namespace gitops::store {

// The connections of one program to its database, on pools of their own: one writer and several readers. A lost
// connection is opened again by the next call. For loops; what runs on a pool owns what it touches.
class Database {
 public:
  struct Options {
    Location location;
    std::string name;  // in messages and as PostgreSQL's application_name
    std::size_t readers = 4;
    std::int64_t cache_bytes = 64LL * 1024 * 1024;  // of SQLite's writer; a reader has a quarter of it
    Clock::duration read_limit = std::chrono::seconds(2);  // of one reader's transaction; then it is interrupted
  };
  Database(Options options, Metrics& metrics);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Locks SQLite's file (one process), opens the writer and migrates. Blocks; call it on a pool or before the loop runs.
  Result<void> open(std::span<const struct Migration> migrations,
                    const std::function<void(std::string_view)>& progress = {});

  // Runs `work(Connection&)`, which returns Result<T>, on a reader. It sees one state of the database.
  template <class Work>
  Task<std::invoke_result_t<Work&, Connection&>> read(Deadline deadline, Work work);
  // The same as one transaction on the writer.
  template <class Work>
  Task<std::invoke_result_t<Work&, Connection&>> write(Deadline deadline, Work work);
  // The same on the writer without a transaction: for the event writer, which makes its own.
  template <class Work>
  Task<std::invoke_result_t<Work&, Connection&>> with_writer(Deadline deadline, Work work);

  [[nodiscard]] Engine engine() const;
  void close(Clock::duration grace);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace gitops::store
