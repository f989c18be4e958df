#include <algorithm>
#include <array>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "faults/history.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {

using std::chrono::milliseconds;

namespace {

// Longer than an acknowledgement needs to reach the ledger's file, even on a busy machine.
constexpr auto kUncommitted = milliseconds(500);

}  // namespace

std::vector<std::pair<History::FaultClass, History::FaultClass>> History::pairs_of_classes() {
  using enum FaultClass;
  constexpr std::array kClasses{process, disk,    clock, watches,
                                cluster, network, peer,  control_plane};
  std::vector<std::pair<FaultClass, FaultClass>> pairs;
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    for (std::size_t j = i + 1; j < kClasses.size(); ++j) {
      pairs.emplace_back(kClasses.at(i), kClasses.at(j));
    }
  }
  return pairs;
}

Task<> History::inject(const Kind& kind) {
  ++figures.faults[kind.name];
  note(std::string(kind.name) + "; ");
  const bool takes_process = kind.of == FaultClass::process || kind.of == FaultClass::disk;
  if (takes_process) process_is_taken_ = true;
  co_await kind.inject();
  if (takes_process) process_is_taken_ = false;
  observe_leases();
}

Task<> History::inject_both(Kind first, Kind second) {
  figures.pairs.emplace(std::min(first.of, second.of), std::max(first.of, second.of));
  note("at once: ");
  TaskGroup both(co_await asio::this_coro::executor,
                 [](const std::string& fault, const std::string& what) {
                   ADD_FAILURE() << fault << ": " << what;
                 });
  both.spawn(first.name, [&] { return inject(first); });
  both.spawn(second.name, [&] { return inject(second); });
  co_await both.join();
}

History::Kind History::pick_of(FaultClass of) {
  auto kinds = faults();
  std::erase_if(kinds, [of](const Kind& kind) { return kind.of != of || kind.is_alone; });
  return kinds[pick(kinds.size())];
}

History::Kinds History::faults() {
  using enum FaultClass;
  const auto by = [this](Task<> (History::*inject)()) {
    return [this, inject] { return (this->*inject)(); };
  };
  const auto answered = [this](int status) { return [this, status] { return refused(status); }; };
  Kinds kinds{
      {"kill -9", process, by(&History::killed)},
      {"kill -9", process, by(&History::killed)},
      {"kill -9 right after a change", process, by(&History::killed_at_once)},
      {"SIGTERM", process, by(&History::terminated)},
      {"watches cut", watches, by(&History::watches_cut)},
      {"watches ended", watches, by(&History::watches_ended)},
      {"watches silent", watches, by(&History::watches_silent)},
      {"410", watches, by(&History::too_old)},
      {"etcd restored", cluster, by(&History::restored)},
      {"connections cut", network, by(&History::connections_cut)},
      {"connections cut", network, by(&History::connections_cut)},
      {"half-open", network, by(&History::half_open)},
      {"half-open", network, by(&History::half_open)},
      {"unreachable", network, by(&History::unreachable)},
      {"429", peer, by(&History::too_many)},
      {"5xx", peer, by(&History::burst)},
      {"5xx", peer, by(&History::burst)},
      {"400 of the control plane", control_plane, answered(400)},
      {"400 of the control plane", control_plane, answered(400)},
      {"401 of the control plane", control_plane, answered(401)},
      {"403 of the control plane", control_plane, answered(403)},
      {"404 of the control plane", control_plane, answered(404)},
      {"413 of the control plane", control_plane, answered(413)},
      {"no answer", peer, by(&History::aborted)},
      {"answer lost", control_plane, by(&History::answers_lost)},
      {"slow", peer, by(&History::slow)},
      {"full disk", disk, by(&History::full_disk)},
      {"clock jump", clock, by(&History::clock_jump)},
  };
  for (auto& own : own_faults()) kinds.push_back(std::move(own));
  return kinds;
}

Task<> History::fault() {
  const auto kinds = faults();
  co_await inject(kinds[pick(kinds.size())]);
}

