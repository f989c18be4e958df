// From nothing to a runtime that works, by the running app-proxy: an empty namespace and an empty Git
// repository become a registered runtime with its commit, its Application, the default Git integration
// and a user's Git source. It is killed at each step, and frozen in the middle of one while another
// replica goes on. The API server, argocd-server and GitHub's REST interface are doubles; the Git server is real. The
// control plane is a double, and the program, too, where nothing is killed.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_bring_up_harness.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "k8s-client/resource.hpp"
#include "support/count_of.hpp"
#include "support/git_server.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace nlohmann::literals;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr const char* kPrepared = "GitOps runtime new|Prepare runtime new";
constexpr const char* kShared = "GitOps runtime new|Share the sealing key of runtime new";
constexpr const char* kCreated = "Dana Example|Create Git source shop of runtime new";

struct Story {
  std::string name;
  ControlPlaneKind control_plane = ControlPlaneKind::fake;
};

TEST(AppProxyBringUp, AnEmptyNamespaceAndAnEmptyRepositoryBecomeARuntimeThatWorks) {
  const std::vector<Story> stories{{"all at once"},
                                   {"with the control plane", ControlPlaneKind::program}};
  play_all(stories, [](BringUpHarness& w, const Story& story) -> Task<> {
    const auto key = w.put_key();
    w.start({{"SHARE_SEALING_KEY", "true"}});
    CO_ASSERT_TRUE(co_await w.until_complete());
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.base.daemon->status().message("sealing key") == "shared"; },
        "the sealing key", kTimeLimit));
    EXPECT_THAT(w.commits(), UnorderedElementsAre(kPrepared, kShared));
    co_await w.register_ann();
    co_await w.create_git_source();
    expect_each_once(w, UnorderedElementsAre(kPrepared, kShared, kCreated));
    const auto files = w.git.git("config", {"ls-tree", "-r", "--name-only", "main"});
    EXPECT_EQ(files.out,
              "git-sources/new/default/README.md\nresources/README.md\n"
              "resources/all-runtimes-all-clusters/integrations/sealing-key.yaml\n"
              "resources/app-projects/cf-git-sources.yaml\n"
              "resources/new/default-git-source.yaml\nresources/new/shop.yaml\n"
              "runtimes/new/in-cluster.yaml\n");
    EXPECT_THAT(w.side.clusters("new"), ElementsAre(testing::Pair("here", "Successful")));
    const auto secrets = w.secrets_with("codefresh.io/sealing-key", "true");
    CO_ASSERT_EQ(secrets.size(), 1U);
    const std::string id = secrets[0]["metadata"]["annotations"]["codefresh.io/sealing-key-id"];
    EXPECT_EQ(base64_decode(w.side.sealing_key(id, w.token())), key.private_key) << story.name;
    if (w.side.is_program()) co_return;
    EXPECT_THAT(w.reported(), ElementsAre("here Successful"));
    EXPECT_EQ(w.accounts().sealing_keys().size(), 1U);
  });
}

// True once the program was killed at a step.
using Reached = std::function<bool()>;
using Arrange = std::function<Reached(BringUpHarness&)>;

// At the first such request. `is_done`: it is carried out, and its answer lost; otherwise it arrives too late.
// The same holds for other requests that the process had sent when it was killed.
Arrange at_request(
    const char* verb, const char* resource, bool is_done,
    std::function<bool(BringUpHarness&)> counts = [](BringUpHarness&) { return true; }) {
  return [=](BringUpHarness& w) -> Reached {
    const auto is_killed = std::make_shared<bool>(false);
    w.cluster.set_access([=, &w](const FakeKubeApi::Access& access) {
      if (*is_killed) return is_done;
      if (access.is_review || access.verb != verb || access.resource != resource || !counts(w)) {
        return true;
      }
      *is_killed = true;
      w.base.daemon->process().signal(SIGKILL);
      return is_done;
    });
    return [is_killed] { return *is_killed; };
  };
}

// At the next push to the shared configuration repository, which is refused at its arrival.
Arrange at_push(HeldPush::At at) {
  return [at](BringUpHarness& w) -> Reached {
    w.push.hold(at);
    return [&w] {
      if (!w.push.is_held()) return false;
      (void)w.base.daemon->process().kill();
      w.push.refuse();
      return true;
    };
  };
}

