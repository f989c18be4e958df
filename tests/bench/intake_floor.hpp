#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "bench/event_pool.hpp"
#include "common/store/connection.hpp"
#include "control-plane/storage/event_store.hpp"

// What the parts of the intake cost without the program: its floors, measured in the same run.
namespace gitops::bench {

// Processor time and bytes written to disk.
struct Usage {
  double cpu = 0;      // s
  double written = 0;  // bytes

  Usage operator-(const Usage& before) const {
    return {cpu - before.cpu, written - before.written};
  }
};
// The use of a process and of its children.
Usage usage_of_tree(int pid);

struct FloorSample {
  double events = 0;
  double seconds = 0;
  Usage usage;

  [[nodiscard]] double rate() const { return events / seconds; }
  [[nodiscard]] double cpu_us() const { return usage.cpu * 1e6 / events; }
};

// Appends the bodies of events to a file, with fdatasync for as many as are in flight.
class AppendFloor {
 public:
  AppendFloor(EventPool& pool, std::filesystem::path file);
  ~AppendFloor();
  AppendFloor(const AppendFloor&) = delete;
  AppendFloor& operator=(const AppendFloor&) = delete;

  FloorSample run_closed(std::size_t in_flight, std::chrono::milliseconds duration);
  // Returns the latencies in seconds of `rate` events a second, of which all that are due share an fdatasync.
  std::vector<double> run_open(double rate, std::chrono::milliseconds duration);

 private:
  void append(std::size_t count);

  EventPool& pool_;
  std::filesystem::path path_;
  int file_ = -1;
};

// The processor time to inflate, read and compress events, in µs each.
struct CodecCost {
  double inflate = 0;
  double read = 0;
  double pack = 0;
};
CodecCost codec_cost(EventPool& pool, std::size_t events);

// The writer's loop without the program: batches of events that are already read.
class StoreLoop {
 public:
  // Uses the database at `location`, which has its schema. `server` is PostgreSQL's process, or 0.
  StoreLoop(const store::Location& location, std::size_t applications, std::size_t runtimes,
            int server);

  // Stores all Applications once.
  void fill(std::size_t first, std::size_t count);
  FloorSample run(std::size_t batch, std::chrono::milliseconds duration);
  FloorSample run_events(std::size_t batch, std::size_t events);
  store::Connection& connection() { return *connection_; }

 private:
  void store_batch(std::size_t size);
  Usage usage() const;

  std::size_t applications_;
  std::size_t runtimes_;
  int server_;
  std::unique_ptr<store::Connection> connection_;
  std::unique_ptr<control_plane_server::EventStore> events_;
  // Events of a sample of the Applications, read in advance; each use has a new sequence.
  std::vector<control_plane_server::Incoming> ready_;
  std::size_t next_ = 0;
  std::int64_t sequence_;
};

}  // namespace gitops::bench