Task<> History::fault_pair() {
  using enum FaultClass;
  const auto pairs = pairs_of_classes();
  const auto [first, second] = pairs[pairs_++ % pairs.size()];
  if (first == process && second == disk) {
    figures.pairs.emplace(first, second);
    co_await inject({"kill -9 on a full disk", disk, [this] { return killed_on_full_disk(); }});
    co_return;
  }
  co_await inject_both(pick_of(first), pick_of(second));
}

Task<> History::shard_fault() {
  using enum FaultClass;
  const Kind resize{"other number of replicas", process, [this] { return resized(); }, true};
  const Kinds kinds{
      {"dead until taken over", process, [this] { return dead_for_long(); }},
      resize,
      {"cut off until taken over", process, [this] { return isolated(); }},
  };
  if (replicas_ == 1) {  // no other replica could take over
    co_await inject(resize);
    co_return;
  }
  const auto& kind = kinds[shard_faults_ % kinds.size()];
  const bool has_another = shard_faults_ / kinds.size() % 2 == 0;
  ++shard_faults_;
  if (kind.is_alone || !has_another) {
    co_await inject(kind);
    co_return;
  }
  constexpr std::array kBeside{clock, watches, cluster, peer, control_plane};
  co_await inject_both(kind, pick_of(kBeside.at(pick(kBeside.size()))));
}

void History::end_faults() {
  for (auto* peer : peers_) peer->end_faults();
  platform.lose_answers(nullptr);
  platform.refuse_events(nullptr);
  kube.stall_watches(false);
  end_own_faults();
  for (auto& pod : pods_) pod.end_faults();
}

// -- of the process --

void History::kill(ReporterPod& pod) {
  allow_uncommitted(pod, Clock::now() - kUncommitted);
  pod.kill();
  ++figures.restarts;
}

Task<> History::restart(ReporterPod& pod) {
  co_await live(pick(4));
  start_pod(pod);
  // It may be killed again before its first list has ended.
  if (pick(3) > 0) CO_ASSERT_TRUE(co_await pod.process().started());
  co_await live(1 + pick(3));
}

Task<> History::killed() {
  auto& pod = pick_pod();
  co_await live(1);
  kill(pod);
  co_await restart(pod);
}

Task<> History::killed_at_once() {
  auto& pod = pick_pod();
  const auto seen = platform.reports().size();
  for (int i = 0; i < 4; ++i) {
    ++figures.changes;
    change();
  }
  std::ignore =
      co_await platform.wait_for_count(seen + 1 + pick(6), deadline_after(milliseconds(300)));
  kill(pod);
  co_await restart(pod);
}

Task<> History::terminated() {
  auto& pod = pick_pod();
  co_await live(1);
  allow_unanswered(pod);
  ++figures.restarts;
  CO_ASSERT_TRUE(co_await pod.process().started());
  co_await pod.stop();
  co_await restart(pod);
}

Task<> History::full_disk() {
  auto& pod = pick_pod();
  CO_ASSERT_TRUE(co_await pod.process().started());
  pod.limit_files(4096);
  co_await live(3 + pick(5));
  pod.limit_files(RLIM_INFINITY);
  // The next kill would lose rows that are not in the file yet.
  TimeLimit time_limit(std::chrono::minutes(2));
  while (pod.ledger_pending() != "0") {
    CO_ASSERT_TRUE(!time_limit.over()) << "the ledger stays behind";
    co_await sleep_for(milliseconds(50));
  }
}

// None of the acknowledgements meanwhile is in the file, and no object that is created meanwhile. The
// deletion of such an object while no reporter runs is lost (docs/reference/event-guarantees.md, "Full disks"), so here
// no object is created, and nothing changes before the next process has reported all that exists.
Task<> History::killed_on_full_disk() {
  auto& pod = pick_pod();
  CO_ASSERT_TRUE(co_await pod.process().started());
  const auto since = Clock::now() - kUncommitted;
  pod.limit_files(4096);
  for (auto times = 3 + pick(5); times > 0; --times) {
    change_all();
    co_await sleep_for(milliseconds(pick(60)));
  }
  allow_uncommitted(pod, since);
  pod.kill();
  ++figures.restarts;
  start_pod(pod);
  CO_ASSERT_TRUE(co_await idle(pod));
  co_await live(1 + pick(3));
}

