#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/worker_pool.hpp"
#include "common/store/connection.hpp"
#include "common/store/migration.hpp"

namespace gitops::store {

// The connections of one program to its database, on thread pools of their own: one writer and several readers. The
// next call replaces a lost connection. For any loop. The work of a call runs on a thread of a pool and owns the data
// that it uses.
//
// Errors of the calls are those of the work and of Connection, and those of WorkerPool: too_many_requests when too many
// calls wait, timeout, unavailable when the database is closing.
class Database {
 public:
  struct Options {
    Location location;
    std::string name;  // names the pools; also PostgreSQL's application_name
    std::size_t readers = 4;
    std::int64_t cache_bytes =
        32LL * 1024 * 1024;  // of SQLite's writer, in bytes; a reader has a quarter of it
    Clock::duration read_limit =
        std::chrono::seconds(2);  // limit of one reader's transaction; then it is interrupted
  };
  // `metrics` outlives the database.
  Database(Options options, Metrics& metrics);
  // Closes with a grace of 2 s, unless close() was called before.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Locks SQLite's file for this process, creates it when it is missing, opens the writer and migrates. Blocks: call it
  // on a pool, or before the loop of the program runs.
  Result<void> open(std::span<const Migration> migrations,
                    const std::function<void(std::string_view)>& progress = {});

  // Runs `work(Connection&)`, which returns a Result, on a reader. The work sees one state of the database.
  template <class Work>
  Task<std::invoke_result_t<Work&, Connection&>> read(Deadline deadline, Work work) {
    return read_in(state_, deadline, std::move(work));
  }
  // Runs the work as one transaction on the writer.
  template <class Work>
  Task<std::invoke_result_t<Work&, Connection&>> write(Deadline deadline, Work work) {
    return write_in(state_, deadline, [work = std::move(work)](Connection& connection) mutable {
      std::optional<std::invoke_result_t<Work&, Connection&>> outcome;
      const auto done = connection.transact([&]() -> Result<void> {
        outcome.emplace(work(connection));
        if (!*outcome) return std::unexpected(outcome->error());
        return {};
      });
      if (!done) outcome.emplace(std::unexpected(done.error()));
      return std::move(*outcome);
    });
  }
  // Runs the work on the writer without a transaction, for work that makes its own.
  template <class Work>
  Task<std::invoke_result_t<Work&, Connection&>> with_writer(Deadline deadline, Work work) {
    return write_in(state_, deadline, std::move(work));
  }

  [[nodiscard]] Engine engine() const;
  // Refuses further calls and waits for those in progress, for at most `grace`. Blocks.
  void close(Clock::duration grace);

 private:
  class State;
  // Borrows a reader's connection and returns it on destruction.
  class Reader {
   public:
    Reader(std::shared_ptr<State> state, std::unique_ptr<Connection> connection);
    Reader(Reader&&) noexcept = default;
    Reader& operator=(Reader&&) noexcept = default;
    ~Reader();
    Connection& connection() { return *connection_; }

   private:
    std::shared_ptr<State> state_;
    std::unique_ptr<Connection> connection_;
  };

  static WorkerPool& reader_pool(State& state);
  static WorkerPool& writer_pool(State& state);
  static Deadline reader_deadline(const State& state, Deadline deadline);
  // Returns a connection in a transaction. Replaces connections that were lost while they were idle. `stop` interrupts it.
  static Result<Reader> reader(const std::shared_ptr<State>& state, const std::stop_token& stop);
  static Result<Connection*> writer(State& state);
  static Result<void> begin_reading(Connection& connection);
  static void end_reading(Connection& connection);

  template <class Work>
  static Task<std::invoke_result_t<Work&, Connection&>> read_in(std::shared_ptr<State> state,
                                                                Deadline deadline, Work work) {
    co_return co_await reader_pool(*state).run(
        reader_deadline(*state, deadline),
        [state, work = std::move(work)](
            const std::stop_token& stop) mutable -> std::invoke_result_t<Work&, Connection&> {
          auto lent = reader(state, stop);
          if (!lent) return std::unexpected(std::move(lent.error()));
          auto& connection = lent->connection();
          const std::stop_callback on_stop(stop, [&connection] { connection.interrupt(); });
          auto outcome = work(connection);
          end_reading(connection);
          return outcome;
        });
  }
  template <class Work>
  static Task<std::invoke_result_t<Work&, Connection&>> write_in(std::shared_ptr<State> state,
                                                                 Deadline deadline, Work work) {
    co_return co_await writer_pool(*state).run(
        deadline,
        [state, work = std::move(work)](
            const std::stop_token&) mutable -> std::invoke_result_t<Work&, Connection&> {
          auto lent = writer(*state);
          if (!lent) return std::unexpected(std::move(lent.error()));
          return work(**lent);
        });
  }

  std::shared_ptr<State> state_;
};

}  // namespace gitops::store
