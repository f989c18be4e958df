// From nothing to a runtime that works, by the running app-proxy: an empty namespace and an empty Git
// repository become a registered runtime with its commit, its Application, the default Git integration
// and a user's Git source. It is killed at each step, and frozen in the middle of one while another
// replica goes on. The control plane, the API server, argocd-server and GitHub's REST interface are
// doubles; the Git server is real.
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

// The login, the tokens and the clusters of argocd-server.
struct ArgoServer {
  explicit ArgoServer(const Executor& executor)
      : server(executor, {.address = "127.0.0.1"},
               [this](http::Exchange& exchange) { return serve(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    const std::string sent(exchange.request().headers.find("Authorization").value_or(""));
    (void)co_await exchange.read_body(64 * 1024);
    http::Response answer{.status = 200, .headers = {{"Content-Type", "application/json"}}};
    if (path == "/api/v1/session" && !refuses_logins) {
      answer.body = R"({"token":"canary-session"})";
    } else if (path == "/api/v1/session/userinfo") {
      const bool is_known = tokens.contains(sent);
      if (!is_known) answer.status = 401;
      answer.body = is_known ? R"({"loggedIn":true})" : R"({"message":"invalid session"})";
    } else if (path.ends_with("/token") && sent == "Bearer canary-session") {
      const auto token = "canary-argocd-" + std::to_string(tokens.size() + 1);
      tokens.insert("Bearer " + token);
      answer.body = Json{{"token", token}}.dump();
    } else if (path == "/api/v1/clusters" && sent == "Bearer canary-session") {
      answer.body = list();
    } else {
      answer.status = 403;
      answer.body = R"({"message":"permission denied"})";
    }
    (void)co_await exchange.reply(std::move(answer));
  }
  [[nodiscard]] std::string list() const {
    Json items = Json::array();
    for (const auto& name : clusters) {
      const char* status = name == failed ? "Failed" : "Successful";
      items.push_back(
          {{"name", name},
           {"server", "https://" + name + ".example.test"},
           {"info", {{"connectionState", {{"status", status}}}, {"applicationsCount", "0"}}}});
    }
    return Json{{"items", items}}.dump();
  }

  std::set<std::string> tokens;  // that are valid
  std::vector<std::string> clusters = {"here"};
  std::string failed;  // name of a cluster that cannot be reached
  bool refuses_logins = false;
  http::Server server;
};

// A new repository of the Git server that can hold one push, by hooks: git-receive-pack waits in them
// until the push is released.
class HeldPush {
 public:
  enum class At {
    arrival,  // the server has the commits, and the branch is as before
    answer,   // the branch has the commits, and the client has no answer
  };

  HeldPush(GitServer& git, const std::string& repository) : folder_(git.folder() / "held") {
    git.create_repository(repository);
    const auto hooks = git.folder() / "repos" / (repository + ".git") / "hooks";
    write_hook(hooks / "pre-receive", "[ -e arrival ]");
    write_hook(hooks / "reference-transaction", "[ \"$1\" = committed ] && [ -e answer ]");
  }
  // The next push, and no other one.
  void hold(At at) {
    fs::create_directories(folder_);
    write_file(folder_ / (at == At::arrival ? "arrival" : "answer"), "");
  }
  [[nodiscard]] bool is_held() const { return fs::exists(folder_ / "taken"); }
  // A push that was held at its arrival is tried now. The end of one that is released otherwise is
  // the server's refusal.
  void release() { end("go"); }
  void refuse() { end("no"); }

 private:
  void write_hook(const fs::path& file, const std::string& condition) const {
    write_file(file, "#!/bin/sh\ncat >/dev/null\ncd '" + folder_.string() +
                         "' 2>/dev/null || exit 0\n" + condition +
                         " && mkdir taken 2>/dev/null || exit 0\n"
                         // An end for a hook whose test was killed.
                         "i=0; until [ -e verdict ] || [ $((i += 1)) -gt 10000 ]; do sleep 0.02; "
                         "done\n"
                         "read -r verdict <verdict; [ \"$verdict\" = go ]\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  void end(const std::string& verdict) const {
    write_file(folder_ / "new", verdict + "\n");
    fs::rename(folder_ / "new", folder_ / "verdict");
  }

  fs::path folder_;
};

// The runtime "new", of which nothing exists yet but the account's empty repository "config".
struct BringUpWorld {
  BringUpWorld(const Executor& executor, std::string given)
      : name(std::move(given)),
        base(executor),
        cluster(executor),
        host(executor, app_proxy::ProviderKind::github),
        argocd(executor),
        push(git, "config") {
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(host.start());
    git.add_user("robot", "canary-git");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    base.platform.accounts().add({.id = "acc-1",
                                  .name = "acme",
                                  .admins = {"u-ann"},
                                  .git_provider = "GITHUB",
                                  .git_api_url = host.api_root().text(),
                                  .shared_config_repo = git.url("config")});
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  [[nodiscard]] Environment settings(const std::string& leader_id = "pod-a") const {
    return {{"KUBECONFIG", (folder / "kubeconfig").string()},
            {"NAMESPACE", "default"},
            {"RUNTIME_NAME", "new"},
            {"RUNTIME_TOKEN", ""},
            {"USER_TOKEN", kAnn},
            {"LEADER_ID", leader_id},
            {"REPOS_DIR", (folder / ("clones-" + leader_id)).string()},
            {"GIT_INSECURE_HTTP", "true"},
            {"GIT_USERNAME", "robot"},
            {"GIT_PASSWORD", "canary-git"},
            {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.server.port())},
            {"ARGO_CD_USERNAME", "admin"},
            {"ARGO_CD_PASSWORD", "canary-password"}};
  }
  void start(Environment more = {}) {
    more.merge(settings());
    base.start(std::move(more));
  }
  // After a kill.
  void start_again(Environment more = {}) {
    (void)base.daemon->process().kill();
    EXPECT_THAT(base.logs(), Not(HasSubstr("canary"))) << name;
    cluster.set_access({});
    argocd.refuses_logins = false;
    base.client.close_idle();
    start(std::move(more));
  }
  // The environment of another replica.
  [[nodiscard]] Environment second(Environment more = {}) const {
    more.merge(settings("pod-b"));
    more.merge(base.environment());
    return more;
  }

  FakeAccounts& accounts() { return base.platform.accounts(); }
  [[nodiscard]] bool exists(const k8s::Resource& resource, const char* object) const {
    return cluster.find(resource, {"default", object}).has_value();
  }
  [[nodiscard]] std::string value(const char* secret, const char* key) const {
    const auto found = cluster.find(k8s::resources::kSecrets, {"default", secret});
    if (!found) return {};
    const auto bytes =
        base64_decode(found->value(Json::json_pointer(std::string("/data/") + key), ""));
    return bytes ? *bytes : "";
  }
  [[nodiscard]] std::string token() const { return value("codefresh-token", "token"); }
  // Everything is there, and the process knows it.
  [[nodiscard]] bool is_complete(const AppProxyProcess& process) {
    const auto registrations = std::to_string(accounts().life().registered.size());
    if (token() != "canary-runtime-token-" + registrations ||
        !argocd.tokens.contains("Bearer " + value("argocd-token", "token")) ||
        !exists(k8s::resources::kSecrets, kIntegration) ||
        !exists(k8s::resources::kApplications, "new") ||
        !exists(k8s::resources::kConfigMaps, kClusterRecord) || reported().empty()) {
      return false;
    }
    const auto page = process.status();
    return page.state("registration") == "ok" && page.state("argocd-token") == "ok" &&
           page.state("report of clusters") == "ok" && is_applied(page);
  }
  // The shared configuration repository is.
  static bool is_applied(const StatusPage& page) {
    constexpr const char* kPart = "shared configuration repository";
    return page.state(kPart) == "ok" && page.message(kPart) == "applied by Application new";
  }
  Task<bool> until_complete() {
    co_return co_await eventually([this] { return is_complete(*base.daemon); }, "the condition");
  }
  Task<bool> eventually(std::function<bool()> condition, "the condition") {
    const auto deadline = deadline_after(time_limit);
    while (!condition()) {
      if (Clock::now() > deadline) {
        ADD_FAILURE() << name << ": waited in vain for " << what;
        co_return false;
      }
      co_await sleep_for(50ms);
    }
    co_return true;
  }

  Task<> register_ann() {
    const auto answer = co_await base.ask(
        "mutation RegisterToGitIntegration($args: RegisterToGitIntegrationArgs!){"
        "registerToGitIntegration(args: $args){name}}",
        AppProxyWorld::as(kAnn), Json{{"args", {{"token", FakeGitHost::kToken}}}});
    EXPECT_EQ(answer.code(), "") << name << answer.body;
  }
  static Json create_request() {
    return {{"query",
             "mutation CreateGitSource($args: CreateGitSourceInput!) { createGitSource(args: "
             "$args) }"},
            {"variables",
             {{"args",
               {{"appName", "shop"},
                {"appSpecifier", "https://git.example.test/acme/shop.git/apps?ref=main"},
                {"destServer", "https://kubernetes.default.svc"},
                {"destNamespace", "shop"}}}}}};
  }
  Task<> create_git_source() {
    const Json wanted = create_request();
    const auto answer =
        co_await base.ask(wanted["query"], AppProxyWorld::as(kAnn), wanted["variables"]);
    EXPECT_EQ(answer.json, (Json{{"data", {{"createGitSource", nullptr}}}})) << name << answer.body;
  }
  // The same from a user who may get no answer.
  Task<> ask_for_git_source() {
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = base.daemon->port()};
    (void)co_await base.client.send(
        url,
        {.method = "POST",
         .target = "/app-proxy/api/graphql",
         .headers = {{"Authorization", kAnn}, {"Content-Type", "application/json"}},
         .body = create_request().dump()},
        deadline_after(60s));
  }

  // The key of a controller of Sealed Secrets.
  RsaCertificate put_key() {
    auto key = make_rsa_certificate();
    cluster.put(k8s::resources::kSecrets,
                {{"type", "kubernetes.io/tls"},
                 {"metadata",
                  {{"name", "sealed-secrets-keyx7k2p"},
                   {"namespace", "default"},
                   {"creationTimestamp", "2026-01-01T00:00:00Z"},
                   {"labels", {{"sealedsecrets.bitnami.com/sealed-secrets-key", "active"}}}}},
                 {"data",
                  {{"tls.crt", base64_encode(key.certificate)},
                   {"tls.key", base64_encode(key.private_key)}}}});
    return key;
  }
  // The Secrets with this label.
  [[nodiscard]] std::vector<Json> secrets_with(const char* label, const char* wanted) const {
    std::vector<Json> found;
    const auto* type = cluster.store().find_type("", "v1", "secrets");
    for (const auto& object : cluster.store().list(*type, "default")) {
      const auto labels = object->json["metadata"].value("labels", Json::object());
      if (labels.value(label, "") == wanted) found.push_back(object->json);
    }
    return found;
  }
  [[nodiscard]] std::string file(const std::string& path) const {
    return git.file_at_head("config", path).value_or("");
  }
  // "author|subject" of each commit.
  [[nodiscard]] std::vector<std::string> commits() const {
    const auto log = git.git("config", {"log", "--format=%an|%s", "main"});
    std::vector<std::string> found;
    std::istringstream lines(log.ok() ? log.out : "");
    for (std::string line; std::getline(lines, line);) found.push_back(line);
    return found;
  }
  // "here Successful", in order of arrival; a line for each report.
  [[nodiscard]] std::vector<std::string> reported() {
    std::vector<std::string> found;
    for (const Json& list : accounts().life().clusters) {
      std::string line;
      for (const Json& one : list) {
        line += (line.empty() ? "" : ", ") + one["name"].get<std::string>() + " " +
                one["info"]["connectionState"]["status"].get<std::string>();
      }
      found.push_back(line);
    }
    return found;
  }

  [[nodiscard]] std::string logs() const { return name + "\n" + base.logs(); }
  Task<> stop() {
    cluster.set_access({});
    co_await base.stop();
    co_await host.stop();
    co_await argocd.server.stop(Clock::now());
    co_await cluster.stop();
  }

  std::string name;
  AppProxyWorld base;
  FakeKubeApi cluster;
  FakeGitHost host;
  ArgoServer argocd;
  GitServer git;
  HeldPush push;
  TempDir folder;
};

// Plays each story in a world of its own, a few at the same time: they wait most of the time.
template <class Story, class Play>
void play_all(const std::vector<Story>& stories, const Play& play) {
  constexpr std::size_t kAtOnce = 4;
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        TaskGroup players(executor, [](const std::string& who, const std::string& what) {
          ADD_FAILURE() << who << ": " << what;
        });
        std::size_t next = 0;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
          players.spawn("player " + std::to_string(i), [&]() -> Task<> {
            while (next < stories.size()) {
              const Story& story = stories[next++];
              BringUpWorld world(executor, story.name);
              co_await play_in(world, [&](BringUpWorld& w) { return play(w, story); });
            }
          });
        }
        co_await players.join();
      },
      280s);
}

