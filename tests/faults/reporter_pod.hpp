#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "daemons/reporter_process.hpp"
#include "support/process.hpp"
#include "support/tcp_relay.hpp"

namespace gitops::test {

// `second` is Argo CD for mode `app`, and the API server of a managed cluster for mode `resource`.
enum class Peer : std::size_t { kubernetes, second, platform };
inline constexpr std::array kPeers{Peer::kubernetes, Peer::second, Peer::platform};

// One pod of the event-reporter's StatefulSet: its process, and the parts that outlive it: host
// name, ledger file, wall clock and network to its peers. Loop thread; call stop() first.
class ReporterPod {
 public:
  // Its peers, which listen on 127.0.0.1 already.
  struct Peers {
    std::string kubeconfig;  // text; has `kubernetes_url`
    std::string kubernetes_url;
    std::array<std::uint16_t, kPeers.size()> ports;  // in the order of kPeers
  };
  // `environment` are the settings of its mode.
  ReporterPod(const Executor& executor, std::size_t ordinal, const Peers& peers,
              Environment environment);

  // Sets another control plane than the peer, for the next start.
  void report_to(const std::string& url, const std::string& token);
  // Starts the process as one of `replicas`.
  void start(std::size_t replicas);
  // SIGKILL.
  void kill();
  Task<> stop();

  [[nodiscard]] bool runs() const { return process_.has_value(); }
  [[nodiscard]] ReporterProcess& process() { return *process_; }
  [[nodiscard]] TcpRelay& relay(Peer peer) { return relays_[static_cast<std::size_t>(peer)]; }
  [[nodiscard]] const std::string& host_name() const { return host_name_; }
  [[nodiscard]] std::filesystem::path ledger() const { return folder_ / "ledger.db"; }
  // Only while the process does not run.
  void lose_ledger();
  // Sets how far its wall clock is ahead of the real one.
  void set_clock(std::chrono::seconds ahead);
  // Limits the size of its files, like a full disk; RLIM_INFINITY ends the limit.
  void limit_files(std::uint64_t bytes);
  // The number of rows that are not in its ledger's file yet; nullopt when it does not answer.
  [[nodiscard]] std::optional<std::string> ledger_pending() const;
  void end_faults();

 private:
  std::string host_name_;
  Environment environment_;
  TempDir folder_;
  std::deque<TcpRelay> relays_;
  std::optional<ReporterProcess> process_;
};

}  // namespace gitops::test
