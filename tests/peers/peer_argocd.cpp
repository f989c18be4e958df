#include "peers/peer_argocd.hpp"

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr seconds kStartLimit{60};

fs::path argocd_program(ArgoCdRelease release) {
  return peer_program(release == ArgoCdRelease::v2_13 ? "argocd-2" : "argocd");
}

std::string peer_of(ArgoCdRelease release) {
  return release == ArgoCdRelease::v2_13 ? "argo-cd-2" : "argo-cd";
}

constexpr std::string_view kObjects = R"(
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
data: {accounts.bot: "apiKey, login"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-rbac-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
data: {policy.csv: "g, bot, role:admin"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-tls-certs-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-ssh-known-hosts-cm
  namespace: argocd
  labels: {app.kubernetes.io/part-of: argocd}
data: {ssh_known_hosts: ""}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
type: Opaque
)";

/// The value of a string field at the top of one of Argo CD's small answers; empty when absent.
std::string string_field(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t start = json.find(key);
  if (start == std::string::npos) return {};
  return json.substr(start + key.size(), json.find('"', start + key.size()) - start - key.size());
}

/// The value of a label in a line of the Prometheus text format; empty when absent.
std::string label(std::string_view line, std::string_view name) {
  const std::string key = std::string(name) + "=\"";
  const std::size_t start = line.find(key);
  if (start == std::string_view::npos) return {};
  const std::size_t end = line.find('"', start + key.size());
  return std::string(line.substr(start + key.size(), end - start - key.size()));
}

}  // namespace

std::optional<std::string> PeerArgoCd::missing(ArgoCdRelease release) {
  if (const auto program = argocd_program(release); !find_program(program.string())) {
    return program.filename().string() + " is not built: run ./dev peers";
  }
  if (peer_manifests(peer_of(release)).empty()) {
    return "Argo CD's CRDs are not there: run ./dev peers";
  }
  for (const char* name : {"redis-server", "git", "curl"}) {
    if (!find_program(name)) return std::string(name) + " is not installed";
  }
  return std::nullopt;
}

PeerArgoCd::PeerArgoCd(PeerCluster& cluster, ArgoCdRelease release)
    : cluster_(cluster),
      release_(release),
      server_port_(free_port()),
      metrics_port_(free_port()),
      url_("http://127.0.0.1:" + std::to_string(server_port_)) {
  if (const auto reason = missing(release)) throw std::runtime_error(*reason);
  const fs::path& folder = programs_.folder();
  for (const char* name : {"home", "tmp", "tls", "ssh", "bin"}) {
    fs::create_directories(folder / name);
  }
  write_file(folder / "ssh" / "ssh_known_hosts", "");
  fs::create_symlink(argocd_program(release), folder / "bin" / "argocd");
  const std::string redis = "127.0.0.1:" + std::to_string(free_port());
  const std::string repo_port = std::to_string(free_port());
  const std::string repo_server = "127.0.0.1:" + repo_port;

  // These two need no cluster and start while the objects are made.
  programs_.start(
      "redis", {"redis-server", "--bind", "127.0.0.1", "--port", redis.substr(redis.find(':') + 1),
                "--save", "", "--appendonly", "no", "--dir", (folder / "tmp").string()});
  start("argocd-repo-server",
        {"--address", "127.0.0.1", "--port", repo_port, "--metrics-address", "127.0.0.1",
         "--metrics-port", std::to_string(free_port()), "--redis", redis, "--disable-tls"});
  create_objects();

  const std::vector<std::string> common = {
      "--kubeconfig", cluster_.kubeconfig().string(), "--namespace", kNamespace, "--repo-server",
      repo_server,    "--repo-server-plaintext",      "--redis",     redis};
  auto controller = common;
  controller.insert(controller.end(), {"--metrics-port", std::to_string(free_port()),
                                       "--app-resync", "10", "--app-resync-jitter", "0"});
  auto server = common;
  server.insert(server.end(), {"--address", "127.0.0.1", "--port", std::to_string(server_port_),
                               "--metrics-address", "127.0.0.1", "--metrics-port",
                               std::to_string(metrics_port_), "--insecure"});
  start("argocd-server", std::move(server));
  start("argocd-application-controller", std::move(controller));

  programs_.await("argocd-server", [&] { return http_call({.url = url_ + "/healthz"}).ok(); });
  token_ = login();
  programs_.await("argocd-repo-server",
                  [&] { return request("GET", "/api/v1/repositories").ok(); });
  programs_.await("argocd-application-controller", [] { return true; });
}

