#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "doubles/double_server.hpp"
#include "doubles/fake_kube_store.hpp"
#include "doubles/kube_failure.hpp"
#include "doubles/kube_lists.hpp"
#include "doubles/kube_request.hpp"
#include "k8s-client/config.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::test {

// A Kubernetes API server in memory: get, list in pages, watch, create, update, patch, delete,
// finalizers, status subresources, dry runs, CRDs, access reviews, service account tokens, pod logs
// and discovery (group by group), with the answers and Status objects of the real one
// (tests/contract checks both). It has no admission, no schemas, no controllers, and reads JSON only;
// of the managed fields it keeps the manager that the last request named. Faults: those of
// DoubleServer and the ones below.
class FakeKubeApi : public DoubleServer {
 public:
  using Json = nlohmann::json;

  struct Options {
    http::ServerOptions server = {};
    std::string token;                           // asked for as Bearer token when not empty
    std::size_t history = 20'000;                // changes that watches can still be told
    std::chrono::milliseconds bookmarks{1'000};  // between two bookmarks of a watch
  };
  // Knows the types of k8s::resources and what else Argo CD and the tests use; namespaces "default"
  // and "kube-system" exist.
  explicit FakeKubeApi(const Executor& executor, Options options);
  explicit FakeKubeApi(const Executor& executor) : FakeKubeApi(executor, Options()) {}
  ~FakeKubeApi() override;

  // How a client gets here; TLS trust is the caller's to add.
  [[nodiscard]] k8s::ClusterConfig cluster_config() const;
  // The same as a kubeconfig file.
  [[nodiscard]] std::string kubeconfig() const;

  // The content, past HTTP and its rules. The types must be known.
  FakeKubeStore& store() { return store_; }
  [[nodiscard]] const FakeKubeStore& store() const { return store_; }
  // Creates or replaces; returns the object as stored.
  Json put(const k8s::Resource& resource, Json object);
  // Nothing when it does not exist.
  std::optional<Json> find(const k8s::Resource& resource, const k8s::ObjectKey& key) const;
  // Deletes as a client would: finalizers hold the object. False when it does not exist.
  bool remove(const k8s::Resource& resource, const k8s::ObjectKey& key);
  // Serves another type from now on, as when a CRD appears; and no longer.
  void add_type(const k8s::Resource& resource, bool status_subresource = false);
  void remove_type(const k8s::Resource& resource);

  // Waits until `condition` holds, looking after each change and request; false at the deadline.
  Task<bool> wait_until(std::function<bool()> condition, Deadline deadline);

  // Appends to the log that every container of every pod has.
  void append_pod_log(std::string_view text);

  // Replaces the token; requests with the old one get 401 from now on.
  void set_token(std::string token) { options_.token = std::move(token); }
  // Who may do what; refused requests get 403. Without a rule everything is allowed.
  struct Access {
    std::string verb;
    std::string group;
    std::string resource;
    std::string subresource;
    std::string ns;
    std::string name;
  };
  void set_access(std::function<bool(const Access&)> allowed) { allowed_ = std::move(allowed); }

  // Faults.
  // Everything older than now is too old for watches and for open lists (410).
  void compact();
  // The content of an earlier moment is back, and its version, as after a restore of etcd and a new
  // start of the API server: open watches are cut.
  void restore(FakeKubeStore::Backup backup);
  // Open and new watches of all types stay silent, connected, until this is set back.
  void stall_watches(bool stalled);
  // Ends every open watch in the middle of its connection.
  void cut_watches();
  // Ends every open watch in order, as at its timeout.
  void end_watches();
  // Writes these bytes on every open watch of the type, as they are.
  void send_on_watches(const k8s::Resource& resource, const std::string& bytes);
  // Each list of the type holds this text as its last item; empty ends it.
  void add_list_item(const k8s::Resource& resource, std::string text);
  // Watches with sendInitialEvents get 422, as from servers without streaming lists.
  void refuse_streaming_lists(bool refuse) { streaming_lists_ = !refuse; }

  [[nodiscard]] std::size_t open_watches() const { return watches_.size(); }

 protected:
  Task<> handle(http::Exchange& exchange) override;
  [[nodiscard]] http::Response failure(int status) const override;

 private:
  struct Watch;

  Task<> serve(http::Exchange& exchange, const std::string& body);
  std::optional<http::Response> answer_fixed(const http::Request& request,
                                             const std::vector<std::string>& path,
                                             const std::string& body);
  http::Response review_access(const std::string& body) const;
  [[nodiscard]] bool is_allowed(const KubeTarget& target) const;
  http::Response answer(const http::Request& request, const KubeTarget& target, const Query& query,
                        const std::string& body);
  http::Response patch(const KubeTarget& target, const Query& query, std::string_view media,
                       const Json& body);
  http::Response delete_collection(const KubeTarget& target, const Query& query);
  Task<> serve_log(http::Exchange& exchange, const KubeTarget& target, const Query& query);
  http::Response issue_token(const KubeTarget& target, const std::string& body);

  // In fake_kube_watches.cpp.
  Task<> watch(http::Exchange& exchange, const KubeTarget& target, const Query& query);
  [[nodiscard]] std::expected<Watch, KubeFailure> read_watch(const KubeTarget& target,
                                                             const Query& query) const;
  void add_initial_events(Watch& watch);
  Task<> follow(http::Exchange& exchange, Watch& watch);
  // What the watch has not been told yet.
  std::string collect(Watch& watch);
  [[nodiscard]] const KubeType& type_of(const k8s::Resource& resource) const;

  Options options_;
  FakeKubeStore store_;
  KubeLists lists_;
  std::function<bool(const Access&)> allowed_;
  std::map<std::string, std::string> issued_tokens_;  // with the users they were issued to
  std::string pod_log_ = "hello from a simulated pod\n";
  std::list<Watch*> watches_;
  bool stalled_ = false;
  bool streaming_lists_ = true;
};

}  // namespace gitops::test
