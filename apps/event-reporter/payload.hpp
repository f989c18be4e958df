#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "event-reporter/digest.hpp"
#include "k8s-client/resource.hpp"

// From what was read about one application to the bodies that are posted (docs/events.md). Pure: no
// clock, no I/O. Manifests travel as the text that was received; only Secret values are masked.
namespace gitops::reporter {

// What Argo CD's own configuration says about how it marks the objects it manages.
struct TrackingSettings {
  std::string method = "annotation";  // label, annotation or annotation+label
  std::string instance_label_key = "app.kubernetes.io/instance";
  std::string installation_id{};
  std::string argocd_namespace{};  // where a parent named without namespace lives
};

// One managed object. Two ids with another version name the same object.
struct ResourceId {
  std::string group;
  std::string version;
  std::string kind;
  std::string ns;
  std::string name;

  bool operator==(const ResourceId&) const = default;
  // "group/version/kind/namespace/name" and back; missing parts stay empty.
  [[nodiscard]] std::string to_string() const;
  static ResourceId parse(std::string_view text);
  // "group/kind/namespace/name": what makes it the same object.
  [[nodiscard]] std::string identity() const;
};

// A revision that an application was synced to, and what Argo CD knows about it.
struct Revision {
  std::string revision;
  std::string metadata;  // JSON text of its RevisionMetadata; empty when it was not asked
};

// What must be asked about an application before its events can be built.
struct Questions {
  struct Commit {
    std::string revision;
    int source_index = 0;
    std::string repo_url;
    bool ask = true;  // false: a Helm repository's version, of which there is no metadata
  };
  argo::AppRef app;
  std::optional<k8s::ObjectKey> parent;  // the Application whose resource this one says it is
  bool being_deleted = false;
  std::vector<Commit> sync_revisions;
  std::vector<Commit> change_revisions;
};
Result<Questions> questions_about(std::string_view application, const TrackingSettings& settings);

// What was read about one application. An answer that could not be had is absent.
struct AppMaterial {
  std::string application;             // the Application's JSON
  std::optional<std::string> managed;  // answer of managed-resources
  std::optional<std::vector<Revision>> sync_revisions;
  std::optional<std::vector<Revision>> change_revisions;
};
struct Material {
  AppMaterial app;
  std::optional<std::string> tree;  // answer of resource-tree
  std::optional<AppMaterial> parent;
  bool gone = false;  // the Application does not exist any more; `app` is its last known state
};

// All events of one application at one moment. Owns the texts that it was made from.
class Report {
 public:
  // Fails when the Application, or an answer of Argo CD, is not the JSON it should be.
  static Result<Report> read(Material material, TrackingSettings settings);
  ~Report();
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;

  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] std::string_view ns() const;
  [[nodiscard]] std::string_view uid() const;
  [[nodiscard]] std::string_view resource_version() const;
  // The application itself as far as a receiver can see it, without times and commit details.
  [[nodiscard]] const Digest& application_digest() const;

  struct Resource {
    ResourceId id;
    Digest digest;  // of the resource's own content: without times and commit details
  };
  // Its resources, child applications left out. `resources_known` is false when Argo CD did not
  // give the manifests: then there are none here, and none may be taken for gone.
  [[nodiscard]] std::span<const Resource> resources() const;
  [[nodiscard]] bool resources_known() const;

  // The bodies, {"data":{…}}. `now` is the event's timestamp.
  [[nodiscard]] std::string application_event(WallTime now) const;
  [[nodiscard]] std::string resource_event(std::size_t index, WallTime now) const;
  // A resource that the application had and has no more.
  [[nodiscard]] std::string gone_event(const ResourceId& id, WallTime now) const;

 private:
  struct State;
  explicit Report(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// An Application of which only the name is left.
std::string application_stub(const k8s::ObjectKey& key, std::string_view uid,
                             std::string_view resource_version);

// The JSON object of a v1 Secret with every value of data and stringData, and of their copies in
// the last-applied annotation, replaced by plus signs; Argo CD masks the same way, and what is
// masked already stays as it is. Other objects come back unchanged.
std::string mask_secret(std::string_view manifest);

}  // namespace gitops::reporter
