#include "peers/peer_rollouts.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;

std::string path_of(const std::string& ns, const std::string& name) {
  return "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/rollouts/" + name;
}

}  // namespace

std::optional<std::string> PeerRollouts::missing() {
  if (!find_program(peer_program("rollouts-controller").string()) ||
      peer_manifests("argo-rollouts").empty()) {
    return "rollouts-controller is not built: run ./dev peers";
  }
  return std::nullopt;
}

PeerRollouts::PeerRollouts(PeerCluster& cluster) : cluster_(cluster) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  cluster_.apply_crds("argo-rollouts");
  cluster_.create_namespace(kNamespace);
  const std::string health_port = std::to_string(free_port());
  programs_.start(
      "rollouts-controller",
      {peer_program("rollouts-controller").string(), "--kubeconfig", cluster_.kubeconfig().string(),
       "--namespace", kNamespace, "--leader-elect=false", "--metricsPort",
       std::to_string(free_port()), "--healthzPort", health_port});
  programs_.await("rollouts-controller", [&] {
    return http_call({.url = "http://127.0.0.1:" + health_port + "/healthz"}).ok();
  });
}

std::string PeerRollouts::canary(const std::string& name, const std::string& image) {
  const json labels = {{"app", name}};
  return json{{"apiVersion", "argoproj.io/v1alpha1"},
              {"kind", "Rollout"},
              {"metadata", {{"name", name}}},
              {"spec",
               {{"replicas", 4},
                {"selector", {{"matchLabels", labels}}},
                {"template",
                 {{"metadata", {{"labels", labels}}},
                  {"spec", {{"containers", json::array({{{"name", "main"}, {"image", image}}})}}}}},
                {"strategy",
                 {{"canary",
                   {{"steps",
                     {{{"setWeight", 25}},
                      {{"pause", json::object()}},
                      {{"setWeight", 50}},
                      {{"pause", {{"duration", "1s"}}}}}}}}}}}}}
      .dump();
}

std::string PeerRollouts::job_analysis(const std::string& name) {
  const json container = {{"name", "main"}, {"image", "example.test/check:1"}};
  const json pod = {
      {"spec", {{"restartPolicy", "Never"}, {"containers", json::array({container})}}}};
  const json metric = {{"name", "job"}, {"provider", {{"job", {{"spec", {{"template", pod}}}}}}}};
  return json{{"apiVersion", "argoproj.io/v1alpha1"},
              {"kind", "AnalysisRun"},
              {"metadata", {{"name", name}}},
              {"spec", {{"metrics", json::array({metric})}}}}
      .dump();
}

void PeerRollouts::promote(const std::string& ns, const std::string& name) const {
  patch_status(ns, name, R"({"status":{"pauseConditions":null}})");
}

void PeerRollouts::promote_fully(const std::string& ns, const std::string& name) const {
  patch_status(ns, name, R"({"status":{"promoteFull":true}})");
}

void PeerRollouts::abort(const std::string& ns, const std::string& name) const {
  patch_status(ns, name, R"({"status":{"abort":true}})");
}

void PeerRollouts::retry(const std::string& ns, const std::string& name) const {
  patch_status(ns, name, R"({"status":{"abort":false}})");
}

std::string PeerRollouts::phase(const std::string& ns, const std::string& name) const {
  const HttpReply reply = cluster_.request("GET", path_of(ns, name));
  if (!reply.ok()) throw std::runtime_error("no Rollout " + name + ": " + reply.body);
  const auto rollout = json::parse(reply.body);
  const auto generation = rollout.at("/metadata/generation"_json_pointer).get<long>();
  const auto observed = rollout.value("/status/observedGeneration"_json_pointer, "");
  if (observed != std::to_string(generation)) return {};
  return rollout.value("/status/phase"_json_pointer, "");
}

bool PeerRollouts::wait_for_phase(const std::string& ns, const std::string& name,
                                  const std::string& phase,
                                  std::chrono::milliseconds timeout) const {
  return wait_until([&] { return this->phase(ns, name) == phase; }, timeout,
                    "Rollout " + name + " to be " + phase);
}

void PeerRollouts::patch_status(const std::string& ns, const std::string& name,
                                const std::string& patch) const {
  const HttpReply reply = cluster_.request("PATCH", path_of(ns, name) + "/status", patch,
                                           "application/merge-patch+json");
  if (!reply.ok()) throw std::runtime_error("Rollout " + name + " refused: " + reply.body);
}

}  // namespace gitops::test
