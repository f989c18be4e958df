#pragma once

#include <string>
#include <string_view>

#include "common/store/connection.hpp"
#include "control-plane/views/entity_view.hpp"
#include "control-plane/views/page.hpp"

// Components of a runtime: the workloads of the Application that is labelled as the runtime, and Applications that are
// labelled as components.
namespace gitops::control_plane_server {

// Appends the JSON of type Component. Pure.
void append_component(std::string& out, const ObjectState& state, const ParsedBody& body,
                      const ViewContext& context);
// Returns the version of a workload: its label app.kubernetes.io/version, else the tag of its first image; empty
// without both.
std::string component_version(JsonView object);

// Returns a slice of components; an empty runtime selects all runtimes.
Result<std::string> component_slice(store::Connection& connection, std::int64_t account,
                                    std::string_view runtime, const PageWindow& window,
                                    const ViewContext& context);

}  // namespace gitops::control_plane_server
