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

// GET /api/image-report, as the public image reporter sends it from pipelines: without parameters, the ones there are;
// otherwise a Workflow carries the report out, and the answer is a stream of events (info, warn, heartbeat, workflow-log)
// that ends with `end` or `error`. A problem is an `error` event of an answer 200, since the reporter shows no other body;
// only a wrong credential is 401. The Workflow goes on when the client leaves. Loop thread only; its dependencies outlive it.
class ImageRoutes {
 public:
  // The parts of the program that it works with.
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
  // The name of the Workflow, which is running.
  Task<Result<std::string>> begin(const ImageReport& report, const Secret& api_key,
                                  Deadline deadline);
  Task<> follow(http::Exchange& exchange, std::string workflow, std::vector<std::string> warnings);
  // The events of the Workflow's state, if it has changed; the last one with `is_over`.
  struct Seen {
    std::string phase = {};
    std::string events = {};
    bool is_over = false;
  };
  Task<> look(const std::string& workflow, Seen& seen);
  // The logs of its tasks; null, with why as an event, when there are none.
  Task<LogStreams::Feed> open_logs(std::string workflow, std::string& out);

  Dependencies dependencies_;
  ImageReportOptions options_;
  // By user: each report leaves a Workflow and a Secret for a day.
  Attempts reports_{{.burst = 300, .period = std::chrono::seconds(5)}};
  // The Workflows are the program's own: no rule of the account is about their logs.
  Caller own_;
  Log log_{"image-report"};
};

}  // namespace gitops::app_proxy