// At the creation of the default integration's Secret: no other one can be made then.
Arrange at_integration(bool is_done) {
  return [is_done](BringUpHarness& w) -> Reached {
    w.argocd.refuses_logins = true;
    w.cluster.put_secret({"default", "runtime-repo-creds-secret"}, {});
    return at_request("create", "secrets", is_done,
                      [](BringUpHarness& harness) { return !harness.token().empty(); })(w);
  };
}

struct Step {
  std::string name;
  Arrange arrange;
  bool is_users = false;    // a user's request leads to it
  std::size_t reports = 0;  // of the cluster; 0: one or two
};

// kill -9 at each step. The next start completes the runtime, a user repeats what was not answered, and
// nothing is there twice.
TEST(AppProxyBringUp, KilledAtEachStepTheNextStartCompletesItAndNothingIsThereTwice) {
  using enum HeldPush::At;
  const std::vector<Step> steps{
      {"the commit has arrived at the Git server", at_push(arrival)},
      {"the commit is in the branch", at_push(answer)},
      {"the Application is about to be applied", at_request("patch", "applications", false)},
      {"the Application is applied", at_request("patch", "applications", true)},
      {"the integration is about to be stored", at_integration(false)},
      {"the integration is stored", at_integration(true)},
      {"the clusters are about to be told", at_request("create", "configmaps", true), false, 1},
      {"the clusters are told and not recorded", at_request("update", "configmaps", false), false,
       2},
      {"the clusters are told and recorded", at_request("update", "configmaps", true), false, 1},
      {"the user's commit has arrived at the Git server", at_push(arrival), true},
      {"the user's commit is in the branch", at_push(answer), true},
  };
  play_all(steps, [](BringUpHarness& w, const Step& step) -> Task<> {
    Reached reached;
    if (!step.is_users) reached = step.arrange(w);
    w.start();
    if (step.is_users) {
      CO_ASSERT_TRUE(co_await w.until_complete());
      co_await w.register_ann();
      reached = step.arrange(w);
      TaskGroup user(co_await asio::this_coro::executor);
      user.spawn("user", [&w] { return w.ask_for_git_source(); });
      const bool is_killed = co_await eventually(reached, "the step", kTimeLimit);
      co_await user.join();
      CO_ASSERT_TRUE(is_killed);
    } else {
      CO_ASSERT_TRUE(co_await eventually(reached, "the step", kTimeLimit));
    }
    w.start_again();
    CO_ASSERT_TRUE(co_await w.until_complete());
    if (!step.is_users) co_await w.register_ann();
    co_await w.create_git_source();
    // The record of the first process makes the second one look complete before it has told them again.
    CO_ASSERT_TRUE(co_await eventually([&] { return w.reported().size() >= step.reports; },
                                       "the reports of the cluster", kTimeLimit));
    expect_each_once(w, UnorderedElementsAre(kPrepared, kCreated));
    EXPECT_EQ(count_of(w.file("runtimes/new/in-cluster.yaml"), "new/shop.yaml"), 1U) << w.name;
    if (step.reports != 0) EXPECT_EQ(w.reported().size(), step.reports) << w.name;
  });
}

struct SharingStep {
  std::string name;
  Arrange arrange;
  std::size_t saved = 1;  // keys at the control plane in the end
};

