#include "peers/peer_cluster.hpp"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::string local_url(const std::string& scheme, int port) {
  return scheme + "://127.0.0.1:" + std::to_string(port);
}

/// RFC 3339 with nanoseconds, as the CRI log format has it.
std::string log_timestamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string nanoseconds = std::to_string(now.tv_nsec);
  nanoseconds.insert(0, 9 - nanoseconds.size(), '0');
  return std::string(text, length) + "." + nanoseconds + "Z";
}

/// kwok ends only pods of Jobs by itself: the same stage for pods of Workflows, and one log file
/// for all pods.
std::string extra_kwok_stages(const fs::path& stages, const fs::path& log_file) {
  std::string workflow = read_file(stages / "pod-complete.yaml");
  for (const auto& [from, to] : {std::pair("name: pod-complete", "name: pod-complete-workflow"),
                                 std::pair("- 'Job'", "- 'Workflow'")}) {
    const std::size_t at = workflow.find(from);
    if (at == std::string::npos) throw std::runtime_error("kwok's pod-complete.yaml has changed");
    workflow.replace(at, std::string_view(from).size(), to);
  }
  return workflow +
         "\n---\n"
         "apiVersion: kwok.x-k8s.io/v1alpha1\n"
         "kind: ClusterLogs\n"
         "metadata: {name: all-pods}\n"
         "spec: {logs: [{logsFile: " +
         json_quote(log_file.string()) + ", follow: true}]}\n";
}

/// The value of a string field of etcd's JSON answers.
std::string string_field(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t start = json.find(key);
  if (start == std::string::npos) throw std::runtime_error("no " + name + " in " + json);
  return json.substr(start + key.size(), json.find('"', start + key.size()) - start - key.size());
}

}  // namespace

std::optional<std::string> PeerCluster::missing() {
  for (const char* name :
       {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}) {
    if (!find_program(peer_program(name).string())) {
      return std::string(name) + " is not built: run ./dev peers";
    }
  }
  if (!fs::exists(peers_folder() / "share" / "kwok" / "pod-complete.yaml")) {
    return "kwok's stages are not there: run ./dev peers";
  }
  for (const char* name : {"openssl", "curl"}) {
    if (!find_program(name)) return std::string(name) + " is not installed";
  }
  return std::nullopt;
}

PeerCluster::PeerCluster(PeerClusterOptions options)
    : options_(std::move(options)),
      authority_("Test Cluster CA"),
      admin_token_(random_hex(32)),
      etcd_port_(free_port()),
      server_port_(free_port()),
      etcd_url_(local_url("http", etcd_port_)),
      etcd_peer_url_(local_url("http", free_port())),
      server_url_(local_url("https", server_port_)) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  start_etcd();
  server_certificate_ = authority_.issue(
      {.common_name = "kube-apiserver",
       .organization = {},
       .alt_names = {"localhost", "kubernetes.default.svc", "127.0.0.1", "10.0.0.1"}});
  make_rsa_key(folder() / "service-accounts.key");
  write_file(folder() / "tokens.csv", admin_token_ + ",admin,1,\"system:masters\"\n");
  kubeconfig_ = write_kubeconfig("admin", admin_token_);
  start_api_server();
  start_controllers();
  create_node();
  const auto ready = [&] {
    return kubectl(
               {"wait", "--for=condition=Ready", "node/" + std::string(kNodeName), "--timeout=5s"})
        .ok();
  };
  // kwok 0.8 now and then dies when it sees its first node: several of its workers fill one table.
  wait_until([&] { return !process("kwok").running() || ready(); }, seconds(60), "kwok");
  if (!process("kwok").running()) start_kwok();
  programs_.await("kwok", ready, "the node to be Ready");
}

void PeerCluster::start(const std::string& name, std::vector<std::string> args) {
  args.insert(args.begin(), peer_program(name).string());
  programs_.start(name, std::move(args));
}

void PeerCluster::start_etcd() {
  start("etcd", {"--data-dir", (folder() / "etcd").string(), "--listen-client-urls", etcd_url_,
                 "--advertise-client-urls", etcd_url_, "--listen-peer-urls", etcd_peer_url_,
                 "--initial-advertise-peer-urls", etcd_peer_url_, "--initial-cluster",
                 "default=" + etcd_peer_url_, "--unsafe-no-fsync"});
}

