#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "daemons/reporter_process.hpp"
#include "doubles/event_checks.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_bed.hpp"
#include "peers/rendered_workload.hpp"
#include "support/run_on.hpp"

namespace gitops::test {

/// Limit of the wait for an event of the real programs.
inline constexpr auto kEventLimit = std::chrono::seconds(60);

/// The event-reporter as the chart installs it, with real Kubernetes, Argo CD and Git and a control
/// plane that records events. Tests use different names of applications.
class ReporterBed {
 public:
  static constexpr const char* kNamespace = PeerArgoCd::kNamespace;
  static constexpr const char* kPlatformToken = "peers-platform-token";

  /// One Application, its repository and its namespace, all with the same name.
  struct App {
    std::string name;  // of the repository and the destination's namespace, too
    std::string repo_url;
  };

  ReporterBed(PeerBed& the_bed, ArgoCdRelease release, const Executor& executor);

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing(ArgoCdRelease release = ArgoCdRelease::v3_2);

  // -- the reporter --

  /// Installs as docs/reference/chart.md describes: two Secrets, then helm.
  void install();
  /// Runs helm only, which reverts manual changes.
  void helm();
  void start_reporter();
  /// Starts the control plane, installs, and starts the reporter; returns when it is ready.
  Task<> start();
  Task<> stop();
  [[nodiscard]] std::string logs() const;
  /// The reporter's account of Argo CD, which may read applications and nothing else.
  [[nodiscard]] const std::string& argocd_token() const;

  // -- Git and Argo CD --

  /// Blocking work on a pool, while the loop serves the control plane.
  template <class Function>
  Task<std::invoke_result_t<Function>> aside(Function function) {
    return run_on(pool_, std::move(function));
  }
  App make_repository(const std::string& name) const;
  Task<CommitFacts> commit(App app, FileChanges changes, std::string message);
  Task<> create(App app);
  Task<> sync(App app, std::string revision);
  /// Deletes the Application with this query of Argo CD's call; waits until it is gone.
  Task<> remove(App app, std::string query);

  // -- kubectl and curl --

  Task<nlohmann::json> live(std::string ns, std::string kind, std::string name);
  /// The number of calls that argocd-server has answered, by method of its application service.
  Task<std::map<std::string, long>> calls();
  Task<std::map<std::string, long>> calls_since(std::map<std::string, long> before);
  /// The facts for an event; its id names the state of the Application.
  Task<ApplicationFacts> facts(App app, const FakePlatform::Report& report, CommitFacts commit);

  // -- received events --

  /// Waits until no events arrive and the reporter has no change left to report.
  Task<bool> quiet();
  /// Waits for the event of the application as Synced and Healthy at this revision, and until no
  /// further events arrive.
  Task<bool> settled(App app, std::string revision, std::size_t first = 0);
  /// Waits for the event that an object is gone.
  Task<const FakePlatform::Report*> gone(std::string kind, std::string name, std::size_t first = 0);
  /// The last event of an object; waits until no further events arrive.
  Task<const FakePlatform::Report*> last(std::string kind, std::string name, std::size_t first = 0);

  PeerBed& bed;
  int replicas = 1;
  std::map<std::string, std::string> settings = {};  // added to the chart's `config`

 private:
  [[nodiscard]] nlohmann::json values() const;
  void make_secrets();
  http::ServerOptions tls();
  Task<nlohmann::json> application_at(App app, std::string version);
  Task<nlohmann::json> tree(App app);

  ArgoCdRelease release_;
  std::string started_ = utc_now();
  TempDir folder_;
  CertificateAuthority authority_;
  Helm helm_;
  asio::thread_pool pool_{1};

 public:
  FakePlatform platform;
  std::optional<RenderedWorkload> workload;
  std::optional<ReporterProcess> reporter;
};

/// Runs the body in a new reporter bed on this process's bed, then removes the installation.
/// Fails when the body takes longer than `limit`.
void play(ArgoCdRelease release, const std::function<Task<>(ReporterBed&)>& body,
          std::chrono::seconds limit = std::chrono::seconds(120));

// Manifests of an application.
std::string deployment(int replicas);                // web
std::string settings_map(const std::string& color);  // a ConfigMap
FileChanges five_resources();  // of those kinds and a Service, Secret, account
/// The manifest in the text of one of these files.
nlohmann::json manifest_of(const std::optional<std::string>& text);

}  // namespace gitops::test
