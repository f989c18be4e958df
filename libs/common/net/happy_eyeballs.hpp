#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "common/core/error.hpp"
#include "common/core/time.hpp"

// Happy eyeballs (RFC 8305): connects to a host with several addresses without waiting for
// unreachable ones. No sockets here; time is an argument.
namespace gitops::net {

using Endpoint = boost::asio::ip::tcp::endpoint;
using Endpoints = std::vector<Endpoint>;

// Endpoints that recently failed to connect, or connected more slowly than another endpoint of the
// same host. They are remembered for a minute; at most 1,000, the oldest are evicted.
class FailedEndpoints {
 public:
  // Records the outcome of an attempt. `works`: a connection was made; otherwise the endpoint
  // counts as failed from now on.
  void note(const Endpoint& endpoint, bool works, Clock::time_point now);
  [[nodiscard]] bool contains(const Endpoint& endpoint, Clock::time_point now) const;

 private:
  std::map<Endpoint, Clock::time_point> until_;
};

// Returns the endpoints of one host in the order of attempts (RFC 8305, section 4): address
// families alternate, beginning with that of the first endpoint; within a family the order is kept.
// Endpoints that failed recently are last.
Endpoints attempt_order(Endpoints endpoints, const FailedEndpoints& failed, Clock::time_point now);

// Receives the outcome for an endpoint: it connected, or did not connect in time.
using EndpointObserver = std::function<void(const Endpoint& endpoint, bool works)>;

// Schedules the attempts to connect to the endpoints of one host, and their end (RFC 8305, section
// 5). An attempt begins when an earlier one has failed, or 250 ms after the one before it. With
// many endpoints and little time the delay is shorter, so that each is tried before the deadline.
// Attempts continue until one succeeds or the deadline passes.
//
//   while (auto n = race.begin(now)) start(n);  // and again at next(), and after each failed()
class ConnectRace {
 public:
  ConnectRace(std::size_t endpoints, Clock::time_point now, Deadline deadline);

  // Returns the index of the endpoint whose attempt begins now. Call it until it returns nothing.
  std::optional<std::size_t> begin(Clock::time_point now);
  // Records a failed attempt; the next one is due.
  void failed(std::size_t endpoint, Error error);
  // Returns attempts in progress for at least the delay: their endpoints are too slow when another
  // one connects or the deadline passes.
  [[nodiscard]] std::vector<std::size_t> slow(Clock::time_point now) const;
  // Time of the next call of begin() and given_up() if no attempt ends.
  [[nodiscard]] Deadline next() const;
  // The final error: the last one when all attempts have failed, or timeout. Nothing while an
  // attempt is in progress or due.
  [[nodiscard]] std::optional<Error> given_up(Clock::time_point now) const;

 private:
  struct Attempt {
    Clock::time_point begun;
    bool failed = false;
  };

  std::size_t endpoints_;
  Deadline deadline_;
  Clock::duration delay_;
  Clock::time_point due_;          // time of the next attempt
  std::vector<Attempt> attempts_;  // attempts begun
  std::size_t under_way_ = 0;
  Error last_;
};

}  // namespace gitops::net
