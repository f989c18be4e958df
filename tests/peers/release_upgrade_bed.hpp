#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "peers/chart_upgrade_bed.hpp"
#include "peers/image_container.hpp"
#include "support/tcp_relay.hpp"
#include "test_http/raw_http.hpp"

// A runtime whose pods run the programs of a release's image, under a stream of changes, of users' requests and of webhooks.
namespace gitops::test {

// A release as `./dev release` makes it, of the programs of this build. `version` takes the place of theirs.
class ReleaseFolder {
 public:
  explicit ReleaseFolder(const std::string& version) : version_(version) {
    const std::filesystem::path built = GITOPS_BIN_DIR;
    std::filesystem::create_directories(folder_ / "bin");
    for (const auto* name : {"event-reporter", "request-router", "tunnel-client", "tunnel-server",
                             "app-proxy", "control-plane", "gitopsctl", "gitops-demo"}) {
      std::filesystem::create_symlink(built / name, folder_ / "bin" / name);
    }
    set_version(built / "gitops-runtime", folder_ / "bin/gitops-runtime");
    run_or_throw({"openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                  "-out", folder_ / "key"});
    run_or_throw({"openssl", "pkey", "-in", folder_ / "key", "-pubout", "-out", folder_ / "open"});
    run({"make", "--bin", folder_ / "bin", "--out", out(), "--key", folder_ / "key",
         "--without-argo", "--helm", Helm::program("helm"), "--version", version, "--level", "1",
         "--unhardened", "gitops-runtime"});
    run({"verify", out(), "--key", folder_ / "open"});
  }

  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] std::filesystem::path chart() const {
    return out() / ("charts/gitops-runtime-" + version_ + ".tgz");
  }
  [[nodiscard]] std::filesystem::path images() const { return out() / "images"; }

  static std::string own_version() { return run_or_throw({"python3", script(), "version"}); }

 private:
  // Copies the program with the version in place of its own, which has the same length. The byte that ends a text belongs
  // to what is replaced, so that it is a whole literal.
  void set_version(const std::filesystem::path& from, const std::filesystem::path& to) const {
    const auto own = own_version();
    if (version_.size() != own.size()) throw std::runtime_error("a version of another length");
    std::filesystem::copy_file(from, to);
    run_or_throw({"env", "LC_ALL=C", "sed", "-i", "s/" + own + "\\x00/" + version_ + "\\x00/g", to},
                 {}, {}, std::chrono::seconds(60));
  }
  static std::filesystem::path script() {
    return std::filesystem::path(GITOPS_SOURCE_DIR) / "image/release.py";
  }
  static void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"python3", script()});
    run_or_throw(arguments, {}, {}, std::chrono::seconds(180));
  }
  [[nodiscard]] std::filesystem::path out() const { return folder_ / "release"; }

  TempDir folder_;
  std::string version_;
};

// Sends one request after the other on a thread of its own, until it is destroyed.
class Requester {
 public:
  // `send` gets the number of the request and returns what is wrong with the response; "": nothing.
  explicit Requester(std::function<std::string(int)> send)
      : thread_([this, send = std::move(send)](const std::stop_token& stopping) {
          for (int number = 0; !stopping.stop_requested(); ++number) {
            auto wrong = send(number);
            const std::lock_guard lock(mutex_);
            if (!wrong.empty()) failures_.push_back(std::move(wrong));
            sent_ = number + 1;
          }
        }) {}

  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] int sent() const { return sent_; }
  [[nodiscard]] std::vector<std::string> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> failures_;
  std::atomic<int> sent_ = 0;
  std::jthread thread_;
};

class ReleaseUpgradeBed {
 public:
  static constexpr const char* kRouter = "internal-router";
  static constexpr const char* kProxy = "cap-app-proxy";
  static constexpr const char* kUser = "upgrade-user-token";

  ReleaseUpgradeBed(PeerBed& bed, std::vector<const ReleaseFolder*> releases,
                    const Executor& executor)
      : base(bed, executor),
        bed_(bed),
        releases_(std::move(releases)),
        router_(executor, "127.0.0.1", 0),
        proxy_(executor, "127.0.0.1", 0) {
    auto& accounts = base.platform.accounts();
    accounts.add({.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = "GITHUB"});
    accounts.add(kPlatformToken, FakeAccounts::Runtime{.name = "upgrade", .account_id = "acc-1"});
    accounts.add(kUser, FakeAccounts::User{.id = "u-ann", .name = "Ann", .account_id = "acc-1"});
  }

