#include "chart/helm.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "peers/peer_cluster.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {

std::filesystem::path chart_folder() {
  return std::filesystem::path(GITOPS_SOURCE_DIR) / "charts" / "gitops-runtime";
}

std::string values_file(std::string_view name) {
  return chart_folder() / "tests/values" / name;
}

std::filesystem::path Helm::program(std::string_view name) {
  return peers_folder() / "bin" / name;
}

std::optional<std::string> Helm::missing() {
  for (const auto* name : {"helm", "helm-unittest"}) {
    if (!std::filesystem::exists(program(name))) {
      return std::string(name) + " is not built; ./dev peers builds it";
    }
  }
  return std::nullopt;
}

CommandResult Helm::run(std::vector<std::string> arguments,
                        const std::filesystem::path& kubeconfig) const {
  arguments.insert(arguments.begin(), program("helm"));
  Environment environment{{"HELM_CACHE_HOME", home_ / "cache"},
                          {"HELM_CONFIG_HOME", home_ / "config"},
                          {"HELM_DATA_HOME", home_ / "data"}};
  // Without one, helm must not find the user's cluster either.
  environment["KUBECONFIG"] = kubeconfig.empty() ? home_ / "none" : kubeconfig;
  return run_command(arguments, environment, {}, std::chrono::seconds(120));
}

std::vector<nlohmann::json> Helm::render(const std::vector<std::string>& arguments) const {
  std::vector<std::string> all{"template", "rt", chart_folder(), "--namespace", "gitops"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto result = run(all);
  if (!result.ok()) throw std::runtime_error("helm template: " + result.err);
  auto objects = parse_manifests(result.out);
  if (!objects) throw std::runtime_error("rendered YAML: " + objects.error().message);
  return *objects;
}

const nlohmann::json& object(const std::vector<nlohmann::json>& objects, std::string_view kind,
                             std::string_view name) {
  const nlohmann::json* found = nullptr;
  for (const auto& candidate : objects) {
    if (candidate.at("kind") != kind || candidate.at("metadata").at("name") != name) continue;
    if (found) throw std::runtime_error("twice: " + std::string(kind) + " " + std::string(name));
    found = &candidate;
  }
  if (!found) throw std::runtime_error("no " + std::string(kind) + " " + std::string(name));
  return *found;
}

}  // namespace gitops::test