// By whole hours, so that the model can subtract them.
Task<> History::clock_jump() {
  auto& pod = pick_pod();
  const auto hours = std::chrono::hours(pick(48));
  pod.set_clock(pick(2) == 0 ? hours : -hours);
  co_await live(2);
}

// -- of the watches --

Task<> History::watches_cut() {
  kube.cut_watches();
  co_await live(2);
}

Task<> History::watches_ended() {
  kube.end_watches();
  co_await live(2);
}

Task<> History::watches_silent() {
  kube.stall_watches(true);
  co_await live(3);
  if (pick(2) == 0) kube.cut_watches();
  kube.stall_watches(false);
  co_await live(1);
}

Task<> History::too_old() {
  kube.stall_watches(true);
  co_await live(2);
  kube.compact();
  kube.cut_watches();
  kube.stall_watches(false);
  co_await live(1);
}

// Of other clients of the cluster. A restore shows by the versions, which go back: by more than the
// changes that follow it.
void History::write_other_objects(FakeKubeApi& api) {
  for (int i = 0; i < 300; ++i) {
    api.put(k8s::resources::kConfigMaps,
            {{"apiVersion", "v1"},
             {"kind", "ConfigMap"},
             {"metadata", {{"name", "other"}, {"namespace", "default"}}},
             {"data", {{"number", std::to_string(i)}}}});
  }
}

// Backs etcd up, and restores it after some changes. All of these are undone.
Task<> History::restored() {
  const auto restore = back_up();
  write_other_objects(kube);
  co_await live(1 + pick(4));
  // The reports under way begin over.
  for (auto& pod : pods_) allow_unanswered(pod);
  restore();
  co_await live(2);
}

// -- of the network --

Task<> History::connections_cut() {
  auto& pod = pick_pod();
  auto& relay = pod.relay(kPeers[pick(kPeers.size())]);
  for (auto times = 1 + pick(3); times > 0; --times) {
    ++figures.changes;
    change();
    co_await sleep_for(milliseconds(pick(20)));
    allow_unanswered(pod);
    relay.cut();
  }
  co_await live(1);
}

Task<> History::half_open() {
  auto& pod = pick_pod();
  auto& relay = pod.relay(kPeers[pick(kPeers.size())]);
  relay.hold();
  co_await live(3 + pick(5));
  if (pick(2) == 0) {
    allow_unanswered(pod);
    relay.cut();
  }
  relay.release();
  co_await live(1);
}

Task<> History::unreachable() {
  auto& pod = pick_pod();
  auto& relay = pod.relay(kPeers[pick(kPeers.size())]);
  allow_unanswered(pod);
  relay.close();
  co_await live(2 + pick(4));
  relay.open();
  co_await live(1);
}

// -- of the peers --

Task<> History::too_many() {
  pick_peer().fail_next(1 + pick(3), 429, std::chrono::seconds(1));
  co_await live(3);
}

Task<> History::burst() {
  auto& peer = pick_peer();
  // For Argo CD 500 is the answer to any error about one application, see its own faults.
  const bool may_be_500 = &peer != peers_[static_cast<std::size_t>(Peer::second)];
  peer.fail_next(1 + pick(12), may_be_500 && pick(2) == 0 ? 500 : 503);
  co_await live(3);
  peer.end_faults();
}

// The control plane answers this to the next events, or to all of some objects.
Task<> History::refused(int status) {
  refused_ = true;
  const bool of_some = status != 401 && status != 404 && pick(2) == 0;
  const auto chosen = pick(3);
  platform.refuse_events([this, status, of_some, chosen,
                          left = 1 + pick(12)](const FakePlatform::Report& report) mutable {
    if (left == 0) return 0;
    if (of_some && fnv1a_32(report.name()) % 3 != chosen) return 0;
    --left;
    if (status == 413) model.note_too_large(report.event_id);
    return status;
  });
  co_await live(3);
  if (of_some) {
    // So that an event is refused again after others were acknowledged.
    co_await sleep_for(milliseconds(500));
    co_await live(1);
  }
  platform.refuse_events(nullptr);
}

