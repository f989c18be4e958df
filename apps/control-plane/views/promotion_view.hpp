#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/object_query.hpp"

// Promotion templates: resources of the configuration runtime that say which values of an Application are promoted.
namespace gitops::control_plane_server {

// Whether a label selector of Kubernetes (matchLabels, matchExpressions) fits. An absent selector fits all, an unknown
// operator nothing. Pure.
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
// The same for an Application by its name; nothing when it is not there.
Result<std::optional<std::string>> find_promotion_template(store::Connection& connection,
                                                           std::int64_t account,
                                                           const ObjectName& application);

}  // namespace gitops::control_plane_server
