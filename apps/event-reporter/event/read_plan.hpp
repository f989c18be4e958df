#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/ledger/resource_id.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::reporter {

// Argo CD's settings for resource tracking: how it marks the objects that it manages.
struct TrackingSettings {
  std::string method = "annotation";  // label, annotation or annotation+label
  std::string instance_label_key = "app.kubernetes.io/instance";
  std::string installation_id{};
  std::string argocd_namespace{};  // namespace of a parent that is named without one
};

// The reads that are needed before the events of an application can be made.
struct ReadPlan {
  struct Commit {
    std::string revision;
    int source_index = 0;
    // The history entry to which the source belongs. Absent: the application's present source.
    std::optional<std::int64_t> history_id = {};
    std::string repo_url;
    // False when it is no commit of a Git repository, or one of a source that Argo CD no longer
    // knows.
    bool has_metadata = true;
  };
  argo::AppRef app;
  std::optional<k8s::ObjectKey> parent;  // the Application that manages this one (app of apps)
  bool being_deleted = false;
  std::vector<Commit> sync_revisions;
  std::vector<Commit> change_revisions;
};
ReadPlan plan_reads(const AppView& app, const TrackingSettings& settings);

// Splits a read of managed-resources whose response is too large. The filters together select the same
// of these resources as `only`, by kind first, then by namespace, then by name. Child applications are
// left out. Empty when it cannot be split, or only into more than 200 reads, of which each has Argo CD
// go through all of the application's resources. Pure.
std::vector<argo::ObjectFilter> split_read(const argo::ObjectFilter& only,
                                           const std::vector<ResourceId>& resources);

}  // namespace gitops::reporter
