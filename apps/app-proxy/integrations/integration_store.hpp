#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/integrations/integration.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Git integrations in the Secrets of the runtime's namespace. Every call but recent() reads them again,
// so that several replicas agree; a write that meets a newer version is made again upon that. Loop
// thread only; `cluster` outlives it.
class IntegrationStore {
 public:
  IntegrationStore(k8s::Client& cluster, std::string ns);

  // All that can be read, of all accounts, by name. A Secret that cannot be read is left out, with a
  // warning in the log.
  Task<Result<std::vector<Integration>>> list(Deadline deadline);
  // `not_found` when there is none (unknown_integration()).
  Task<Result<Integration>> get(std::string name, std::string account_id, Deadline deadline);
  // The same, as it was read at most a second ago, or as one of the calls here has left it. Never
  // null. What another replica writes is seen a second later.
  Task<Result<std::shared_ptr<const Integration>>> recent(std::string name, std::string account_id,
                                                          Deadline deadline);
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
  struct Forgets;
  static constexpr std::chrono::seconds kRecent{1};
  static constexpr std::size_t kMaxRecent = 64;
  struct Recent {
    std::shared_ptr<const Integration> integration;
    Clock::time_point until;
  };

  [[nodiscard]] k8s::ObjectKey key_of(std::string_view name, std::string_view account_id) const;

  Log log_{"git-integrations"};
  RepeatFilter unreadable_{std::chrono::minutes(10)};
  k8s::Client& cluster_;
  std::string ns_;
  std::map<std::string, Recent> recent_;  // by the Secret's name
  std::uint64_t writes_ = 0;              // a read that began before a write is not kept
};

}  // namespace gitops::app_proxy