void PeerArgoCd::start(const std::string& name, std::vector<std::string> args) {
  args.insert(args.begin(), argocd_program(release_).string());
  const fs::path& folder = programs_.folder();
  Environment env = isolated_git_environment(folder / "home");
  env.merge(Environment{
      {"ARGOCD_BINARY_NAME", name},
      {"ARGOCD_GPG_ENABLED", "false"},
      {"ARGOCD_FAKE_IN_CLUSTER", "true"},
      {"ARGOCD_TLS_DATA_PATH", (folder / "tls").string()},
      {"ARGOCD_SSH_DATA_PATH", (folder / "ssh").string()},
      // The default is one fixed path for the whole machine.
      {"ARGOCD_ASK_PASS_SOCK", (folder / "ask-pass.sock").string()},
      {"TMPDIR", (folder / "tmp").string()},
      // "In cluster" then means this one.
      {"KUBECONFIG", cluster_.kubeconfig().string()},
  });
  // git asks for passwords through `argocd` in PATH; Helm sources need `helm` there.
  const char* path = std::getenv("PATH");
  env["PATH"] = (folder / "bin").string() + ":" + (peers_folder() / "bin").string() + ":" +
                (path == nullptr ? "/usr/bin" : path);
  programs_.start(name, std::move(args), std::move(env));
}

void PeerArgoCd::create_objects() const {
  cluster_.apply(kObjects);
  cluster_.apply_crds(peer_of(release_));
}

std::string PeerArgoCd::login() {
  const auto password_there = [&] {
    const CommandResult result =
        cluster_.kubectl({"get", "secret", "argocd-initial-admin-secret", "--namespace", kNamespace,
                          "--output", "go-template={{.data.password | base64decode}}"});
    if (result.ok()) admin_password_ = result.out;
    return result.ok();
  };
  programs_.await("argocd-server", password_there);

  const auto post = [&](const std::string& path, const std::string& body,
                        const std::string& session) {
    std::vector<std::string> headers = {"Content-Type: application/json"};
    if (!session.empty()) headers.push_back("Authorization: Bearer " + session);
    const HttpReply reply = http_call(
        {.method = "POST", .url = url_ + path, .headers = std::move(headers), .body = body});
    return string_field(reply.body, "token");
  };
  std::string session;
  programs_.await("argocd-server", [&] {  // the server may not have read its own new secret yet
    session = post("/api/v1/session",
                   R"({"username":"admin","password":)" + json_quote(admin_password_) + "}", "");
    return !session.empty();
  });
  std::string token;
  programs_.await("argocd-server", [&] {
    token = post("/api/v1/account/bot/token", R"({"name":"bot","expiresIn":0})", session);
    return !token.empty();
  });
  return token;
}

HttpReply PeerArgoCd::request(const std::string& method, const std::string& path,
                              const std::string& body) const {
  std::vector<std::string> headers = {"Authorization: Bearer " + token_};
  if (!body.empty() || method != "GET") headers.emplace_back("Content-Type: application/json");
  return http_call(
      {.method = method, .url = url_ + path, .headers = std::move(headers), .body = body});
}

std::string PeerArgoCd::request_ok(const std::string& method, const std::string& path,
                                   const std::string& body) const {
  HttpReply reply = request(method, path, body);
  if (!reply.ok()) {
    throw std::runtime_error("Argo CD answered " + method + " " + path + " with " +
                             std::to_string(reply.status) + ": " + reply.body);
  }
  return std::move(reply.body);
}

void PeerArgoCd::add_repository(const std::string& repository_url, const std::string& username,
                                const std::string& password) const {
  request_ok("POST", "/api/v1/repositories",
             R"({"type":"git","repo":)" + json_quote(repository_url) + R"(,"username":)" +
                 json_quote(username) + R"(,"password":)" + json_quote(password) + "}");
}

