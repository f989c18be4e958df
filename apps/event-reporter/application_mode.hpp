#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/argo/argocd_client.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/daemon/daemon.hpp"
#include "common/http/client.hpp"
#include "common/http/router.hpp"
#include "event-reporter/argo/gather.hpp"
#include "event-reporter/report/reporter.hpp"
#include "event-reporter/shared_parts.hpp"

namespace gitops::reporter {

// The parts of mode `app`, which reports Applications and their resources. Members are in order of
// dependence: later ones use earlier ones. Loop thread only.
class ApplicationMode {
 public:
  static constexpr std::string_view kReported = "applications";
  static constexpr const char* kLeases = "event-reporter-app";  // prefix of the names
  static constexpr bool kIsOfApplications = true;

  // `shared` outlives it.
  ApplicationMode(const DaemonContext& context, SharedParts& shared);

  // Starts the tasks of `group`.
  void start(TaskGroup& group);
  [[nodiscard]] Reporter& reporter() { return reporter_; }

  [[nodiscard]] std::vector<ReadyCheck> ready_checks() { return reporter_.ready_checks(); }
  [[nodiscard]] StatusReport status() const { return reporter_.status(); }
  // Returns the main port's routes, besides those of both modes.
  [[nodiscard]] std::vector<http::Route> routes() const;
  // Returns the setting of this mode that the start's log line shows.
  static Field log_field(const Config& config) { return {"argocd_server", config.argocd_server}; }

 private:
  Task<Result<Secret>> log_in();
  [[nodiscard]] http::Response distribution(std::string_view query) const;

  const Environment& environment_;
  http::Client argocd_http_;
  Credential argocd_password_;
  Credential argocd_token_;
  argo::ArgoCdClient argocd_;
  std::optional<http::Client> app_proxy_http_;
  std::optional<SourceFiles> source_files_;
  Gatherer gatherer_;
  Reporter reporter_;
};

}  // namespace gitops::reporter
