#include "peers/permission_audit.hpp"

#include <sstream>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::test {

using Json = nlohmann::json;
using namespace nlohmann::literals;

namespace {

// The authorizer's decision; an admission plugin may refuse what it has allowed.
bool is_allowed(const Json& event) {
  return event.value("/annotations/authorization.k8s.io~1decision"_json_pointer, "") == "allow";
}

void add_use(const Json& event, std::set<PermissionUse>& uses) {
  const auto& object = event.at("objectRef");
  auto resource = object.value("resource", "");
  if (object.contains("subresource")) resource += "/" + object.value("subresource", "");
  const auto account = event.value("account", "");
  const auto group = object.value("apiGroup", "");
  const auto verb = event.value("verb", "");
  uses.emplace(account, group, resource, verb);
  // An apply that creates the object needs both permissions, and is logged once.
  if (verb == "patch" && event.value("/responseStatus/code"_json_pointer, 0) == 201) {
    uses.emplace(account, group, resource, "create");
  }
}

}  // namespace

std::set<PermissionUse> permissions_granted(const std::vector<Json>& objects,
                                            const std::string& ns) {
  std::set<PermissionUse> grants;
  for (const auto& object : objects) {
    if (object["kind"] != "Role" && object["kind"] != "ClusterRole") continue;
    std::string account = object["metadata"]["name"];
    if (object["kind"] == "ClusterRole") account.erase(0, ns.size() + 1);
    for (const auto& rule : object["rules"]) {
      for (const auto& group : rule["apiGroups"]) {
        for (const auto& resource : rule["resources"]) {
          for (const auto& verb : rule["verbs"]) grants.emplace(account, group, resource, verb);
        }
      }
    }
  }
  return grants;
}

PermissionAudit::PermissionAudit(std::vector<std::string> namespaces) {
  for (auto& ns : namespaces) ns.insert(0, "system:serviceaccounts:");
  const Json policy{
      {"apiVersion", "audit.k8s.io/v1"},
      {"kind", "Policy"},
      {"omitStages", {"RequestReceived"}},
      {"rules",
       {{{"level", "Metadata"}, {"userGroups", std::move(namespaces)}}, {{"level", "None"}}}}};
  write_file(folder_ / "policy.json", policy.dump());
  flags_ = {"--audit-policy-file", folder_ / "policy.json", "--audit-log-path",
            folder_ / "audit.log",
            // Without streaming lists, as before Kubernetes 1.32: only then a list is asked for.
            "--feature-gates=WatchList=false"};
}

std::vector<Json> PermissionAudit::events(const std::string& ns) const {
  std::vector<Json> events;
  std::istringstream lines(read_file(folder_ / "audit.log"));
  const std::string prefix = "system:serviceaccount:" + ns + ":";
  for (std::string line; std::getline(lines, line);) {
    auto event = Json::parse(line, nullptr, false);
    // The last line may be half written.
    if (event.is_discarded() || !event.contains("objectRef")) continue;
    const auto user = event.value("/user/username"_json_pointer, "");
    if (!user.starts_with(prefix)) continue;
    event["account"] = user.substr(prefix.size());
    events.push_back(std::move(event));
  }
  return events;
}

std::set<PermissionUse> PermissionAudit::used(const std::string& ns) const {
  std::set<PermissionUse> uses;
  for (const auto& event : events(ns)) {
    // Everybody may ask what he may do.
    const auto group = event.value("/objectRef/apiGroup"_json_pointer, "");
    if (is_allowed(event) && group != "authorization.k8s.io") add_use(event, uses);
  }
  return uses;
}

std::set<PermissionUse> PermissionAudit::used_outside(const std::string& ns) const {
  std::set<PermissionUse> uses;
  for (const auto& event : events(ns)) {
    const auto where = event.value("/objectRef/namespace"_json_pointer, "");
    if (is_allowed(event) && where != ns) add_use(event, uses);
  }
  return uses;
}

std::vector<std::string> PermissionAudit::refused(const std::string& ns) const {
  std::vector<std::string> refused;
  for (const auto& event : events(ns)) {
    if (is_allowed(event)) continue;
    refused.push_back(event.value("account", "") + ": " + event.value("verb", "") + " " +
                      event.value("requestURI", ""));
  }
  return refused;
}

void expect_each_used(const std::set<PermissionUse>& granted, const std::set<PermissionUse>& used) {
  EXPECT_THAT(granted, testing::Not(testing::IsEmpty()));
  for (const auto& right : granted) {
    EXPECT_TRUE(used.contains(right))
        << testing::PrintToString(right) << " is granted, and no call needs it";
  }
}

void expect_each_granted(const std::set<PermissionUse>& used,
                         const std::set<PermissionUse>& granted) {
  for (const auto& use : used) {
    EXPECT_TRUE(granted.contains(use)) << testing::PrintToString(use) << " is from elsewhere";
  }
}

}  // namespace gitops::test
