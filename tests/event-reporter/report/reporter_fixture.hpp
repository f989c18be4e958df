#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "event-reporter/report/reporter.hpp"
#include "support/log_capture.hpp"
#include "support/status_page.hpp"

namespace gitops::reporter {

// An Application by hand, with what Argo CD says about it: `resources` ConfigMaps named c-0, c-1, …
struct SampleApp {
  std::string name = "web";
  std::string ns = "argocd";
  std::string uid = "uid-1";
  std::string controller = {};  // status.controllerNamespace, when not empty
  std::string revision = "r1";
  std::string sync_status = "Synced";
  int resources = 5;
  int content = 1;                                      // what every ConfigMap holds
  std::vector<std::pair<int, int>> other_content = {};  // {number, content} of single ones
  nlohmann::json metadata = nlohmann::json::object();   // merged into the Application's

  [[nodiscard]] nlohmann::json application() const;
  [[nodiscard]] nlohmann::json managed() const;
  [[nodiscard]] nlohmann::json tree() const;
};

// The reporter's parts with doubles around them, all on the loop of one test.
class ReporterFixture {
 public:
  struct Options {
    Reporter::Options reporter;
    Delivery::Options delivery;
    Ledger::Options ledger;  // in memory unless it has a path
    Ledger::GroupOf ledger_group = {};
    std::size_t argocd_answer = std::size_t{64} << 20;  // most bytes of an answer of Argo CD
    std::size_t memory = Gatherer::kMemory;             // for the answers of Argo CD together
    std::uint32_t shard = 0;                            // that is claimed at the start
    Term term = 1;
  };
  explicit ReporterFixture(const Executor& executor, Options options = fast_options());
  ~ReporterFixture();
  // Little waiting, no sweeps, no full reconcile, no sign of life.
  static Options fast_options();

  // Starts the doubles and the reporter. Applications that exist already are its first list.
  Task<> start();
  Task<> start_doubles();
  Task<> start_reporter();
  // Ends the reporter in order, as SIGTERM does.
  Task<> stop_reporter();
  Task<> stop();
  [[nodiscard]] Reporter& reporter() const;
  [[nodiscard]] const Ledger& ledger() const;

  // What Argo CD does for an application's new state: its answers first, then the object.
  void put(const SampleApp& app);
  void remove(const SampleApp& app);

  // All events so far of one kind ("" means any), as "name" or "name gone".
  [[nodiscard]] std::vector<std::string> events(const std::string& kind = "",
                                                std::size_t first = 0) const;
  Task<bool> wait_for_events(std::size_t count);
  // Looks until the condition holds; false after a few seconds.
  // No event for a while.
  Task<bool> is_quiet();
  [[nodiscard]] std::string not_ready(const std::string& check);
  [[nodiscard]] test::StatusPage status() const;
  [[nodiscard]] double metric(const std::string& line_start);

  Executor executor;
  Metrics metrics;
  test::FakeKubeApi kube;
  test::FakeArgoCd argocd;
  test::FakePlatform platform;
  net::Resolver resolver{metrics};
  Options options;
  const test::LogCapture* log = nullptr;  // of the running test
  std::string argocd_token_secret;        // name of a Secret to take the token from; empty: fixed

  struct Parts;
  std::unique_ptr<Parts> parts;
};

}  // namespace gitops::reporter
