#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// Reports of images: the parameters from the public image reporter, and the Workflow that makes a
// report. Pure.
namespace gitops::app_proxy {

// Environment of the tasks of a report. Values may be credentials.
struct ImageReport {
  std::string image = {};                          // "registry/name:tag"
  std::map<std::string, Secret> environment = {};  // IMAGE_NAME, GIT_PROVIDER, REGISTRY_PASSWORD, …
  std::vector<std::string> warnings = {};          // for the client
  bool has_git = false;                            // the report includes the image's commits
  bool has_jira = false;
  // Integrations whose credentials the tasks get (report_credentials.hpp). Empty: none.
  std::string registry_integration = {};
  std::string jira_integration = {};
  std::string git_integration = {};
};

// Parses the query of GET /api/image-report: the reporter's variables CF_*, or a parameter `data`,
// base64 of the zlib form of such a query, whose CF_DOCKERFILE_CONTENT is compressed once more.
// Variables unknown to the tasks are left out. `invalid_argument` when it is malformed, `too_large`
// when it exceeds the limits, also after inflation.
Result<ImageReport> parse_image_report(std::string_view query);
// The available variables, as JSON: {"sections":[…]}.
std::string image_report_catalogue();

struct ImageReportOptions {
  std::string own_namespace = {};
  std::string control_plane_url = {};
  std::string service_account = "codefresh-image-enrichment-sa";
  std::string semaphore_config_map = "workflow-synchronization-semaphores";
  std::string semaphore_key = "imageReportExecutor";
  std::string pod_gc = "OnWorkflowCompletion";
  std::chrono::seconds kept_after_completion{86'400};
  std::chrono::seconds longest{900};
  std::chrono::milliseconds heartbeat{5'000};
  std::string report_image =
      "quay.io/codefreshplugins/argo-hub-codefresh-csdp-report-image-info:1.1.31";
  std::string git_image =
      "quay.io/codefreshplugins/argo-hub-codefresh-csdp-image-enricher-git-info:1.1.31";
  std::string jira_image =
      "quay.io/codefreshplugins/argo-hub-codefresh-csdp-image-enricher-jira-info:1.1.31";
};
// Returns the Workflow `name`. Its tasks get their environment from the Secret of the same name.
std::string image_report_workflow(const ImageReportOptions& options, const ImageReport& report,
                                  std::string_view name);
// Returns that Secret, with the API key of the user. Its owner is the Workflow, whose uid is given.
Secret image_report_secret(const ImageReportOptions& options, const ImageReport& report,
                           const Secret& api_key, std::string_view name, std::string_view uid);

// State of a Workflow.
struct ImageReportState {
  std::string phase = {};  // empty: not started
  std::string message = {};

  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool is_success() const { return phase == "Succeeded"; }
};
ImageReportState image_report_state(std::string_view workflow);

}  // namespace gitops::app_proxy
