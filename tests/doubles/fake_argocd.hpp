#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "doubles/double_server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/git_commit.hpp"
#include "support/process.hpp"

namespace gitops::test {

// Argo CD 3.2 in one object: the calls of argocd-server that this project makes, and a controller
// that applies a Git repository to a FakeKubeApi and writes Applications as the real one does
// (health in the resource tree, not in the Application). Reads plain YAML folders with real git.
// Knows Deployments with their pods, and every other kind that the FakeKubeApi serves; hooks never end, so
// that an operation with one runs until it is terminated. Refreshes only when a test calls for it; syncs and
// rolls back when asked by a test or a request. Faults: see DoubleServer. Runs on the loop; git runs on
// a thread of its own.
class FakeArgoCd : public DoubleServer {
 public:
  using Json = nlohmann::json;

  struct Options {
    http::ServerOptions server = {};
    std::string token = "argocd.double.token";  // shaped like a JWT
    std::string username = "admin";             // for POST /api/v1/session
    std::string password = "argocd-password";
    std::string ns = "argocd";  // namespace of the Applications
  };
  // `cluster` must outlive this object.
  FakeArgoCd(const Executor& executor, FakeKubeApi& cluster, Options options);
  FakeArgoCd(const Executor& executor, FakeKubeApi& cluster)
      : FakeArgoCd(executor, cluster, Options()) {}
  ~FakeArgoCd() override;

  // The settings of an Application.
  struct App {
    std::string name;
    std::string repo_url;  // http(s) URL or local path
    std::string git_username = {};
    std::string git_password = {};
    std::string path = ".";
    std::string target_revision = "main";
    std::string project = "default";
    std::string destination_namespace = "default";
    std::map<std::string, std::string> labels = {};
    std::map<std::string, std::string> annotations = {};
  };
  // Writes the Application and compares it once: OutOfSync and Missing.
  Task<Result<void>> create_app(App app);
  // Reads Git, compares, and writes status.sync and status.resources. Resources that are no longer
  // in Git need pruning. Returns the revision.
  Task<Result<std::string>> refresh(const std::string& app);
  // Refreshes, applies and prunes. Writes operation, operationState and history. Fails while an operation is in
  // progress.
  Task<Result<std::string>> sync(const std::string& app);
  // Deletes the Application: sets deletionTimestamp, deletes its resources, removes the finalizer.
  Result<void> delete_app(const std::string& app);
  // Sets a resource's health. Writes the Application only when its own health changes, as Argo CD
  // does since 3.0.
  Result<void> set_health(const std::string& app, const std::string& kind, const std::string& name,
                          const std::string& health, const std::string& message = {});
  // Writes a new status.reconciledAt, as the periodic refresh does without a change.
  Result<void> touch(const std::string& app);

  // Prepared answers for applications that the controller does not know.
  void set_tree(const std::string& app, Json tree);
  void set_managed_resources(const std::string& app, Json items);
  void set_revision(const std::string& revision, Json metadata);

  void set_token(std::string token) { options_.token = std::move(token); }
  // The answer of GET /api/v1/account/can-i about reading every Application.
  void set_may_get_applications(bool may) { may_get_applications_ = may; }
  // Requests for the tree, for managed resources and for revision metadata.
  struct Reads {
    std::size_t tree = 0;
    std::size_t managed = 0;
    std::size_t revisions = 0;
    [[nodiscard]] std::size_t total() const { return tree + managed + revisions; }
  };
  [[nodiscard]] Reads reads() const;

 protected:
  Task<> handle(http::Exchange& exchange) override;
  [[nodiscard]] http::Response failure(int status) const override;

 private:
  struct Managed {
    k8s::Resource type;
    k8s::ObjectKey key;
    Json target;  // null: not in Git
    std::string health;
    std::string health_message;
  };
  struct State {
    App spec;
    std::string revision;
    std::map<std::string, Managed> resources;  // by group/kind/namespace/name
    std::vector<std::string> hooks = {};       // "batch/Job/wait"
    std::optional<Json> tree;                  // set by set_tree()
    std::optional<Json> managed;
  };

  // In fake_argocd_controller.cpp.
  Task<Result<GitCommit>> fetch(const App& app);
  Result<void> take_manifests(State& state, const GitCommit& commit);
  void write_comparison(State& state);
  [[nodiscard]] Json live(const Managed& managed) const;
  [[nodiscard]] bool is_synced(const Managed& managed) const;
  [[nodiscard]] static std::string health_of(const State& state);
  void apply(Managed& managed);
  Json sync_resource(Managed& managed, bool prune);
  // The server's part of an operation. Fails while another is in progress.
  Result<void> begin_operation(const State& state, const std::string& revision, bool prune);
  // The controller's part: applies the commit that was taken last. Leaves an operation with hooks running.
  void run_operation(State& state);
  // Syncs with a revision that need not be that of the branch. Fails when Git does not have it.
  Task<Result<std::string>> sync_at(State& state, std::string revision, bool prune);
  // Deploys the revision of an entry of the history. Not found: there is no such entry.
  Task<Result<std::string>> roll_back(State& state, int history_id, bool prune);
  // Fails when no operation is in progress.
  Result<void> terminate(const State& state);
  // Reads, changes and writes the Application.
  void edit(const State& state, const std::function<void(Json& app)>& change);

  [[nodiscard]] Json tree_of(const State& state) const;
  [[nodiscard]] static Json node_of(const Managed& managed, const Json& object);
  [[nodiscard]] Json managed_of(const State& state) const;
  [[nodiscard]] http::Response refuse(int status, int code, const std::string& message) const;
  Task<http::Response> answer(const http::Request& request, std::vector<std::string> path,
                              Query query, std::string body);
  [[nodiscard]] http::Response log_in(const http::Request& request, const std::string& body) const;
  // The application, or the server's refusal.
  [[nodiscard]] std::expected<const State*, http::Response> visible_app(
      const std::string& name, const std::string& ns, const std::string& project) const;
  [[nodiscard]] http::Response answer_about_app(const std::vector<std::string>& path,
                                                const Query& query) const;
  // Syncs, rolls back or terminates. Answers to the former two after the controller's part.
  Task<http::Response> change_app(const http::Request& request,
                                  const std::vector<std::string>& path, const Query& query,
                                  const std::string& body);

  Options options_;
  bool may_get_applications_ = true;
  FakeKubeApi& cluster_;
  TempDir folder_;
  boost::asio::thread_pool git_{1};
  std::map<std::string, State> apps_;
  std::map<std::string, Json> revisions_;
};

}  // namespace gitops::test
