#pragma once

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
#include "event-reporter/shards/shard.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/config.hpp"

namespace gitops::reporter {

// The settings, and the objects outside the process that they name.
struct Environment {
  Config config;
  k8s::ClusterConfig cluster;
  http::ProxySettings proxy;
  std::string own_namespace;
  Shard shard;
};
Result<Environment> read_environment(const Config& config,
                                     const std::map<std::string, std::string>& environment);

// Returns the User-Agent of all requests.
std::string user_agent(const Config& config);
http::ClientOptions client_options(const Environment& environment, const std::string& ca_file,
                                   bool insecure);
// Returns the content of `file`, or `value` when no file is given.
Credential file_or_value(const std::string& file, const Secret& value);

// The parts that both modes use. A mode's own parts are constructed after these. Members are in
// order of dependence: later ones use earlier ones. Loop thread only.
class SharedParts {
 public:
  SharedParts(const DaemonContext& context, Environment settings);

  // Opens the ledger. Fails when its file belongs to the other mode, whose entries would be taken
  // for deleted objects.
  Task<Result<void>> open_ledger();
  // Starts writing the ledger to its file.
  void start_ledger();
  // Waits for the events in flight until the deadline, writes the ledger, then cancels and joins all
  // tasks. The next start reports the rest.
  Task<> finish(Deadline deadline);
  // Returns the last entries of /statusz; `entries` names the kind of the ledger's entries.
  [[nodiscard]] StatusReport ledger_status(std::string_view entries) const;

  Environment environment;
  net::Resolver resolver;
  k8s::Client kubernetes;
  http::Client platform_http;
  Credential platform_token;
  control_plane::Client platform;
  Ledger ledger;
  Delivery delivery;
  TaskGroup tasks;
};

}  // namespace gitops::reporter
