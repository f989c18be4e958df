#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "peers/peer_cluster.hpp"
#include "support/process.hpp"

namespace gitops::test {

/// The container that a real node would start for a StatefulSet or a Deployment: command line,
/// environment and files, read from the pod that the controller created and resolved as a kubelet
/// does. kwok's node only simulates the pod; a test runs the program in its place.
///
/// Three things differ from the pod, which has a file system and a network of its own:
/// - Mounts lie in a temporary folder. Its path replaces the mount's path at the start of arguments,
///   of values of flags (--flag=value) and of variables, and in paths of mounted files in the text
///   of a ConfigMap's files.
/// - The pod's service account serves through a kubeconfig (variable KUBECONFIG): it has the
///   address of the API server, and names the mounted token and CA files.
/// - The test must find the program: argv()[0] is its name in the image.
///
/// Known: one container; env and envFrom with ConfigMaps, Secrets and pod fields; volumes of type
/// configMap, secret, downwardAPI, emptyDir, projected, with a token made for the pod, and claims
/// that are bound to a volume of type hostPath. The object can be used as long as the cluster runs;
/// the folder goes with it, but not what was claimed.
class RenderedWorkload {
 public:
  /// Waits until pod NAME-<ordinal> of the newest revision is Ready. Throws when something that the
  /// pod needs is missing, with a text like the kubelet's, and for what is not known.
  RenderedWorkload(const PeerCluster& cluster, const std::string& namespace_name,
                   const std::string& stateful_set, int ordinal = 0);
  struct Deployment {
    std::string name;
  };
  /// The same with a pod of the newest revision of a Deployment.
  RenderedWorkload(const PeerCluster& cluster, const std::string& namespace_name,
                   const Deployment& deployment);

  /// Writes the mounted ConfigMaps and Secrets as they are now, in the way in which a kubelet does
  /// that for a running pod: a link that all files of a volume lie behind is replaced. What is
  /// mounted by subPath stays as it was.
  void update_volumes();

  /// Command and arguments, $(NAME) replaced.
  const std::vector<std::string>& argv() const { return argv_; }
  /// What the container's process finds in its environment, KUBECONFIG included.
  const std::map<std::string, std::string>& environment() const { return environment_; }
  /// The same as a change to this process's environment, of which nothing else is left but what
  /// sanitizers read.
  Environment process_environment() const;

  /// Where a file or folder below a mount of the pod lies here.
  std::filesystem::path local(const std::string& path_in_pod) const;
  const std::filesystem::path& kubeconfig() const { return kubeconfig_; }
  /// Where all files of the pod lie, but for what was claimed.
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// The pod, as JSON.
  const nlohmann::json& pod() const { return pod_; }

 private:
  using Json = nlohmann::json;
  using Files = std::map<std::string, std::string>;

  Json get(const std::string& path) const;  // null: there is none
  void find_pod_of_set(const std::string& name, int ordinal);
  void find_pod_of_deployment(const std::string& name);
  void resolve(const std::string& workload);
  void mount_volumes(const Json& container);
  std::filesystem::path claimed_folder(const std::string& claim) const;
  void write_volume(const Json& volume, const std::filesystem::path& folder) const;
  /// The files of a volume that is written from objects of the cluster; nullopt: it is not.
  std::optional<Files> files_of(const Json& volume) const;
  Files projected_files(const Json& sources) const;
  std::string token(const Json& source) const;
  void write_kubeconfig();
  void set_environment(const Json& container);

  /// The data of a ConfigMap or Secret; nullopt when it is missing and `reference` is optional.
  std::optional<Files> data_of(const std::string& resource, const std::string& name,
                               const Json& reference) const;
  /// Of that data what `items` names, under the paths they give; everything when there are none.
  static Files chosen(const Files& data, const Json& reference);
  std::optional<std::string> value_from(const Json& source) const;
  std::string field(const std::string& path) const;
  std::string expand(const std::string& text) const;
  std::string localized(const std::string& text) const;
  std::string localized_paths(std::string text) const;

  const PeerCluster& cluster_;
  std::string namespace_;
  TempDir folder_;
  Json pod_;
  std::map<std::string, std::filesystem::path> mounts_;  // by path in the pod
  std::vector<std::string> argv_;
  std::map<std::string, std::string> environment_;
  std::filesystem::path kubeconfig_;
  mutable std::map<std::string, HttpReply> sources_;  // ConfigMaps and Secrets read, by path
};

}  // namespace gitops::test
