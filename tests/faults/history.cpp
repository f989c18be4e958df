#include "faults/history.hpp"

#include <algorithm>
#include <csignal>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// After a fault the breaker's next probe may be 15 s away, and a refused token's 10 s; all takes longer
// on a machine that is busy with other work.
constexpr auto kReady = std::chrono::minutes(5);

// Whether each line says that a replica is ready.
bool is_only_ready(std::string_view lines) {
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size() - 1);
    if (!lines.substr(0, end).ends_with(": ready")) return false;
    lines.remove_prefix(end + 1);
  }
  return true;
}

// Whether the replica's /statusz says that nothing is due. Just after a take-over the present states are
// told, which are read ahead of the watch, and not each milestone.
bool says_idle(const StatusPage& status) {
  return !status.has("taken over") && status.count("queue", "waiting") == 0 &&
         status.count("queue", "in_work") == 0 && status.count("queue", "overdue") == 0;
}

// While no replica has a shard, all are idle, and its next holder tells the present states.
bool holds_own_shard(const StatusPage& status, std::size_t ordinal) {
  return status.state("shard " + std::to_string(ordinal) + " (own)") == "ok";
}

// How often the replica lost a shard, or the right to hold any, according to its log.
std::size_t losses_of_shards(std::string_view log) {
  std::size_t count = 0;
  for (const std::string_view message : {"\"not leading any more\"", "\"no longer standing in\"",
                                         "\"the layout is not ours any more\""}) {
    for (auto at = log.find(message); at != log.npos; at = log.find(message, at + 1)) ++count;
  }
  return count;
}

}  // namespace

History::History(const Executor& executor, std::uint64_t seed, std::size_t replicas,
                 std::string mode, Environment environment)
    : kube(executor),
      platform(executor),
      mode_(std::move(mode)),
      environment_(std::move(environment)),
      peers_{&kube, nullptr, &platform},
      replicas_(replicas),
      random_(seed),
      shard_faults_(seed),
      pairs_(seed) {
  environment_["REPORTER_MODE"] = mode_;
  // A limit on the file size plays a full disk; without SIGXFSZ a write beyond it is an error.
  std::signal(SIGXFSZ, SIG_IGN);
}

Task<> History::start() {
  for (auto* peer : peers_) CO_ASSERT_OK(peer->start());
  const auto executor = co_await asio::this_coro::executor;
  const std::size_t most = replicas_ == 1 ? 1 : kMaxReplicas;
  ReporterPod::Peers peers{
      .kubeconfig = kube.kubeconfig(), .kubernetes_url = kube.url().to_string(), .ports = {}};
  std::ranges::transform(peers_, peers.ports.begin(),
                         [](const DoubleServer* peer) { return peer->url().port; });
  for (std::size_t i = 0; i < most; ++i) pods_.emplace_back(executor, i, peers, environment_);
  co_await prepare();
  for (std::size_t i = 0; i < replicas_; ++i) start_pod(pods_[i]);
  for (std::size_t i = 0; i < replicas_; ++i) CO_ASSERT_TRUE(co_await ready(pods_[i]));
}