void PeerArgoCd::add_repository(const GitServer& git, const std::string& repository) const {
  add_repository(git.url(repository), git.username(), git.password());
}

void PeerArgoCd::create_application(const std::string& json) const {
  request_ok("POST", "/api/v1/applications", json);
}

void PeerArgoCd::create_application(const std::string& name, const std::string& repository_url,
                                    const std::string& path, const std::string& namespace_name,
                                    bool automated) const {
  create_application(
      R"({"metadata":{"name":)" + json_quote(name) +
      R"(},"spec":{"project":"default","source":{"repoURL":)" + json_quote(repository_url) +
      R"(,"path":)" + json_quote(path) +
      R"(,"targetRevision":"main"},"destination":{"server":"https://kubernetes.default.svc",)" +
      R"("namespace":)" + json_quote(namespace_name) + R"(},"syncPolicy":{)" +
      (automated ? R"("automated":{"prune":true,"selfHeal":true},)" : "") +
      R"("syncOptions":["CreateNamespace=true"]}}})");
}

void PeerArgoCd::sync(const std::string& name) const {
  request_ok("POST", "/api/v1/applications/" + name + "/sync", "{}");
}

void PeerArgoCd::sync_to(const std::string& name, const std::string& revision) const {
  app_json(name, "normal");
  request_ok("POST", "/api/v1/applications/" + name + "/sync", R"({"prune":true})");
  // By the API server: a call of kubectl costs ten times as much, and one of Argo CD is counted.
  using Json = nlohmann::json;
  const Json wanted = {revision, "Synced", "Healthy", revision, "Succeeded", Json()};
  Json found;
  const auto done = [&] {
    const auto app =
        Json::parse(cluster_
                        .request("GET", "/apis/argoproj.io/v1alpha1/namespaces/" +
                                            std::string(kNamespace) + "/applications/" + name)
                        .body);
    found = Json::array();
    for (const char* field : {"/status/sync/revision", "/status/sync/status",
                              "/status/health/status", "/status/operationState/syncResult/revision",
                              "/status/operationState/phase", "/operation"}) {
      found.push_back(app.value(Json::json_pointer(field), Json()));
    }
    return found == wanted;
  };
  if (!wait_until(done, kStartLimit, "the sync of " + name, std::chrono::milliseconds(50))) {
    throw std::runtime_error("no sync of " + name + ": " + found.dump());
  }
}

bool PeerArgoCd::wait_for(const std::string& name, const std::string& sync_status,
                          const std::string& health_status,
                          std::chrono::milliseconds timeout) const {
  const std::string wanted = sync_status + " " + health_status;
  return wait_until(
      [&] { return app_field(name, "{.status.sync.status} {.status.health.status}") == wanted; },
      timeout, "Application " + name + " to be " + wanted, std::chrono::milliseconds(50));
}

std::string PeerArgoCd::app_json(const std::string& name, const std::string& refresh) const {
  return request_ok(
      "GET", "/api/v1/applications/" + name + (refresh.empty() ? "" : "?refresh=" + refresh));
}

std::string PeerArgoCd::app_field(const std::string& name, const std::string& json_path) const {
  return cluster_.kubectl_ok({"get", "applications.argoproj.io", name, "--namespace", kNamespace,
                              "--output", "jsonpath=" + json_path});
}

std::map<std::string, long> PeerArgoCd::read_counts() const {
  const HttpReply reply =
      http_call({.url = "http://127.0.0.1:" + std::to_string(metrics_port_) + "/metrics"});
  if (!reply.ok()) throw std::runtime_error("no metrics of argocd-server: " + reply.body);
  std::map<std::string, long> counts;
  std::istringstream lines(reply.body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("grpc_server_handled_total{")) continue;
    const long count = std::lround(std::strtod(line.c_str() + line.rfind(' '), nullptr));
    if (count > 0) counts[label(line, "grpc_service") + "/" + label(line, "grpc_method")] += count;
  }
  return counts;
}

}  // namespace gitops::test
