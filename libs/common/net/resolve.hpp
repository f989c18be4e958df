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

// Resolves a host by the system (getaddrinfo). Returns at least one address, in the system's order
// of preference. Blocks while the name servers are queried. Errors: not_found, if the host does not
// exist.
Result<Addresses> look_up(const std::string& host);

// Identity of the client for which a name is looked up: one object for each client.
using LookupClient = std::shared_ptr<const void>;

// Name lookup on dedicated threads. Thread-safe; coroutines of several loops may share one.
//
// Concurrent lookups of one name are merged, and a waiter leaves when it is cancelled or reaches
// its deadline. Results are cached for 30 s, failures for 2 s. While no new result is available
// (the name servers fail or are slow, or too many lookups are in progress), the last good result is
// used for up to 5 minutes. Only "no such host" ends it earlier.
//
// Also remembers endpoints that failed to connect, for all clients that share the resolver.
//
// Names chosen by untrusted clients need a Resolver of their own, so that they can neither evict
// configured names from the cache nor delay their lookups.
class Resolver {
 public:
  struct Options {
    std::string name = "lookup";  // of the worker pool
    std::size_t threads = 2;      // concurrent lookups
    std::size_t max_queued = 64;  // lookups waiting for a thread; more are refused
    // Limit for each client, if above 0: clients take turns, the lookups of one use at most half of
    // the threads, and about this many wait; more are refused.
    std::size_t max_queued_per_client = 0;
    std::size_t max_names = 1'000;  // cached names; the oldest are evicted
    std::function<Result<Addresses>(const std::string& host)> look_up = net::look_up;
  };
  // `metrics` must outlive the resolver.
  explicit Resolver(Metrics& metrics) : Resolver(metrics, Options()) {}
  Resolver(Metrics& metrics, Options options);
  // Waits up to 2 s for lookups in progress (WorkerPool).
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Returns at least one endpoint, in the order of attempts (attempt_order()). An IP address needs
  // no lookup. Errors: not_found (no such host), unavailable, timeout, too_many_requests.
  Task<Result<Endpoints>> resolve(std::string host, std::uint16_t port, Deadline deadline,
                                  LookupClient client = {});
  // Makes the next resolve() query the name servers, even if the result is fresh, because the
  // addresses may have changed; within a second of the last call, the first one after that second.
  // The last good result is kept in case they fail.
  void look_again(const std::string& host);
  // Records whether an endpoint accepted a connection, for the order of later attempts.
  void note(const Endpoint& endpoint, bool works);

 private:
  struct Entry;
  class State;
  std::shared_ptr<State> state_;      // outlives lookups still on the pool
  std::shared_ptr<WorkerPool> pool_;  // owned by the Resolver
};

}  // namespace gitops::net
