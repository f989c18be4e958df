#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <list>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "peers/install_document_bed.hpp"
#include "peers/rendered_workload.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

// A machine on which docs/get-started/quickstart.md is followed. No container runs in the cluster's pods, so their programs run
// here, with what the pods have.
namespace gitops::test {

inline constexpr const char* kPlaneNamespace = "gitops-control-plane";
// The address of the control plane that the page gives to the runtime.
inline constexpr const char* kPlaneInCluster = "http://control-plane.gitops-control-plane";

class QuickstartDocument : public InstallDocument {
 protected:
  using Json = nlohmann::json;

  void SetUp() override {
    InstallDocument::SetUp();
    if (IsSkipped()) return;
    provide_volumes(3);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& [name, pod] : pods_) std::cerr << name << ":\n" << read_file(pod.log_file());
  }

  // The volumes of a default StorageClass, which this cluster has none of.
  void provide_volumes(int count) {
    for (int i = 0; i < count; ++i) {
      const auto folder = here_ / ("volume-" + std::to_string(i));
      std::filesystem::create_directories(folder);
      cluster().apply(Json{{"apiVersion", "v1"},
                           {"kind", "PersistentVolume"},
                           {"metadata", {{"name", "quickstart-" + std::to_string(i)}}},
                           {"spec",
                            {{"capacity", {{"storage", "10Gi"}}},
                             {"accessModes", {"ReadWriteOnce"}},
                             {"hostPath", {{"path", folder.string()}}}}}}
                          .dump());
    }
  }

  // Keeps what the node would give to a pod.
  const RenderedWorkload& pod_of(const std::string& deployment, const std::string& ns) {
    return rendered_.emplace_back(cluster(), ns, RenderedWorkload::Deployment{deployment});
  }
  const RenderedWorkload& pod_of_set(const std::string& stateful_set, const std::string& ns) {
    return rendered_.emplace_back(cluster(), ns, stateful_set);
  }
  // Runs the program of a pod. `more` is what differs here, where the network is another one.
  Process& start(const RenderedWorkload& pod, const Environment& more) {
    auto argv = pod.argv();
    const auto name = argv[0];
    argv[0] = std::string(GITOPS_BIN_DIR) + "/" + name;
    auto environment = pod.process_environment();
    for (auto& [variable, value] : environment) {
      if (value) value = here_is(*value);
    }
    for (const auto& [variable, value] : more) environment[variable] = value;
    for (const auto* variable : {"PORT", "LISTEN_PORT", "ADMIN_PORT"}) {
      environment.insert_or_assign(variable, "0");
    }
    return pods_
        .emplace(name, Process({.argv = std::move(argv),
                                .env = std::move(environment),
                                .log_file = here_ / (name + ".log")}))
        ->second;
  }
  // The text with the address of the control plane that runs here.
  [[nodiscard]] std::string here_is(std::string text) const {
    if (const auto at = text.find(kPlaneInCluster); at != std::string::npos) {
      text.replace(at, std::string(kPlaneInCluster).size(), plane_);
    }
    return text;
  }

  void start_control_plane() {
    const auto& pod = pod_of("control-plane", kPlaneNamespace);
    auto& process = start(
        pod,
        {{"DATABASE_PATH", (pod.local("/var/lib/control-plane") / "control-plane.db").string()}});
    const std::string serving = R"("message":"serving","port":)";
    require_until(
        [&] { return read_file(process.log_file()).contains(serving) || !process.running(); },
        kTimeLimit, "the control plane to serve");
    const auto log = read_file(process.log_file());
    const auto at = log.find(serving);
    if (at == std::string::npos) throw std::runtime_error("the control plane ended");
    plane_ = "http://127.0.0.1:" + std::to_string(std::atoi(log.c_str() + at + serving.size()));
    // What a node would show.
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) cluster().append_pod_log(line);
  }

  // Signs in and creates a token, as the console does.
  std::string create_token(const std::string& user, const std::string& password) const {
    const auto jar = (here_ / "jar").string();
    const auto post = [&](const std::string& path, const Json& body) {
      return run_or_throw({"curl", "-sf", "--noproxy", "*", "-b", jar, "-c", jar, "-H",
                           "Content-Type: application/json", "-d", body.dump(), plane_ + path});
    };
    post("/console/api/v1/login", {{"name", user}, {"password", password}});
    return post("/api/auth/key", {{"name", "my-runtime"}});
  }

  // The value of the first field.
  [[nodiscard]] Json ask(const std::string& query) const {
    const auto reply =
        http_call({.method = "POST",
                   .url = plane_ + "/2.0/api/graphql",
                   .headers = {"Authorization: " + key_, "Content-Type: application/json"},
                   .body = Json{{"query", query}}.dump()});
    const auto json = Json::parse(reply.body, nullptr, false);
    if (!json.is_object() || !json.contains("data") || json.contains("errors")) {
      throw std::runtime_error(query + ": " + reply.body);
    }
    return json["data"].begin().value();
  }
  // Waits until the control plane shows the Application at a commit with this message.
  [[nodiscard]] bool shows(const std::string& message) {
    Json last;
    const bool is_shown = wait_until(
        [&] {
          (void)argocd().request("GET", "/api/v1/applications/guestbook?refresh=normal");
          last =
              ask(R"({application(runtime: "my-runtime", namespace: "argocd", name: "guestbook") {
            syncStatus status {commitMessage commitAuthor}}})");
          return last.is_object() && last["syncStatus"] == "SYNCED" &&
                 last["status"]["commitMessage"].is_string() &&
                 last["status"]["commitMessage"].get<std::string>().starts_with(message);
        },
        kTimeLimit, message, std::chrono::milliseconds(300));
    EXPECT_TRUE(is_shown) << last;
    return is_shown;
  }

  std::string plane_;  // URL of the control plane
  std::string key_;
  std::list<RenderedWorkload> rendered_;
  std::multimap<std::string, Process> pods_;  // by program
};

}  // namespace gitops::test
