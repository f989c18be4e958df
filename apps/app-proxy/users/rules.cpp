#include "app-proxy/users/rules.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/gauge.h>

#include "common/core/backoff.hpp"

namespace gitops::app_proxy {

Rules::Rules(const Executor& executor, control_plane::GraphqlClient& control_plane,
             std::function<std::string()> account, Metrics& metrics, Options options)
    : control_plane_(control_plane),
      account_(std::move(account)),
      options_(options),
      age_(metrics.gauge("gitops_app_proxy_rules_loaded",
                         "Types of entities whose rules are fresh enough to be used")),
      tasks_(executor) {}

void Rules::start() {
  tasks_.spawn("rules", [this] { return refresh_rules(); });
}

Task<> Rules::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

void Rules::complain(const std::string& what, const Error& error) {
  if (const auto verdict = repeated_.check(what, Clock::now()); verdict.pass) {
    log_.warning("cannot be fetched from the control plane",
                 {{"what", what}, {"error", error.message}, {"suppressed", verdict.suppressed}});
  }
}

Task<bool> Rules::refresh() {
  const std::string account = account_();
  if (account.empty()) co_return false;
  bool complete = true;
  auto teams = co_await control_plane_.teams(deadline_after(options_.timeout));
  if (teams) {
    teams_ = std::move(*teams);
    teams_when_ = Clock::now();
  } else {
    complain("teams", teams.error());
    complete = false;
  }
  for (const EntityType type : control_plane::entity_types()) {
    auto rules = co_await control_plane_.abac_rules(account, to_string(type),
                                                    deadline_after(options_.timeout));
    if (rules) {
      rules_[type] = {.rules = std::move(*rules), .when = Clock::now()};
    } else {
      complain("rules for " + std::string(to_string(type)), rules.error());
      complete = false;
    }
  }
  double loaded = 0;
  for (const EntityType type : control_plane::entity_types())
    loaded += last_error(type).empty() ? 1 : 0;
  age_.Set(loaded);
  co_return complete;
}

Task<> Rules::refresh_rules() {
  Backoff backoff({.initial = std::chrono::seconds(1), .max = options_.refresh}, random_seed());
  while (true) {
    const bool complete = co_await refresh();
    if (complete) backoff.reset();
    // Full jitter would halve the mean period; a tenth of it spreads enough.
    co_await sleep_for(complete ? backoff.next(options_.refresh) : backoff.next());
    if (complete) backoff.reset();
  }
}

std::string Rules::last_error(EntityType type) const {
  const auto found = rules_.find(type);
  if (found == rules_.end() || !teams_when_) {
    return "the rules of the account have not been fetched yet";
  }
  const auto oldest = std::min(found->second.when, *teams_when_);
  return Clock::now() - oldest > options_.max_age
             ? "the rules of the account are too old, since the control plane cannot be asked"
             : "";
}

StatusEntry Rules::status(EntityType type) const {
  auto entry = status_entry("rules for " + std::string(to_string(type)), last_error(type), "fresh");
  if (!rules_.contains(type) || !teams_when_) entry.state = StatusState::pending;
  return entry;
}

Result<void> Rules::check(const User& user, Action action, const Entity& entity) const {
  if (user.is_admin) return {};
  if (auto why = last_error(entity.type); !why.empty()) {
    return std::unexpected(
        Error{.code = ErrorCode::unavailable, .message = std::move(why), .http_status = 503});
  }
  const auto teams = teams_.find(user.id);
  if (!user.id.empty() && teams != teams_.end() &&
      control_plane::allowing_rule(rules_.at(entity.type).rules, teams->second, action, entity) !=
          nullptr) {
    return {};
  }
  return std::unexpected(
      Error{.code = ErrorCode::forbidden,
            .message = "no rule of the account allows " + std::string(to_string(action)),
            .http_status = 403});
}

}  // namespace gitops::app_proxy
