#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"
#include "k8s-client/lease.hpp"

namespace gitops::reporter {

struct StandInOptions {
  std::string ns;
  std::vector<std::string> leases;  // names of the Leases, the ones to care for first in front
  std::string identity;             // unique per process, e.g. the pod's name
  k8s::Labels labels = {};          // that all these Leases have: what is listed of the namespace
  std::chrono::seconds lease_duration{8};
  std::chrono::milliseconds renew_deadline{6'000};  // less than lease_duration
  std::chrono::milliseconds retry_period{2'000};    // between two looks, and two renewals
  std::chrono::milliseconds patience{1'000};        // longer for each place in the list
  std::chrono::milliseconds farewell{5'000};        // for work to end before a Lease is handed back
};

// The decisions of a process that stands in for the owners of other Leases (LeaseOptions::Role), at
// most one at a time, without I/O: told what the API server answered, it says what to ask next. A
// Lease is taken when it expired, or was free or missing for lease_duration: an owner that restarts
// in an orderly way finds it as it left it. It is handed back when somebody asks for it. Time in
// which the API server could not be seen does not count. Times are those of this process.
//
// The Leases are listed by their labels. Those without, as earlier versions made them, get them:
// the first list has no selector, and neither has the one after a Lease that was not listed turned
// out to exist.
class StandInSteps {
 public:
  explicit StandInSteps(StandInOptions options);

  struct Action {
    enum class Kind {
      wait,
      list,    // the Leases of the namespace with the labels, or `all` of them
      create,  // `object`, the Lease with that index
      update,
      label,  // an update for the sake of the labels
      part,   // the work of that Lease ends
    } kind = Kind::list;
    std::size_t lease = 0;
    std::string object;
    Clock::time_point until;  // wait, part: how long; others: when the answer is of no use any more
    bool all = false;
  };
  // What to do now; when a wait is over call it again.
  Action next(Clock::time_point now, WallTime wall);
  void on_list(const Result<std::string>& answer, Clock::time_point now);
  // The answer to a create or update: the Lease.
  void on_written(const Result<std::string>& answer, Clock::time_point now);
  // The answer to a label: the Lease, by index.
  void on_labelled(std::size_t lease, const Result<std::string>& answer, Clock::time_point now);
  // The work has ended, or the time for it is over.
  void on_parted() { parting_ = Parting::parted; }

  // The Lease that is held for its owner, by index.
  [[nodiscard]] std::optional<std::size_t> held(Clock::time_point now) const;
  [[nodiscard]] const k8s::LeaseView& lease(std::size_t index) const { return views_.at(index); }

  // Ends holding for good. A Lease that the API server may have as ours: then read it once more.
  std::optional<std::size_t> stop();

 private:
  enum class Parting { no, asked, parted };
  // When this Lease may be taken; never: it was not seen yet.
  [[nodiscard]] Clock::time_point due(std::size_t index) const;
  [[nodiscard]] std::optional<std::size_t> next_due() const;
  // False when this is no list of Leases.
  bool see(const std::string& list, Clock::time_point now);
  void forget();

  StandInOptions options_;
  std::vector<k8s::LeaseView> views_;
  Clock::time_point list_at_{};
  std::optional<Clock::time_point> seen_at_;  // the last answered list
  bool seen_ = false;                         // the last list was answered
  bool may_write_ = false;                    // once after each list
  bool list_all_ = true;                      // there may be Leases without the labels
  std::vector<std::size_t> unlabelled_;       // as the last list has shown
  Clock::time_point sent_at_{};
  std::optional<std::size_t> lease_;  // taken, or to be: the API server may have it as ours
  Clock::time_point held_until_{};
  Parting parting_ = Parting::no;
};

// Runs StandInSteps against an API server. Needs the rights to list, get, create and update Leases
// of the namespace.
class StandIn {
 public:
  struct Callbacks {
    // On the loop thread, first with true, for one Lease at a time.
    std::function<void(std::size_t lease, bool held)> on_change;
    // Whether work that was begun while it was held still goes on; asked again and again until a
    // Lease can be handed back.
    std::function<bool(std::size_t lease)> busy;
  };
  // `client` outlives the group's task.
  StandIn(k8s::Client& client, StandInOptions options, Callbacks callbacks);
  // Runs until the group is cancelled; the Lease that was held is given back by then.
  void start(TaskGroup& group);

  // Also right when the process was stopped for a while and nothing has run since.
  [[nodiscard]] std::optional<std::size_t> held() const;
  // As we last saw it; when told that it is held, as we have it.
  [[nodiscard]] const k8s::LeaseView& lease(std::size_t index) const { return steps_.lease(index); }

 private:
  Task<> run();
  Task<> perform(StandInSteps::Action action);
  Task<> finish_work(std::size_t lease, Deadline deadline);
  void note(const Result<std::string>& answer);
  void tell();

  k8s::Client& client_;
  StandInOptions options_;
  Callbacks callbacks_;
  StandInSteps steps_;
  std::optional<std::size_t> told_;
  RepeatFilter failures_{std::chrono::minutes(1)};
};

}  // namespace gitops::reporter
