#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "peers/peer_programs.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {

/// The manifests of the examples and tests of Argo Workflows and Argo Rollouts.
struct UpstreamExamples {
  static constexpr std::array kPeers{"argo-workflows-examples", "argo-rollouts-examples"};
  static std::optional<std::string> missing() {
    for (const auto* peer : kPeers) {
      if (peer_manifests(peer).empty()) {
        return std::string(peer) + " is not built (./dev peers " + peer + ")";
      }
    }
    return std::nullopt;
  }
  /// All objects of these kinds, in the order of their files; those in a List, too.
  static std::vector<nlohmann::json> of_kinds(const std::vector<std::string>& kinds) {
    std::vector<nlohmann::json> found;
    for (const auto* peer : kPeers) {
      std::vector<std::filesystem::path> files;
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(peers_folder() / "share" / peer)) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path());
      }
      std::ranges::sort(files);
      for (const auto& file : files) {
        const auto manifests = parse_manifests(read_file(file));
        if (!manifests) continue;  // some tests are about files that are no YAML
        for (const auto& manifest : *manifests) add(found, manifest, kinds);
      }
    }
    return found;
  }

 private:
  static void add(std::vector<nlohmann::json>& found, const nlohmann::json& manifest,
                  const std::vector<std::string>& kinds) {
    if (!manifest.is_object()) return;
    if (manifest.contains("items") && manifest["items"].is_array()) {
      for (const auto& item : manifest["items"]) add(found, item, kinds);
    }
    // Some upstream files have a misspelt apiVersion, so no API server takes them.
    const auto text = [&manifest](const char* member) {
      const auto at = manifest.find(member);
      return at != manifest.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    if (text("apiVersion") != "argoproj.io/v1alpha1") return;
    if (std::ranges::find(kinds, text("kind")) != kinds.end()) found.push_back(manifest);
  }
};

/// Makes a manifest an object of a cluster: a namespace of its own, a name, a uid, and this phase.
inline nlohmann::json live_object(nlohmann::json manifest, std::size_t number,
                                  const std::string& phase) {
  auto& metadata = manifest["metadata"];
  if (!metadata.is_object()) metadata = nlohmann::json::object();
  if (!metadata.contains("name")) {
    metadata["name"] = metadata.value("generateName", "example-") + std::to_string(number);
  }
  metadata["namespace"] = "example-" + std::to_string(number);
  metadata["uid"] = "uid-" + std::to_string(number);
  metadata["creationTimestamp"] = "2026-03-04T09:00:00Z";
  metadata["generation"] = 1;
  auto& status = manifest["status"];
  if (!status.is_object()) status = nlohmann::json::object();
  status["phase"] = phase;
  return manifest;
}

/// The texts of the spec's templates as nodes that have run.
inline void add_nodes(nlohmann::json& workflow, const std::string& phase) {
  const auto& metadata = workflow["metadata"];
  const std::string name = metadata["name"];
  const auto templates =
      workflow.value("/spec/templates"_json_pointer, nlohmann::json(nlohmann::json::array()));
  nlohmann::json nodes;
  nlohmann::json children = nlohmann::json::array();
  for (const auto& one : templates) {
    if (!one.is_object() || !one.contains("name")) continue;
    const std::string of = one["name"];
    const auto id = name + "-" + std::to_string(children.size());
    children.push_back(id);
    nodes[id] = {{"id", id},           {"name", name + "." + of},
                 {"displayName", of},  {"type", "Pod"},
                 {"templateName", of}, {"phase", phase.empty() ? "Pending" : phase}};
  }
  nodes[name] = {{"id", name},
                 {"name", name},
                 {"displayName", name},
                 {"type", "Steps"},
                 {"children", children},
                 {"phase", phase},
                 {"startedAt", "2026-03-04T09:00:00Z"}};
  workflow["status"]["nodes"] = std::move(nodes);
}

}  // namespace gitops::test
