#include "faults/reporter_pod.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/preload.hpp"

namespace gitops::test {

ReporterPod::ReporterPod(const Executor& executor, std::size_t ordinal, const Peers& peers,
                         Environment environment)
    : host_name_("event-reporter-" + std::to_string(ordinal)),
      environment_(std::move(environment)) {
  for (const auto port : peers.ports) relays_.emplace_back(executor, "127.0.0.1", port);
  auto kubeconfig = peers.kubeconfig;
  const auto& url = peers.kubernetes_url;
  kubeconfig.replace(
      kubeconfig.find(url), url.size(),
      url.substr(0, url.rfind(':') + 1) + std::to_string(relay(Peer::kubernetes).port()));
  write_file(folder_ / "kubeconfig", kubeconfig);
  write_file(folder_ / "platform-token", "platform-token\n");
  set_clock({});
}

void ReporterPod::report_to(const std::string& url, const std::string& token) {
  environment_["CODEFRESH_URL"] = url;
  write_file(folder_ / "platform-token", token + "\n");
}

void ReporterPod::start(std::size_t replicas) {
  const auto through = [this](Peer peer) {
    return "http://127.0.0.1:" + std::to_string(relay(peer).port());
  };
  // The settings that the chart ships, except for the interval of the sweep: without it a change of a
  // resource tree would be found after minutes.
  Environment environment{{"APP_QUEUE_SIZE", "1000"},
                          {"MAX_APP_RETRIES", "5"},
                          {"THREADINESS", "100"},
                          {"RESOURCE_THREADINESS", "10"},
                          {"SWEEP_INTERVAL", "2s"},
                          {"POD_NAMESPACE", "argocd"},
                          {"KUBECONFIG", (folder_ / "kubeconfig").string()},
                          {"ARGOCD_SERVER", through(Peer::second)},
                          {"ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"},
                          {"CODEFRESH_URL", through(Peer::platform)},
                          {"EVENT_REPORTER_REPLICAS", std::to_string(replicas)},
                          {"RUNTIME_VERSION", host_name_},  // identifies its events, as User-Agent
                          {"LOG_LEVEL", "debug"},
                          {"LD_PRELOAD", preload(GITOPS_OWN_MACHINE)},
                          {"GITOPS_TEST_HOST_NAME", host_name_},
                          {"GITOPS_TEST_CLOCK_FILE", (folder_ / "clock").string()}};
  for (const auto& [name, value] : environment_) environment[name] = value;
  process_.emplace(
      ReporterProcess::command({"--ledger-file", ledger().string(), "--codefresh-token-file",
                                (folder_ / "platform-token").string()}),
      std::move(environment));
}

void ReporterPod::kill() {
  if (process_) process_->process().kill();
  process_.reset();
}

void ReporterPod::lose_ledger() {
  for (const auto* file : {"", "-wal", "-shm"}) std::filesystem::remove(ledger().string() + file);
}

Task<> ReporterPod::stop() {
  if (process_ && process_->process().running()) EXPECT_EQ(co_await process_->stop(), 0);
  process_.reset();
}

void ReporterPod::set_clock(std::chrono::seconds ahead) {
  const std::int64_t seconds = ahead.count();
  const auto path = folder_ / "clock";
  // In place: the process has it mapped.
  std::fstream file(path, std::filesystem::exists(path)
                              ? std::ios::in | std::ios::out | std::ios::binary
                              : std::ios::out | std::ios::binary);
  std::array<char, sizeof(seconds)> bytes{};
  std::memcpy(bytes.data(), &seconds, sizeof(seconds));
  file.write(bytes.data(), bytes.size());
}

void ReporterPod::limit_files(std::uint64_t bytes) {
  rlimit limit{};
  ::prlimit(process_->process().pid(), RLIMIT_FSIZE, nullptr, &limit);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  EXPECT_EQ(::prlimit(process_->process().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
}

std::optional<std::string> ReporterPod::ledger_pending() const {
  const auto metrics = process_->get("/metrics").body;
  const std::string name = "\ngitops_event_reporter_ledger_pending_rows ";
  const auto at = metrics.find(name);
  if (at == std::string::npos) return std::nullopt;
  const auto begin = at + name.size();
  return metrics.substr(begin, metrics.find('\n', begin) - begin);
}

void ReporterPod::end_faults() {
  for (auto& relay : relays_) {
    relay.open();
    relay.release();
  }
}

}  // namespace gitops::test