// The same while the runtime shares its sealing key: one commit names one key, which is in one Secret. A key
// that the control plane has kept without the runtime knowing its id stays there, and nothing is sealed with it.
TEST(AppProxyBringUp, KilledWhileItSharesItsSealingKeyTheNextStartUsesOneKey) {
  using enum HeldPush::At;
  const auto is_saved = [](BringUpHarness& w) { return !w.accounts().sealing_keys().empty(); };
  const std::vector<SharingStep> steps{
      {"the control plane has the key", at_request("create", "secrets", false, is_saved), 2},
      {"the Secret is stored", at_request("create", "secrets", true, is_saved)},
      {"the commit has arrived at the Git server", at_push(arrival)},
      {"the commit is in the branch", at_push(answer)},
  };
  play_all(steps, [](BringUpHarness& w, const SharingStep& step) -> Task<> {
    const auto key = w.put_key();
    w.start();
    CO_ASSERT_TRUE(co_await w.until_complete());
    EXPECT_EQ(w.base.daemon->process().stop(), 0) << w.base.logs();
    const Reached reached = step.arrange(w);
    const Environment sharing{{"SHARE_SEALING_KEY", "true"}};
    w.start(sharing);
    CO_ASSERT_TRUE(co_await eventually(reached, "the step", kTimeLimit));
    w.start_again(sharing);
    CO_ASSERT_TRUE(co_await w.until_complete());
    CO_ASSERT_TRUE(co_await eventually(
        [&] { return w.base.daemon->status().message("sealing key") == "shared"; },
        "the sealing key", kTimeLimit));
    expect_each_once(w, UnorderedElementsAre(kPrepared, kShared));
    const auto& saved = w.accounts().sealing_keys();
    EXPECT_EQ(saved.size(), step.saved) << w.name;
    for (const auto& each : saved) EXPECT_EQ(base64_decode(each), key.private_key) << w.name;
    const auto id = "key-" + std::to_string(saved.size());
    EXPECT_THAT(w.file("resources/all-runtimes-all-clusters/integrations/sealing-key.yaml"),
                HasSubstr("id: " + id + "\n"))
        << w.name;
    const auto secrets = w.secrets_with("codefresh.io/sealing-key", "true");
    CO_ASSERT_EQ(secrets.size(), 1U);
    EXPECT_EQ(secrets[0]["metadata"]["annotations"]["codefresh.io/sealing-key-id"], id) << w.name;
    EXPECT_EQ(base64_decode(secrets[0]["data"].value("tls.crt", "")), key.certificate) << w.name;
  });
}

