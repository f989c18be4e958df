#pragma once

#include <string>

#include "common/core/async.hpp"
#include "common/core/secret.hpp"
#include "k8s-client/config.hpp"

namespace gitops::k8s {

// Gives the Authorization value for each request. Token files are read again every minute and after a
// 401; exec plugins run on the pool, their answer is kept until its expirationTimestamp (a minute
// earlier) or a 401, and equal calls are merged. Loop thread only.
class TokenSource {
 public:
  TokenSource(const ClusterConfig& config, asio::thread_pool& pool);

  // "Bearer …", "Basic …" or empty. Failures name the file or command, never what it held.
  Task<Result<Secret>> authorization(Deadline deadline);
  // The server said 401: what is cached is stale. Returns false when nothing can change by itself
  // (a static token), so that a caller does not try again at once.
  bool invalidate();

 private:
  Result<std::string> read_token_file() const;
  Task<Result<Secret>> run_exec();

  const ClusterConfig& config_;
  asio::thread_pool& pool_;
  Secret cached_;
  Deadline expires_{};
  bool running_ = false;
};

}  // namespace gitops::k8s
