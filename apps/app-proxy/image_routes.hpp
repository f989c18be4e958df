#pragma once

#include <functional>

#include "app-proxy/door.hpp"
#include "app-proxy/images/image_report.hpp"
#include "app-proxy/users/audit.hpp"
#include "common/core/log.hpp"
#include "common/http/server.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// GET /api/image-report, as the public image reporter sends it from pipelines: without parameters, the ones there are;
// otherwise a Workflow carries the report out, and the answer is a stream of events (info, warn, heartbeat) that ends with
// `end` or `error`. A problem is an `error` event of an answer 200, since the reporter shows no other body; only a
// wrong credential is 401. The Workflow goes on when the client leaves. Loop thread only; its parts outlive it.
class ImageRoutes {
 public:
  // `cluster` is null while the runtime has no access to its cluster.
  ImageRoutes(Door& door, Audit& audit, k8s::Client* cluster, ImageReportOptions options)
      : door_(door), audit_(audit), cluster_(cluster), options_(std::move(options)) {}

  Task<> serve(http::Exchange& exchange);

 private:
  // The name of the Workflow, which is running.
  Task<Result<std::string>> begin(const ImageReport& report, const Secret& api_key,
                                  Deadline deadline);
  Task<> follow(http::Exchange& exchange, std::string workflow, std::string warning);

  Door& door_;
  Audit& audit_;
  k8s::Client* cluster_;
  ImageReportOptions options_;
  Log log_{"image-report"};
};

}  // namespace gitops::app_proxy