std::string History::logs() {
  std::string out = "faults: " + log_ + "\n";
  for (const auto& line : model.wrong()) out += line + "\n" + model.trails(line);
  // After a wait that ran out, nothing can be said about what was not reported yet.
  if (unready_.empty()) {
    for (const auto& line : model.lost()) out += line + "\n" + model.trails(line);
  }
  for (auto& pod : pods_) {
    if (!pod.runs()) continue;
    const auto log = pod.process().log();
    out += "the end of the last log of " + pod.host_name() + ":\n" +
           log.substr(log.size() - std::min<std::size_t>(log.size(), 20'000)) + "\n";
  }
  return out;
}

Task<> History::stop() {
  end_faults();
  for (auto& pod : pods_) co_await pod.stop();
  for (auto& pod : pods_) {
    for (const auto peer : kPeers) co_await pod.relay(peer).stop();
  }
  for (auto* peer : peers_) co_await peer->stop();
}

Task<> History::restart_as(std::size_t replicas, const std::function<void()>& meanwhile) {
  for (auto& pod : pods_) {
    if (pod.runs()) co_await pod.stop();
  }
  meanwhile();
  replicas_ = replicas;
  for (std::size_t i = 0; i < replicas_; ++i) start_pod(pods_[i]);
}

Task<> History::live(std::size_t changes) {
  for (std::size_t i = 0; i < changes; ++i) {
    for (auto more = 1 + pick(3); more > 0; --more) {
      ++figures.changes;
      observe_leases();
      change();
    }
    co_await sleep_for(milliseconds(pick(60)));
  }
}

Task<> History::calm() {
  for (std::size_t i = 0; i < replicas_; ++i) {
    if (!co_await idle(pods_[i])) co_return;
  }
  const auto lost_shards = [this] {
    std::size_t count = 0;
    for (auto& pod : pods_) {
      if (pod.runs()) count += losses_of_shards(pod.process().log());
    }
    return count;
  };
  const auto before = lost_shards();
  for (std::size_t i = 0; replicas_ > 1 && i < replicas_; ++i) {
    if (holds_own_shard(pods_[i].process().status(), i)) continue;
    ++figures.disturbed_calms;
    co_return;
  }
  model.begin_calm();
  for (std::size_t rounds = 2 + pick(3); rounds > 0; --rounds) {
    make_milestones();
    co_await sleep_for(milliseconds(pick(30)));
  }
  std::ignore = co_await settled(kSettle);
  model.end_calm();
  if (lost_shards() != before) {
    // The machine stood still, or was too busy to renew a Lease: it was not calm.
    ++figures.disturbed_calms;
    co_return;
  }
  for (const auto& line : model.skipped()) ADD_FAILURE() << line << "\n" << model.trails(line);
}

// -- what may come twice --

void History::allow_unanswered(ReporterPod& pod) {
  figures.allowed.unanswered += pod.relay(Peer::platform).connections();
}

void History::allow_uncommitted(ReporterPod& pod, Clock::time_point since) {
  const auto& reports = platform.reports();
  for (auto it = reports.rbegin(); it != reports.rend() && it->arrived > since; ++it) {
    const auto sender = it->headers.find("User-Agent").value_or("");
    if (sender.ends_with(pod.host_name())) ++figures.allowed.uncommitted;
  }
  allow_unanswered(pod);
}

void History::allow_all(std::size_t shard, std::size_t replicas) {
  ++figures.takings;
  figures.allowed.taken += 2 * events_of(shard, replicas);
}

std::string History::lease_name(std::size_t shard) const {
  return "event-reporter-" + mode_ + "-" + std::to_string(shard);
}

// Each takeover of another holder's Lease increments the counter.
void History::observe_leases() {
  for (std::size_t shard = 0; replicas_ > 1 && shard < replicas_; ++shard) {
    const auto name = lease_name(shard);
    const auto lease = kube.find(k8s::resources::kLeases, {.ns = "argocd", .name = name});
    if (!lease) continue;
    const auto now = (*lease)["spec"].value("leaseTransitions", std::int64_t{0});
    auto& seen = transitions_[name];
    seen = std::min(seen, now);  // of a restored cluster
    for (; seen < now; ++seen) allow_all(shard, replicas_);
  }
}

// -- what was received --

void History::receive() {
  for (; received_ < platform.reports().size(); ++received_) {
    model.receive(read(platform.reports()[received_]));
  }
  observe_leases();
}

Task<bool> History::ready(ReporterPod& pod) {
  TimeLimit time_limit(kReady);
  while (true) {
    if (pod.runs() && co_await pod.process().wait_for_readyz("ready\n")) co_return true;
    if (time_limit.over() || !pod.runs()) break;
  }
  unready_ = pod.host_name() + " is not ready: " +
             (pod.runs() ? pod.process().last_readyz() : std::string("it does not run"));
  ADD_FAILURE() << unready_;
  co_return false;
}

Task<bool> History::idle(ReporterPod& pod) {
  if (!co_await ready(pod)) co_return false;
  for (TimeLimit time_limit(kSettle); !time_limit.over(); co_await sleep_for(milliseconds(20))) {
    if (says_idle(pod.process().status())) co_return true;
  }
  ADD_FAILURE() << pod.host_name() << " is not idle: " << pod.process().status();
  co_return false;
}

Task<std::string> History::states_of_replicas() {
  std::string out;
  for (std::size_t i = 0; i < replicas_; ++i) {
    auto& pod = pods_[i];
    out += pod.host_name() + ": ";
    if (!pod.runs()) {
      out += "does not run\n";
    } else if (!co_await pod.process().started()) {
      out += "has not started\n";
    } else {
      out += pod.process().get("/readyz").body;
    }
  }
  co_return out;
}

// What an operator does after the control plane was mended.
Task<> History::retry_refused() {
  for (std::size_t i = 0; i < replicas_; ++i) {
    auto& pod = pods_[i];
    if (!pod.runs() || !co_await pod.process().started()) continue;
    std::ignore = pod.process().post("/refused/retry");
  }
}

Task<bool> History::settled(Clock::duration limit) {
  end_faults();
  if (pick(2) == 0) finish_deletions();
  TimeLimit time_limit(limit);
  while (true) {
    receive();
    if (model.lost().empty() &&
        co_await platform.wait_until_quiet(milliseconds(500), deadline_after(seconds(5)))) {
      receive();
      if (model.lost().empty()) break;
    }
    if (time_limit.over()) {
      const auto states = co_await states_of_replicas();
      if (!is_only_ready(states)) unready_ = states;
      ADD_FAILURE() << "not settled: " << model.lost().size() << " differences, first of all "
                    << (model.lost().empty() ? "none" : model.lost().front()) << "\n"
                    << states;
      co_return false;
    }
    if (refused_) co_await retry_refused();
    std::ignore = co_await platform.wait_for_count(received_ + 1, deadline_after(seconds(1)));
  }
  refused_ = false;
  co_return true;
}

}  // namespace gitops::test