  // -- helm --

  void install(const ReleaseFolder& release) {
    write_file(folder_ / "values.json", values().dump());
    helm({"upgrade", "--install", "rt", release.chart(), "-f", folder_ / "values.json"});
  }
  void make_argocd_secret() const {
    bed_.cluster().kubectl_ok({"-n", kNamespace, "create", "secret", "generic", "argocd-token",
                               "--from-literal=token=" + bed_.argocd().token()});
  }
  void rollback() { helm({"rollback", "rt", "1"}); }

  // -- the node's part --

  // Puts the newest pod of a workload in the place of the one that runs: as a Deployment does, the new one first; of a
  // StatefulSet the old one first.
  Task<> replace(std::string name) {
    const bool is_set = name == kApps || name == kResources;
    if (is_set) {
      co_await stop_pod(name);
      co_await base.aside([&] { base.hold_pods_below(name, 0); });
    }
    co_await base.aside([&] {
      rendered_ = is_set ? std::make_unique<RenderedWorkload>(bed_.cluster(), kNamespace, name, 0)
                         : std::make_unique<RenderedWorkload>(bed_.cluster(), kNamespace,
                                                              RenderedWorkload::Deployment{name});
    });
    // A process ends with the thread that has started it, so this is the loop's.
    const std::string image = rendered_->pod().at("/spec/containers/0/image"_json_pointer);
    auto pod = std::make_unique<ImageContainer>(release_of(image).images(), std::move(rendered_),
                                                Environment{{"PORT", "0"}});
    co_await base.aside([&] { pod->await_ready(kPodLimit); });
    // What a Service does when its endpoints change.
    if (name == kRouter) router_.forward_to(port_of(*pod, R"("message":"routing","port":)"));
    if (name == kProxy) proxy_.forward_to(port_of(*pod, R"("message":"serving","port":)"));
    co_await stop_pod(name);
    pods_[name] = std::move(pod);
    if (!is_set) co_await base.aside([&] { set_min_ready_seconds(name, 0); });
  }
  Task<> replace_all() {
    for (const std::string name : {kProxy, kApps, kRouter, kResources}) co_await replace(name);
  }
  // Keeps the controllers from removing pods whose programs still run: the pods of this cluster are ready at once, and a
  // token ends with its pod.
  void hold_pods() const {
    for (const auto* set : {kApps, kResources}) base.hold_pods_below(set, 1);
    for (const auto* deployment : {kRouter, kProxy}) set_min_ready_seconds(deployment, 590);
  }
  // Every pod runs the program of this version.
  void expect_version(const std::string& version) const {
    EXPECT_EQ(pods_.size(), 4U);
    for (const auto& [name, pod] : pods_) {
      EXPECT_THAT(pod->log(), testing::HasSubstr(R"("version":")" + version + '"')) << name;
    }
  }

  // -- users and Git hosts --

  void start_requests() {
    const auto port = router_.port();
    users.emplace([port](int) -> std::string {
      const auto reply = http_call(
          {.method = "POST",
           .url = "http://127.0.0.1:" + std::to_string(port) + "/app-proxy/api/graphql",
           .headers = {"Content-Type: application/json", std::string("Authorization: ") + kUser},
           .body = R"({"query":"{gitIntegrations{name provider}}"})"});
      const bool right = reply.status == 200 && reply.body.contains(R"("name":"default")");
      return right ? "" : std::to_string(reply.status) + " " + reply.body;
    });
    hosts.emplace([port](int number) -> std::string {
      const auto reply = http_call({.method = "POST",
                                    .url = "http://127.0.0.1:" + std::to_string(port) +
                                           "/webhooks/" + kNamespace + "/github/push",
                                    .headers = {"Content-Type: application/json"},
                                    .body = R"({"push":)" + std::to_string(number) + "}"});
      return reply.status == 200 ? "" : std::to_string(reply.status) + " " + reply.body;
    });
  }
  // Waits until so many more requests of each kind have ended.
  Task<> wait_for_requests(int more) {
    const auto wanted = std::min(users->sent(), hosts->sent()) + more;
    const auto deadline = deadline_after(kPodLimit);
    while (std::min(users->sent(), hosts->sent()) < wanted && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
    }
  }
  Task<> stop_requests() {
    co_await base.aside([this] {
      if (users) users->stop();
      if (hosts) hosts->stop();
    });
  }
  // Webhooks that were acknowledged and did not reach the event source.
  [[nodiscard]] std::size_t lost_webhooks() const {
    std::set<std::string> arrived;
    for (const auto& request : events_.requests()) arrived.insert(request.body);
    return static_cast<std::size_t>(hosts->sent()) - hosts->failures().size() - arrived.size();
  }

  [[nodiscard]] std::string logs() const {
    std::string out = ended_;
    for (const auto& [name, pod] : pods_) out += "--- " + name + "\n" + pod->log();
    return out;
  }
  Task<> stop() {
    co_await stop_requests();
    co_await base.stop_stream();
    for (const std::string name : {kRouter, kProxy, kApps, kResources}) co_await stop_pod(name);
    co_await router_.stop();
    co_await proxy_.stop();
    co_await base.stop();
  }

  static constexpr const char* kApps = "runtime-event-reporter";
  static constexpr const char* kResources = "cluster-event-reporter";
  ChartUpgradeBed base;  // the stream of changes, and what the control plane knows of it
  std::optional<Requester> users;
  std::optional<Requester> hosts;

 private:
  void set_min_ready_seconds(const std::string& deployment, int seconds) const {
    bed_.cluster().kubectl_ok({"-n", kNamespace, "patch", "deployment", deployment, "--type=merge",
                               "-p",
                               nlohmann::json{{"spec", {{"minReadySeconds", seconds}}}}.dump()});
  }
  static constexpr auto kPodLimit = std::chrono::seconds(90);

  static std::uint16_t port_of(const ImageContainer& pod, const std::string& before) {
    const auto port = pod.logged(before);
    if (port == 0) throw std::runtime_error("no port in the log:\n" + pod.log());
    return static_cast<std::uint16_t>(port);
  }
  [[nodiscard]] const ReleaseFolder& release_of(const std::string& image) const {
    for (const auto* release : releases_) {
      if (image == "gitops-runtime:" + release->version()) return *release;
    }
    throw std::runtime_error("no release has the image " + image);
  }
  Task<> stop_pod(std::string name) {
    const auto found = pods_.find(name);
    if (found == pods_.end()) co_return;
    auto& pod = *found->second;
    EXPECT_EQ(co_await base.aside([&pod] { return pod.process().stop(kPodLimit); }), 0) << name;
    ended_ += "--- " + name + ", ended\n" + pod.log();
    pods_.erase(found);
  }
  void helm(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-n", kNamespace});
    const auto done = helm_.run(std::move(arguments), bed_.cluster().kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
  }
  // What differs from a customer's values: the pods' network and the source of the volumes.
  [[nodiscard]] nlohmann::json values() const {
    const auto& argocd = bed_.argocd().url();
    return {
        {"global",
         {{"codefresh", {{"url", base.platform.url().to_string()}, {"accountId", "acc-1"}}},
          {"runtime", {{"name", "upgrade"}}},
          {"integrations",
           {{"argo-cd",
             {{"server",
               {{"svc", "127.0.0.1"},
                {"port", std::stoi(argocd.substr(argocd.rfind(':') + 1))}}}}}}},
          {"event-reporters",
           {{"terminationGracePeriodSeconds", 15},
            {"persistence", {{"enabled", true}, {"storageClassName", "ledgers"}}}}}}},
        {"internal-router",
         {{"routing",
           {{"app-proxy", {{"internalUrl", "http://127.0.0.1:" + std::to_string(proxy_.port())}}}}},
          {"webhooks", {{"signatures", nlohmann::json::array()}}},
          {"config",
           {{"webhook-port", events_.port()}, {"upstream-allowed-addresses", {"127.0.0.0/8"}}}},
          {"terminationGracePeriodSeconds", 15}}},
        {"app-proxy", {{"enabled", true}, {"terminationGracePeriodSeconds", 15}}},
        {"argo-cd", {{"enabled", false}}}};
  }

  PeerBed& bed_;
  std::vector<const ReleaseFolder*> releases_;
  TempDir folder_;
  Helm helm_;
  RecordingUpstream events_{"events"};
  TcpRelay router_;  // the Service of the router, and that of app-proxy
  TcpRelay proxy_;
  std::unique_ptr<RenderedWorkload> rendered_;
  std::map<std::string, std::unique_ptr<ImageContainer>> pods_;
  std::string ended_;  // logs of processes that were stopped
};

}  // namespace gitops::test