// The process of a harness, frozen. It goes on at the latest when this object ends.
class Frozen {
 public:
  explicit Frozen(BringUpHarness& w) : process_(w.base.daemon->process()) {
    process_.signal(SIGSTOP);
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  ~Frozen() { thaw(); }
  void thaw() { process_.signal(SIGCONT); }

 private:
  Process& process_;
};

struct FrozenPush {
  std::string name;
  HeldPush::At at;
};

// The leader is frozen in the middle of its first push. Another replica takes over and completes the runtime; the
// leader's push ends at the Git server, and the leader comes back: there is one commit.
TEST(AppProxyBringUp, ALeaderThatIsFrozenInItsPushLeavesOneCommit) {
  using enum HeldPush::At;
  play_all(std::vector<FrozenPush>{{"frozen before the branch has the commit", arrival},
                                   {"frozen before the answer", answer}},
           [](BringUpHarness& w, const FrozenPush& frozen) -> Task<> {
             w.push.hold(frozen.at);
             w.start();
             CO_ASSERT_TRUE(
                 co_await eventually([&] { return w.push.is_held(); }, "the push", kTimeLimit));
             Frozen first(w);
             EXPECT_EQ(w.commits().size(), frozen.at == arrival ? 0U : 1U) << w.name;
             AppProxyProcess second(w.second());
             CO_ASSERT_TRUE(co_await eventually(
                 [&] {
                   return w.is_complete(second) && second.status().message("leader") == "this one";
                 },
                 "the second replica", 120s));
             EXPECT_THAT(w.commits(), ElementsAre(kPrepared)) << w.name;
             const auto head = w.git.head("config");

             w.push.release();
             first.thaw();
             CO_ASSERT_TRUE(co_await eventually(
                 [&] {
                   const auto page = w.base.daemon->status();
                   return page.message("leader") == "pod-b" && BringUpHarness::is_applied(page);
                 },
                 "the first replica", kTimeLimit));
             EXPECT_EQ(w.git.head("config"), head) << w.name;
             if (frozen.at == arrival) {
               // Its push came second, which it has seen.
               EXPECT_THAT(w.base.daemon->admin("/metrics").body,
                           HasSubstr("gitops_app_proxy_git_conflicts_total 1\n"));
             }
             expect_each_once(w, ElementsAre(kPrepared));
             EXPECT_EQ(second.process().stop(), 0) << second.log();
             EXPECT_THAT(second.log(), Not(HasSubstr("canary"))) << w.name;
           });
}

struct Window {
  std::string name;
  std::function<void(FakeArgoCdServer&)> change;     // is told, and not recorded
  std::function<void(FakeArgoCdServer&)> meanwhile;  // while the leader is frozen
  std::vector<std::string> reported;                 // after the first states
};

// The leader is frozen after it has told the state of a cluster and before it has recorded that. The next leader tells
// the same state again, and with it what has changed since; the first one, when it comes back, tells nothing.
TEST(AppProxyBringUp, AReportThatWasNotRecordedIsToldAgainWithTheSameState) {
  const std::vector<Window> windows{
      {.name = "a change is told",
       .change = [](FakeArgoCdServer& argocd) { argocd.failed = "b"; },
       .meanwhile = [](FakeArgoCdServer& argocd) { argocd.clusters = {"a", "b"}; },
       .reported = {"b Failed", "b Failed", "c Unknown", "b Successful", "c Successful"}},
      {.name = "a removal is told",
       .change = [](FakeArgoCdServer& argocd) { argocd.clusters = {"a", "b"}; },
       .meanwhile = [](FakeArgoCdServer& argocd) { argocd.failed = "a"; },
       .reported = {"c Unknown", "a Failed", "c Unknown", "a Successful", "c Successful"}},
  };
  play_all(windows, [](BringUpHarness& w, const Window& window) -> Task<> {
    const Environment chunks{{"CLUSTER_CHUNK_SIZE", "1"}};
    const k8s::ObjectKey record{"default", kClusterRecord};
    w.argocd.clusters = {"a", "b", "c"};
    w.start(chunks);
    CO_ASSERT_TRUE(co_await eventually(
        [&] {
          const auto found = w.cluster.find(k8s::resources::kConfigMaps, record);
          return found && found->dump().contains("https://c.example.test");
        },
        "the first states", kTimeLimit));
    std::optional<Frozen> first;
    w.cluster.set_access([&](const FakeKubeApi::Access& access) {
      // Before it tells a state, it notes that; afterwards it records the state.
      const bool is_reported = w.reported().size() > 3;
      if (access.is_review || access.verb != "update" || access.resource != "configmaps" || first ||
          !is_reported) {
        return true;
      }
      first.emplace(w);
      // Its version moves on, as when another replica writes: the record of the first one comes too late.
      w.cluster.put(k8s::resources::kConfigMaps,
                    w.cluster.find(k8s::resources::kConfigMaps, record).value());
      return true;
    });
    window.change(w.argocd);
    CO_ASSERT_TRUE(
        co_await eventually([&] { return first.has_value(); }, "the report", kTimeLimit));
    std::vector<std::string> reported{"a Successful", "b Successful", "c Successful",
                                      window.reported.front()};
    EXPECT_THAT(w.reported(), ElementsAreArray(reported)) << w.name;
    window.meanwhile(w.argocd);
    AppProxyProcess second(w.second(chunks));
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.reported().size() >= 6; }, "the second replica", 120s));
    first->thaw();
    CO_ASSERT_TRUE(
        co_await eventually([&] { return w.base.daemon->status().message("leader") == "pod-b"; },
                            "the first replica", kTimeLimit));
    // What comes next is told once, by the one that leads.
    w.argocd.failed.clear();
    w.argocd.clusters = {"a", "b", "c"};
    CO_ASSERT_TRUE(co_await eventually([&] { return w.reported().size() >= 8; }, "the last states",
                                       kTimeLimit));
    reported.insert(reported.end(), window.reported.begin() + 1, window.reported.end());
    EXPECT_THAT(w.reported(), ElementsAreArray(reported)) << w.name;
    // The two with one state are equal in all of their members.
    const auto& reports = w.accounts().life().clusters;
    EXPECT_EQ(std::ranges::count(reports, reports[3]), 2) << w.name;
    EXPECT_EQ(second.process().stop(), 0) << second.log();
    EXPECT_THAT(second.log(), Not(HasSubstr("canary"))) << w.name;
  });
}

}  // namespace
}  // namespace gitops::test
