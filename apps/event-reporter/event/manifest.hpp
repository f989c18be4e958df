#pragma once

#include <string>
#include <string_view>

#include "event-reporter/ledger/resource_id.hpp"
#include "k8s-client/resource.hpp"

// What is done to manifests, as text: everything else in them stays as it was received.
namespace gitops::reporter {

// The JSON object of a v1 Secret with every value of data and stringData, and of their copies in
// the last-applied annotation, replaced by plus signs; Argo CD masks the same way, and what is
// masked already stays as it is. Other objects come back unchanged.
std::string mask_secret(std::string_view manifest);

// The manifest with metadata.namespace set; with no namespace to set it comes back unchanged.
std::string with_namespace(std::string_view manifest, std::string_view ns);

// Stands for an object of which only the name is known.
std::string stub(const ResourceId& id);
// The same for one whose uid and resourceVersion are known too.
std::string stub(const ResourceId& id, std::string_view uid, std::string_view resource_version);
std::string application_stub(const k8s::ObjectKey& key, std::string_view uid,
                             std::string_view resource_version);

}  // namespace gitops::reporter
