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

// The idle connections of one Client, by their keys. Each waits for its next request for a limited
// time; of those of one key the oldest goes when there are too many. None is used again past its
// age, which is between half of the greatest one and all of it, by chance: so after the servers
// behind one address were restarted one by one, clients spread over them again, and not all at one
// moment. Loop thread only; lives in a shared_ptr because its timer may outlast it.
class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  ConnectionPool(const Executor& executor, std::chrono::milliseconds idle_timeout,
                 std::chrono::milliseconds max_age, std::size_t max_idle_per_key);

  // The one used last that is still good; null when there is none.
  std::unique_ptr<Connection> take(const std::string& key);
  // Keeps a connection on which nothing is going on.
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
  Timer sweeper_;  // closes what was idle for too long; runs while something is idle
  bool sweeping_ = false;
  std::minstd_rand random_;
};

}  // namespace gitops::http