Task<> History::aborted() {
  for (auto& pod : pods_) allow_unanswered(pod);
  pick_peer().abort_next(1 + pick(4));
  co_await live(3);
}

Task<> History::answers_lost() {
  platform.lose_answers([this, left = 1 + pick(4)](const auto&) mutable {
    if (left == 0) return false;
    --left;
    ++figures.allowed.unanswered;
    return true;
  });
  co_await live(3);
  platform.lose_answers(nullptr);
}

Task<> History::slow() {
  auto& peer = pick_peer();
  peer.delay_answers(milliseconds(50 + pick(400)));
  co_await live(3);
  peer.end_faults();
}

// -- of several replicas --

// Changes go on until another replica has taken this one's shard, and a little longer.
Task<> History::taken_by_another(ReporterPod& pod) {
  const k8s::ObjectKey key{
      .ns = "argocd",
      .name = "event-reporter-" + mode_ + pod.host_name().substr(pod.host_name().rfind('-'))};
  TimeLimit time_limit(std::chrono::minutes(5));
  const auto taken = [&] {
    const auto lease = kube.find(k8s::resources::kLeases, key);
    const auto holder = lease ? (*lease)["spec"].value("holderIdentity", "") : std::string();
    return !holder.empty() && holder != pod.host_name();
  };
  while (!taken()) {
    CO_ASSERT_TRUE(!time_limit.over()) << "nobody takes over from " << pod.host_name();
    ++figures.changes;
    change();
    co_await sleep_for(milliseconds(100 + pick(200)));
  }
  co_await live(3 + pick(10));
}

Task<> History::dead_for_long() {
  auto& pod = pick_pod();
  CO_ASSERT_TRUE(co_await ready(pod));
  if (pick(3) > 0) {
    kill(pod);
  } else {
    allow_unanswered(pod);
    ++figures.restarts;
    co_await pod.stop();
  }
  co_await taken_by_another(pod);
  co_await restart(pod);
}

// The replica runs but cannot reach the API server: another one takes over its shard.
Task<> History::isolated() {
  auto& pod = pick_pod();
  CO_ASSERT_TRUE(co_await ready(pod));
  auto& relay = pod.relay(Peer::kubernetes);
  if (pick(2) == 0) {
    relay.close();
  } else {
    relay.hold();
  }
  co_await taken_by_another(pod);
  pod.end_faults();
  co_await live(3);
}

// As a StatefulSet does: from the last to the first, each after the one before is ready. The
// volume of a removed replica may be deleted with it, so the replicas that remain must have seen its
// objects.
Task<> History::resized() {
  CO_ASSERT_TRUE(co_await settled(kSettle));
  const auto before = replicas_;
  const auto changes = figures.changes;
  replicas_ = 1 + (before + pick(2)) % kMaxReplicas;
  note("(from " + std::to_string(before) + " to " + std::to_string(replicas_) + ") ");
  for (std::size_t i = 0; i < std::min(before, replicas_); ++i) {
    CO_ASSERT_TRUE(co_await ready(pods_[i]));
  }
  for (auto i = std::max(before, replicas_); i-- > 0;) {
    auto& pod = pods_[i];
    if (i < before) {
      CO_ASSERT_TRUE(co_await pod.process().started());
      allow_unanswered(pod);
      ++figures.restarts;
      co_await pod.stop();
    }
    if (i >= replicas_ && pick(2) == 0) pod.lose_ledger();
    co_await live(1 + pick(3));
    if (i < replicas_) {
      start_pod(pod);
      co_await live(1);
      std::ignore = co_await pod.process().wait_for_readyz("ready\n");
    }
  }
  CO_ASSERT_TRUE(co_await settled(kSettle));
  for (std::size_t shard = 0; shard < replicas_; ++shard) allow_all(shard, replicas_);
  // Shards of the old and the new replica count overlapped meanwhile.
  figures.allowed.taken += (figures.changes - changes) * events_of_change();
}

}  // namespace gitops::test
