#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/client.hpp"
#include "k8s-client/informer.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"

// The behaviour of list and watch that an Informer relies on: one list of cases for the double
// (tests/contract) and for the real API server (tests/peers). Each case has a namespace of its own.
namespace gitops::test {

// An API server as the cases use it. The functions may block the loop.
struct KubeWatchPeer {
  k8s::ClusterConfig config;
  std::string ns;  // exists and contains no ConfigMaps with the label
  // Makes every version so far too old for watches and for open lists of ConfigMaps.
  std::function<void()> make_versions_gone = {};
  // Restarts the server with the same content, on the same port.
  std::function<Task<>()> restart = {};
  // Backs up the server's content; restore() replaces the content by the backup. Both may restart the
  // server.
  std::function<Task<>()> back_up = {};
  std::function<Task<>()> restore = {};
  // Makes the server refuse streaming lists, or accept them again. May restart the server.
  std::function<Task<>(bool allow)> allow_streaming_lists = {};
  // Time limit of each wait.
  std::chrono::seconds time_limit{10};
};

// A client of that server, and an informer behind a relay that watches the ConfigMaps with the label
// contract=yes.
class KubeWatchFixture {
 public:
  using Tune = std::function<void(k8s::InformerOptions&)>;
  KubeWatchFixture(const Executor& executor, const KubeWatchPeer& peer,
                   k8s::Reflector::Options options, const Tune& tune = {});

  void start() { informer_.start(tasks_); }
  Task<> stop();

  // Changes on the server, not through the relay. True on success.
  Task<bool> create(std::string name, std::string value);
  Task<bool> update(std::string name, std::string value);
  Task<bool> unlabel(std::string name);
  Task<bool> remove(std::string name);

  Task<bool> synced();
  // Waits until the informer's store and the content by its callbacks both equal a fresh list of the
  // server.
  Task<bool> converges();
  // Cuts the informer's connection and waits until it notices; new ones fail until reconnect().
  Task<bool> disconnect();
  void reconnect() { relay_.open(); }
  // Waits for the condition; evaluates it after each callback and every few milliseconds.
  Task<bool> wait_until(std::function<bool()> condition);

  k8s::Client& client() { return client_; }
  TcpRelay& relay() { return relay_; }
  k8s::Informer& informer() { return informer_; }
  // The callbacks so far: "+name=value", "~name=value", "-name".
  [[nodiscard]] const std::vector<std::string>& told() const { return told_; }
  void forget_told() { told_.clear(); }
  // The rules that callbacks have broken; empty when there are none.
  [[nodiscard]] const std::string& broken_rule() const { return broken_rule_; }
  [[nodiscard]] std::string metrics() { return metrics_.expose(); }
  [[nodiscard]] Deadline deadline() const { return deadline_after(peer_.time_limit); }

 private:
  struct Seen {
    std::string uid;
    std::string version;
    std::string value;
    bool operator==(const Seen&) const = default;
  };
  using Content = std::map<std::string, Seen>;

  void on_change(const k8s::Change& change);
  Task<std::optional<Content>> server_content();
  [[nodiscard]] Content store_content() const;
  Task<bool> patch(std::string name, std::string body);

  KubeWatchPeer peer_;
  Metrics metrics_;
  net::Resolver resolver_{metrics_};
  k8s::Client client_;
  TcpRelay relay_;
  k8s::Client watch_client_;
  TaskGroup tasks_;
  Event changed_;
  Content told_content_;
  std::map<std::string, std::uint64_t> told_epoch_;
  std::vector<std::string> told_;
  std::string broken_rule_;
  k8s::Informer informer_;
  k8s::Informer::Subscription subscription_;
};

// Runs `body` on a fixture and stops it afterwards, also when the body throws.
Task<> with_kube_watch_fixture(const KubeWatchPeer& peer, k8s::Reflector::Options options,
                               std::function<Task<>(KubeWatchFixture&)> body,
                               KubeWatchFixture::Tune tune = {});

// One rule of list and watch.
struct KubeWatchCase {
  const char* name;
  std::function<Task<>(const KubeWatchPeer&)> run;
};
std::vector<KubeWatchCase> kube_watch_cases();

}  // namespace gitops::test
