#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/lease.hpp"

namespace gitops::app_proxy {

// Leadership of this replica. The leader does work that only one of several replicas may do. The
// leader is the holder of a Lease; without a Lease each replica leads. Loop thread; the client of
// the cluster outlives it.
class Leadership {
 public:
  // Leads without a Lease.
  explicit Leadership(const Executor& executor) : changed_(executor) {}
  // Leads by a Lease, which this replica does not hold before start().
  Leadership(const Executor& executor, k8s::Client& cluster, k8s::LeaseOptions lease);

  // Competes for the Lease, if there is one, until the group is cancelled.
  void start(TaskGroup& group);

  // True while this replica leads. Correct also right after the process was suspended.
  [[nodiscard]] bool leads() const { return election_ ? election_->leading() : leads_; }
  // Notified when this replica starts or stops leading.
  [[nodiscard]] Event& changed() { return changed_; }
  // Number of changes so far. A report from one term may be outdated in the next.
  [[nodiscard]] std::uint64_t term() const { return term_; }
  // The holder of the Lease at the last read; empty without a Lease.
  [[nodiscard]] std::string holder() const;

  // The annotation of the Lease at its last read, which is some seconds old at most; empty when it
  // has none. Unset without a Lease, or before it was read.
  [[nodiscard]] std::optional<std::string> annotation(std::string_view name) const;
  // Changes an annotation of the Lease, by which replicas report to each other. `change` returns the
  // new text for the current one; the same text writes nothing. Does nothing without a Lease.
  Task<Result<void>> annotate(std::string name,
                              std::function<std::string(std::string_view current)> change,
                              Deadline deadline);

  // Sets the state of a replica without a Lease.
  void set(bool leads);

 private:
  void note(bool leads);

  Event changed_;
  std::uint64_t term_ = 0;
  bool leads_ = true;               // without a Lease
  k8s::Client* cluster_ = nullptr;  // set with a Lease
  std::optional<k8s::LeaseElection> election_;
  Log log_{"app-proxy"};
};

}  // namespace gitops::app_proxy
