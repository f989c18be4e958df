#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace gitops::test {

// The kinds of one version of Kubernetes, their fields and the types of these, as its Go client has them. Does not know which
// fields are required, and nothing of kinds that come by a CustomResourceDefinition.
class KnownFields {
 public:
  // peer: kubernetes-oldest or kubernetes-newest of tests/peers.
  static std::optional<std::string> missing(std::string_view peer);
  explicit KnownFields(std::string_view peer);

  // Whether the API group is one of Kubernetes' own.
  static bool covers(const nlohmann::json& object);
  // What this version does not know about an object, a line each: its kind, a field, a value of another type.
  [[nodiscard]] std::vector<std::string> mistakes(const nlohmann::json& object) const;

 private:
  void check(const nlohmann::json& value, const nlohmann::json& type, const std::string& path,
             std::vector<std::string>& found) const;
  void check_map(const nlohmann::json& value, const nlohmann::json& map, const std::string& path,
                 std::vector<std::string>& found) const;

  nlohmann::json types_;  // name → what it is
};

}  // namespace gitops::test
