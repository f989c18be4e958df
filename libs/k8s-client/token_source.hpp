#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "k8s-client/config.hpp"
#include "k8s-client/exec_credential.hpp"

namespace gitops::k8s {

// Gives the Authorization value for each request. Token files are read again every minute and after
// a 401; while one cannot be read, its last token stays in use. What an exec plugin gave is kept
// until its expirationTimestamp (a minute earlier) or a 401; callers that need it at the same time
// wait for one run. Loop thread only.
class TokenSource {
 public:
  // `config` must outlive this.
  TokenSource(const Executor& executor, const ClusterConfig& config);

  // "Bearer …", "Basic …" or empty. Failures name the file or command, never what it held.
  Task<Result<Secret>> authorization(Deadline deadline);
  // The client certificate that goes with the last authorization(); empty unless a plugin gave one.
  [[nodiscard]] const ClientCertificate& certificate() const { return certificate_; }
  // The server answered 401 to `refused`: what is cached may be stale. Returns false when asking
  // again would give the same (a static token, an unchanged file, a plugin that has just run).
  bool invalidate(const Secret& refused);

 private:
  Result<Secret> read_token_file(Clock::time_point now);
  Task<Result<Secret>> run_plugin(Deadline deadline);

  const ClusterConfig& config_;
  bool known_ = false;             // a file or a plugin gave something; empty is a value, too
  Secret cached_;                  // the Authorization value
  ClientCertificate certificate_;  // beside it
  Clock::time_point obtained_{};
  Clock::time_point expires_{};
  bool running_ = false;                 // a plugin
  std::optional<Error> plugin_failure_;  // of its last run, for those who waited for it
  Event finished_;
};

}  // namespace gitops::k8s
