#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gitopsctl/redaction.hpp"

// Objects of Kubernetes as a bundle shows them. Pure.
namespace gitops::ctl {

// Leaves out of an object, and of the templates in it, what may hold a secret without a mark: values of environment
// variables that the chart does not set, of annotations that Helm and Kubernetes do not set, of flags that name a
// secret, of headers of probes, binary data, and the managed fields.
nlohmann::json printed_object(nlohmann::json object);
// Returns the name, the type and the keys of a Secret, without a value.
nlohmann::json printed_secret(const nlohmann::json& secret);
// Adds the values of a Secret to what the redactor hides.
void hide_values(const nlohmann::json& secret, Redactor& redactor);
// Returns the names of the Secrets that a pod uses, by its environment, volumes and image pulls.
std::vector<std::string> secrets_of_pod(const nlohmann::json& pod);

}  // namespace gitops::ctl
