#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "common/core/error.hpp"
#include "common/core/time.hpp"

// Happy eyeballs (RFC 8305): connects to a host with several addresses without waiting for those
// that lead nowhere. No sockets here; time is an argument.
namespace gitops::net {

using Endpoint = boost::asio::ip::tcp::endpoint;
using Endpoints = std::vector<Endpoint>;

// Endpoints that could not be connected to lately, or only more slowly than another one of the same
// host. They are remembered for a minute; at most 1,000, of which the oldest go first.
class FailedEndpoints {
 public:
  // `works`: a connection was made. Otherwise the endpoint counts as failed from now on.
  void note(const Endpoint& endpoint, bool works, Clock::time_point now);
  [[nodiscard]] bool contains(const Endpoint& endpoint, Clock::time_point now) const;

 private:
  std::map<Endpoint, Clock::time_point> until_;
};

// The order in which to try the endpoints of one host (RFC 8305, section 4): address families
// alternate, beginning with that of the first endpoint; within a family the order stays. Endpoints
// that failed lately follow all others.
Endpoints attempt_order(Endpoints endpoints, const FailedEndpoints& failed, Clock::time_point now);

// Is told what was learned about an endpoint: a connection was made, or none could be made in time.
using EndpointObserver = std::function<void(const Endpoint& endpoint, bool works)>;

// Decides when the attempts to connect to the endpoints of one host begin and when they are given
// up (RFC 8305, section 5). An attempt begins when an earlier one has failed, or 250 ms after the
// one before it. With many endpoints and little time the delay is shorter, so that each has its
// turn before the deadline. Attempts go on until one succeeds or the deadline passes.
//
//   while (auto n = race.begin(now)) start(n);  // and again at next(), and after each failed()
class ConnectRace {
 public:
  ConnectRace(std::size_t endpoints, Clock::time_point now, Deadline deadline);

  // The number of the endpoint whose attempt begins now. Call it until it returns nothing.
  std::optional<std::size_t> begin(Clock::time_point now);
  // The attempt has failed, so the next one is due.
  void failed(std::size_t endpoint, Error error);
  // Attempts that have had at least the delay and still are under way: the endpoints are too slow
  // when another one connects or the deadline passes.
  [[nodiscard]] std::vector<std::size_t> slow(Clock::time_point now) const;
  // When to call begin() and given_up() again while no attempt ends.
  [[nodiscard]] Deadline next() const;
  // Why there will be no connection: the last error when all attempts have failed, or timeout.
  // Nothing while an attempt is under way or due.
  [[nodiscard]] std::optional<Error> given_up(Clock::time_point now) const;

 private:
  struct Attempt {
    Clock::time_point begun;
    bool failed = false;
  };

  std::size_t endpoints_;
  Deadline deadline_;
  Clock::duration delay_;
  Clock::time_point due_;          // when the next attempt begins
  std::vector<Attempt> attempts_;  // that have begun
  std::size_t under_way_ = 0;
  Error last_;
};

}  // namespace gitops::net
