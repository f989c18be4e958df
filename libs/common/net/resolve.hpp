#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/worker_pool.hpp"
#include "common/net/happy_eyeballs.hpp"

namespace gitops::net {

using Addresses = std::vector<asio::ip::address>;

// Asks the system (getaddrinfo) for the addresses of a host: at least one, in the system's order of
// preference. Blocks while the name servers are asked. not_found: the host does not exist.
Result<Addresses> look_up(const std::string& host);

// For whom a name is looked up: one object for each client, of which only the identity counts.
using LookupClient = std::shared_ptr<const void>;

// Name lookup on dedicated threads. Thread-safe; coroutines of several loops may share one.
//
// Concurrent lookups of one name are merged, and a waiter leaves when it is cancelled or reaches
// its deadline. Answers are cached for 30 s, failures for 2 s. While no new answer is available
// (the name servers fail or are slow, or too many lookups are in progress), the last good answer is
// used for up to 5 minutes. Only "no such host" ends it earlier.
//
// It also remembers which endpoints could not be connected to, for all clients that share it.
//
// Names that are chosen by untrusted clients need a Resolver of their own, so that they can neither
// evict configured names from the cache nor delay their lookups.
class Resolver {
 public:
  struct Options {
    std::string name = "lookup";  // of the worker pool
    std::size_t threads = 2;      // lookups at a time
    std::size_t max_queued = 64;  // lookups that wait for a thread; more are refused
    // When above 0, clients take turns: the lookups for one of them take half of the threads at
    // most, and about this many wait; more are refused.
    std::size_t max_queued_per_client = 0;
    std::size_t max_names = 1'000;  // remembered; the oldest go first
    std::function<Result<Addresses>(const std::string& host)> look_up = net::look_up;
  };
  // `metrics` outlives the resolver.
  explicit Resolver(Metrics& metrics) : Resolver(metrics, Options()) {}
  Resolver(Metrics& metrics, Options options);
  // Waits up to 2 s for a lookup that is under way (WorkerPool).
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // At least one endpoint, in the order in which to try them (attempt_order()); an IP address needs
  // no lookup. Errors: not_found (no such host), unavailable, timeout, too_many_requests.
  Task<Result<Endpoints>> resolve(std::string host, std::uint16_t port, Deadline deadline,
                                  LookupClient client = {});
  // Has the next resolve() ask the name servers, however fresh the answer is: its addresses may have
  // changed. The last good answer stays for the case that they fail.
  void look_again(const std::string& host);
  // Remembers for the order of later attempts whether an endpoint could be connected to.
  void note(const Endpoint& endpoint, bool works);

 private:
  struct Entry;
  class State;
  std::shared_ptr<State> state_;      // outlives lookups that are still on the pool
  std::shared_ptr<WorkerPool> pool_;  // Resolver owns it
};

}  // namespace gitops::net
