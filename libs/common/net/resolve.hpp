#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "common/core/async.hpp"

namespace gitops::net {

// Name lookup by getaddrinfo on the pool: cached (positive 30 s, negative 2 s), equal lookups
// merged, and a waiter that is cancelled or out of time leaves without waiting for getaddrinfo. IP
// literals never touch the pool. Loop thread only.
class Resolver {
 public:
  Resolver(const Executor& executor, asio::thread_pool& pool);
  ~Resolver();

  // At least one endpoint, in the system's order of preference; not_found when there is no such
  // host.
  Task<Result<std::vector<asio::ip::tcp::endpoint>>> resolve(std::string host, std::uint16_t port,
                                                             Deadline deadline);
  // Forgets a host, e.g. after all its addresses refused.
  void forget(const std::string& host);

 private:
  struct Entry;
  struct State;
  std::shared_ptr<State> state_;  // outlives lookups that are still on the pool
};

}  // namespace gitops::net
