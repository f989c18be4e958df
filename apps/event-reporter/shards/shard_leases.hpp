#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/core/task_group.hpp"
#include "event-reporter/shards/shard.hpp"
#include "event-reporter/shards/stand_in.hpp"
#include "k8s-client/lease.hpp"

namespace gitops::reporter {

// Which acquisition of a shard this is: the transitions of its Lease in the lower 32 bits, above
// them (31 bits) which Lease it was and which layout the shards had.
using Term = std::int64_t;

// Whether nobody else reported a shard between two terms of ours. Whoever takes a Lease that names
// another, or nobody, adds one to its transitions; giving it back adds nothing, and neither does
// taking one that still names us. So our next term is `before` or `before + 1`, and at least
// `before + 2` with somebody in between. A Lease that was deleted and made anew, a counter at its
// end and another number of replicas since give a term out of that range. It may say no although
// somebody else only took the Lease and never came to report; it says yes wrongly only when a hand
// set the counter back.
[[nodiscard]] constexpr bool nobody_between(Term before, Term now) {
  return now == before || now == before + 1;
}

// The shards that this process has to report: its own, and at most one more whose owner is dead.
//
// There is a Lease per shard, "<name>-<shard>". Its owner, the process with that ordinal, takes it
// whenever it is free, and asks for it back when a stand-in has it. The others stand in for it when
// it was not renewed for lease_duration, the next neighbour below first (shard 1 by 0, shard 0 by
// the last). A holder that cannot reach the API server stops before somebody else may start. Leases
// of shards that do not exist for our number of replicas are not touched. With one replica there is
// no such Lease: everything is claimed at the start.
//
// With another number of replicas objects are in other shards, and nobody touches the Leases of
// shards that do not exist for a while. So there is the Lease "<name>-layout" besides: its holder
// is the number of replicas, its transitions count how often that changed. Each process sees to it
// that it has the number right before it claims anything. The only replica does so if the Lease is
// there, as it is once there were several, and if it may.
//
// The Leases carry the label gitops-runtime.io/leases-of=<name>, by which they are listed.
//
// Needs these rights on leases.coordination.k8s.io in its namespace: get, list, create, update.
// The only replica: get, update.
//
// Loop thread only; runs as tasks of the group given to start().
class ShardLeases {
 public:
  struct Options {
    std::string ns;
    std::string name = "event-reporter-app";
    std::string identity;  // the pod's name: the next process of the pod takes over at once
    Shard own;
    std::chrono::seconds lease_duration{8};
    std::chrono::milliseconds renew_deadline{6'000};  // less than lease_duration
    std::chrono::milliseconds retry_period{2'000};    // less than renew_deadline
    std::chrono::milliseconds patience{1'000};  // for each process that is nearer to the shard
    std::chrono::milliseconds farewell{5'000};  // for reports to end before a shard is handed back
  };
  // On the loop thread.
  struct Callbacks {
    // Reports of the shard may begin; they must have stopped to begin when released() returns.
    std::function<void(std::uint32_t shard, Term term)> claimed;
    std::function<void(std::uint32_t shard)> released;
    // Whether reports of a released shard are still under way; its owner has to wait for them.
    std::function<bool(std::uint32_t shard)> busy;
  };
  // `client` outlives the group's tasks.
  ShardLeases(k8s::Client& client, Options options, Callbacks callbacks);

  // Runs until the group is cancelled; all is released and its Leases are given back by then.
  void start(TaskGroup& group);

  // Also right when the process was stopped for a while and nothing has run since.
  [[nodiscard]] bool holds(std::uint32_t shard) const;
  [[nodiscard]] std::vector<std::uint32_t> held() const;
  // For /statusz: a line for each shard, our own first.
  [[nodiscard]] std::string status() const;

 private:
  [[nodiscard]] std::string lease_name(std::uint32_t shard) const;
  [[nodiscard]] k8s::Labels labels() const;
  [[nodiscard]] std::uint32_t neighbour(std::size_t index) const;
  [[nodiscard]] bool alone() const { return options_.own.replicas <= 1; }
  [[nodiscard]] Term term(const k8s::LeaseView& lease) const;
  void tell(std::uint32_t shard, const k8s::LeaseView& lease, bool held);
  Task<> run(TaskGroup& group);
  Task<> record_layout();
  Task<Result<std::string>> write_layout(Deadline deadline);
  Task<> hold_alone();
  [[nodiscard]] std::string line(std::uint32_t shard, const k8s::LeaseView& lease) const;

  k8s::Client& client_;
  Options options_;
  Callbacks callbacks_;
  std::string layout_;                     // which one it is; empty: there was never another
  bool holds_all_ = false;                 // alone, and claimed
  std::optional<k8s::LeaseElection> own_;  // both only with more than one replica
  std::optional<StandIn> others_;
};

}  // namespace gitops::reporter
