#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::k8s {

// A type as a server describes it.
struct ApiResource {
  Resource resource;
  std::string singular;
  std::vector<std::string> verbs;  // "get", "list", "watch", …
  std::vector<std::string> short_names;
  std::vector<std::string> subresources;  // "status", "scale", "log"
};

// The types of an API server at one moment, from its discovery endpoints. A plain value: filled by
// the functions below, read by everyone else.
//
// A group and version whose server did not respond is *not known*: an aggregated API may be down
// while its types still exist. Only Answer::absent means that a type does not exist.
class Discovery {
 public:
  enum class Answer { served, absent, not_known };

  // Returns whether the type is served in its group and version.
  [[nodiscard]] Answer find(const Resource& resource) const;
  // Returns the type of a kind in the group's preferred version, or else in the first version that
  // has it; null when no version has it. While is_known(group) is false, null does not mean absent.
  [[nodiscard]] const ApiResource* find_kind(std::string_view group, std::string_view kind) const;
  // Returns false when a version of the group could not be read.
  [[nodiscard]] bool is_known(std::string_view group) const;
  // Returns the versions of a group, the preferred one first; empty when there is no such group.
  [[nodiscard]] const std::vector<std::string>& versions(std::string_view group) const;
  // Returns all types, by group (the core group first) and version.
  [[nodiscard]] const std::vector<ApiResource>& resources() const { return resources_; }
  // Returns "group/version" (or "v1") of each one that could not be read.
  [[nodiscard]] const std::set<std::string>& not_known() const { return not_known_; }

  // Reads an APIGroupDiscoveryList (aggregated discovery, apidiscovery.k8s.io/v2 and v2beta1, KEP
  // 3352). Returns false when the text is something else: the server has only the older form.
  bool add_aggregated(std::string_view text);
  // Reads the APIVersions of "/api" or the APIGroupList of "/apis". Returns the groups and versions
  // whose types must be requested next.
  struct GroupVersion {
    std::string group;
    std::string version;
  };
  Result<std::vector<GroupVersion>> add_groups(std::string_view text);
  // Reads the APIResourceList of one of them.
  Result<void> add_resources(const GroupVersion& of, std::string_view text);
  void set_not_known(const GroupVersion& what);

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> versions_;
  std::vector<ApiResource> resources_;
  std::set<std::string> not_known_;
};

// The Accept header that requests aggregated discovery.
extern const char* const kAggregatedDiscovery;

}  // namespace gitops::k8s
