#pragma once

#include <functional>
#include <memory>

#include "common/core/task_group.hpp"
#include "common/net/resolve.hpp"
#include "common/proxy/server.hpp"
#include "request-router/access_log.hpp"
#include "request-router/config.hpp"
#include "request-router/routing.hpp"
#include "request-router/traffic.hpp"
#include "request-router/webhooks.hpp"

namespace gitops::router {

// Shared state of all loops. Thread-safe; it must outlive the workers.
struct WorkerContext {
  const Config& config;
  net::Resolver& names;               // for the configured upstreams
  net::Resolver& event_source_names;  // for names that unauthenticated senders choose
  LineWriter& access_log;
  Traffic& traffic;
  Webhooks& webhooks;
  std::shared_ptr<proxy::Totals> totals;
  Tracer* tracer = nullptr;  // null: no spans
  std::function<std::string()> app_proxy_down;
  std::function<void(const std::string& why)> fail;
};

// Serves clients on one loop, with its own listener, upstream connections, timers and routes.
// Constructed and destroyed while the loop does not run; all calls are for the loop's thread.
class Worker {
 public:
  // Port 0 selects any free port, see port().
  Worker(const Executor& executor, std::uint16_t port, const WorkerContext& context);

  Result<void> start(const RouteSettings& settings, std::shared_ptr<Gates> gates);
  // Applies new routes. Requests in flight keep their routes, and unchanged upstreams keep their
  // connections.
  void use(const RouteSettings& settings, std::shared_ptr<Gates> gates);
  // Stops accepting.
  void drain() { server_.drain(); }
  // Waits for requests in flight until the deadline, then cancels them.
  Task<> stop(Deadline deadline);

  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] std::shared_ptr<Routing> routing() const { return routing_; }

 private:
  void done(const proxy::TransactionRecord& record);
  Task<> do_housekeeping();

  const WorkerContext& context_;
  Executor executor_;
  AccessLog access_log_;
  std::shared_ptr<Routing> routing_;
  proxy::Server server_;
  TaskGroup tasks_;
};

}  // namespace gitops::router
