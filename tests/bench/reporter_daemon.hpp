#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "support/process.hpp"

namespace gitops::bench {

struct PeerAddresses {
  std::string kubeconfig;  // file
  std::string argocd;      // URL
  std::string platform;    // URL
};

// An event-reporter as a process, in namespace argocd.
class ReporterDaemon {
 public:
  static constexpr const char* kOfThisBuild = GITOPS_BIN_DIR "/event-reporter";
  explicit ReporterDaemon(const PeerAddresses& peers, test::Environment more = {},
                          const std::string& program = kOfThisBuild);

  // Asks the admin port until the answer satisfies; throws when it does not in five minutes.
  Task<> wait_for(http::Client& http, std::string target, std::chrono::milliseconds interval,
                  std::function<bool(const http::Response&)> satisfies);
  Task<> until_ready(http::Client& http);
  // `series`: name and labels, as they are exposed.
  Task<> until_metric(http::Client& http, std::string series, double at_least);
  // Until three more of the bookmarks that come once a second have arrived: what the daemon does
  // now and then has been done, giving memory back after the second quiet second included.
  Task<> until_settled(http::Client& http);
  // SIGTERM, and its end.
  Task<> stop();
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  test::TempDir folder_;
  int admin_port_;
  test::Process process_;
};

// Runs it on a loop of its own: the exit code of a benchmark, which tells its name when it fails.
int run(const char* name, std::function<Task<>()> measure);

// The value of a series in the text of /metrics.
std::optional<double> value_of(const std::string& metrics, const std::string& series);

// A row without a peer, whose goal is an upper limit.
void print_row(std::string_view name, std::string_view unit, double ours, double limit,
               std::string_view note);

// A row without a peer, whose goal is a lower limit.
void print_row_at_least(std::string_view name, std::string_view unit, double ours, double limit,
                        std::string_view note);

}  // namespace gitops::bench
