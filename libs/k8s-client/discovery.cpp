#include "k8s-client/discovery.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

std::string api_version(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

// Returns the elements of an array; an empty array for any other value.
const Json& elements(const Json& json, std::string_view name) {
  static const Json none = Json::array();
  const Json& value = value_at(json, {name});
  return value.is_array() ? value : none;
}

std::vector<std::string> texts(const Json& json, std::string_view name) {
  std::vector<std::string> out;
  for (const Json& text : elements(json, name)) {
    if (text.is_string()) out.push_back(text.get<std::string>());
  }
  return out;
}

std::unexpected<Error> unusable(std::string_view what) {
  return fail(ErrorCode::protocol, "discovery: the answer is not an " + std::string(what));
}

}  // namespace

const char* const kAggregatedDiscovery =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json";

Discovery::Answer Discovery::find(const Resource& resource) const {
  const bool served = std::ranges::any_of(resources_, [&](const ApiResource& known) {
    return known.resource.group == resource.group && known.resource.version == resource.version &&
           known.resource.plural == resource.plural;
  });
  if (served) return Answer::served;
  return not_known_.contains(resource.api_version()) ? Answer::not_known : Answer::absent;
}

const ApiResource* Discovery::find_kind(std::string_view group, std::string_view kind) const {
  for (const std::string& version : versions(group)) {
    const auto found = std::ranges::find_if(resources_, [&](const ApiResource& known) {
      return known.resource.group == group && known.resource.version == version &&
             known.resource.kind == kind;
    });
    if (found != resources_.end()) return &*found;
  }
  return nullptr;
}

bool Discovery::is_known(std::string_view group) const {
  return std::ranges::none_of(versions(group), [&](const std::string& version) {
    return not_known_.contains(api_version(group, version));
  });
}

const std::vector<std::string>& Discovery::versions(std::string_view group) const {
  static const std::vector<std::string> none;
  const auto found = versions_.find(group);
  return found == versions_.end() ? none : found->second;
}

bool Discovery::add_aggregated(std::string_view text) {
  const Json json = parse_json_object(text);
  const Json& groups = value_at(json, {"items"});
  if (string_at(json, {"kind"}) != "APIGroupDiscoveryList" || !groups.is_array()) return false;
  for (const Json& group : groups) {
    const std::string name = string_at(group, {"metadata", "name"});
    auto& versions = versions_[name];
    // The server sorts versions by preference.
    for (const Json& served : elements(group, "versions")) {
      const std::string version = string_at(served, {"version"});
      if (version.empty()) continue;
      versions.push_back(version);
      // A stale list comes from an aggregated API whose server does not respond now.
      if (string_at(served, {"freshness"}) == "Stale") set_not_known({name, version});
      for (const Json& type : elements(served, "resources")) {
        ApiResource resource{.resource = {.group = name,
                                          .version = version,
                                          .plural = string_at(type, {"resource"}),
                                          .kind = string_at(type, {"responseKind", "kind"}),
                                          .namespaced = string_at(type, {"scope"}) == "Namespaced"},
                             .singular = string_at(type, {"singularResource"}),
                             .verbs = texts(type, "verbs"),
                             .short_names = texts(type, "shortNames"),
                             .subresources = {}};
        for (const Json& part : elements(type, "subresources")) {
          resource.subresources.push_back(string_at(part, {"subresource"}));
        }
        resources_.push_back(std::move(resource));
      }
    }
  }
  return true;
}

Result<std::vector<Discovery::GroupVersion>> Discovery::add_groups(std::string_view text) {
  const Json json = parse_json_object(text);
  std::vector<GroupVersion> out;
  const auto add = [&](const std::string& group, const std::vector<std::string>& versions) {
    versions_[group] = versions;
    for (const std::string& version : versions) out.push_back({group, version});
  };
  if (value_at(json, {"versions"}).is_array()) {
    add("", texts(json, "versions"));
    return out;
  }
  if (!value_at(json, {"groups"}).is_array()) return unusable("APIGroupList");
  for (const Json& group : elements(json, "groups")) {
    const std::string preferred = string_at(group, {"preferredVersion", "version"});
    std::vector<std::string> versions;
    for (const Json& served : elements(group, "versions")) {
      std::string version = string_at(served, {"version"});
      const auto at = version == preferred ? versions.begin() : versions.end();
      if (!version.empty()) versions.insert(at, std::move(version));
    }
    if (std::string name = string_at(group, {"name"}); !name.empty()) add(name, versions);
  }
  return out;
}

Result<void> Discovery::add_resources(const GroupVersion& of, std::string_view text) {
  const Json json = parse_json_object(text);
  if (!value_at(json, {"resources"}).is_array()) return unusable("APIResourceList");
  std::map<std::string, std::vector<std::string>> subresources;
  std::vector<ApiResource> found;
  for (const Json& type : elements(json, "resources")) {
    const std::string name = string_at(type, {"name"});
    // "deployments/status" is a subresource of "deployments".
    if (const auto slash = name.find('/'); slash != std::string::npos) {
      subresources[name.substr(0, slash)].push_back(name.substr(slash + 1));
      continue;
    }
    const Json& namespaced = value_at(type, {"namespaced"});
    found.push_back({.resource = {.group = of.group,
                                  .version = of.version,
                                  .plural = name,
                                  .kind = string_at(type, {"kind"}),
                                  .namespaced = namespaced.is_boolean() && namespaced.get<bool>()},
                     .singular = string_at(type, {"singularName"}),
                     .verbs = texts(type, "verbs"),
                     .short_names = texts(type, "shortNames"),
                     .subresources = {}});
  }
  for (ApiResource& type : found) {
    type.subresources = std::move(subresources[type.resource.plural]);
    resources_.push_back(std::move(type));
  }
  return {};
}

void Discovery::set_not_known(const GroupVersion& what) {
  not_known_.insert(api_version(what.group, what.version));
}

}  // namespace gitops::k8s
