#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>

#include "common/core/async.hpp"
#include "common/http/connector.hpp"

namespace gitops::http {

// Pool of one Client's idle connections, by key. An idle connection is kept for a limited time, and
// the oldest one of a key is closed if there are too many. Each connection also has a random
// maximum age between half of the configured one and all of it. After a rolling restart of the
// servers behind an address, clients thus spread over all of them again, at different times. Loop
// thread only. Held by shared_ptr because its timer may outlive the client.
class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  ConnectionPool(const Executor& executor, std::chrono::milliseconds idle_timeout,
                 std::chrono::milliseconds max_age, std::size_t max_idle_per_key);

  // Returns the most recently used connection that is still usable; null if there is none.
  std::unique_ptr<Connection> take(const std::string& key);
  // Pools an idle connection.
  void put(std::unique_ptr<Connection> connection);
  void close_all();
  [[nodiscard]] std::size_t size() const;

 private:
  struct Idle {
    std::unique_ptr<Connection> connection;
    Clock::time_point expires;
  };
  void sweep(Clock::time_point now);
  void arm_sweeper();
  [[nodiscard]] Clock::duration random_age();

  std::chrono::milliseconds idle_timeout_;
  std::chrono::milliseconds max_age_;
  std::size_t max_idle_per_key_;
  std::unordered_map<std::string, std::deque<Idle>> idle_;  // no empty queues
  Timer sweeper_;  // closes expired connections; runs while there are any
  bool sweeping_ = false;
  std::minstd_rand random_;
};

}  // namespace gitops::http
