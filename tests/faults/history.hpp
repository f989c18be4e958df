#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "faults/history_model.hpp"
#include "faults/reporter_pod.hpp"

namespace gitops::test {

// A time limit that leaves out the time in which the machine, or this process, stood still: the
// reporters may have stood still, too. over() is to be called every few seconds.
class TimeLimit {
 public:
  explicit TimeLimit(Clock::duration limit) : left_(limit) {}
  [[nodiscard]] bool over() {
    const auto now = Clock::now();
    left_ -= std::min<Clock::duration>(now - seen_, std::chrono::seconds(10));
    seen_ = now;
    return left_ <= Clock::duration::zero();
  }

 private:
  Clock::duration left_;
  Clock::time_point seen_ = Clock::now();
};

// The real event-reporter in one or more pods, its peers, and the true state of the objects, which a
// model compares with the received events. `seed` alone determines the faults, and the changes but
// for those beside two faults at once; their interleaving with the reporters depends on the machine.
// Loop thread; call stop() first.
//
// Derived classes own the objects: those of mode `app`, or of mode `resource`.
class History {
 public:
  static constexpr std::size_t kMaxReplicas = 3;
  // The limit of settled(). It takes seconds. On a machine that is busy with other work reads of Argo CD may
  // time out, and what it does not tell after five reports is asked for every 5 to 6 minutes.
  static constexpr auto kSettle = std::chrono::minutes(10);

  // Two faults of one class would be one fault, or end each other.
  enum class FaultClass { process, disk, clock, watches, cluster, network, peer, control_plane };

  struct Figures {
    std::size_t changes = 0;
    std::map<std::string, std::size_t> faults;
    std::set<std::pair<FaultClass, FaultClass>> pairs;  // injected at once
    std::size_t restarts = 0;
    std::size_t takings = 0;          // of shards, from somebody else
    std::size_t disturbed_calms = 0;  // that were not judged
    AllowedDuplicates allowed;
  };

  virtual ~History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Starts the peers and every pod, and waits until all are ready.
  Task<> start();
  Task<> stop();

  // -- changes --
  virtual void change() = 0;
  // Gives every object new content, with one write each.
  virtual void change_all() = 0;
  virtual void create_all() = 0;
  // Changes with short pauses, so that the reporters are in the middle of their work.
  Task<> live(std::size_t changes);
  // While all is well, no milestone is skipped: makes some, waits until they are told, and adds a
  // failure for each that was not. Call it when all is settled. Nothing is judged when a replica does not
  // hold its shard, or lost one meanwhile: then the next holder tells the present states.
  Task<> calm();

  // -- faults --
  // The pairs of classes that fault_pair() goes through.
  static std::vector<std::pair<FaultClass, FaultClass>> pairs_of_classes();

  // Injects the next fault of those that end at once.
  Task<> fault();
  // Injects two of them at once: of the next pair of classes.
  Task<> fault_pair();
  // Injects the next fault of those that move shards, every second time with another one beside it.
  Task<> shard_fault();
  void kill(ReporterPod& pod);
  // Waits until nothing is lost. All peers work again, but a reporter's backoff may last 30 seconds
  // before it notices. False at the limit, with a failure that names each replica and its error.
  Task<bool> settled(Clock::duration limit);
  // Has the model take the events that arrived since the last call.
  void receive();
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
  FakePlatform platform;

 protected:
  using Inject = std::function<Task<>()>;
  struct Kind {
    const char* name;
    FaultClass of;
    Inject inject;
    bool is_alone = false;  // it waits until all is settled, so nothing else may fail meanwhile
  };
  using Kinds = std::vector<Kind>;

  // `mode` is that of the reporter; `environment` are its further settings.
  History(const Executor& executor, std::uint64_t seed, std::size_t replicas, std::string mode,
          Environment environment);
  // The peer besides Kubernetes and the control plane, to be set before start().
  void set_second(DoubleServer& second) { peers_[1] = &second; }

