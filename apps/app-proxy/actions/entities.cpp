#include "app-proxy/actions/entities.hpp"

#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

using control_plane::Entity;
using control_plane::EntityType;

Entity own_cluster_entity(EntityType type, std::string_view object, std::string_view runtime) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "object");
  return root ? control_plane::own_cluster_entity(type, *root, runtime) : Entity{.type = type};
}

}  // namespace

Entity application_entity(std::string_view object, std::string_view runtime) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "Application");
  return root ? control_plane::application_entity(*root, runtime) : Entity{};
}

Entity workflow_entity(std::string_view object, std::string_view runtime) {
  return own_cluster_entity(EntityType::workflows, object, runtime);
}

Entity workflow_template_entity(std::string_view object, std::string_view runtime) {
  return own_cluster_entity(EntityType::workflow_templates, object, runtime);
}

}  // namespace gitops::app_proxy
