#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "event-reporter/event/digest.hpp"
#include "k8s-client/resource.hpp"

// The event of one object in mode `resource` (docs/events.md): text in, text out.
namespace gitops::reporter {

// What an object says of itself.
struct ResourceFacts {
  std::string uid;
  std::string resource_version;
  Digest digest{};  // object_digest()
};
// invalid_data when the text is no JSON object.
[[nodiscard]] Result<ResourceFacts> read_resource(std::string_view object);

// The body that is posted. `object` is the JSON as the API server sent it, whose items of a list
// may lack apiVersion and kind. `cluster` is the URL of a managed cluster's API server, empty for
// the runtime's own.
[[nodiscard]] std::string resource_event(std::string_view object, const k8s::Resource& resource,
                                         std::string_view cluster);
// The same for an object that is gone; `object` is what was known last, `now` when it was missed.
[[nodiscard]] std::string deleted_resource_event(std::string_view object,
                                                 const k8s::Resource& resource,
                                                 std::string_view cluster, WallTime now);

// All that is known of an object that was deleted while nobody watched.
[[nodiscard]] std::string resource_stub(const k8s::ObjectKey& key, std::string_view uid);

// The same event for a control plane that finds it too large: of the object is left what names it,
// whose it is, and its phase. Empty when nothing can be left out.
[[nodiscard]] std::string reduced_resource_event(std::string_view body);

// The same change of the same object has the same id. `content`: a digest, or "gone".
[[nodiscard]] std::string resource_event_id(const ResourceFacts& facts,
                                            const k8s::Resource& resource,
                                            const k8s::ObjectKey& key, std::string_view content);

}  // namespace gitops::reporter
