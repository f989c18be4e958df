#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "support/process.hpp"

namespace gitops::test {

/// One verb on one resource ("secrets", "rollouts/status") by one ServiceAccount: account, group,
/// resource, verb.
using PermissionUse = std::tuple<std::string, std::string, std::string, std::string>;

/// The permissions in the rules of the Roles and ClusterRoles among these objects, rendered for the
/// namespace. An account has the name of its Role.
std::set<PermissionUse> permissions_granted(const std::vector<nlohmann::json>& objects,
                                            const std::string& ns);

/// An audit log of what the ServiceAccounts of some namespaces ask a kube-apiserver for. Outlives the
/// server that was started with its flags.
class PermissionAudit {
 public:
  explicit PermissionAudit(std::vector<std::string> namespaces);

  /// Of the API server.
  const std::vector<std::string>& flags() const { return flags_; }

  /// The permissions that accounts of this namespace have asked for and got; without those that
  /// everybody has.
  std::set<PermissionUse> used(const std::string& ns) const;
  /// Only those on objects of other namespaces, for which no Role is enough.
  std::set<PermissionUse> used_outside(const std::string& ns) const;
  /// What these accounts were refused for want of a right: "account: verb URI".
  std::vector<std::string> refused(const std::string& ns) const;

 private:
  std::vector<nlohmann::json> events(const std::string& ns) const;

  TempDir folder_;
  std::vector<std::string> flags_;
};

void expect_each_used(const std::set<PermissionUse>& granted, const std::set<PermissionUse>& used);
void expect_each_granted(const std::set<PermissionUse>& used,
                         const std::set<PermissionUse>& granted);

}  // namespace gitops::test
