#include "app-proxy/actions/entities.hpp"

#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kProduct = "codefresh.io/product";
// Argo CD marks deployed objects with one of the two (argo-cd.readthedocs.io, "Resource Tracking").
constexpr std::string_view kTrackingId = "argocd.argoproj.io/tracking-id";
constexpr std::string_view kInstanceLabel = "app.kubernetes.io/instance";

// Returns "gs" for "gs:argoproj.io/Application:argocd/shop". An Application outside of Argo CD's
// namespace is written "ns_gs".
std::string owner_of(JsonView metadata) {
  const std::string_view id = metadata["annotations"][kTrackingId].text();
  std::string_view name = id.substr(0, id.find(':'));
  if (name.empty()) name = metadata["labels"][kInstanceLabel].text();
  const auto mark = name.find('_');  // not valid in names
  return std::string(mark == std::string_view::npos ? name : name.substr(mark + 1));
}

// Returns the product. The annotation is the documented form; the label is used without it.
std::string product_of(JsonView metadata) {
  const std::string_view name = metadata["annotations"][kProduct].text();
  return std::string(name.empty() ? metadata["labels"][kProduct].text() : name);
}

Entity entity_of(EntityType type, JsonView metadata, std::string_view runtime) {
  Entity entity{.type = type,
                .entity_namespace = std::string(metadata["namespace"].text()),
                .runtime = std::string(runtime)};
  for (const auto& [key, value] : metadata["labels"].members()) {
    entity.labels.emplace(key, value.text());
  }
  return entity;
}

Entity own_object(EntityType type, std::string_view object, std::string_view runtime) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "object");
  if (!root) return {.type = type};
  Entity entity = entity_of(type, (*root)["metadata"], runtime);
  entity.cluster = kInCluster;
  entity.git_source = owner_of((*root)["metadata"]);
  return entity;
}

}  // namespace

Entity application_entity(std::string_view object, std::string_view runtime) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "Application");
  if (!root) return {};
  const JsonView metadata = (*root)["metadata"];
  Entity entity = entity_of(EntityType::gitops_applications, metadata, runtime);
  const JsonView destination = (*root)["spec"]["destination"];
  entity.cluster = destination["server"].text().empty() ? destination["name"].text()
                                                        : destination["server"].text();
  entity.git_source = owner_of(metadata);
  entity.product_name = product_of(metadata);
  return entity;
}

Entity workflow_entity(std::string_view object, std::string_view runtime) {
  return own_object(EntityType::workflows, object, runtime);
}

Entity workflow_template_entity(std::string_view object, std::string_view runtime) {
  return own_object(EntityType::workflow_templates, object, runtime);
}

}  // namespace gitops::app_proxy
