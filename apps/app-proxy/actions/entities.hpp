#pragma once

#include <string_view>

#include "common/control_plane/access_rules.hpp"

// Entities of the account's rules from the JSON of Argo's objects. Malformed JSON gives one without
// attributes. Pure.
namespace gitops::app_proxy {

control_plane::Entity application_entity(std::string_view object, std::string_view runtime);
control_plane::Entity workflow_entity(std::string_view object, std::string_view runtime);
control_plane::Entity workflow_template_entity(std::string_view object, std::string_view runtime);

}  // namespace gitops::app_proxy
