#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app-proxy/users/caller.hpp"
#include "common/control_plane/access_rules.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

using control_plane::AbacRule;
using control_plane::Action;
using control_plane::Entity;
using control_plane::EntityType;

// The account's rules and teams, fetched from the control plane periodically. While they are
// missing or too old, only administrators may do what needs them. Loop thread only; call stop()
// before destruction.
class Rules {
 public:
  struct Options {
    std::chrono::milliseconds refresh;  // the period
    std::chrono::milliseconds max_age;  // rules older than this allow nothing
    std::chrono::milliseconds timeout{10'000};
  };
  // `account` returns an empty text until the account is known.
  Rules(const Executor& executor, control_plane::GraphqlClient& control_plane,
        std::function<std::string()> account, Metrics& metrics, Options options);

  void start();
  Task<> stop();

  // Checks a user's permission. Administrators of the account may do everything. Errors: forbidden;
  // unavailable while the rules are missing or too old.
  [[nodiscard]] Result<void> check(const User& user, Action action, const Entity& entity) const;

  // Fetches once; returns true when all of it was received. start() calls it.
  Task<bool> refresh();
  // Error of the rules for this type; empty when they are usable.
  [[nodiscard]] std::string last_error(EntityType type) const;
  // Entry for /statusz: "rules for gitSource: fresh".
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
