#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "peers/rendered_workload.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {

// The container of a pod, as a node would run it: its program in a root of the image gitops-runtime, which lies as an OCI
// layout in FOLDER/layout.
class ImageContainer {
 public:
  ImageContainer(const std::filesystem::path& folder, std::unique_ptr<RenderedWorkload> workload,
                 Environment more)
      : workload_(std::move(workload)), process_(options(folder, std::move(more))) {}

  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  // The number behind this text in the log; 0: not there.
  [[nodiscard]] int logged(const std::string& before) const {
    const auto text = log();
    const auto at = text.find(before);
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + before.size());
  }
  void await_ready(std::chrono::milliseconds time_limit) {
    require_until(
        [&] {
          if (!process_.running()) throw std::runtime_error("ended:\n" + log());
          const auto port = logged(R"("admin_port":)");
          return port != 0 &&
                 http_call({.url = "http://127.0.0.1:" + std::to_string(port) + "/readyz"}).ok();
        },
        time_limit, "a daemon to be ready", std::chrono::milliseconds(50));
  }
  RenderedWorkload& workload() { return *workload_; }
  Process& process() { return process_; }

 private:
  ProcessOptions options(const std::filesystem::path& image, Environment more) {
    // A kubelet writes the hosts of a pod; and the group of the pod's user may read its volumes.
    std::filesystem::create_directories(root() / "etc");
    const auto& metadata = workload_->pod().at("metadata");
    const auto source = "github-eventsource-svc." + metadata.at("namespace").get<std::string>() +
                        ".svc.cluster.local";
    write_file(root() / "etc/hosts", "127.0.0.1 localhost " + source + ".\n");
    run_or_throw({"chmod", "-R", "a+rwX", workload_->folder()});
    auto environment = workload_->process_environment();
    for (auto& [name, value] : more) environment[name] = std::move(value);
    // A pod has a network of its own.
    for (const auto* name : {"LISTEN_ADDRESS", "METRICS_LISTEN_ADDRESS"}) {
      environment[name] = "127.0.0.1";
    }
    for (const auto* name : {"LISTEN_PORT", "ADMIN_PORT"}) environment[name] = "0";
    std::vector<std::string> command{
        "python3",    std::filesystem::path(GITOPS_SOURCE_DIR) / "image/start.py",
        "--out",      image,
        "--enter",    "gitops-runtime",
        "--root",     root(),
        "--hostname", metadata.at("name"),
        "--"};
    const auto& argv = workload_->argv();
    command.push_back("/usr/bin/" + argv[0]);
    command.insert(command.end(), argv.begin() + 1, argv.end());
    return {.argv = std::move(command), .env = std::move(environment), .log_file = folder_ / "log"};
  }
  [[nodiscard]] std::filesystem::path root() const { return folder_ / "root"; }

  TempDir folder_;
  std::unique_ptr<RenderedWorkload> workload_;
  Process process_;
};

}  // namespace gitops::test
