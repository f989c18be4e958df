#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::k8s {

using Labels = std::map<std::string, std::string>;
// "key=value,…": what has all these labels.
std::string label_selector(const Labels& labels);

struct LeaseOptions {
  ObjectKey key;         // the coordination.k8s.io/v1 Lease
  std::string identity;  // unique per process, e.g. the pod's name
  Labels labels = {};    // that the Lease gets whenever it is written, besides those of others
  std::chrono::seconds lease_duration{15};
  std::chrono::milliseconds renew_deadline{10'000};  // less than lease_duration
  std::chrono::milliseconds retry_period{2'000};     // less than renew_deadline
  // An owner asks for its Lease back when it finds a stand-in (stand_in.hpp) holding it.
  enum class Role { candidate, owner } role = Role::candidate;
};

// The annotation that names who asks the holder of a Lease for it.
inline constexpr const char* kWantedBy = "gitops-runtime.io/wanted-by";

// What a Lease says, as client-go's LeaderElectionRecord. A free Lease has no holder.
struct LeaseRecord {
  std::string holder;
  std::chrono::seconds duration{0};
  std::string acquired;  // MicroTime as received: clocks of others are never compared
  std::string renewed;
  std::int64_t transitions = 0;

  bool operator==(const LeaseRecord&) const = default;
};

// A Lease as this process knows it: what it said last, and since when by our own clock. What it
// makes to be sent keeps everything that others wrote on the Lease.
class LeaseView {
 public:
  // What is made to be sent has `labels`, besides those that others wrote.
  explicit LeaseView(ObjectKey key, Labels labels = {})
      : key_(std::move(key)), labels_(std::move(labels)) {}

  // What the API server has. A text that is no Lease leaves everything but known() as it is.
  void see(const std::string& lease, Clock::time_point now);
  void see_none(Clock::time_point now);
  // Counts from now, as if it had changed: nobody looked for a while.
  void start_over(Clock::time_point now) {
    if (since_) since_ = now;
  }

  [[nodiscard]] const ObjectKey& key() const { return key_; }
  // There is a Lease, and the last text of it was readable.
  [[nodiscard]] bool known() const { return !object_.empty(); }
  // Of no Lease: that of a free one.
  [[nodiscard]] const LeaseRecord& record() const { return record_; }
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] const std::string& wanted_by() const { return wanted_by_; }
  // The Lease has our labels.
  [[nodiscard]] bool labelled() const { return labelled_; }
  // When the record last changed; nothing before the first look.
  [[nodiscard]] std::optional<Clock::time_point> since() const { return since_; }
  // When the holder's time is over unless it renews; it is never less than `least`, nor more than
  // ten times as long: durations can be damaged by hand. Only after a first look.
  [[nodiscard]] Clock::time_point expires(std::chrono::seconds least) const;

  // The Lease with us as the holder; every taking over counts as a transition.
  [[nodiscard]] std::string taken(const std::string& identity, std::chrono::seconds duration,
                                  WallTime wall) const;
  // Without a holder, so that another need not wait.
  [[nodiscard]] std::string freed(WallTime wall) const;
  // Unchanged but for the annotation that asks for it.
  [[nodiscard]] std::string asked(const std::string& identity) const;
  // Unchanged but for our labels.
  [[nodiscard]] std::string with_labels() const;

 private:
  [[nodiscard]] std::string with(const LeaseRecord& record) const;

  ObjectKey key_;
  Labels labels_;
  std::string object_;  // as last received; empty: there is none
  LeaseRecord record_;
  std::string uid_;
  std::string wanted_by_;
  bool labelled_ = false;
  std::optional<Clock::time_point> since_;
};

// The decisions of one candidate, without I/O: told what the API server answered, it says what to
// ask next. Times are those of this process.
class LeaseSteps {
 public:
  LeaseSteps(LeaseOptions options, std::uint64_t seed);

  struct Action {
    enum class Kind { wait, read, create, update, ask } kind = Kind::read;
    std::string object;       // create, update, ask: the Lease to send
    Clock::time_point until;  // wait: how long; others: when the answer comes too late to be of use
  };
  // What to do now; when a wait is over call it again.
  Action next(Clock::time_point now, WallTime wall);
  // The answer to a read, create, update or ask (the Lease), or why there is none.
  void on_answer(const Result<std::string>& answer, Clock::time_point now);

  // True from a successful create or update until renew_deadline after it was *sent*, unless
  // renewed.
  [[nodiscard]] bool leading(Clock::time_point now) const { return now < leading_until_; }
  [[nodiscard]] const LeaseView& lease() const { return view_; }

  // Ends leading for good. True when the API server may have us as the holder, by a request whose
  // answer did not come any more, too: then read the Lease once more.
  bool stop(Clock::time_point now);

 private:
  void observe(const std::string& object, Clock::time_point now);
  void pause(Clock::time_point now);

  LeaseOptions options_;
  std::minstd_rand random_;
  Action::Kind pending_ = Action::Kind::read;  // what the next answer answers
  Action::Kind planned_ = Action::Kind::read;  // what to do when wait_until_ has come
  Clock::time_point wait_until_{};
  Clock::time_point sent_at_{};
  Clock::time_point leading_until_{};
  LeaseView view_;
};

// Reads the Lease and frees it when it is `identity`'s. Gives up, with a warning in the log, after
// two seconds.
Task<> give_back(Client& client, ObjectKey key, std::string identity);

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
  [[nodiscard]] const std::string& holder() const { return steps_.lease().record().holder; }
  // As we last saw it; when told that we lead, as we have it.
  [[nodiscard]] const LeaseView& lease() const { return steps_.lease(); }

 private:
  Task<> run();
  Task<Result<std::string>> perform(LeaseSteps::Action action);
  void tell();

  Client& client_;
  LeaseOptions options_;
  std::function<void(bool)> on_change_;
  LeaseSteps steps_;
  bool leading_ = false;  // as last told
};

}  // namespace gitops::k8s
