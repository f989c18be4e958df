#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::reporter {

// A token that may rotate while the daemon runs: a fixed value, a file that is read again when it
// changed, a key of a Secret that is read through the API server every minute and when the peer
// refused the token, or a login that is repeated when the peer refused what it gave. Loop thread
// only.
class Credential {
 public:
  static Credential fixed(Secret token);
  static Credential file(std::string path);
  // `client` outlives it.
  static Credential secret(k8s::Client& client, k8s::ObjectKey key, std::string data_key);
  // A wrong password is tried no more often than every 70 s: argocd-server refuses everybody after
  // five failures in 300 s.
  using LogIn = std::function<Task<Result<Secret>>()>;
  static Credential session(LogIn log_in);

  // What to send now; empty while there is none.
  [[nodiscard]] Secret current();
  // The peer refused it. True when a newer one was found, so that another attempt makes sense.
  Task<bool> refused();
  // Why there is no usable token right now; empty when there is one.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // Keeps the token of a Secret fresh, and logs in first; the other kinds need no task.
  void start(TaskGroup& group);

 private:
  Credential() = default;
  void read_file();
  Task<> read_secret();
  Task<> log_in_again();

  Secret token_;
  std::string trouble_;

  std::string path_;
  std::string fingerprint_;  // of the file that was read: inode, size, time
  Clock::time_point next_look_{};

  k8s::Client* client_ = nullptr;
  k8s::ObjectKey key_;
  std::string data_key_;
  LogIn log_in_;
  Clock::time_point next_forced_{};
};

}  // namespace gitops::reporter
