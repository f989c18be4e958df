#include "control-plane/views/image_name.hpp"

namespace gitops::control_plane_server {

ImageName image_name(std::string_view text) {
  ImageName name;
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    name.digest = text.substr(at + 1);
    text = text.substr(0, at);
  }
  // A registry's port also begins with a colon.
  const auto slash = text.find('/');
  if (const auto colon = text.rfind(':');
      colon != std::string_view::npos &&
      (text.rfind('/') == std::string_view::npos || colon > text.rfind('/'))) {
    name.tag = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  if (slash != std::string_view::npos) {
    const auto first = text.substr(0, slash);
    const bool is_domain = first.find('.') != std::string_view::npos ||
                           first.find(':') != std::string_view::npos || first == "localhost";
    if (is_domain) {
      name.registry = first;
      text = text.substr(slash + 1);
    }
  }
  name.repository = text;
  return name;
}

std::string_view registry_type(std::string_view domain) {
  const auto has = [domain](std::string_view part) {
    return domain.find(part) != std::string_view::npos;
  };
  if (domain.empty() || domain.ends_with("docker.io")) return "DOCKER_HUB";
  if (has(".dkr.ecr.") || domain == "public.ecr.aws") return "ECR";
  if (domain == "gcr.io" || domain.ends_with(".gcr.io") || domain.ends_with("-docker.pkg.dev")) {
    return "GCR";
  }
  if (domain == "ghcr.io") return "GHCR";
  if (domain == "quay.io") return "QUAY";
  if (has("jfrog.io") || has("artifactory")) return "JFROG";
  return "OTHER";
}

}  // namespace gitops::control_plane_server
