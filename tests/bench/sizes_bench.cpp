// What an installation takes when nothing happens: resident memory of each program, of a runtime and of a control plane,
// and the images. A runtime is registered with the real control plane and joined to it by the tunnel; the Kubernetes API
// and Argo CD are doubles in this process. The images are those of `./dev image`, which `./dev bench sizes` makes first.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_row.hpp"
#include "bench/proc.hpp"
#include "common/daemon/loop_thread.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr double kMaxRuntime = 60;       // MB
constexpr double kMaxControlPlane = 40;  // MB
constexpr double kMaxImage = 20;         // MB
constexpr double kMaxImageOfControlPlane = 30;
constexpr double kRoom = 0.9;  // of the limit of an image
// A daemon gives memory back when it has been quiet for two periods of 2 s.
constexpr auto kQuiet = std::chrono::seconds(10);
constexpr auto kTimeLimit = std::chrono::seconds(60);

std::string on_localhost(int port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

// The Kubernetes API without objects, and an Argo CD that says who it is.
class Doubles {
 public:
  Doubles()
      : cluster_(loop_.executor()),
        argocd_(loop_.executor(), {}, [](http::Exchange& exchange) -> Task<> {
          std::ignore = co_await exchange.reply({.headers = {{"Content-Type", "application/json"}},
                                                 .body = R"({"Version":"v3.2.11"})"});
        }) {
    on_loop([this]() -> Task<> {
      if (!cluster_.start() || !argocd_.listen())
        throw std::runtime_error("no port for the doubles");
      co_return;
    });
  }
  ~Doubles() {
    on_loop([this]() -> Task<> {
      co_await argocd_.stop(deadline_after(std::chrono::seconds(1)));
      co_await cluster_.stop();
    });
  }
  Doubles(const Doubles&) = delete;
  Doubles& operator=(const Doubles&) = delete;

  [[nodiscard]] std::string kubeconfig() const { return cluster_.kubeconfig(); }
  [[nodiscard]] std::string argocd_url() const { return on_localhost(argocd_.port()); }

 private:
  template <class Work>
  void on_loop(Work work) {
    asio::co_spawn(loop_.executor(), std::move(work), asio::use_future).get();
  }

  LoopThread loop_;
  FakeKubeApi cluster_;
  http::Server argocd_;
};

class Installation {
 public:
  // all_in_one: the programs are links to gitops-runtime, as in the image of the chart.
  explicit Installation(bool all_in_one) {
    for (const auto* name : {"event-reporter", "request-router", "tunnel-client", "tunnel-server",
                             "app-proxy", "control-plane"}) {
      fs::create_symlink(fs::path(GITOPS_BIN_DIR) / (all_in_one ? "gitops-runtime" : name),
                         folder_ / name);
    }
    write_file(folder_ / "kubeconfig", doubles_.kubeconfig());
    start_control_plane();
    start_runtime();
    (void)http_call({.url = plane_url() + "/"});  // somebody has seen the page
    std::this_thread::sleep_for(kQuiet);
  }

  // Resident MB of a daemon.
  [[nodiscard]] double memory(const std::string& name) const {
    return bench::memory_of(daemons_.at(name).pid(), "VmRSS:");
  }

 private:
  [[nodiscard]] std::string plane_url() const { return on_localhost(plane_port_); }

  // Returns when the daemon is ready.
  void start(const std::string& name, const std::string& program, Environment environment) {
    const auto admin = free_port();
    environment.merge(Environment{{"ADMIN_PORT", std::to_string(admin)},
                                  {"LISTEN_ADDRESS", "127.0.0.1"},
                                  {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                                  {"LISTEN_PORT", "0"},
                                  {"KUBECONFIG", (folder_ / "kubeconfig").string()},
                                  {"HTTP_PROXY", std::nullopt},
                                  {"http_proxy", std::nullopt},
                                  {"HTTPS_PROXY", std::nullopt},
                                  {"https_proxy", std::nullopt}});
    const auto log = folder_ / (name + ".log");
    auto& process = daemons_
                        .insert_or_assign(name, Process({.argv = {(folder_ / program).string()},
                                                         .env = std::move(environment),
                                                         .working_dir = folder_.path(),
                                                         .log_file = log}))
                        .first->second;
    require_until(
        [&] {
          if (!process.running()) throw std::runtime_error(name + " ended:\n" + read_file(log));
          return http_call({.url = on_localhost(admin) + "/readyz"}).ok();
        },
        kTimeLimit, name, std::chrono::milliseconds(100));
  }

  // Twice: the first start makes the account, in which the key is made while the daemon is off.
  void start_control_plane() {
    const auto database = (folder_ / "control-plane.db").string();
    const Environment environment{{"DATABASE_PATH", database},
                                  {"PORT", std::to_string(plane_port_)}};
    start("control-plane", "control-plane", environment);
    daemons_.at("control-plane").stop();
    const auto command = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), folder_ / "control-plane");
      arguments.push_back("--database.path=" + database);
      return run_or_throw(arguments);
    };
    command({"user", "add", "--name=bench", "--account=default", "--admin"});
    const auto key =
        command({"key", "create", "--user=bench", "--name=bench", "--account=default"});
    start("control-plane", "control-plane", environment);
    const auto reply = http_call(
        {.method = "POST",
         .url = plane_url() + "/2.0/api/graphql",
         .headers = {"Authorization: " + key, "Content-Type: application/json"},
         .body =
             R"({"query":"mutation($a: RuntimeInstallationArgs!){createRuntime(installationArgs: $a){newAccessToken}}",)"
             R"("variables":{"a":{"runtimeName":"idle","runtimeNamespace":"argocd","cluster":)"
             R"("https://kubernetes.default.svc","installationType":"HELM","runtimeVersion":"0.1.0",)"
             R"("componentNames":[]}}})"});
    token_ = Json::parse(reply.body).at("/data/createRuntime/newAccessToken"_json_pointer);
  }

  void start_runtime() {
    const Environment reporter{{"POD_NAMESPACE", "argocd"},
                               {"ARGOCD_SERVER", doubles_.argocd_url()},
                               {"ARGOCD_TOKEN", "a-token"},
                               {"CODEFRESH_URL", plane_url()},
                               {"CODEFRESH_TOKEN", token_}};
    start("reporter of Applications", "event-reporter", reporter);
    auto resources = reporter;
    resources["REPORTER_MODE"] = "resource";
    start("reporter of resources", "event-reporter", resources);
    start("app-proxy", "app-proxy",
          {{"CF_HOST", plane_url()},
           {"RUNTIME_TOKEN", token_},
           {"RUNTIME_NAME", "idle"},
           {"NAMESPACE", "argocd"},
           {"ARGO_CD_URL", doubles_.argocd_url()},
           {"ARGO_CD_TOKEN", "a-token"},
           {"PORT", std::to_string(proxy_port_)},
           {"REPOS_DIR", (folder_ / "clones").string()}});
    start("request-router", "request-router",
          {{"POD_NAMESPACE", "argocd"},
           {"APP_PROXY_URL", on_localhost(proxy_port_)},
           {"LISTEN_PORT", std::to_string(router_port_)}});
    const auto certificate =
        authority_.issue({.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}});
    start("tunnel-server", "tunnel-server",
          {{"SUBDOMAIN_HOST", "example.test"},
           {"TUNNEL_SERVER_TOKEN", "s3cret"},
           {"TUNNEL_LISTEN_ADDRESS", "127.0.0.1"},
           {"TUNNEL_PORT", std::to_string(tunnel_port_)},
           {"TUNNEL_TLS_CERTIFICATE_FILE", certificate.cert_file.string()},
           {"TUNNEL_TLS_KEY_FILE", certificate.key_file.string()}});
    start("tunnel-client", "tunnel-client",
          {{"TUNNEL_SERVER_HOST", "localhost"},
           {"TUNNEL_SERVER_PORT", std::to_string(tunnel_port_)},
           {"TUNNEL_SERVER_PROTOCOL", "wss"},
           {"TUNNEL_SERVER_TOKEN", "s3cret"},
           {"TUNNEL_SERVER_CA_FILE", authority_.ca_file().string()},
           {"TUNNEL_SUBDOMAIN_PREFIX", "idle"},
           {"TUNNEL_FORWARD_TO_HOST", "127.0.0.1"},
           {"TUNNEL_FORWARD_TO_PORT", std::to_string(router_port_)}});
  }

  TempDir folder_;
  CertificateAuthority authority_;
  Doubles doubles_;
  const int plane_port_ = free_port();
  const int proxy_port_ = free_port();
  const int router_port_ = free_port();
  const int tunnel_port_ = free_port();
  std::string token_;
  std::map<std::string, Process> daemons_;
};

