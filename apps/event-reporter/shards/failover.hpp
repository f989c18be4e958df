#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/lease.hpp"

namespace gitops::reporter {

struct FailoverOptions {
  struct Lease {
    std::string name;
    WallTime newest_renewal{};  // as in k8s::LeaseOptions
  };
  std::string ns;
  std::vector<Lease> leases;  // in the order in which this process takes them over
  std::string identity;       // unique per process, e.g. the pod's name
  k8s::Labels labels = {};    // labels of all these Leases; they select them in lists
  std::chrono::seconds lease_duration{8};
  std::chrono::milliseconds renew_deadline{6'000};  // less than lease_duration
  std::chrono::milliseconds retry_period{2'000};    // between two lists, and two renewals
  std::chrono::milliseconds rank_delay{1'000};      // extra wait per place in `leases`
  std::chrono::milliseconds handover_grace{5'000};  // time for work in flight before a hand-over
};

// The decisions of a process that takes over the Leases of other owners (lease_owner.hpp), one at a
// time. Without I/O: takes the API server's responses and returns the next request. A Lease is taken
// when it has expired, or was free or missing for lease_duration, so that an owner that restarts in
// order gets it back. It is handed back when its owner requests it. Time in which the API server
// could not be reached does not count. All times are those of this process's clock.
//
// The Leases are listed by their labels. Leases of earlier versions have no labels and are labelled:
// the first list has no selector, nor has the list after a create that failed because the Lease
// exists.
class FailoverSteps {
 public:
  explicit FailoverSteps(FailoverOptions options);

  struct Action {
    enum class Kind {
      wait,
      list,    // the namespace's Leases with the labels, or `all` Leases
      create,  // `object`, the Lease with that index
      update,
      label,  // an update that adds the labels
      part,   // wait for the Lease's work to end
    } kind = Kind::list;
    std::size_t lease = 0;
    std::string object;
    Clock::time_point until;  // end of wait and part; deadline of the requests
    bool all = false;
  };
  // Returns the next action. Call it again when the action is done.
  Action next(Clock::time_point now, WallTime wall);
  void on_list(const Result<std::string>& answer, Clock::time_point now);
  // Takes the response to a create or update: the Lease.
  void on_written(const Result<std::string>& answer, Clock::time_point now);
  // Takes the response to a label of the Lease with that index.
  void on_labelled(std::size_t lease, const Result<std::string>& answer, Clock::time_point now);
  // Reports that the work has ended, or its time has run out.
  void on_parted() { parting_ = Parting::parted; }

  // Returns the index of the Lease that is held for its owner.
  [[nodiscard]] std::optional<std::size_t> held(Clock::time_point now) const;
  [[nodiscard]] const k8s::LeaseView& lease(std::size_t index) const { return views_.at(index); }

  // Stops holding for good. Returns the Lease whose holder this process may still be on the API
  // server.
  std::optional<std::size_t> stop();

 private:
  enum class Parting { no, asked, parted };
  // Returns the time at which this Lease may be taken; kNever while it has not been seen.
  [[nodiscard]] Clock::time_point due(std::size_t index) const;
  [[nodiscard]] std::optional<std::size_t> next_due() const;
  // Takes a list; returns false when the text is not a list of Leases.
  bool see(const std::string& list, Clock::time_point now);
  void forget();

  FailoverOptions options_;
  std::vector<k8s::LeaseView> views_;
  Clock::time_point list_at_{};
  std::optional<Clock::time_point> seen_at_;  // time of the last successful list
  bool seen_ = false;                         // the last list was successful
  bool may_write_ = false;                    // one write after each list
  bool list_all_ = true;                      // Leases without the labels may exist
  std::vector<std::size_t> unlabelled_;       // found by the last list
  Clock::time_point sent_at_{};
  std::optional<std::size_t> lease_;  // held or being taken
  Clock::time_point held_until_{};
  Parting parting_ = Parting::no;
};

// Runs FailoverSteps against an API server. Needs the permissions to list, get, create and update Leases
// of the namespace.
class Failover {
 public:
  // The owner of the work that depends on the held Lease. Called on the loop thread.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Reports that the Lease is held or not held any more; first with true, for one Lease at a
    // time.
    virtual void on_change(std::size_t lease, bool held) = 0;
    // Returns whether work from the time of holding is still in flight; polled before a hand-over.
    [[nodiscard]] virtual bool busy(std::size_t lease) const = 0;
    // Returns the time for renewTime, as k8s::LeaseOptions::clock.
    [[nodiscard]] virtual WallTime now() const { return wall_now(); }
  };
  // `client` and `observer` outlive the group's task.
  Failover(k8s::Client& client, FailoverOptions options, Observer& observer);
  // Runs until the group is cancelled, then gives the held Lease back.
  void start(TaskGroup& group);

  // Returns the held Lease; correct even when the process was suspended and no task has run since.
  [[nodiscard]] std::optional<std::size_t> held() const;
  // Returns the Lease as last seen or written.
  [[nodiscard]] const k8s::LeaseView& lease(std::size_t index) const { return steps_.lease(index); }

 private:
  Task<> run();
  Task<> perform(FailoverSteps::Action action);
  Task<> finish_work(std::size_t lease, Deadline deadline);
  void note(const Result<std::string>& answer);
  void notify();

  k8s::Client& client_;
  FailoverOptions options_;
  Observer& observer_;
  FailoverSteps steps_;
  std::optional<std::size_t> reported_;
  RepeatFilter failures_{std::chrono::minutes(1)};
};

}  // namespace gitops::reporter
