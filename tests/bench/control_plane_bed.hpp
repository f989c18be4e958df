#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/event_load.hpp"
#include "bench/intake_floor.hpp"
#include "common/store/connection.hpp"
#include "daemons/control_plane_process.hpp"

namespace gitops::bench {

// A control plane with a database of its own, its runtimes, and a user who asks.
class ControlPlaneBed {
 public:
  // Starts the program on an empty database and registers the runtimes.
  ControlPlaneBed(store::Engine engine, std::size_t runtimes);

  // Stops the program, stores Applications, and starts it again.
  void fill(std::size_t first, std::size_t count);
  // The same for rows of the timeline and releases: `rows` for each of the first `applications`.
  void add_history(std::size_t applications, std::size_t rows, std::size_t releases);
  // Kills the program and starts it again. Returns the seconds from the start to the first request.
  double restart_after_kill();

  [[nodiscard]] EventLoad::Target target() const { return {program_.port(), tokens_}; }
  [[nodiscard]] std::unique_ptr<QueryConnection> queries() const;
  // Of the program and, for PostgreSQL, of the server.
  [[nodiscard]] Usage usage() const;
  [[nodiscard]] double memory() const;  // MB resident
  [[nodiscard]] double idle_memory() const { return idle_memory_; }
  // Of SQLite's write-ahead log, in bytes; 0 for PostgreSQL.
  [[nodiscard]] double wal_size() const;
  // Lines of the program's log with this text.
  [[nodiscard]] std::size_t log_lines(const std::string& text) const;
  [[nodiscard]] store::Engine engine() const { return location_.engine; }
  [[nodiscard]] const store::Location& location() const { return location_; }
  [[nodiscard]] std::string name() const;

 private:
  void start();

  store::Location location_;
  mutable test::ControlPlaneProcess
      program_;                      // a Process is asked for its state by calls that are not const
  std::vector<std::string> tokens_;  // by runtime
  std::string key_;
  double idle_memory_ = 0;
};

// PostgreSQL's process; 0 for SQLite.
int server_of(store::Engine engine);

// A database with the schema, for the store's loop.
store::Location make_database(store::Engine engine, const std::string& folder);
// Removes the rows that retention removes, and unused space. Returns the size in MB.
double compacted_size(store::Connection& connection);

}  // namespace gitops::bench
