#include "app-proxy/integrations/validity_check.hpp"

#include <algorithm>
#include <utility>

#include "common/core/backoff.hpp"

namespace gitops::app_proxy {

std::chrono::milliseconds pause_between_checks(std::chrono::milliseconds period, std::size_t tokens,
                                               std::minstd_rand& random) {
  const auto share = period.count() / static_cast<std::int64_t>(std::max<std::size_t>(tokens, 1));
  std::uniform_int_distribution<std::int64_t> around(share / 2, share + share / 2);
  return std::chrono::milliseconds(around(random));
}

ValidityCheck::ValidityCheck(GitIntegrations& integrations, Leadership& leadership, Options options)
    : integrations_(integrations),
      leadership_(leadership),
      options_(options),
      random_(random_seed() % 0x7fffffff) {}

void ValidityCheck::start(TaskGroup& group) {
  group.spawn("validity of Git tokens", [this]() -> Task<> {
    while (true) {
      if (leadership_.leads()) {
        co_await round();
      } else {
        (void)co_await leadership_.changed().wait(deadline_after(options_.timeout));
      }
    }
  });
}

Task<> ValidityCheck::round() {
  const auto all = co_await integrations_.store().list(deadline_after(options_.timeout));
  if (!all) {
    if (failures_.check("list", Clock::now()).pass) {
      log_.warning("Git tokens are not checked now", {{"reason", all.error().message}});
    }
    co_await sleep_for(pause_between_checks(options_.period, 10, random_));
    co_return;
  }
  std::size_t tokens = 0;
  for (const auto& integration : *all) tokens += integration.users.size();
  if (tokens == 0) co_await sleep_for(pause_between_checks(options_.period, 1, random_));
  for (const auto& integration : *all) {
    for (const auto& user : integration.users) {
      co_await sleep_for(pause_between_checks(options_.period, tokens, random_));
      if (!leadership_.leads()) co_return;
      // Reads the present state, since a round takes long.
      const auto fresh = co_await integrations_.store().get(
          integration.name, integration.account_id, deadline_after(options_.timeout));
      if (!fresh) continue;
      co_await integrations_.check(*fresh, user.user_id, deadline_after(options_.timeout));
    }
  }
}

}  // namespace gitops::app_proxy
