#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "event-reporter/ledger/sequence.hpp"
#include "event-reporter/shards/failover.hpp"
#include "event-reporter/shards/lease_owner.hpp"
#include "event-reporter/shards/shard.hpp"
#include "k8s-client/lease.hpp"

namespace gitops::reporter {

// Identifies one acquisition of a shard. The lower 32 bits are the transitions of its Lease; the 31
// bits above identify the Lease and the layout of the shards.
using Term = std::int64_t;

// Returns whether no other replica reported a shard between two terms of this one. A replica that
// takes a Lease with another holder, or with none, increments the transitions; giving the Lease
// back does not, and neither does taking one whose holder it still is. So the next term is `before`
// or `before + 1`, and at least `before + 2` when another replica held the Lease in between. A
// Lease that was deleted and created again, an overflow of the counter and a change of the number
// of replicas give a term outside that range. False also when the other replica took the Lease but
// reported nothing; wrongly true only after a manual change of the counter.
[[nodiscard]] constexpr bool nobody_between(Term before, Term now) {
  return now == before || now == before + 1;
}

// The owner of the reports of shards. Called on the loop thread.
class ShardObserver {
 public:
  virtual ~ShardObserver() = default;
  // Reports that the shard is claimed: its reports may start. `floor` lies above every sequence that
  // another holder of the Lease may have used, whatever the skew of the clocks: a holder's sequences
  // lie below its last renewTime plus the lease duration, see ShardLeases::latest(), and renewTime
  // never goes back.
  virtual void claimed(std::uint32_t shard, Term term, Sequence floor) = 0;
  // Reports that the shard is released: none of its reports may start after this call returns.
  virtual void released(std::uint32_t shard) = 0;
  // Returns whether reports of a released shard are still in flight; the hand-over waits for them.
  [[nodiscard]] virtual bool busy(std::uint32_t shard) const = 0;
};

// Holds the shards that this process reports: its own, and at most one more whose owner is dead.
//
// Each shard has a Lease, "<name>-<shard>". Its owner, the replica with that ordinal, takes it whenever
// it is free, and requests it back when another replica holds it. The other replicas take over when it
// was not renewed for lease_duration, the next lower neighbour first (replica 0 for shard 1, the last
// replica for shard 0). A holder that cannot reach the API server stops before another replica may
// start. Leases of shards beyond our number of replicas are not touched. A single replica has no such
// Lease and claims everything at the start.
//
// A change of the number of replicas moves objects between shards. The Lease "<name>-layout" records the
// number: it is its holder, and its transitions count the changes. Each replica corrects it when it
// starts. During a rollout replicas with the old number see the change within renew_deadline, and hold
// no shard from then on; those with the new one wait for lease_duration before they hold one. The first
// of them to have waited renews the Lease, which shows that the others need not wait any more. A single
// replica creates no such Lease and, while there is none, holds everything at once.
//
// The layout's Lease also limits the sequences of events: they do not run ahead of its renewTime by more
// than layout_duration / 2, and the next layout begins layout_duration above it.
//
// The Leases have the label gitops-runtime.io/leases-of=<name>, by which they are listed.
//
// Needs these permissions on leases.coordination.k8s.io in its namespace: get, list, create, update. A
// single replica: get, update.
//
// Loop thread only; runs as tasks of the group given to start().
class ShardLeases final : private Failover::Observer {
 public:
  struct Options {
    std::string ns;
    std::string name = "event-reporter-app";
    std::string identity;  // the pod's name, so that the pod's next process takes over at once
    Shard own;
    std::chrono::seconds lease_duration{8};
    std::chrono::milliseconds renew_deadline{6'000};  // less than lease_duration
    std::chrono::milliseconds retry_period{2'000};    // less than renew_deadline
    std::chrono::milliseconds rank_delay{
        1'000};  // extra wait per replica that is nearer to the shard
    std::chrono::milliseconds handover_grace{5'000};  // time for reports in flight
    std::chrono::seconds layout_duration{120};
  };
  // `client` and `observer` outlive the group's tasks.
  ShardLeases(k8s::Client& client, Options options, ShardObserver& observer);

  // Runs until the group is cancelled, then releases all shards and gives their Leases back.
  void start(TaskGroup& group);

  // Returns whether the shard is held; correct even when the process was suspended and no task has
  // run since.
  [[nodiscard]] bool holds(std::uint32_t shard) const;
  [[nodiscard]] std::vector<std::uint32_t> held() const;
  // Returns the latest time that the sequences of a held shard's events may reach, whatever the
  // clock reads: those of every later holder are above it. Absent: a single replica has no such
  // limit.
  [[nodiscard]] std::optional<WallTime> latest(std::uint32_t shard) const;
  // The reason why our own shard is not held; empty when it is.
  [[nodiscard]] std::string last_error() const;
  // Returns the entries of /statusz: one per shard, our own first.
  [[nodiscard]] StatusReport status() const;

 private:
  // Implementation of Failover::Observer, for the Leases of other replicas' shards.
  void on_change(std::size_t index, bool held) override;
  [[nodiscard]] bool busy(std::size_t index) const override;
  // Returns a time not before the beginning of the layout and within its limits, so that the floor
  // of each holder is above that of the one before.
  [[nodiscard]] WallTime now() const override;

  [[nodiscard]] std::string lease_name(std::uint32_t shard) const;
  [[nodiscard]] k8s::Labels labels() const;
  [[nodiscard]] std::uint32_t neighbour(std::size_t index) const;
  [[nodiscard]] bool alone() const { return options_.own.replicas <= 1; }
  [[nodiscard]] Term term(const k8s::LeaseView& lease) const;
  [[nodiscard]] Sequence floor(const k8s::LeaseView& lease) const;
  void notify(std::uint32_t shard, const k8s::LeaseView& lease, bool held);
  [[nodiscard]] const k8s::LeaseView& lease_of(std::uint32_t shard) const;
  [[nodiscard]] std::optional<WallTime> latest_of_layout() const;
  void make_elections();
  Task<> run();
  Task<> hold_alone();
  Task<> join_layout();
  Task<> stay_in_layout();
  Task<Result<void>> see_layout(Deadline deadline);
  [[nodiscard]] bool is_our_layout() const;
  [[nodiscard]] bool others_have_stopped() const;
  [[nodiscard]] std::optional<WallTime> next_layout_time() const;
  [[nodiscard]] std::string seen_layout_id() const;
  void adopt_layout();
  [[nodiscard]] StatusEntry entry_of(std::uint32_t shard, const k8s::LeaseView& lease) const;

  k8s::Client& client_;
  Options options_;
  ShardObserver& observer_;
  k8s::LeaseView layout_;
  std::string layout_id_;                // uid of our layout's Lease; empty: there is none
  WallTime layout_time_{};               // the latest renewTime of our layout that was seen
  WallTime layout_begin_{};              // above the sequences of earlier layouts
  Clock::time_point in_layout_until_{};  // unless its Lease is seen before
  bool joined_ = false;                  // the number of replicas was corrected where necessary
  bool holds_all_ = false;               // a single replica that has claimed everything
  std::optional<LeaseOwner> own_;        // this and others_: with several replicas
  std::optional<Failover> others_;
};

}  // namespace gitops::reporter