void PeerCluster::start_api_server(std::optional<std::vector<std::string>> flags) {
  if (flags) options_.api_server_flags = *std::move(flags);
  const std::string key = (folder() / "service-accounts.key").string();
  std::vector<std::string> args = {"--etcd-servers",
                                   etcd_url_,
                                   "--secure-port",
                                   std::to_string(server_port_),
                                   "--bind-address",
                                   "127.0.0.1",
                                   "--advertise-address",
                                   "127.0.0.1",
                                   "--tls-cert-file",
                                   server_certificate_.cert_file.string(),
                                   "--tls-private-key-file",
                                   server_certificate_.key_file.string(),
                                   "--client-ca-file",
                                   ca_file().string(),
                                   "--service-account-key-file",
                                   key,
                                   "--service-account-signing-key-file",
                                   key,
                                   "--service-account-issuer",
                                   "https://kubernetes.default.svc",
                                   "--service-cluster-ip-range",
                                   "10.0.0.0/24",
                                   "--token-auth-file",
                                   (folder() / "tokens.csv").string(),
                                   "--authorization-mode",
                                   "RBAC",
                                   "--endpoint-reconciler-type",
                                   "none",
                                   "--request-timeout",
                                   std::to_string(options_.request_timeout.count()) + "s",
                                   "--cert-dir",
                                   (folder() / "api-server").string()};
  if (!options_.uncached_resources.empty()) {
    std::string sizes;
    for (const std::string& resource : options_.uncached_resources) {
      sizes += (sizes.empty() ? "" : ",") + resource + "#0";
    }
    args.insert(args.end(), {"--watch-cache-sizes", sizes});
  }
  args.insert(args.end(), options_.api_server_flags.begin(), options_.api_server_flags.end());
  start("kube-apiserver", std::move(args));
  programs_.await(
      "kube-apiserver", [&] { return request("GET", "/readyz").ok(); },
      "the API server to be ready");
}

void PeerCluster::start_controllers() {
  const std::string config = kubeconfig_.string();
  start("kube-controller-manager",
        {"--kubeconfig", config, "--service-account-private-key-file",
         (folder() / "service-accounts.key").string(), "--root-ca-file", ca_file().string(),
         "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port",
         std::to_string(free_port()), "--cert-dir", (folder() / "controller-manager").string()});
  start("kube-scheduler", {"--kubeconfig", config, "--leader-elect=false", "--bind-address",
                           "127.0.0.1", "--secure-port", std::to_string(free_port()), "--cert-dir",
                           (folder() / "scheduler").string()});
  append_pod_log("hello from a simulated pod");
  start_kwok();
}

void PeerCluster::start_kwok() {
  const fs::path stages = peers_folder() / "share" / "kwok";
  const std::string port = std::to_string(free_port());
  write_file(folder() / "kwok-extra.yaml", extra_kwok_stages(stages, folder() / "pods.log"));
  std::vector<std::string> args = {"--kubeconfig",
                                   kubeconfig_.string(),
                                   "--manage-all-nodes",
                                   "--cidr",
                                   "10.244.0.0/16",
                                   "--node-ip",
                                   "127.0.0.1",
                                   "--server-address",
                                   "127.0.0.1:" + port,
                                   "--node-port",
                                   port,
                                   "--tls-cert-file",
                                   server_certificate_.cert_file.string(),
                                   "--tls-private-key-file",
                                   server_certificate_.key_file.string(),
                                   "--config",
                                   (folder() / "kwok-extra.yaml").string()};
  for (const char* stage :
       {"node-initialize", "node-heartbeat", "pod-ready", "pod-complete", "pod-delete"}) {
    args.insert(args.end(), {"--config", (stages / stage).string() + ".yaml"});
  }
  start("kwok", std::move(args));
}

void PeerCluster::create_node() const {
  const std::string size = R"({"cpu":"32","memory":"256Gi","pods":"110"})";
  const std::string node = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":)" +
                           json_quote(kNodeName) +
                           R"(,"labels":{"type":"kwok"}},"status":{"capacity":)" + size +
                           R"(,"allocatable":)" + size + "}}";
  const HttpReply reply = request("POST", "/api/v1/nodes", node);
  if (!reply.ok()) throw std::runtime_error("the node was refused: " + reply.body);
}

CommandResult PeerCluster::kubectl(const std::vector<std::string>& args,
                                   std::string_view stdin_text,
                                   std::chrono::milliseconds timeout) const {
  std::vector<std::string> argv = {peer_program("kubectl").string(), "--kubeconfig",
                                   kubeconfig_.string(), "--cache-dir",
                                   (folder() / "kubectl-cache").string()};
  argv.insert(argv.end(), args.begin(), args.end());
  const Environment env = {{"KUBECONFIG", std::nullopt}, {"HOME", folder().string()}};
  return run_command(argv, env, stdin_text, timeout);
}

std::string PeerCluster::kubectl_ok(const std::vector<std::string>& args,
                                    std::string_view stdin_text,
                                    std::chrono::milliseconds timeout) const {
  CommandResult result = kubectl(args, stdin_text, timeout);
  if (!result.ok()) {
    std::string command = "kubectl";
    for (const std::string& word : args) command += " " + word;
    throw std::runtime_error(command + " failed:\n" + result.out + result.err);
  }
  while (result.out.ends_with('\n')) result.out.pop_back();
  return std::move(result.out);
}

void PeerCluster::apply(std::string_view documents) const {
  kubectl_ok({"apply", "--server-side", "--force-conflicts", "--filename", "-"}, documents);
}

