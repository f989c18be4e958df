#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::k8s {

using Labels = std::map<std::string, std::string>;
// Returns a selector "key=value,…" of objects that have all these labels.
std::string label_selector(const Labels& labels);

struct LeaseOptions {
  ObjectKey key;         // the coordination.k8s.io/v1 Lease
  std::string identity;  // unique per process, e.g. the pod's name
  Labels labels = {};    // added to the Lease with every write; other labels are kept
  std::chrono::seconds lease_duration{15};
  std::chrono::milliseconds renew_deadline{10'000};  // less than lease_duration
  std::chrono::milliseconds retry_period{2'000};     // less than renew_deadline
  // Returns the time for renewTime, which is used unless the one before is later.
  std::function<WallTime()> clock = wall_now;
  // Lower bound of renewTime, which is set to later times only: for example that of an earlier
  // view.
  WallTime newest_renewal{};
  // The name of LeaseView::cleared_annotation().
  std::string cleared_annotation = {};
};

// The content of a Lease, as client-go's LeaderElectionRecord. A free Lease has no holder.
struct LeaseRecord {
  std::string holder;
  std::chrono::seconds duration{0};
  std::string acquired;  // MicroTime as received: never compared with our clock
  std::string renewed;
  std::int64_t transitions = 0;

  bool operator==(const LeaseRecord&) const = default;
};

// A Lease as this process knows it: its last content, and the time of the last change by our own
// clock. The Leases that it makes keep all fields that other writers have set.
class LeaseView {
 public:
  // `labels` are added to each Lease that this makes. See newest_renewal() and cleared_annotation().
  explicit LeaseView(ObjectKey key, Labels labels = {}, WallTime newest_renewal = {},
                     std::string cleared_annotation = {})
      : key_(std::move(key)),
        labels_(std::move(labels)),
        newest_renewal_(newest_renewal),
        cleared_annotation_(std::move(cleared_annotation)) {}

  // Takes the Lease as the API server has it. After text that is not a Lease, known() is false.
  void see(std::string_view lease, Clock::time_point now);
  void see_none(Clock::time_point now);
  // Treats the Lease as changed now: after a pause in which it was not read.
  void start_over(Clock::time_point now) {
    if (since_) since_ = now;
  }

  [[nodiscard]] const ObjectKey& key() const { return key_; }
  // Returns true when the Lease exists and its last text could be read.
  [[nodiscard]] bool known() const { return !object_.empty(); }
  // Returns the record; that of a free Lease when there is no Lease.
  [[nodiscard]] const LeaseRecord& record() const { return record_; }
  [[nodiscard]] const std::string& uid() const { return uid_; }
  // Returns the annotation's text; empty when there is none.
  [[nodiscard]] std::string_view annotation(std::string_view name) const;
  // The name of an annotation of one term, which taken() and freed() remove. Empty: none.
  [[nodiscard]] const std::string& cleared_annotation() const { return cleared_annotation_; }
  // Returns true when the Lease has our labels.
  [[nodiscard]] bool labelled() const { return labelled_; }
  // Returns the latest renewTime that was ever seen, also of a Lease that was deleted since, or put
  // back to an earlier state by a restore of the cluster. 1970 when there was none.
  [[nodiscard]] WallTime newest_renewal() const { return newest_renewal_; }
  // Returns the time of the last change of the record; nothing before the first see().
  [[nodiscard]] std::optional<Clock::time_point> since() const { return since_; }
  // Returns the end of the holder's term unless it renews. The term is at least `least` and at most
  // ten times as long, because the duration in a Lease may be damaged. Requires a see() before.
  [[nodiscard]] Clock::time_point expires(std::chrono::seconds least) const;

  // The least step by which a write moves renewTime beyond newest_renewal(). So renewTime never goes
  // back, whatever the skew of the writers' clocks. A renewTime that is ahead of the writer's clock
  // moves by half of the time since the last change, if that is more. So the clocks catch up. And a
  // claim after a restore of the cluster gets a later time than the claim that the restore undid,
  // also when its writer had not seen that claim.
  static constexpr std::chrono::milliseconds kLeastStep{100};
  // Returns the Lease with `identity` as its holder; a change of the holder counts as a transition.
  [[nodiscard]] std::string taken(const std::string& identity, std::chrono::seconds duration,
                                  WallTime wall, Clock::time_point now) const;
  // Returns the Lease without a holder, so that the next one need not wait.
  [[nodiscard]] std::string freed(WallTime wall, Clock::time_point now) const;
  // Returns the Lease with this annotation, otherwise unchanged.
  [[nodiscard]] std::string with_annotation(const std::string& name,
                                            const std::string& value) const;
  // Returns the Lease with our labels, otherwise unchanged.
  [[nodiscard]] std::string with_labels() const;

 private:
  [[nodiscard]] std::string with(const LeaseRecord& record) const;
  [[nodiscard]] std::string time_of_write(WallTime wall, Clock::time_point now) const;

  ObjectKey key_;
  Labels labels_;
  std::string object_;  // as last received; empty: there is none
  LeaseRecord record_;
  std::string uid_;
  std::map<std::string, std::string, std::less<>> annotations_;
  bool labelled_ = false;
  WallTime newest_renewal_;
  std::string cleared_annotation_;
  std::optional<Clock::time_point> since_;
};

// The state machine of one candidate, without I/O: takes the responses of the API server and
// returns the next request. Times are those of this process. A subclass may write to a Lease that
// another process holds.
class LeaseSteps {
 public:
  LeaseSteps(LeaseOptions options, std::uint64_t seed);
  LeaseSteps(const LeaseSteps&) = default;
  LeaseSteps& operator=(const LeaseSteps&) = default;
  LeaseSteps(LeaseSteps&&) = default;
  LeaseSteps& operator=(LeaseSteps&&) = default;
  virtual ~LeaseSteps() = default;

  struct Action {
    // annotate: an update that leaves the record as it is (annotate()).
    enum class Kind { wait, read, create, update, annotate } kind = Kind::read;
    std::string object;       // create, update, annotate: the Lease to send
    Clock::time_point until;  // wait: its end; others: the deadline of the request
  };
  // Returns the next action. Call it again after a wait.
  Action next(Clock::time_point now, WallTime wall);
  // Takes the response to a read, create, update or annotate: the Lease, or the error.
  void on_answer(const Result<std::string>& answer, Clock::time_point now);

  // Returns true from a successful create or update until renew_deadline after it was *sent*,
  // unless renewed.
  [[nodiscard]] bool leading(Clock::time_point now) const { return now < leading_until_; }
  [[nodiscard]] const LeaseView& lease() const { return view_; }

  // Ends leading for good. Returns true when the Lease may name us as its holder, also because of a
  // request that is still in flight: then it must be read once more.
  bool stop(Clock::time_point now);

 protected:
  [[nodiscard]] const LeaseOptions& options() const { return options_; }
  // Returns the Lease to write when another process holds it. Nothing: a candidate only waits.
  [[nodiscard]] virtual std::optional<std::string> annotate() const { return std::nullopt; }
  // Returns whether the candidate returns exactly after each retry period. Otherwise its pauses are
  // longer by a random time, so that candidates do not write all at once.
  [[nodiscard]] virtual bool is_punctual() const { return false; }

 private:
  void observe(const std::string& object, Clock::time_point now);
  void pause(Clock::time_point now);
  // Returns a random time of up to one retry period.
  std::chrono::milliseconds jitter();

  LeaseOptions options_;
  std::minstd_rand random_;
  Action::Kind pending_ = Action::Kind::read;  // the request whose response is next
  Action::Kind planned_ = Action::Kind::read;  // the action at wait_until_
  std::string annotated_;                      // the Lease of a planned annotate
  Clock::time_point wait_until_{};
  Clock::time_point sent_at_{};
  Clock::time_point leading_until_{};
  LeaseView view_;
};

// Reads the Lease of `view` and releases it at `now` when `identity` holds it. Gives up after two
// seconds, with a warning in the log.
Task<> give_back(Client& client, LeaseView view, std::string identity, WallTime now);

// Leader election by a Lease, compatible with client-go's leaderelection: the holder renews every
// retry_period; another candidate takes over when the record has not changed for its duration *by
// the candidate's clock*; a holder that cannot renew for renew_deadline stops leading before
// another one can start. An orderly stop releases the Lease.
class LeaseElection {
 public:
  // `on_change` is called on the loop thread, first with true. `client` outlives the group's task.
  LeaseElection(Client& client, LeaseOptions options, std::function<void(bool leading)> on_change);
  // Takes decisions of the program's own, made from the same options.
  LeaseElection(Client& client, LeaseOptions options, std::function<void(bool leading)> on_change,
                std::unique_ptr<LeaseSteps> steps);
  // Runs until the group is cancelled; on_change(false) has been called by then.
  void start(TaskGroup& group);
  // Returns whether this process leads; correct also right after the process was suspended.
  [[nodiscard]] bool leading() const { return leading_ && steps_->leading(Clock::now()); }
  // The holder at the last read.
  [[nodiscard]] const std::string& holder() const { return steps_->lease().record().holder; }
  // The Lease at the last read or write.
  [[nodiscard]] const LeaseView& lease() const { return steps_->lease(); }

 private:
  Task<> run();
  Task<Result<std::string>> perform(LeaseSteps::Action action);
  void notify();

  Client& client_;
  LeaseOptions options_;
  std::function<void(bool)> on_change_;
  std::unique_ptr<LeaseSteps> steps_;
  bool leading_ = false;  // as last reported to on_change
};

}  // namespace gitops::k8s
