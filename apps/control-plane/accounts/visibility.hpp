#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "common/store/connection.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/projection/object.hpp"

// Rules with the action VIEW: the Applications that a caller may see. A hidden one looks as if it did not exist.
namespace gitops::control_plane_server {

inline constexpr std::string_view kApplicationEntity = "gitopsApplications";
inline constexpr std::string_view kDefaultViewRule =
    "default-view";  // id of a rule that is not stored

// Makes the entity of an Application from its row and its JSON, which may be empty when needs_body() is false.
control_plane::Entity entity_of(const ObjectState& state, JsonView application);

// The Applications that one caller may see. Administrators and runtimes see all. While the account has no VIEW rule,
// every user sees all, and so does a service account in the team of all users; with the first one a caller sees what the
// rules of its teams name. Pure.
class Visibility {
 public:
  // Everything is visible.
  Visibility() = default;
  // Keeps the VIEW rules among `rules` that name one of these teams.
  Visibility(std::span<const AbacRule> rules, std::span<const std::string> teams);

  [[nodiscard]] bool is_everything() const { return is_everything_; }
  [[nodiscard]] bool is_nothing() const { return !is_everything_ && rules_.empty(); }
  // Returns whether shows() reads the Application's JSON.
  [[nodiscard]] bool needs_body() const;
  // Returns whether one of the rules fits this Application.
  [[nodiscard]] bool shows(const ObjectState& state, JsonView application) const;
  // Returns the values of an attribute when every rule limits it, so that a statement can select by them; nothing when a
  // rule does not limit it. The labels are "key" or "key=value".
  [[nodiscard]] std::optional<std::vector<std::string>> values_of(std::string_view attribute) const;

 private:
  bool is_everything_ = true;
  std::vector<AbacRule> rules_;
};

// Reads the rules and the teams of the caller.
Result<Visibility> visibility_of(store::Connection& connection, const Caller& caller);

// Returns the rules with the one that stands for "no VIEW rule", for runtimes, which refuse what no rule allows: the team
// of all users may view every Application.
Result<std::vector<AbacRule>> with_default_view(store::Connection& connection, std::int64_t account,
                                                std::vector<AbacRule> rules);

}  // namespace gitops::control_plane_server
