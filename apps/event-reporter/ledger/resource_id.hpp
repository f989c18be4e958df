#pragma once

#include <string>
#include <string_view>

namespace gitops {
class JsonView;
}

namespace gitops::reporter {

// One object that an application manages. Ids that differ only in the version name the same object.
struct ResourceId {
  std::string group;
  std::string version;
  std::string kind;
  std::string ns;
  std::string name;

  bool operator==(const ResourceId&) const = default;
  // Converts to "group/version/kind/namespace/name" and back; missing parts stay empty.
  [[nodiscard]] std::string to_string() const;
  static ResourceId parse(std::string_view text);
  // Reads the members `group`, `version`, `kind`, `namespace` and `name`, as Argo CD writes them.
  static ResourceId of(JsonView object);
  // Returns "group/kind/namespace/name", the same for all versions of the object.
  [[nodiscard]] std::string identity() const;
  static ResourceId of_identity(std::string_view identity, std::string_view version);
};

// Returns ResourceId::of(object).identity().
std::string identity_of(JsonView object);

// The group of Argo CD's own kinds.
inline constexpr std::string_view kApplicationGroup = "argoproj.io";
inline constexpr std::string_view kApplicationVersion = "v1alpha1";
inline constexpr std::string_view kApplicationKind = "Application";
ResourceId application_id(std::string_view ns, std::string_view name);
// Returns whether the resource is an Application, of any version.
bool is_application(const ResourceId& id);

}  // namespace gitops::reporter
