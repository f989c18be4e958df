#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "k8s-client/config.hpp"
#include "k8s-client/exec_credential.hpp"

namespace gitops::k8s {

// Provides the Authorization value for each request. Token files are read again every minute and
// after a 401; while one cannot be read, its last token stays in use. The credential of an exec
// plugin is kept until a minute before its expirationTimestamp, or until a 401; while a plugin cannot
// renew it, until the expirationTimestamp itself. Concurrent callers share one run of the plugin.
// Loop thread only.
class TokenSource {
 public:
  // `config` must outlive this.
  TokenSource(const Executor& executor, const ClusterConfig& config);

  // Returns "Bearer …", "Basic …" or empty. Failures name the file or command, never its content.
  Task<Result<Secret>> authorization(Deadline deadline);
  // The client certificate that goes with the last authorization(); empty unless a plugin gave one.
  [[nodiscard]] const ClientCertificate& certificate() const { return certificate_; }
  // Reports a 401 to `refused`. Returns whether authorization() may give another value now; false
  // for a static token, an unchanged file, and a plugin that has just run.
  bool invalidate(const Secret& refused);

 private:
  Result<Secret> read_token_file(Clock::time_point now);
  Task<Result<Secret>> run_plugin(Deadline deadline);

  const ClusterConfig& config_;
  bool known_ = false;             // cached_ is set; an empty value counts
  Secret cached_;                  // the Authorization value
  ClientCertificate certificate_;  // of the same plugin run
  Clock::time_point obtained_{};
  Clock::time_point expires_{};          // time of its renewal
  Clock::time_point ends_{};             // time at which a plugin's credential becomes useless
  bool running_ = false;                 // a plugin runs
  std::optional<Error> plugin_failure_;  // of its last run, for callers that waited for it
  Event finished_;
};

}  // namespace gitops::k8s