// Exactly these commits, and one of everything else.
void expect_each_once(BringUpWorld& w, const testing::Matcher<std::vector<std::string>>& commits) {
  SCOPED_TRACE(w.name);
  EXPECT_THAT(w.commits(), commits);
  EXPECT_EQ(w.accounts().life().registered.size(), 1U);
  EXPECT_EQ(w.secrets_with("io.codefresh.integration-type", "git").size(), 1U);
  const auto checked = w.git.git("config", {"fsck", "--no-progress", "--no-dangling"});
  EXPECT_EQ(checked.out + checked.err, "");
  const auto application = w.cluster.find(k8s::resources::kApplications, {"default", "new"});
  ASSERT_TRUE(application);
  EXPECT_EQ(application->value("/spec/source/path"_json_pointer, ""), "runtimes/new");
  // A report that was not recorded comes a second time, with the same states.
  const auto& reports = w.accounts().life().clusters;
  ASSERT_FALSE(reports.empty());
  EXPECT_LE(reports.size(), 2U);
  EXPECT_THAT(reports, Each(reports.front()));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Story {
  std::string name;
};

TEST(AppProxyBringUp, AnEmptyNamespaceAndAnEmptyRepositoryBecomeARuntimeThatWorks) {
  play_all(std::vector<Story>{{"all at once"}}, [](BringUpHarness& w, const Story&) -> Task<> {
    (void)w.put_key();
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
    EXPECT_THAT(w.reported(), ElementsAre("here Successful"));
    EXPECT_EQ(w.accounts().sealing_keys().size(), 1U);
  });
}

// True once the program was killed at a step.
using Reached = std::function<bool()>;
using Arrange = std::function<Reached(BringUpHarness&)>;

// At the first such request. `is_done`: it is carried out, and its answer lost; otherwise it arrives too late.
Arrange at_request(
    const char* verb, const char* resource, bool is_done,
    std::function<bool(BringUpHarness&)> counts = [](BringUpHarness&) { return true; }) {
  return [=](BringUpHarness& w) -> Reached {
    const auto is_killed = std::make_shared<bool>(false);
    w.cluster.set_access([=, &w](const FakeKubeApi::Access& access) {
      if (*is_killed || access.is_review || access.verb != verb || access.resource != resource ||
          !counts(w)) {
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
                      [](BringUpHarness& world) { return !world.token().empty(); })(w);
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
                   return page.message("leader") == "pod-b" && BringUpWorld::is_applied(page);
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
