#include "peers/peer_workflows.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;

constexpr const char* kConfig = R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: workflow-controller-configmap, namespace: argo}
data:
  # The controller looks for the commands of images at their registries unless it is told them.
  images: |
    registry.test/report-image-info:1: {entrypoint: ["true"]}
  metricsConfig: "{enabled: false}"
  telemetryConfig: "{enabled: false}"
)";
constexpr const char* kServerSecret = "argo-server-tls";

std::string workflows_of(const std::string& ns) {
  return "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/workflows";
}

std::string spec_with(const json& step) {
  return json{{"entrypoint", "main"}, {"templates", json::array({step})}}.dump();
}

}  // namespace

std::optional<std::string> PeerWorkflows::missing() {
  for (const char* name : {"workflow-controller", "argo"}) {
    if (!find_program(peer_program(name).string())) {
      return std::string(name) + " is not built: run ./dev peers";
    }
  }
  if (peer_manifests("argo-workflows").empty()) {
    return "Argo Workflows' CRDs are not there: run ./dev peers";
  }
  return std::nullopt;
}

PeerWorkflows::PeerWorkflows(PeerCluster& cluster, std::set<Auth> servers) : cluster_(cluster) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  // The controller ends when it finds a CRD that is not served yet.
  cluster_.apply_crds("argo-workflows");
  cluster_.create_namespace(kNamespace);
  cluster_.apply(kConfig);
  start_controller();
  for (const Auth auth : servers) start_server(auth);

  programs_.await("workflow-controller", [&] {
    return programs_.log("workflow-controller").contains("Manager initialized successfully");
  });
  for (const auto& [auth, url] : urls_) {
    const std::string name = auth == Auth::client ? "argo-server-client" : "argo-server-server";
    // The server has a connection to itself for each of its services, and waits longer and longer to
    // connect one that was refused while it was starting.
    for (const std::string service : {"/version", "/workflows/", "/workflow-templates/"}) {
      const std::string path = "/api/v1" + service + (service.ends_with('/') ? kNamespace : "");
      programs_.await(name,
                      [&] { return request(auth, "GET", path, {}, cluster_.admin_token()).ok(); });
    }
  }
}

void PeerWorkflows::start_controller() {
  programs_.start(
      "workflow-controller",
      {peer_program("workflow-controller").string(), "--kubeconfig", cluster_.kubeconfig().string(),
       "--namespace", kNamespace, "--executor-image", "example.test/executor:0"},
      {{"LEADER_ELECTION_DISABLE", "true"}, {"DEFAULT_REQUEUE_TIME", "1s"}});
}

void PeerWorkflows::start_server(Auth auth) {
  const std::string port = std::to_string(free_port());
  std::vector<std::string> argv = {peer_program("argo").string(),
                                   "server",
                                   "--kubeconfig",
                                   cluster_.kubeconfig().string(),
                                   "--namespace",
                                   kNamespace,
                                   "--port",
                                   port,
                                   "--base-href",
                                   kPrefix};
  if (auth == Auth::client) {
    const Certificate certificate = cluster_.authority().issue(
        {.common_name = "argo-server", .organization = {}, .alt_names = {"localhost"}});
    cluster_.kubectl_ok({"--namespace", kNamespace, "create", "secret", "tls", kServerSecret,
                         "--cert", certificate.cert_file.string(), "--key",
                         certificate.key_file.string()});
    argv.insert(argv.end(), {"--auth-mode", "client", "--secure=true",
                             "--tls-certificate-secret-name", kServerSecret});
    urls_[auth] = "https://localhost:" + port;
    // It looks there for the cluster that a caller's token is for.
    programs_.start("argo-server-client", std::move(argv),
                    {{"KUBECONFIG", cluster_.kubeconfig().string()}});
  } else {
    argv.insert(argv.end(), {"--auth-mode", "server", "--secure=false"});
    urls_[auth] = "http://127.0.0.1:" + port;
    programs_.start("argo-server-server", std::move(argv));
  }
}

HttpReply PeerWorkflows::request(Auth auth, const std::string& method, const std::string& path,
                                 const std::string& body, const std::string& token) const {
  std::vector<std::string> headers;
  if (!token.empty()) headers.push_back("Authorization: Bearer " + token);
  if (!body.empty()) headers.emplace_back("Content-Type: application/json");
  return http_call({.method = method,
                    .url = url(auth) + path,
                    .headers = std::move(headers),
                    .body = body,
                    .ca_file = cluster_.ca_file()});
}

void PeerWorkflows::submit(const std::string& ns, const std::string& name,
                           const std::string& spec) const {
  const json workflow = {{"apiVersion", "argoproj.io/v1alpha1"},
                         {"kind", "Workflow"},
                         {"metadata", {{"name", name}}},
                         {"spec", json::parse(spec)}};
  const HttpReply reply = cluster_.request("POST", workflows_of(ns), workflow.dump());
  if (!reply.ok()) throw std::runtime_error("Workflow " + name + " refused: " + reply.body);
}

std::string PeerWorkflows::one_step() {
  return spec_with(
      {{"name", "main"}, {"container", {{"image", "example.test/step:1"}, {"command", {"true"}}}}});
}

std::string PeerWorkflows::one_wait() {
  return spec_with({{"name", "main"}, {"suspend", json::object()}});
}

std::string PeerWorkflows::phase(const std::string& ns, const std::string& name) const {
  const HttpReply reply = cluster_.request("GET", workflows_of(ns) + "/" + name);
  if (!reply.ok()) throw std::runtime_error("no Workflow " + name + ": " + reply.body);
  return json::parse(reply.body).value("/status/phase"_json_pointer, "");
}

bool PeerWorkflows::wait_for_phase(const std::string& ns, const std::string& name,
                                   const std::string& phase,
                                   std::chrono::milliseconds timeout) const {
  return wait_until([&] { return this->phase(ns, name) == phase; }, timeout,
                    "Workflow " + name + " to be " + phase);
}

}  // namespace gitops::test
