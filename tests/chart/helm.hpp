#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "support/process.hpp"

namespace gitops::test {

/// charts/gitops-runtime of this source tree.
std::filesystem::path chart_folder();

/// A file of the chart's tests/values.
std::string values_file(std::string_view name);

/// The real helm, with cache and configuration folders of its own.
class Helm {
 public:
  /// One line that names missing programs, for skipping tests; nullopt when none is missing.
  static std::optional<std::string> missing();
  static std::filesystem::path program(std::string_view name);

  CommandResult run(std::vector<std::string> arguments,
                    const std::filesystem::path& kubeconfig = {}) const;

  /// The objects of `helm template` with release name rt in namespace gitops; throws with helm's
  /// message when it refuses.
  std::vector<nlohmann::json> render(const std::vector<std::string>& arguments) const;

 private:
  TempDir home_{"gitops-helm"};
};

/// The one object of this kind and name; throws when there is none or more than one.
const nlohmann::json& object(const std::vector<nlohmann::json>& objects, std::string_view kind,
                             std::string_view name);

}  // namespace gitops::test
