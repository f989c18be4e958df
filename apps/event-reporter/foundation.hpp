#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/control_plane/events.hpp"
#include "common/core/credential.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/client.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/net/resolve.hpp"
#include "event-reporter/config.hpp"
#include "event-reporter/delivery/delivery.hpp"
#include "event-reporter/ledger/ledger.hpp"
#include "event-reporter/shards/shard_leases.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/config.hpp"

namespace gitops::reporter {

// What was read from outside before the parts could be made.
struct Environment {
  Config config;
  k8s::ClusterConfig cluster;
  http::ProxySettings proxy;
  std::string own_namespace;
  Shard shard;
};
Result<Environment> read_environment(const Config& config,
                                     const std::map<std::string, std::string>& environment);

http::ClientOptions client_options(const Environment& with, const std::string& ca_file,
                                   bool insecure);
// `name`: of the Leases, without the shard.
ShardLeases::Options lease_options(const Environment& with, std::string name);

// The parts that every mode stands on. Members are in order of dependence: later ones use earlier
// ones. A mode's own parts come behind it.
class Foundation {
 public:
  Foundation(const DaemonContext& context, Environment environment);

  // Opens the ledger, which belongs to one mode: what another one reported would look deleted.
  Task<Result<void>> open_ledger();
  // From then on it is written.
  void start_ledger();
  // Events that are on their way to the control plane may arrive, and are written down; everything
  // else is found again by the next start. Afterwards no task runs any more.
  Task<> finish(Deadline deadline);
  // The last line of /statusz; `what` the ledger has entries of.
  [[nodiscard]] std::string ledger_status(std::string_view what) const;

  Environment with;
  net::Resolver resolver;
  k8s::Client kubernetes;
  http::Client platform_http;
  Credential platform_token;
  control_plane::Client platform;
  Ledger ledger;
  Delivery delivery;
  TaskGroup tasks;
};

// A mode as the daemon's frame runs it.
template <class App>
DaemonApp framed(const std::shared_ptr<App>& app) {
  DaemonApp frame;
  frame.start = [app] { return app->start(); };
  frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
  frame.ready_checks = app->ready_checks();
  frame.status = [app] { return app->status(); };
  frame.pages["/journal"] = [app](std::string_view query) { return app->journal(query); };
  return frame;
}

}  // namespace gitops::reporter
