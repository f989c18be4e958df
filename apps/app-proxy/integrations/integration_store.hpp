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

// Git integrations, stored in Secrets of the runtime's namespace. Every call except recent() reads
// the Secrets again, so that several replicas agree. A write that conflicts with a newer version is
// repeated on top of it. Loop thread only; `cluster` outlives it.
class IntegrationStore {
 public:
  IntegrationStore(k8s::Client& cluster, std::string ns);

  // Returns all readable integrations, of all accounts, by name. An unreadable Secret is left out
  // and logged as a warning.
  Task<Result<std::vector<Integration>>> list(Deadline deadline);
  // Returns an integration; `not_found` when there is none (unknown_integration()).
  Task<Result<Integration>> get(std::string name, std::string account_id, Deadline deadline);
  // Returns an integration from a cache with entries of at most one second, which writes of this
  // object update. Never null. Writes of other replicas are visible after a second.
  Task<Result<std::shared_ptr<const Integration>>> recent(std::string name, std::string account_id,
                                                          Deadline deadline);
  // Creates an integration; `conflict` when it exists. A Secret of that name in another form is
  // converted; its other contents are kept.
  Task<Result<void>> create(Integration integration, Deadline deadline);
  Task<Result<void>> remove(std::string name, std::string account_id, Deadline deadline);

  // Changes an integration and returns the result. `change` gets the stored integration, perhaps
  // several times, and returns whether to write it.
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
  std::uint64_t writes_ = 0;              // a read that started before a write is not cached
};

}  // namespace gitops::app_proxy
