#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "control-plane/storage/event_store.hpp"

namespace gitops::bench {

// The events of a number of Applications, as event-reporter posts them: about 10 KB of JSON, compressed with gzip. The
// Applications are spread evenly over the runtimes.
class EventPool {
 public:
  // Versions of an Application: two that users see as one state, and two in another state.
  static constexpr std::size_t kVersions = 4;
  static constexpr std::int64_t kFirstSequence = 1'772'615'520'000'000;

  EventPool(std::size_t applications, std::size_t runtimes);
  // Makes all bodies, on all processors, so that next() only looks them up. 0.1 GB for 10,000 Applications.
  void prepare();

  // An event to send. `body` is compressed and valid as long as the pool.
  struct Post {
    std::size_t application = 0;
    std::size_t version = 0;
    std::int64_t sequence = 0;
    std::string_view body;
  };
  // Returns the next event: of a random Application, 30 % a milestone, 5 % a repetition of the last sequence.
  Post next();
  // Returns the next event of an Application.
  Post next_of(std::size_t application);

  [[nodiscard]] std::size_t applications() const { return states_.size(); }
  [[nodiscard]] std::size_t runtimes() const { return runtimes_; }
  [[nodiscard]] std::size_t runtime_of(std::size_t application) const {
    return application % runtimes_;
  }

 private:
  struct State {
    std::size_t version = 0;
    std::int64_t sequence = 0;
  };
  std::string_view body_of(std::size_t application, std::size_t version);

  std::size_t runtimes_;
  std::mt19937_64 random_{20'261'126};
  std::vector<State> states_;
  std::vector<std::string> bodies_;  // by application and version; made when they are first needed
};

std::string runtime_name(std::size_t runtime);
std::string application_name(std::size_t application);
std::string application_namespace(std::size_t application);

// Returns the uncompressed body of an event.
std::string event_json(std::size_t application, std::size_t version);

// Returns the event as the intake reads it.
control_plane_server::Incoming incoming_event(std::size_t application, std::size_t version,
                                              std::int64_t sequence, std::size_t runtimes);

}  // namespace gitops::bench