  // -- for derived classes --
  // Further faults of fault().
  [[nodiscard]] virtual Kinds own_faults() = 0;
  // Fills the peers, after their start and before that of the pods.
  virtual Task<> prepare() = 0;
  [[nodiscard]] virtual ReceivedEvent read(const FakePlatform::Report& report) const = 0;
  // Gives some objects several new milestones.
  virtual void make_milestones() = 0;
  // Removes the objects that a finalizer holds.
  virtual void finish_deletions() = 0;
  virtual void end_own_faults() {}
  // Backs the cluster up. The result restores it, and the truth with it.
  [[nodiscard]] virtual std::function<void()> back_up() = 0;
  // How many events the reports of all objects of a shard have at most.
  [[nodiscard]] virtual std::size_t events_of(std::size_t shard, std::size_t replicas) const = 0;
  // How many events the changes of an object may bring once more while its shard moves.
  [[nodiscard]] virtual std::size_t events_of_change() const = 0;

  // Same results on every machine, unlike the distributions of the standard library.
  std::size_t pick(std::size_t n) { return random_() % n; }
  std::string pick_from(std::vector<std::string> values) { return values[pick(values.size())]; }
  std::string next_content() { return "content-" + std::to_string(++contents_); }
  ReporterPod& pick_pod() { return pods_[pick(replicas_)]; }
  DoubleServer& pick_peer() { return *peers_[pick(peers_.size())]; }
  [[nodiscard]] std::size_t replicas() const { return replicas_; }
  void note(const std::string& what) { log_ += what; }
  static void write_other_objects(FakeKubeApi& api);
  // Waits until the pod is ready; false with a failure that says why it is not.
  Task<bool> ready(ReporterPod& pod);
  // Waits until the pod is ready and has reported all that is due; false with a failure that tells its
  // status.
  Task<bool> idle(ReporterPod& pod);
  void observe_leases();
  Task<std::string> states_of_replicas();
  // Each connection to the control plane may carry a post whose answer gets lost.
  void allow_unanswered(ReporterPod& pod);
  // Whether events may have been refused for good since all was settled last, and what an operator does then.
  [[nodiscard]] bool may_be_refused() const { return refused_; }
  Task<> retry_refused();
  // Whether a fault that is under way stops, starts or asks a process. No other may stop it then.
  [[nodiscard]] bool process_is_taken() const { return process_is_taken_; }

 private:
  [[nodiscard]] Kinds faults();
  [[nodiscard]] std::string lease_name(std::size_t shard) const;
  Task<> inject(const Kind& kind);
  Task<> inject_both(Kind first, Kind second);
  [[nodiscard]] Kind pick_of(FaultClass of);

  // -- what may come twice --
  void allow_uncommitted(ReporterPod& pod, Clock::time_point since);
  void allow_all(std::size_t shard, std::size_t replicas);

  // -- in history_faults.cpp --
  Task<> restart(ReporterPod& pod);
  Task<> killed();
  Task<> killed_at_once();
  Task<> killed_on_full_disk();
  Task<> terminated();
  Task<> full_disk();
  Task<> clock_jump();
  Task<> watches_cut();
  Task<> watches_ended();
  Task<> watches_silent();
  Task<> too_old();
  Task<> restored();
  Task<> connections_cut();
  Task<> half_open();
  Task<> unreachable();
  Task<> too_many();
  Task<> burst();
  Task<> refused(int status);
  Task<> aborted();
  Task<> answers_lost();
  Task<> slow();
  Task<> dead_for_long();
  Task<> isolated();
  Task<> resized();
  Task<> taken_by_another(ReporterPod& pod);
  void end_faults();

  std::string mode_;
  Environment environment_;
  std::array<DoubleServer*, kPeers.size()> peers_{};
  std::deque<ReporterPod> pods_;
  std::size_t replicas_;
  std::mt19937_64 random_;
  std::map<std::string, std::int64_t> transitions_;  // of the Leases, as last seen
  std::size_t contents_ = 0;
  std::size_t received_ = 0;
  std::size_t shard_faults_;  // which is next
  std::size_t pairs_;         // which is next
  bool process_is_taken_ = false;
  bool refused_ = false;  // events may be refused for good
  std::string log_;
  std::string unready_;  // a wait that ran out
};

}  // namespace gitops::test
