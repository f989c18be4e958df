#include "doubles/kube_discovery.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "doubles/double_server.hpp"
#include "doubles/kube_failure.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;
using Groups = std::map<std::string, std::set<std::string>>;  // with their versions

constexpr const char* kReviews = "authorization.k8s.io";
constexpr const char* kAuthentication = "authentication.k8s.io";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Groups groups_of(const std::map<std::string, KubeType>& types) {
  Groups groups;
  for (const auto& [id, type] : types) {
    if (!type.resource.group.empty()) groups[type.resource.group].insert(type.resource.version);
  }
  groups[kReviews].insert("v1");
  groups[kAuthentication].insert("v1");
  return groups;
}

Json describe_group(const std::string& name, const std::set<std::string>& versions) {
  Json list = Json::array();
  for (const auto& version : versions) {
    list.push_back({{"groupVersion", name + "/" + version}, {"version", version}});
  }
  return Json{{"name", name}, {"versions", list}, {"preferredVersion", list.back()}};
}

Json describe_resource(const std::string& name, const k8s::Resource& resource,
                       std::vector<std::string> verbs) {
  return {{"name", name},
          {"singularName", lower(resource.kind)},
          {"namespaced", resource.namespaced},
          {"kind", resource.kind},
          {"shortNames", short_names(name)},
          {"verbs", std::move(verbs)}};
}

Json resources_of(const std::map<std::string, KubeType>& types, const std::string& group,
                  const std::string& version) {
  Json resources = Json::array();
  for (const auto& [id, type] : types) {
    const auto& resource = type.resource;
    if (resource.group != group || resource.version != version) continue;
    resources.push_back(describe_resource(
        resource.plural, resource,
        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}));
    if (type.status_subresource) {
      resources.push_back(
          describe_resource(resource.plural + "/status", resource, {"get", "patch", "update"}));
    }
    if (resource.plural == "serviceaccounts") {
      resources.push_back(describe_resource(
          "serviceaccounts/token", {kAuthentication, "v1", "", "TokenRequest", true}, {"create"}));
    }
  }
  if (group == kReviews) {
    resources.push_back(describe_resource("selfsubjectaccessreviews",
                                          k8s::resources::kSelfSubjectAccessReviews, {"create"}));
  }
  if (group == kAuthentication) {
    resources.push_back(
        describe_resource("selfsubjectreviews", k8s::resources::kSelfSubjectReviews, {"create"}));
  }
  return resources;
}

http::Response core_versions() {
  return json_response(200, Json{{"kind", "APIVersions"},
                                 {"versions", {"v1"}},
                                 {"serverAddressByClientCIDRs", Json::array()}}
                                .dump());
}

http::Response group_list(const Groups& groups) {
  Json list = Json::array();
  for (const auto& [name, versions] : groups) list.push_back(describe_group(name, versions));
  return json_response(
      200,
      Json{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}}.dump());
}

http::Response one_group(const std::string& name, const std::set<std::string>& versions) {
  Json described = describe_group(name, versions);
  described["kind"] = "APIGroup";
  described["apiVersion"] = "v1";
  return json_response(200, described.dump());
}

}  // namespace

http::Response kube_discovery(const std::map<std::string, KubeType>& types,
                              const std::vector<std::string>& path) {
  const bool core = path[0] == "api";
  const auto groups = groups_of(types);
  if (path.size() == 1) return core ? core_versions() : group_list(groups);
  std::string group;
  std::string version = path[1];
  if (core) {
    if (version != "v1") return page_not_found();
  } else {
    group = path[1];
    const auto found = groups.find(group);
    if (found == groups.end()) return page_not_found();
    if (path.size() == 2) return one_group(group, found->second);
    version = path[2];
    if (!found->second.contains(version)) return page_not_found();
  }
  return json_response(200, Json{{"kind", "APIResourceList"},
                                 {"apiVersion", "v1"},
                                 {"groupVersion", group.empty() ? version : group + "/" + version},
                                 {"resources", resources_of(types, group, version)}}
                                .dump());
}

}  // namespace gitops::test
