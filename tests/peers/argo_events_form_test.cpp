// The resource reporter in the form of Argo Events: what the chart renders is run by the real programs
// that Argo Events' controller starts, with the permissions that the chart grants.

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "doubles/fake_platform.hpp"
#include "peers/peer_events.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/shared_cluster.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kNamespace = "native";
constexpr const char* kSource = "rollout-reporter";
constexpr auto kTimeLimit = std::chrono::seconds(60);

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    if (auto lacking = PeerEvents::missing()) return lacking;
    if (auto lacking = PeerRollouts::missing()) return lacking;
    return PeerCluster::missing();
  }
};

class Bed {
 public:
  explicit Bed(const Executor& executor)
      : platform(executor, {.server = {}, .token = "runtime-token"}) {}

  static PeerCluster& cluster() { return shared_cluster(); }

  template <class Function>
  Task<> aside(Function function) {
    return run_on(pool_, std::move(function));
  }
  void install() {
    auto& c = cluster();
    c.apply_crds("argo-rollouts");
    c.create_namespace(kNamespace, {{"pod-security.kubernetes.io/enforce", "restricted"}});
    c.kubectl_ok({"-n", kNamespace, "create", "secret", "generic", "codefresh-token",
                  "--from-literal=token=runtime-token"});
    const Json values{{"global", {{"codefresh", {{"url", platform.url().to_string()}}}}},
                      {"event-reporters", {{"cluster-event-reporter", {{"form", "argo-events"}}}}}};
    write_file(folder_ / "values.json", values.dump());
    const auto done = helm_.run({"upgrade", "--install", "rt", chart_folder(), "-n", kNamespace,
                                 "-f", values_file("minimal.yaml"), "-f", folder_ / "values.json"},
                                c.kubeconfig());
    if (!done.ok()) throw std::runtime_error("helm: " + done.err);
  }
  static void put(const char* kind, const char* version, const char* name, Json object) {
    object["apiVersion"] = version;
    object["kind"] = kind;
    object["metadata"]["name"] = name;
    object["metadata"]["namespace"] = kNamespace;
    cluster().apply(object.dump());
  }
  // A ReplicaSet, of a Rollout or of a Deployment.
  static void put_replica_set(const char* name, Json labels) {
    const Json app{{"app", name}};
    put("ReplicaSet", "apps/v1", name,
        {{"metadata", {{"labels", std::move(labels)}}},
         {"spec",
          {{"replicas", 0},
           {"selector", {{"matchLabels", app}}},
           {"template",
            {{"metadata", {{"labels", app}}},
             {"spec", {{"containers", {{{"name", "web"}, {"image", "example.test/web:1"}}}}}}}}}}});
  }
  // kubectl auth can-i, as the ServiceAccount of the EventSource.
  static std::string may(const std::string& verb, const std::string& resource) {
    auto out =
        cluster()
            .kubectl({"-n", kNamespace, "auth", "can-i", verb, resource,
                      std::string("--as=system:serviceaccount:") + kNamespace + ":" + kSource})
            .out;
    return out.substr(0, out.find('\n'));
  }

  std::string logs() const { return events.logs(); }
  Task<> stop() {
    co_await aside([this] { events.rest(); });
    co_await platform.stop();
  }

  FakePlatform platform;
  PeerEvents events{cluster()};

 private:
  TempDir folder_;
  Helm helm_;
  asio::thread_pool pool_{1};
};

TEST(ArgoEventsForm, ReportsRolloutsAndTheirReplicaSets) {
  GITOPS_REQUIRE_PEER(Programs);
  run_coro(
      [&]() -> Task<> {
        Bed bed(co_await asio::this_coro::executor);
        co_await play_in(bed, [](Bed& w) -> Task<> {
          CO_ASSERT_OK(w.platform.start());
          w.install();
          // Never both.
          const auto sets = Bed::cluster().kubectl_ok(
              {"-n", kNamespace, "get", "statefulsets,serviceaccounts", "-o", "name"});
          EXPECT_THAT(sets, Not(HasSubstr("cluster-event-reporter")));
          EXPECT_THAT(sets, HasSubstr("statefulset.apps/runtime-event-reporter"));

          // The authorizer follows bindings by a watch.
          CO_ASSERT_TRUE(
              wait_until([] { return Bed::may("list", "rollouts.argoproj.io") == "yes"; },
                         std::chrono::seconds(30), "the rights of the EventSource"));
          for (const auto* verb : {"list", "watch"}) {
            EXPECT_EQ(Bed::may(verb, "rollouts.argoproj.io"), "yes");
            EXPECT_EQ(Bed::may(verb, "replicasets.apps"), "yes");
            EXPECT_EQ(Bed::may(verb, "secrets"), "no");
          }
          for (const auto* verb : {"get", "create", "update", "patch", "delete"}) {
            EXPECT_EQ(Bed::may(verb, "rollouts.argoproj.io"), "no") << verb;
          }

          // Both need one port of the machine, so they run in turn. The Sensor subscribes first: it
          // gets what comes after that.
          w.events.act(kNamespace, kSource);
          require_until([&] { return w.events.consumers() >= 3; }, kTimeLimit,
                        "a subscription for each trigger", std::chrono::milliseconds(50));

          w.events.rest();  // it writes to the bus, too
          const auto stored = w.events.stored_messages();
          const auto token = Bed::cluster().service_account_token(kNamespace, kSource);
          w.events.watch(kNamespace, kSource, Bed::cluster().write_kubeconfig(kSource, token));
          Bed::put("Rollout", "argoproj.io/v1alpha1", "web",
                   Json::parse(PeerRollouts::canary("web", "example.test/shop:1")));
          Bed::put_replica_set("of-rollout", {{"rollouts-pod-template-hash", "5d4f"}});
          Bed::put_replica_set("of-deployment", {{"pod-template-hash", "77aa"}});
          require_until([&] { return w.events.stored_messages() >= stored + 2; }, kTimeLimit,
                        "the messages on the bus", std::chrono::milliseconds(50));

          w.events.act(kNamespace, kSource);
          for (const auto& [kind, name] :
               {std::pair("Rollout", "web"), std::pair("ReplicaSet", "of-rollout")}) {
            const auto* report = co_await w.platform.wait_for(
                [&](const FakePlatform::Report& one) {
                  return one.kind() == kind && one.name() == name;
                },
                deadline_after(kTimeLimit));
            EXPECT_NE(report, nullptr) << kind;
          }
          co_await w.platform.wait_until_quiet(std::chrono::seconds(2), deadline_after(kTimeLimit));
          EXPECT_THAT(w.platform.find("ReplicaSet", "of-deployment"), IsEmpty());
          EXPECT_THAT(w.platform.refused(), IsEmpty());
        });
      },
      std::chrono::seconds(200));
}

}  // namespace
}  // namespace gitops::test
