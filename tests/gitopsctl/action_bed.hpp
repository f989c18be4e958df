#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::test {

// A control plane with the runtime prod, whose app-proxy is this object, and its Application shop.
class ActionBed {
 public:
  ActionBed()
      : app_proxy_("app-proxy", [this](const auto&, RawSocket& socket) { return answer(socket); }) {
    program_.add_account("acme");
    program_.add_user("ann", "acme", {"--admin"});
    key = program_.create_key("ann", "acme");
    program_.start();
    const nlohmann::json runtime{
        {"runtimeName", "prod"},
        {"runtimeNamespace", "gitops"},
        {"cluster", "https://kubernetes.default.svc"},
        {"installationType", "HELM"},
        {"runtimeVersion", "0.2.0"},
        {"ingressHost", "http://127.0.0.1:" + std::to_string(app_proxy_.port())},
        {"componentNames", nlohmann::json::array()}};
    const auto created =
        program_.graphql(key,
                         "mutation($a: RuntimeInstallationArgs!){createRuntime(installationArgs: "
                         "$a){newAccessToken}}",
                         nlohmann::json{{"a", runtime}}.dump());
    token_ = nlohmann::json::parse(created.body)["data"]["createRuntime"]["newAccessToken"]
                 .get<std::string>();
    static_cast<void>(program_.register_runtime(key, "silent"));  // without an ingress host
    const std::string silent = program_.register_runtime(key, "silent");
    static_cast<void>(program_.post_application(token_, application("shop", "Healthy"), 1));
    static_cast<void>(program_.post_application(silent, application("quiet", "Healthy"), 1));
    post_workflow("build");
    post_git_source("apps");
  }

  // What the app-proxy sends from now on: a status, fields and a body. An empty status: it closes the connection.
  void answer_with(std::string status, std::string fields, std::string body) {
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
    fields_ = std::move(fields);
    body_ = std::move(body);
  }
  // Reports a health of an Application of prod that no other test reads.
  void report_health(const std::string& health) {
    static_cast<void>(
        program_.post_application(token_, application("moving", health), ++sequence_));
  }
  // Reports an operation of shop when the app-proxy is asked next.
  void begin_operation_at_next_request() {
    const std::lock_guard lock(mutex_);
    begins_operation_ = true;
  }
  // Reports this many clusters of prod.
  void report_clusters(int number) const {
    auto clusters = nlohmann::json::array();
    for (int i = 0; i < number; ++i) {
      clusters.push_back({{"name", "c" + std::to_string(i)},
                          {"runtime", "prod"},
                          {"server", "https://10.0.0.1:" + std::to_string(i + 1)},
                          {"info",
                           {{"connectionState", {{"status", "Successful"}}},
                            {"serverVersion", "1.31"},
                            {"applicationsCount", 1}}}});
    }
    static_cast<void>(program_.graphql(
        token_, "mutation($c: [ClusterUpsertArgs]){updateRuntimeClusters(clusters: $c)}",
        nlohmann::json{{"c", std::move(clusters)}}.dump()));
  }
  [[nodiscard]] RecordingUpstream& app_proxy() { return app_proxy_; }
  [[nodiscard]] const ControlPlaneProcess& program() const { return program_; }

  // An Application that is out of sync.
  static std::string application(const std::string& name, const std::string& health) {
    const nlohmann::json resource{{"group", "apps"},    {"version", "v1"}, {"kind", "Deployment"},
                                  {"namespace", "web"}, {"name", "ui"},    {"status", "OutOfSync"}};
    const nlohmann::json rollout{{"group", "argoproj.io"}, {"version", "v1alpha1"},
                                 {"kind", "Rollout"},      {"namespace", "web"},
                                 {"name", "canary"},       {"status", "Synced"}};
    return nlohmann::json{
        {"apiVersion", "argoproj.io/v1alpha1"},
        {"kind", "Application"},
        {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
        {"spec",
         {{"destination", {{"server", "https://kubernetes.default.svc"}}},
          {"source", {{"repoURL", "https://git.example/a.git"}, {"path", "apps"}}}}},
        {"status",
         {{"sync", {{"status", "OutOfSync"}}},
          {"health", {{"status", health}, {"message", "red \x1b[31m text"}}},
          {"resources", nlohmann::json::array({resource, rollout})}}}}
        .dump();
  }

  std::string key;

 private:
  void post_workflow(const std::string& name) {
    const nlohmann::json workflow{
        {"apiVersion", "argoproj.io/v1alpha1"},
        {"kind", "Workflow"},
        {"metadata",
         {{"name", name},
          {"namespace", "ci"},
          {"uid", "uid-" + name},
          {"creationTimestamp", "2026-03-04T09:00:00Z"}}},
        {"spec", {{"workflowTemplateRef", {{"name", "ci"}}}}},
        {"status",
         {{"phase", "Running"},
          {"progress", "1/2"},
          {"nodes", {{"n1", {{"type", "Pod"}, {"name", "main"}, {"phase", "Running"}}}}}}}};
    post("w/" + name, nlohmann::json{{"data", {{"object", workflow.dump()}}}}.dump());
  }
  void post_git_source(const std::string& name) {
    auto source = nlohmann::json::parse(application(name, "Healthy"));
    source["metadata"]["labels"] = {{"codefresh.io/entity", "git-source"}};
    static_cast<void>(program_.post_application(token_, source.dump(), ++sequence_));
  }
  void post(const std::string& id, const std::string& body) {
    const auto sequence = std::to_string(++sequence_);
    static_cast<void>(
        http_call({.method = "POST",
                   .url = program_.url() + "/2.0/api/events",
                   .headers = {"Authorization: " + token_, "Content-Type: application/json",
                               "X-Event-Id: " + id, "X-Event-Sequence: " + sequence},
                   .body = body}));
  }

  bool answer(RawSocket& socket) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(begins_operation_, false)) {
      ++sequence_;
      auto shop = nlohmann::json::parse(application("shop", "Healthy"));
      shop["status"]["operationState"] = {
          {"phase", "Succeeded"},
          {"startedAt", "2026-03-04T09:" + std::to_string(10 + sequence_ % 50) + ":00Z"}};
      static_cast<void>(program_.post_application(token_, shop.dump(), sequence_));
    }
    return !status_.empty() && RecordingUpstream::reply(socket, body_, fields_, status_);
  }

  std::mutex mutex_;
  std::string token_;
  std::int64_t sequence_ = 1;
  bool begins_operation_ = false;
  std::string status_;
  std::string fields_;
  std::string body_;
  RecordingUpstream app_proxy_;
  ControlPlaneProcess program_;
};

// The one that all tests of the program share.
inline ActionBed& action_bed() {
  static ActionBed bed;
  return bed;
}

}  // namespace gitops::test