const std::vector<std::string> kRuntime{"reporter of Applications", "reporter of resources",
                                        "request-router", "app-proxy", "tunnel-client"};

void print_memory(const std::string& form, bool all_in_one) {
  const Installation installation(all_in_one);
  double together = 0;
  for (const auto& name : kRuntime) {
    const auto memory = installation.memory(name);
    together += memory;
    bench::print_measured(form + name, "MB", memory, "");
  }
  bench::print_measured(form + "tunnel-server", "MB", installation.memory("tunnel-server"), "");
  bench::print_limit(form + "a runtime", "MB", together, kMaxRuntime,
                     "the sum of the first five; pages that they share count for each");
  bench::print_limit(form + "a control plane", "MB", installation.memory("control-plane"),
                     kMaxControlPlane, "with its page, SQLite and one runtime");
}

// Bytes of the layers of each image, by its name.
std::map<std::string, double> image_sizes(const fs::path& layout) {
  const auto blob = [&layout](const Json& descriptor) {
    return layout / "blobs/sha256" / descriptor.at("digest").get<std::string>().substr(7);
  };
  std::map<std::string, double> sizes;
  for (const auto& entry : Json::parse(read_file(layout / "index.json")).at("manifests")) {
    auto& size = sizes[entry.at("annotations").at("org.opencontainers.image.ref.name")];
    for (const auto& layer : Json::parse(read_file(blob(entry))).at("layers")) {
      size += std::stod(run_or_throw({"sh", "-c", "zstd -dqc \"$0\" | wc -c", blob(layer)}));
    }
  }
  return sizes;
}

void print_images() {
  const auto layout = fs::path(GITOPS_BIN_DIR).parent_path().parent_path() / "images/layout";
  if (!fs::exists(layout)) throw std::runtime_error("there are no images; run ./dev image");
  for (const auto& [name, bytes] : image_sizes(layout)) {
    const auto limit = name == "control-plane" ? kMaxImageOfControlPlane : kMaxImage;
    bench::print_limit("image " + name, "MB", bytes / 1e6, limit * kRoom, "not compressed");
  }
}

}  // namespace
}  // namespace gitops::test

int main() {
  try {
    gitops::test::print_memory("", true);
    gitops::test::print_memory("one image each: ", false);
    gitops::test::print_images();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sizes: %s\n", error.what());
    return 1;
  }
  return 0;
}
