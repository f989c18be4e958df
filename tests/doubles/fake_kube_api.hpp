#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <list>
#include <map>
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
// of the managed fields it keeps the manager of the last request. Faults: those of
// DoubleServer and the ones below.
class FakeKubeApi : public DoubleServer {
 public:
  using Json = nlohmann::json;

  struct Options {
    http::ServerOptions server = {};
    std::string token;                           // the accepted Bearer token; empty: any or none
    std::size_t history = 20'000;                // changes that are kept for watches
    std::chrono::milliseconds bookmarks{1'000};  // interval of bookmarks
  };
  // Serves the types of k8s::resources and those of Argo CD and the tests; namespaces "default"
  // and "kube-system" exist.
  explicit FakeKubeApi(const Executor& executor, Options options);
  explicit FakeKubeApi(const Executor& executor) : FakeKubeApi(executor, Options()) {}
  ~FakeKubeApi() override;

  // The configuration of a client, without the TLS certificate authority.
  [[nodiscard]] k8s::ClusterConfig cluster_config() const;
  // The same as a kubeconfig file.
  [[nodiscard]] std::string kubeconfig() const;

  // The content, without HTTP, authentication and permissions. The types must be served.
  FakeKubeStore& store() { return store_; }
  [[nodiscard]] const FakeKubeStore& store() const { return store_; }
  // Creates or replaces; returns the object as stored.
  Json put(const k8s::Resource& resource, Json object);
  // The same with a Secret of these values.
  Json put_secret(const k8s::ObjectKey& key, const std::map<std::string, std::string>& values,
                  Json labels = Json::object());
  // nullopt when it does not exist.
  std::optional<Json> find(const k8s::Resource& resource, const k8s::ObjectKey& key) const;
  // Deletes as a client would: finalizers hold the object. False when it does not exist.
  bool remove(const k8s::Resource& resource, const k8s::ObjectKey& key);
  // Adds a served type, as a new CRD does; remove_type() removes it.
  void add_type(const k8s::Resource& resource, bool status_subresource = false);
  void remove_type(const k8s::Resource& resource);

  // Waits for `condition`, evaluated after each change and request; false at the deadline.
  Task<bool> wait_until(std::function<bool()> condition, Deadline deadline);

  // Appends to the log of every container of every pod.
  void append_pod_log(std::string_view text);
  // Every pod answers this request on every port, by its subresource "proxy": "/metrics".
  void set_pod_page(std::string target, std::string text) {
    pod_pages_[std::move(target)] = std::move(text);
  }

  // Replaces the token; requests with the old token get 401.
  void set_token(std::string token) { options_.token = std::move(token); }
  // Sets the authorization rule; refused requests get 403. Without a rule, everything is allowed.
  struct Access {
    std::string verb;
    std::string group;
    std::string resource;
    std::string subresource;
    std::string ns;
    std::string name;
    bool is_review = false;  // a SelfSubjectAccessReview asks; nothing is done
  };
  void set_access(std::function<bool(const Access&)> allowed) { allowed_ = std::move(allowed); }

  // Faults.
  // Makes every version so far too old for watches and for open lists (410).
  void compact();
  // Restores content and version of a backup, as a restore of etcd and a restart of the API server
  // do: open watches are cut.
  void restore(FakeKubeStore::Backup backup);
  // While set, all open and new watches stay connected and receive nothing.
  void stall_watches(bool stalled);
  // Cuts the connection of every open watch.
  void cut_watches();
  // Ends every open watch cleanly, as at its timeout.
  void end_watches();
  // Writes these bytes, unchanged, to every open watch of the type.
  void send_on_watches(const k8s::Resource& resource, const std::string& bytes);
  // Appends this text as the last item to each list of the type; empty: no longer.
  void add_list_item(const k8s::Resource& resource, std::string text);
  // While set, watches with sendInitialEvents get 422, as from servers without streaming lists.
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
  [[nodiscard]] bool is_allowed(const KubeTarget& target, const Query& query) const;
  [[nodiscard]] std::optional<http::Response> proxied_page(
      const http::Request& request, const std::vector<std::string>& path) const;
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
  // The events that the watch has not received yet.
  std::string collect(Watch& watch);
  [[nodiscard]] const KubeType& type_of(const k8s::Resource& resource) const;

  Options options_;
  FakeKubeStore store_;
  KubeLists lists_;
  std::function<bool(const Access&)> allowed_;
  std::map<std::string, std::string> issued_tokens_;  // with the users they were issued to
  std::map<std::string, std::string> pod_pages_;
  std::string pod_log_ = "hello from a simulated pod\n";
  std::list<Watch*> watches_;
  bool stalled_ = false;
  bool streaming_lists_ = true;
};

}  // namespace gitops::test
