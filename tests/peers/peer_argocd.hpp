#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "peers/peer_cluster.hpp"
#include "peers/peer_programs.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"

namespace gitops::test {

/// The two lines of Argo CD in the field that the suite is tested with. They differ, for example,
/// in where an Application's resources have their health: 2.13 writes it into the Application.
enum class ArgoCdRelease : std::uint8_t { v3_2, v2_13 };

/// Argo CD of real programs (repo server, application controller, API server) and its Redis,
/// against a cluster's namespace `argocd`; the cluster is also its destination
/// https://kubernetes.default.svc. The account `bot` is an administrator with an API token.
///
/// The constructor returns when the API answers and the token is there; it throws with the end of
/// the guilty log otherwise. The cluster is borrowed and must outlive the object. The destructor
/// kills the programs; the objects in the cluster stay.
class PeerArgoCd {
 public:
  static constexpr const char* kNamespace = "argocd";

  explicit PeerArgoCd(PeerCluster& cluster, ArgoCdRelease release = ArgoCdRelease::v3_2);

  /// What a machine lacks for Argo CD, in one line; nullopt: nothing.
  static std::optional<std::string> missing(ArgoCdRelease release = ArgoCdRelease::v3_2);

  const std::string& url() const { return url_; }  // plain http, no slash at the end
  const std::string& token() const { return token_; }
  const std::string& admin_password() const { return admin_password_; }

  /// One request to the API, JSON both ways, with the bot's token.
  HttpReply request(const std::string& method, const std::string& path,
                    const std::string& body = {}) const;
  /// As request(), but throws unless the answer is 2xx; returns the body.
  std::string request_ok(const std::string& method, const std::string& path,
                         const std::string& body = {}) const;

  /// Registers a Git repository with its password; Argo CD tests the connection. Throws when it
  /// is refused.
  void add_repository(const std::string& repository_url, const std::string& username,
                      const std::string& password) const;
  void add_repository(const GitServer& git, const std::string& repository) const;

  /// Creates an Application from its full JSON.
  void create_application(const std::string& json) const;
  /// Creates an Application of project default that follows main of a repository of the server
  /// into a namespace of the cluster; synced by hand unless `automated`.
  void create_application(const std::string& name, const std::string& repository_url,
                          const std::string& path, const std::string& namespace_name,
                          bool automated = false) const;

  /// Starts a sync; does not wait for it.
  void sync(const std::string& name) const;
  /// Lets it look at Git and sync what it finds there, with pruning; returns when the operation has
  /// succeeded and the Application is Synced, Healthy and at `revision`. Throws otherwise. Makes
  /// one call of each method: Get and Sync.
  void sync_to(const std::string& name, const std::string& revision) const;
  /// Waits until the Application has this sync and health status.
  bool wait_for(const std::string& name, const std::string& sync_status,
                const std::string& health_status, std::chrono::milliseconds timeout) const;

  /// The Application as the API shows it; `refresh` is "", "normal" or "hard".
  std::string app_json(const std::string& name, const std::string& refresh = {}) const;

  /// What a JSONPath ("{.status.sync.status}") yields for the Application in the cluster.
  std::string app_field(const std::string& name, const std::string& json_path) const;

  /// How many calls the API server has answered so far, by "service/Method"
  /// ("application.ApplicationService/Get"). REST calls are in it: they become gRPC calls inside.
  /// Calls with no service behind them (health checks, streams still open) are not.
  std::map<std::string, long> read_counts() const;

  /// The programs by name ("argocd-repo-server", …), for faults. A restarted one may need a moment.
  Process& process(const std::string& name) { return programs_.at(name); }
  void restart(const std::string& name) { programs_.restart(name); }
  std::vector<pid_t> pids() const { return programs_.pids(); }
  std::filesystem::path logs_dir() const { return programs_.logs_dir(); }

 private:
  void start(const std::string& name, std::vector<std::string> args);
  void create_objects() const;
  std::string login();

  PeerCluster& cluster_;
  ArgoCdRelease release_;
  PeerPrograms programs_{"gitops-argocd"};
  int server_port_;
  int metrics_port_;
  std::string url_;
  std::string admin_password_;
  std::string token_;
};

}  // namespace gitops::test
