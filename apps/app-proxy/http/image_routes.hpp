#pragma once

#include "app-proxy/http/report_git_hosts.hpp"
#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/images/image_report.hpp"
#include "app-proxy/images/report_credentials.hpp"
#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/core/attempts.hpp"
#include "common/core/log.hpp"
#include "common/http/server.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// Serves GET /api/image-report, as the public image reporter sends it from pipelines. Without
// parameters it lists the available ones. Otherwise a Workflow makes the report, and the response
// is a stream of events (info, warn, heartbeat, workflow-log) that ends with `end` or `error`. A
// failure is an `error` event of a 200 response, since the reporter shows no other body; only a
// wrong credential is 401. The Workflow continues when the client disconnects. Loop thread only;
// its dependencies outlive it.
class ImageRoutes {
 public:
  // Other parts that it uses.
  struct Dependencies {
    RequestGate& gate;
    Audit& audit;
    LogStreams& logs;
    k8s::Client* cluster = nullptr;       // null while the runtime has no access to its cluster
    ReportGitHosts* git_hosts = nullptr;  // null with the cluster
  };
  ImageRoutes(Dependencies dependencies, ImageReportOptions options);

  Task<> serve(http::Exchange& exchange);

 private:
  Result<void> admit(const User& user);
  // Adds the credentials of integrations and of the runtime that the report needs.
  Task<Result<void>> complete(ImageReport& report, const User& user, Deadline deadline);
  Task<Result<StoredIntegration>> integration(std::string name, Deadline deadline);
  Task<Result<void>> add_git_host(ImageReport& report, const User& user, Deadline deadline);
  // Starts a Workflow and returns its name.
  Task<Result<std::string>> begin(const ImageReport& report, const Secret& api_key,
                                  Deadline deadline);
  Task<> follow(http::Exchange& exchange, std::string workflow, std::vector<std::string> warnings);
  // Events for a change of the Workflow's state; `is_over` with the last one.
  struct Seen {
    std::string phase = {};
    std::string events = {};
    bool is_over = false;
  };
  Task<> look(const std::string& workflow, Seen& seen);
  // Opens the logs of the Workflow's tasks. Returns null, with the reason as an event in `out`,
  // when there are none.
  Task<LogStreams::Feed> open_logs(std::string workflow, std::string& out);

  Dependencies dependencies_;
  ImageReportOptions options_;
  // Limit by user, since each report keeps a Workflow and a Secret for a day.
  Attempts reports_{{.burst = 300, .period = std::chrono::seconds(5)}};
  // Caller for the program's own Workflows. The account's rules do not cover their logs.
  Caller own_;
  Log log_{"image-report"};
};

}  // namespace gitops::app_proxy
