#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/object_query.hpp"

// Promotion templates: resources of the configuration runtime that select the values of an Application to promote.
namespace gitops::control_plane_server {

// Returns whether a label selector of Kubernetes (matchLabels, matchExpressions) matches. An absent selector matches
// all, an unknown operator nothing. Pure.
bool selector_fits(JsonView selector, const Labels& labels);

// The JSON of type PromotionTemplateShort of the template that counts for an Application with these labels: of the fitting
// ones that with the highest priority, then the first by name. Nothing when none fits. Pure.
struct TemplateText {
  std::string name;
  std::string object;  // JSON: the live object
};
std::optional<std::string> promotion_template_json(const std::vector<TemplateText>& templates,
                                                   const Labels& labels);

Result<std::optional<std::string>> find_promotion_template(store::Connection& connection,
                                                           std::int64_t account,
                                                           const Labels& labels);
// Returns the same for an Application by its name; nothing when the Application does not exist.
Result<std::optional<std::string>> find_promotion_template(store::Connection& connection,
                                                           std::int64_t account,
                                                           const ObjectName& application);

}  // namespace gitops::control_plane_server
