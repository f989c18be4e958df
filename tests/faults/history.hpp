#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "faults/history_model.hpp"
#include "faults/reporter_pod.hpp"

namespace gitops::test {

// The real event-reporter in one or more pods, its peers, and the true state of the applications,
// which a model compares with the received events. `seed` alone determines the changes and faults;
// their interleaving with the reporters depends on the machine. Loop thread; call stop() first.
class History {
 public:
  static constexpr std::size_t kApplications = 12;
  static constexpr std::size_t kResources = 6;  // most of one application
  static constexpr std::size_t kMostReplicas = 3;

  struct Figures {
    std::size_t changes = 0;
    std::map<std::string, std::size_t> faults;
    std::size_t restarts = 0;
    std::size_t takings = 0;  // of shards, from somebody else
    AllowedDuplicates allowed;
  };

  History(const Executor& executor, std::uint64_t seed, std::size_t replicas);

  // Starts the peers and every pod, and waits until all are ready.
  Task<> start();
  Task<> stop();

  // -- changes --
  void change();
  // Gives every application and every resource new content, with one write each.
  void change_all();
  void create_all();
  // Moves every application and every resource to its other sync state; the next call moves them
  // back, like a commit and its revert.
  void turn_all();
  // Changes with short pauses, so that the reporters are in the middle of their work.
  Task<> live(std::size_t changes);

  // -- faults --
  // Injects the next fault of those that end at once.
  Task<> fault();
  // Injects the next fault of those that move shards.
  Task<> shard_fault();
  void kill(ReporterPod& pod);
  // Waits until nothing is lost. All peers work again, but a reporter's backoff may last 30 seconds
  // before it notices. False at the limit.
  Task<bool> settled(Clock::duration limit);
  // The faults so far, what the model found, and the end of each pod's log.
  [[nodiscard]] std::string logs();
  [[nodiscard]] std::deque<ReporterPod>& pods() { return pods_; }
  // The only pod, or the first one.
  [[nodiscard]] ReporterPod& pod() { return pods_.front(); }
  void start_pod(ReporterPod& pod) { pod.start(replicas_); }
  // Stops every reporter, runs `meanwhile`, and starts `replicas` of them. Keeps their ledgers.
  Task<> restart_as(std::size_t replicas, const std::function<void()>& meanwhile);

  HistoryModel model;
  Figures figures;
  FakeKubeApi kube;
  FakeArgoCd argocd;
  FakePlatform platform;

 private:
  using Inject = Task<> (History::*)();
  // Same results on every machine, unlike the distributions of the standard library.
  std::size_t pick(std::size_t n) { return random_() % n; }
  std::string pick_from(std::vector<std::string> values) { return values[pick(values.size())]; }
  std::string next_content() { return "content-" + std::to_string(++contents_); }
  ReporterPod& pick_pod() { return pods_[pick(replicas_)]; }
  DoubleServer& pick_peer() { return *peers_[pick(peers_.size())]; }
  void receive();
  Task<> inject(const char* name, Inject inject);

  // -- writing the truth --
  void turn(HistoryModel::App& app);
  void create(const std::string& name);
  void remove_in_two_steps(const std::string& name);
  void finish_deletions();
  // Removes the application, whatever held it.
  void end(const std::string& name);
  void change_resource(HistoryModel::App& app, const std::string& resource);
  // Writes Argo CD's answers about an application: tree and manifests.
  void write_answers(const HistoryModel::App& app);
  void write(const HistoryModel::App& app);

  // -- what may come twice --
  void allow_unanswered(ReporterPod& pod);
  void allow_uncommitted(ReporterPod& pod);
  void allow_all(std::size_t shard, std::size_t replicas);
  void observe_leases();

  // -- in history_faults.cpp --
  Task<> restart(ReporterPod& pod);
  Task<> killed();
  Task<> killed_at_once();
  Task<> terminated();
  Task<> watches_cut();
  Task<> watches_ended();
  Task<> watches_silent();
  Task<> too_old();
  Task<> connections_cut();
  Task<> half_open();
  Task<> unreachable();
  Task<> too_many();
  Task<> burst();
  Task<> argocd_burst();
  Task<> aborted();
  Task<> answers_lost();
  Task<> slow();
  Task<> full_disk();
  Task<> clock_jump();
  Task<> dead_for_long();
  Task<> isolated();
  Task<> resized();
  Task<> taken_by_another(ReporterPod& pod);
  void end_faults();

  std::array<DoubleServer*, kPeers.size()> peers_{&kube, &argocd, &platform};
  std::deque<ReporterPod> pods_;
  std::size_t replicas_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> applications_;  // uids of existing applications, by name
  std::set<std::string> deleting_;                   // the ones that a finalizer holds
  std::map<std::string, std::size_t> versions_;      // of resources
  std::map<std::string, std::int64_t> transitions_;  // of the Leases, as last seen
  std::size_t incarnations_ = 0;
  std::size_t contents_ = 0;
  std::size_t received_ = 0;
  std::size_t shard_faults_;  // which is next
  std::string log_;
};

}  // namespace gitops::test
