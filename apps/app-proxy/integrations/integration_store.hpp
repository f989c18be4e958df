#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/integrations/integration.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Git integrations in the Secrets of the runtime's namespace. Every call reads them anew, so that
// several replicas agree; a write that meets a newer version is made again upon that. Loop thread
// only; `cluster` outlives it.
class IntegrationStore {
 public:
  IntegrationStore(k8s::Client& cluster, std::string ns);

  // All that can be read, of all accounts, by name. A Secret that cannot be read is left out, with a
  // warning in the log.
  Task<Result<std::vector<Integration>>> list(Deadline deadline);
  // `not_found` when there is none (unknown_integration()).
  Task<Result<Integration>> get(std::string name, std::string account_id, Deadline deadline);
  // `conflict` when it exists. A Secret of that name in another form becomes one in ours; what else
  // it holds stays.
  Task<Result<void>> create(Integration integration, Deadline deadline);
  Task<Result<void>> remove(std::string name, std::string account_id, Deadline deadline);

  // Changes an integration: `change` gets it as stored, perhaps several times, and says whether it is
  // to be written. Returns it as it then is.
  using Change = std::function<Result<bool>(Integration&)>;
  Task<Result<Integration>> apply(std::string name, std::string account_id, Change change,
                                  Deadline deadline);

 private:
  [[nodiscard]] k8s::ObjectKey key_of(std::string_view name, std::string_view account_id) const;

  Log log_{"git-integrations"};
  RepeatFilter unreadable_{std::chrono::minutes(10)};
  k8s::Client& cluster_;
  std::string ns_;
};

}  // namespace gitops::app_proxy
