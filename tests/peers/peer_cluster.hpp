#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peers/peer_programs.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

struct PeerClusterOptions {
  /// Added at the end of the API server's command line; a repeated flag overrides the fixture's.
  std::vector<std::string> api_server_flags = {};

  /// Resources ("configmaps", "applications.argoproj.io") that the API server reads from etcd
  /// instead of its watch cache, so that compact_etcd() makes their old versions "gone" at once.
  std::vector<std::string> uncached_resources = {};

  /// How long the API server lets open requests go on after SIGTERM.
  std::chrono::seconds request_timeout{10};
};

/// A private Kubernetes cluster of real programs: etcd, API server with RBAC, controller manager,
/// scheduler and kwok, which plays one node where pods turn Ready without containers and Jobs
/// succeed. Own ports, certificates and temporary folder; everything listens on 127.0.0.1.
///
/// The constructor returns when the node is Ready (about five seconds) and throws with the end of
/// the guilty log when a program doesn't come up. The destructor kills every program; should the
/// test die first, the kernel does (see Process: create it on the main thread).
class PeerCluster {
 public:
  enum class Stop : std::uint8_t { terminate, kill };  // SIGTERM and wait, or SIGKILL

  static constexpr std::string_view kNodeName = "sim-0";

  explicit PeerCluster(PeerClusterOptions options = {});

  /// What a machine lacks for a cluster, in one line, to skip tests with; nullopt: nothing.
  static std::optional<std::string> missing();

  /// A kubeconfig of the administrator (group system:masters) with token and CA inside.
  const std::filesystem::path& kubeconfig() const { return kubeconfig_; }
  const std::string& server_url() const { return server_url_; }
  const std::filesystem::path& ca_file() const { return authority_.ca_file(); }
  const std::string& admin_token() const { return admin_token_; }
  /// Issues further certificates that the API server accepts from clients (CN user, O group).
  CertificateAuthority& authority() { return authority_; }

  /// Runs kubectl as the administrator.
  CommandResult kubectl(const std::vector<std::string>& args, std::string_view stdin_text = {},
                        std::chrono::milliseconds timeout = std::chrono::seconds(60)) const;
  /// As kubectl(), but throws when it fails; returns its output without trailing newlines.
  std::string kubectl_ok(const std::vector<std::string>& args, std::string_view stdin_text = {},
                         std::chrono::milliseconds timeout = std::chrono::seconds(60)) const;
  /// Server-side apply of one or more YAML or JSON documents; throws when it fails.
  void apply(std::string_view documents) const;
  /// Applies the CRDs of a built peer and waits until they are served.
  void apply_crds(const std::string& peer) const;

  /// One request to the API server, JSON both ways, as the administrator.
  HttpReply request(const std::string& method, const std::string& path,
                    const std::string& body = {},
                    const std::string& content_type = "application/json") const;

  /// Creates the namespace and waits for its ServiceAccount `default`, without which pods are
  /// refused.
  void create_namespace(const std::string& name,
                        const std::map<std::string, std::string>& labels = {}) const;

  /// A token of an existing ServiceAccount, valid for an hour.
  std::string service_account_token(const std::string& namespace_name,
                                    const std::string& account) const;

  /// Writes a kubeconfig that uses this token; it lives as long as the cluster.
  std::filesystem::path write_kubeconfig(const std::string& name, const std::string& token) const;

  /// Ends the API server alone. With Stop::terminate open watches may hold it for the request
  /// timeout.
  void stop_api_server(Stop how);
  /// Starts it again on the same port with the same data and waits until it is ready. Flags replace
  /// those of the options when given.
  void start_api_server(std::optional<std::vector<std::string>> flags = std::nullopt);

  /// After this every resourceVersion seen before is too old (410 Gone) for the uncached
  /// resources. Returns the revision that is the oldest left.
  std::string compact_etcd();

  /// Keeps a copy of etcd's data, in place of an earlier one. The API server is away meanwhile.
  void back_up_etcd();
  /// Ends every program and starts it with the data of the copy: what was written since has never
  /// happened, and its revisions are given out a second time. Needs a back_up_etcd().
  void restore_etcd();

  /// The log that every pod of the cluster serves; add lines with append_pod_log().
  void append_pod_log(std::string_view line) const;

  const std::filesystem::path& folder() const { return programs_.folder(); }
  std::filesystem::path logs_dir() const { return programs_.logs_dir(); }

  /// The programs by name ("etcd", "kube-apiserver", …), for faults and checks.
  Process& process(const std::string& name) { return programs_.at(name); }
  std::vector<pid_t> pids() const { return programs_.pids(); }

 private:
  void start(const std::string& name, std::vector<std::string> args);
  void start_etcd();
  void start_controllers();
  void start_kwok();
  void create_node() const;

  PeerClusterOptions options_;
  PeerPrograms programs_{"gitops-cluster"};
  CertificateAuthority authority_;
  Certificate server_certificate_;
  std::string admin_token_;
  int etcd_port_;
  int server_port_;
  std::string etcd_url_;
  std::string etcd_peer_url_;
  std::string server_url_;
  std::filesystem::path kubeconfig_;
};

}  // namespace gitops::test
