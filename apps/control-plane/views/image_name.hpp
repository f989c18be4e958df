#pragma once

#include <string>
#include <string_view>

namespace gitops::control_plane_server {

// The parts of an image's name: "quay.io/argoproj/argocd:v3.2.1@sha256:…".
struct ImageName {
  std::string registry = {};    // "quay.io"; empty: Docker Hub
  std::string repository = {};  // "argoproj/argocd"
  std::string tag = {};
  std::string digest = {};  // "sha256:…"

  // Returns the name without tag and digest, by which releases are compared.
  [[nodiscard]] std::string full_repository() const {
    return registry.empty() ? repository : registry + "/" + repository;
  }
  // Returns the last part of the repository: "argocd".
  [[nodiscard]] std::string short_name() const {
    return repository.substr(repository.rfind('/') + 1);
  }
};
ImageName image_name(std::string_view text);

// Returns the word of the enum ImageRegistryType for a registry's domain.
std::string_view registry_type(std::string_view domain);

}  // namespace gitops::control_plane_server
