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

// The idle connections of one Client, by key. An idle connection is kept for a limited time, and
// the oldest of a key is closed when there are too many. Each connection also has a random greatest
// age, between half of the configured one and all of it: after a rolling restart of the servers
// behind an address, clients spread over all of them again, and not at the same moment. Loop thread
// only; held by shared_ptr because its timer may outlive the client.
class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  ConnectionPool(const Executor& executor, std::chrono::milliseconds idle_timeout,
                 std::chrono::milliseconds max_age, std::size_t max_idle_per_key);

  // The most recently used connection that is still usable; null when there is none.
  std::unique_ptr<Connection> take(const std::string& key);
  // Keeps an idle connection.
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
  Timer sweeper_;  // closes connections that were idle for too long; runs while there are any
  bool sweeping_ = false;
  std::minstd_rand random_;
};

}  // namespace gitops::http
