#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::k8s {

struct LeaseOptions {
  ObjectKey key;         // the coordination.k8s.io/v1 Lease
  std::string identity;  // unique per process, e.g. the pod's name
  std::chrono::seconds lease_duration{15};
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry_period{2};
};

// Leader election by a Lease, as client-go's leaderelection does it and able to share a Lease with
// it: the holder renews every retry_period; another takes over when the record has not changed for
// lease_duration *by its own clock* (clocks of different machines are never compared); a holder that
// cannot renew for renew_deadline stops leading before anybody else can start. A Lease is given back
// on an orderly stop.
class LeaseElection {
 public:
  LeaseElection(const Executor& executor, Client& client, LeaseOptions options,
                std::function<void(bool leading)> on_change);
  // Runs until the group is cancelled.
  void start(TaskGroup& group);
  [[nodiscard]] bool leading() const { return leading_; }
  // Who held it when we last looked.
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  Task<> run();
  Executor executor_;
  Client& client_;
  LeaseOptions options_;
  std::function<void(bool)> on_change_;
  bool leading_ = false;
  std::string holder_;
};

}  // namespace gitops::k8s
