#include "peers/peer_events.hpp"

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "common/core/encoding.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kObjects = "/apis/argoproj.io/v1alpha1/namespaces/";
// The controller's default is three, for the three pods that it runs itself.
constexpr const char* kStreamConfig = "replicas: 1\n";

}  // namespace

/// Held by one object of the machine; the kernel gives it back when the process dies.
class PeerEvents::MachineLock {
 public:
  MachineLock()
      : file_(::open((fs::temp_directory_path() / "gitops-argo-events.lock").c_str(),
                     O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), "lock of Argo Events");
    const auto taken = [this] { return ::flock(file_, LOCK_EX | LOCK_NB) == 0; };
    if (!wait_until(taken, std::chrono::minutes(2), "another test to end with Argo Events")) {
      ::close(file_);
      throw std::runtime_error("Argo Events runs in another test");
    }
  }
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;
  ~MachineLock() { ::close(file_); }

 private:
  int file_;
};

std::optional<std::string> PeerEvents::missing() {
  if (!find_program(peer_program("argo-events").string()) ||
      peer_manifests("argo-events").empty()) {
    return "argo-events is not built: run ./dev peers";
  }
  if (!find_program("nats-server")) return "nats-server is not installed";
  return std::nullopt;
}

PeerEvents::PeerEvents(PeerCluster& cluster)
    : cluster_(cluster), bus_port_(free_port()), monitor_port_(free_port()) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  lock_ = std::make_shared<MachineLock>();
  start_bus();
  cluster_.apply_crds("argo-events");
}

void PeerEvents::start_bus() {
  // The clients ask for TLS, whatever the URL says, and take any certificate.
  const Certificate certificate = cluster_.authority().issue(
      {.common_name = "nats", .organization = {}, .alt_names = {"localhost", "127.0.0.1"}});
  const fs::path config = programs_.folder() / "nats.conf";
  write_file(config, "listen: 127.0.0.1:" + std::to_string(bus_port_) +
                         "\nhttp: 127.0.0.1:" + std::to_string(monitor_port_) +
                         "\ntls { cert_file: " + json_quote(certificate.cert_file.string()) +
                         ", key_file: " + json_quote(certificate.key_file.string()) +
                         " }\njetstream { store_dir: " +
                         json_quote((programs_.folder() / "jetstream").string()) +
                         ", max_memory_store: 64MB, max_file_store: 256MB }\n");
  programs_.start("nats-server", {"nats-server", "--config", config.string()});
  programs_.await("nats-server", [&] {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(monitor_port_) + "/healthz"})
        .ok();
  });
}

void PeerEvents::serve(const std::string& ns, const std::string& name, const std::string& spec,
                       int port) {
  const json bus = {{"jetstreamExotic", {{"url", bus_url()}, {"streamConfig", kStreamConfig}}}};
  for (const json& object :
       {json{{"kind", "EventBus"}, {"metadata", {{"name", "default"}}}, {"spec", bus}},
        json{{"kind", "EventSource"},
             {"metadata", {{"name", name}}},
             {"spec", json::parse(spec)}}}) {
    json whole = object;
    whole["apiVersion"] = "argoproj.io/v1alpha1";
    whole["metadata"]["namespace"] = ns;
    cluster_.apply(whole.dump());
  }
  watch(ns, name, cluster_.kubeconfig());
  programs_.await("eventsource", [&] {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(port) + "/health"}).ok();
  });
}

Environment PeerEvents::environment_of(const std::string& ns, const std::string& kind,
                                       const std::string& name) const {
  // The controller hands over the whole object as it is in the cluster.
  const HttpReply object = cluster_.request("GET", kObjects + ns + "/" + kind + "s/" + name);
  if (!object.ok()) throw std::runtime_error("no " + kind + " " + name + ": " + object.body);
  const json config = {{"jetstream", {{"url", bus_url()}, {"streamConfig", kStreamConfig}}}};
  return {{kind == "sensor" ? "SENSOR_OBJECT" : "EVENTSOURCE_OBJECT", base64_encode(object.body)},
          {"EVENTBUS_CONFIG", base64_encode(config.dump())},
          {"EVENTBUS_SUBJECT", "eventbus-" + ns},
          {"POD_NAME", name + "-" + kind}};
}

void PeerEvents::watch(const std::string& ns, const std::string& name, const fs::path& kubeconfig) {
  rest();
  auto environment = environment_of(ns, "eventsource", name);
  environment["KUBECONFIG"] = kubeconfig.string();
  programs_.start("eventsource", {peer_program("argo-events").string(), "eventsource-service"},
                  std::move(environment));
}

void PeerEvents::act(const std::string& ns, const std::string& name) {
  rest();
  const fs::path root = programs_.folder() / "sensor-root";
  fs::create_directories(root / "tmp");
  fs::copy_file(peer_program("argo-events"), root / "program", fs::copy_options::update_existing);
  fs::copy_file(cluster_.kubeconfig(), root / "kubeconfig", fs::copy_options::overwrite_existing);
  // Where the controller mounts the Secrets that a Sensor names.
  const auto secrets =
      json::parse(cluster_.request("GET", "/api/v1/namespaces/" + ns + "/secrets").body);
  for (const auto& secret : secrets.at("items")) {
    const std::string of = secret.at("metadata").at("name");
    for (const auto& [key, value] : secret.value("data", json::object()).items()) {
      write_file(root / "argo-events" / "secrets" / of / key,
                 base64_decode(value.get<std::string>()).value());
    }
  }
  auto environment = environment_of(ns, "sensor", name);
  environment["KUBECONFIG"] = "/kubeconfig";
  programs_.start("sensor", {"chroot", root.string(), "/program", "sensor-service"},
                  std::move(environment));
}

void PeerEvents::rest() {
  for (const char* name : {"eventsource", "sensor"}) {
    if (programs_.has(name)) programs_.at(name).stop();
  }
}

std::string PeerEvents::github_push(const std::string& target, int port) {
  const json repositories = {{{"owner", "shop"}, {"names", {"shop"}}}};
  const json webhook = {{"endpoint", target}, {"port", std::to_string(port)}, {"method", "POST"}};
  const json push = {{"repositories", repositories},
                     {"webhook", webhook},
                     {"events", {"push"}},
                     {"contentType", "json"},
                     {"active", true}};
  return json{{"github", {{"push", push}}}}.dump();
}

std::string PeerEvents::data_of(const std::string& payload) {
  const auto data = base64_decode(json::parse(payload).at("data_base64").get<std::string>());
  if (!data) throw std::runtime_error("no event: " + payload);
  return *data;
}

long PeerEvents::figure_of_bus(const std::string& name) const {
  const HttpReply reply =
      http_call({.url = "http://127.0.0.1:" + std::to_string(monitor_port_) + "/jsz?streams=1"});
  if (!reply.ok()) throw std::runtime_error("no figures of the bus: " + reply.body);
  return json::parse(reply.body).value(name, 0L);
}

std::string PeerEvents::logs() const {
  std::string all;
  for (const char* name : {"eventsource", "sensor"}) {
    if (programs_.has(name)) all += std::string("--- ") + name + "\n" + programs_.log(name);
  }
  return all;
}

long PeerEvents::stored_messages() const {
  return figure_of_bus("messages");
}

long PeerEvents::consumers() const {
  return figure_of_bus("consumers");
}

}  // namespace gitops::test