void PeerCluster::apply_crds(const std::string& peer) const {
  std::vector<std::string> files;
  for (const fs::path& file : peer_manifests(peer)) {
    files.insert(files.end(), {"--filename", file.string()});
  }
  std::vector<std::string> args = {"apply", "--server-side", "--force-conflicts"};
  args.insert(args.end(), files.begin(), files.end());
  kubectl_ok(args);
  args = {"get", "--output",
          "jsonpath={range .items[*]}/apis/{.spec.group}/{.spec.versions[0].name}/"
          "{.spec.names.plural}{\"\\n\"}{end}"};
  args.insert(args.end(), files.begin(), files.end());
  std::istringstream paths(kubectl_ok(args));
  for (std::string path; std::getline(paths, path);) {
    // Its condition Established comes a moment before.
    require_until([&] { return request("GET", path + "?limit=1").ok(); }, seconds(30),
                  path + " to be served");
  }
}

HttpReply PeerCluster::request(const std::string& method, const std::string& path,
                               const std::string& body, const std::string& content_type) const {
  std::vector<std::string> headers = {"Authorization: Bearer " + admin_token_};
  if (!body.empty()) headers.push_back("Content-Type: " + content_type);
  return http_call({.method = method,
                    .url = server_url_ + path,
                    .headers = std::move(headers),
                    .body = body,
                    .ca_file = ca_file()});
}

void PeerCluster::create_namespace(const std::string& name,
                                   const std::map<std::string, std::string>& labels) const {
  std::string pairs;
  for (const auto& [key, value] : labels) {
    pairs += (pairs.empty() ? "" : ",") + json_quote(key) + ":" + json_quote(value);
  }
  const HttpReply reply = request("POST", "/api/v1/namespaces",
                                  R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":)" +
                                      json_quote(name) + R"(,"labels":{)" + pairs + "}}}");
  if (!reply.ok()) throw std::runtime_error("namespace " + name + " was refused: " + reply.body);
  // Controllers make these, and pods need both.
  for (const std::string made : {"serviceaccounts/default", "configmaps/kube-root-ca.crt"}) {
    const std::string path = "/api/v1/namespaces/" + name + "/" + made;
    require_until([&] { return request("GET", path).ok(); }, seconds(30), made + " of " + name);
  }
}

std::string PeerCluster::service_account_token(const std::string& namespace_name,
                                               const std::string& account) const {
  return kubectl_ok({"create", "token", account, "--namespace", namespace_name, "--duration=1h"});
}

fs::path PeerCluster::write_kubeconfig(const std::string& name, const std::string& token) const {
  const fs::path file = folder() / ("kubeconfig-" + name);
  write_file(file,
             "apiVersion: v1\n"
             "kind: Config\n"
             "current-context: test\n"
             "clusters:\n"
             "- name: test\n"
             "  cluster: {server: " +
                 json_quote(server_url_) +
                 ", certificate-authority-data: " + base64_encode(read_file(ca_file())) +
                 "}\n"
                 "users:\n"
                 "- name: test\n"
                 "  user: {token: " +
                 json_quote(token) +
                 "}\n"
                 "contexts:\n"
                 "- name: test\n"
                 "  context: {cluster: test, user: test}\n");
  return file;
}

void PeerCluster::stop_api_server(Stop how) {
  Process& server = programs_.at("kube-apiserver");
  if (how == Stop::kill) {
    server.kill();
  } else {
    server.stop(options_.request_timeout + seconds(20));
  }
}

std::string PeerCluster::compact_etcd() {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string name = "compaction-" + random_hex(8);
  const HttpReply made =
      request("POST", maps,
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + "\"}}");
  const HttpReply removed = request("DELETE", maps + "/" + name);
  if (!made.ok() || !removed.ok()) throw std::runtime_error("no write before the compaction");

  const auto etcd = [&](const std::string& path, const std::string& body) {
    const HttpReply reply = http_call({.method = "POST", .url = etcd_url_ + path, .body = body});
    if (!reply.ok()) throw std::runtime_error("etcd " + path + ": " + reply.body);
    return reply.body;
  };
  const std::string revision = string_field(etcd("/v3/kv/range", R"({"key":"AA=="})"), "revision");
  etcd("/v3/kv/compaction", R"({"revision":")" + revision + R"(","physical":true})");
  return revision;
}

void PeerCluster::back_up_etcd() {
  stop_api_server(Stop::kill);
  programs_.at("etcd").stop(seconds(20));
  fs::remove_all(folder() / "etcd-backup");
  fs::copy(folder() / "etcd", folder() / "etcd-backup", fs::copy_options::recursive);
  start_etcd();
  start_api_server();
}

void PeerCluster::restore_etcd() {
  // The controllers, too: their watches would wait for the revisions that are given out again.
  for (const char* name :
       {"kube-controller-manager", "kube-scheduler", "kwok", "kube-apiserver", "etcd"}) {
    programs_.at(name).kill();
  }
  fs::remove_all(folder() / "etcd");
  fs::copy(folder() / "etcd-backup", folder() / "etcd", fs::copy_options::recursive);
  start_etcd();
  start_api_server();
  start_controllers();
}

void PeerCluster::append_pod_log(std::string_view line) const {
  std::ofstream stream(folder() / "pods.log", std::ios::app);
  stream << log_timestamp() << " stdout F " << line << '\n';
}

}  // namespace gitops::test
