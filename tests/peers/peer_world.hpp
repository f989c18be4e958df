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

/// The event-reporter as the chart installs it, with real Kubernetes, Argo CD and Git around it and
/// a control plane that records. Applications are kept apart by their names.
class PeerWorld {
 public:
  static constexpr const char* kNamespace = PeerArgoCd::kNamespace;
  static constexpr const char* kPlatformToken = "peers-platform-token";

  /// One Application and what it is made of, each under the same name.
  struct App {
    std::string name;  // of the repository and the destination's namespace, too
    std::string repo_url;
  };

  PeerWorld(PeerBed& the_bed, ArgoCdRelease release, const Executor& executor);

  /// What this machine lacks, in one line; nullopt: nothing.
  static std::optional<std::string> missing(ArgoCdRelease release = ArgoCdRelease::v3_2);

  // -- the reporter --

  /// As docs/chart.md says: two Secrets, then helm.
  void install();
  /// The second half alone, which repairs what was changed by hand.
  void helm();
  void start_reporter();
  /// The control plane, the installation and the reporter; returns when that is ready.
  Task<> start();
  Task<> stop();
  [[nodiscard]] std::string logs() const;
  /// The reporter's account of Argo CD, which may read applications and nothing else.
  [[nodiscard]] const std::string& argocd_token() const;

  // -- Git and Argo CD --

  /// Blocking work, while the control plane goes on answering.
  template <class Function>
  Task<std::invoke_result_t<Function>> aside(Function function) {
    return run_on(pool_, std::move(function));
  }
  App make_repository(const std::string& name) const;
  Task<CommitFacts> commit(App app, FileChanges changes, std::string message);
  Task<> create(App app);
  Task<> sync(App app, std::string revision);
  /// Deletes the Application with the query of Argo CD's call; waits until it is gone.
  Task<> remove(App app, std::string query);

  // -- what kubectl and curl say --

  Task<nlohmann::json> live(std::string ns, std::string kind, std::string name);
  /// Calls that argocd-server has answered, by method of its application service.
  Task<std::map<std::string, long>> calls();
  Task<std::map<std::string, long>> calls_since(std::map<std::string, long> before);
  /// The facts for an event: which state of the Application it is about stands in its id.
  Task<ApplicationFacts> facts(App app, const FakePlatform::Report& report, CommitFacts commit);

  // -- what the control plane got --

  Task<bool> quiet();
  /// Waits for the event that says that the application is in order at this revision, and until no
  /// more come.
  Task<bool> settled(App app, std::string revision, std::size_t first = 0);
  /// The last of an object's events; waits until no more come.
  Task<const FakePlatform::Report*> last(std::string kind, std::string name, std::size_t first = 0);

  PeerBed& bed;
  int replicas = 1;

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

/// How long a test waits for what must come.
Deadline soon();

/// Runs the body in a world of its own on this process's bed, and takes down what it installed.
void play(ArgoCdRelease release, const std::function<Task<>(PeerWorld&)>& body);

// Manifests of an application.
std::string deployment(int replicas);                // web
std::string settings_map(const std::string& color);  // a ConfigMap
FileChanges five_resources();  // of those kinds and a Service, Secret, account
/// One of the resources above as the cluster's desired state, from the file's text.
nlohmann::json manifest_of(const std::optional<std::string>& text);

}  // namespace gitops::test
