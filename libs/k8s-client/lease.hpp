#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::k8s {

struct LeaseOptions {
  ObjectKey key;         // the coordination.k8s.io/v1 Lease
  std::string identity;  // unique per process, e.g. the pod's name
  std::chrono::seconds lease_duration{15};
  std::chrono::seconds renew_deadline{10};  // less than lease_duration
  std::chrono::seconds retry_period{2};     // less than renew_deadline
};

// What a Lease says, as client-go's LeaderElectionRecord. A free Lease has no holder.
struct LeaseRecord {
  std::string holder;
  std::chrono::seconds duration{0};
  std::string acquired;  // MicroTime as received: clocks of others are never compared
  std::string renewed;
  std::int64_t transitions = 0;

  bool operator==(const LeaseRecord&) const = default;
};

// The decisions of one candidate, without I/O: told what the API server answered, it says what to
// ask next. Times are those of this process.
class LeaseSteps {
 public:
  LeaseSteps(LeaseOptions options, std::uint64_t seed);

  struct Action {
    enum class Kind { wait, read, create, update } kind = Kind::read;
    std::string object;       // create, update: the Lease to send
    Clock::time_point until;  // wait: how long; others: when the answer comes too late to be of use
  };
  // What to do now; when a wait is over call it again.
  Action next(Clock::time_point now, WallTime wall);
  // The answer to a read, create or update (the Lease), or why there is none.
  void on_answer(const Result<std::string>& answer, Clock::time_point now);

  // True from a successful create or update until renew_deadline after it was *sent*, unless
  // renewed.
  [[nodiscard]] bool leading(Clock::time_point now) const { return now < leading_until_; }
  [[nodiscard]] const std::string& holder() const { return observed_.holder; }

  // Ends leading for good. True when the API server may have us as the holder, by a request whose
  // answer did not come any more, too: then read the Lease once more.
  bool stop(Clock::time_point now);
  // What to send for this Lease so that another need not wait; nothing when it is not ours.
  [[nodiscard]] std::optional<std::string> release(const std::string& lease, WallTime wall);

 private:
  [[nodiscard]] std::string object_with(const LeaseRecord& record) const;
  [[nodiscard]] LeaseRecord own_record(WallTime wall) const;
  void observe(const std::string& object, Clock::time_point now);
  void pause(Clock::time_point now);

  LeaseOptions options_;
  std::minstd_rand random_;
  Action::Kind pending_ = Action::Kind::read;  // what the next answer answers
  Action::Kind planned_ = Action::Kind::read;  // what to do when wait_until_ has come
  Clock::time_point wait_until_{};
  Clock::time_point sent_at_{};
  Clock::time_point leading_until_{};
  std::string object_;  // the Lease as last received; labels and owners of it are kept
  LeaseRecord observed_;
  Clock::time_point observed_at_{};  // when observed_ last changed
};

// Leader election by a Lease, as client-go's leaderelection does it and able to share a Lease with
// it: the holder renews every retry_period; another takes over when the record has not changed for
// its duration *by its own clock*; a holder that cannot renew for renew_deadline stops leading
// before anybody else can start. A Lease is given back on an orderly stop.
class LeaseElection {
 public:
  // `on_change` comes on the loop thread, first with true. `client` outlives the group's task.
  LeaseElection(Client& client, LeaseOptions options, std::function<void(bool leading)> on_change);
  // Runs until the group is cancelled; on_change(false) has been called by then.
  void start(TaskGroup& group);
  // Also right when the process was stopped for a while and nothing has run since.
  [[nodiscard]] bool leading() const { return leading_ && steps_.leading(Clock::now()); }
  // Who held it when we last looked.
  [[nodiscard]] const std::string& holder() const { return steps_.holder(); }

 private:
  Task<> run();
  Task<Result<std::string>> perform(LeaseSteps::Action action);
  Task<> give_back();
  void tell();

  Client& client_;
  LeaseOptions options_;
  std::function<void(bool)> on_change_;
  LeaseSteps steps_;
  bool leading_ = false;  // as last told
};

}  // namespace gitops::k8s
