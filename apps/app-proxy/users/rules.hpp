#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app-proxy/users/caller.hpp"
#include "app-proxy/users/permissions.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

// The account's rules and teams, fetched from the control plane now and then, and what they allow.
// While they are missing or too old, nobody but administrators may do anything that needs them. Loop
// thread only; stop() before the end.
class Rules {
 public:
  struct Options {
    std::chrono::milliseconds refresh;  // the period
    std::chrono::milliseconds max_age;  // older rules allow nothing
    std::chrono::milliseconds timeout{10'000};
  };
  // `account` is empty until the account is known.
  Rules(const Executor& executor, control_plane::GraphqlClient& control_plane,
        std::function<std::string()> account, Metrics& metrics, Options options);

  void start();
  Task<> stop();

  // Administrators of the account may do everything. Errors: forbidden; unavailable while the rules are
  // missing or too old.
  [[nodiscard]] Result<void> check(const User& user, Action action, const Entity& entity) const;

  // Fetches once; true when all of it came. start() calls it.
  Task<bool> refresh();
  // Why rules for this type are not usable; empty when they are.
  [[nodiscard]] std::string last_error(EntityType type) const;
  // For /statusz: "rules for gitSource: fresh".
  [[nodiscard]] StatusEntry status(EntityType type) const;

 private:
  struct Fetched {
    std::vector<AbacRule> rules;
    Clock::time_point when;
  };
  Task<> refresh_rules();
  void complain(const std::string& what, const Error& error);

  control_plane::GraphqlClient& control_plane_;
  std::function<std::string()> account_;
  Options options_;
  std::map<EntityType, Fetched> rules_;
  std::map<std::string, std::vector<std::string>> teams_;  // of each user, by id
  std::optional<Clock::time_point> teams_when_;
  Gauge& age_;
  Log log_{"rules"};
  RepeatFilter repeated_{std::chrono::minutes(5)};
  TaskGroup tasks_;
};

}  // namespace gitops::app_proxy
