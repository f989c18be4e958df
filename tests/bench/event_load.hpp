#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/event_pool.hpp"

namespace gitops::bench {

// Posts events to a control plane over HTTP from one thread, which costs little CPU: requests are made before they are
// needed, and connections are kept.
class EventLoad {
 public:
  struct Target {
    std::uint16_t port = 0;
    std::vector<std::string> tokens;  // by runtime
  };
  // The outcome of the posts of one runtime, or of all.
  struct Counts {
    std::uint64_t acknowledged = 0;
    std::uint64_t deferred = 0;  // 429
    std::uint64_t failed = 0;    // other responses, and lost connections
    double longest = 0;          // s; the longest wait for an acknowledgement
  };
  struct Outcome {
    Counts all;
    std::vector<Counts> runtimes;   // by runtime
    std::vector<double> latencies;  // s; of the acknowledged posts, in order of their responses
    std::uint64_t bytes = 0;        // of the acknowledged bodies
    std::uint64_t unsent = 0;       // posts of an open loop that found no free connection
    double seconds = 0;

    [[nodiscard]] double rate() const { return static_cast<double>(all.acknowledged) / seconds; }
    // Returns the latency in seconds below which this share of the acknowledged posts was.
    [[nodiscard]] double quantile(double share) const;
  };

  EventLoad(EventPool& pool, Target target) : pool_(pool), target_(std::move(target)) {}

  // Keeps `in_flight` posts of random Applications in flight.
  Outcome run_closed(std::size_t in_flight, std::chrono::milliseconds duration);
  // Posts `rate` events a second, whenever the responses arrive; at most `max_in_flight` wait. A latency begins at the
  // time at which the post was due.
  Outcome run_open(double rate, std::size_t max_in_flight, std::chrono::milliseconds duration);
  // The same; `next` chooses the Applications, and `each_second` is called once a second.
  Outcome run_open(double rate, std::size_t max_in_flight, std::chrono::milliseconds duration,
                   const std::function<std::size_t()>& next,
                   const std::function<void(const Outcome&)>& each_second);

 private:
  class Run;

  EventPool& pool_;
  Target target_;
};

// A connection that is kept, for GraphQL requests one after another.
class QueryConnection {
 public:
  QueryConnection(std::uint16_t port, std::string token);
  ~QueryConnection();
  QueryConnection(const QueryConnection&) = delete;
  QueryConnection& operator=(const QueryConnection&) = delete;

  // Returns the body of the response. Throws for another status than 200, and for a GraphQL error.
  std::string ask(const std::string& query);

 private:
  std::uint16_t port_;
  std::string token_;
  int socket_ = -1;
};

}  // namespace gitops::bench
