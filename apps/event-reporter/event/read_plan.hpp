#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "event-reporter/event/app_view.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::reporter {

// What Argo CD's own configuration says about how it marks the objects it manages.
struct TrackingSettings {
  std::string method = "annotation";  // label, annotation or annotation+label
  std::string instance_label_key = "app.kubernetes.io/instance";
  std::string installation_id{};
  std::string argocd_namespace{};  // where a parent named without namespace lives
};

// What must be asked about an application before its events can be built.
struct ReadPlan {
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
ReadPlan plan_reads(const AppView& app, const TrackingSettings& settings);

}  // namespace gitops::reporter
