#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_kube_api.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "e2e/control_plane_side.hpp"
#include "k8s-client/resource.hpp"
#include "support/git_server.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

// app-proxy before its runtime exists, with a Git server that can hold a push.
namespace gitops::test {

using namespace std::chrono_literals;
using namespace nlohmann::literals;

inline constexpr auto kAnn = AppProxyHarness::kAnn;
inline constexpr auto kTimeLimit = 60s;
inline constexpr const char* kIntegration = "git-default-acc-1";
inline constexpr const char* kClusterRecord = "cap-app-proxy-clusters";

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
    std::filesystem::create_directories(folder_);
    write_file(folder_ / (at == At::arrival ? "arrival" : "answer"), "");
  }
  [[nodiscard]] bool is_held() const { return std::filesystem::exists(folder_ / "taken"); }
  // A push that was held at its arrival is tried now. The end of one that is released otherwise is
  // the server's refusal.
  void release() { end("go"); }
  void refuse() { end("no"); }

 private:
  void write_hook(const std::filesystem::path& file, const std::string& condition) const {
    write_file(file, "#!/bin/sh\ncat >/dev/null\ncd '" + folder_.string() +
                         "' 2>/dev/null || exit 0\n" + condition +
                         " && mkdir taken 2>/dev/null || exit 0\n"
                         // An end for a hook whose test was killed.
                         "i=0; until [ -e verdict ] || [ $((i += 1)) -gt 10000 ]; do sleep 0.02; "
                         "done\n"
                         "read -r verdict <verdict; [ \"$verdict\" = go ]\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  void end(const std::string& verdict) const {
    write_file(folder_ / "new", verdict + "\n");
    std::filesystem::rename(folder_ / "new", folder_ / "verdict");
  }

  std::filesystem::path folder_;
};

// The runtime "new", of which nothing exists yet but the account's empty repository "config".
struct BringUpHarness {
  BringUpHarness(const Executor& executor, std::string given,
                 ControlPlaneKind kind = ControlPlaneKind::fake)
      : name(std::move(given)),
        base(executor),
        side(kind, base.platform),
        cluster(executor),
        host(executor, app_proxy::ProviderKind::github),
        argocd(executor),
        push(git, "config") {
    EXPECT_TRUE(cluster.start());
    EXPECT_TRUE(host.start());
    EXPECT_TRUE(argocd.start());
    argocd.clusters = {"here"};
    git.add_user("robot", "canary-git");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    side.set_git("GITHUB", host.api_root().text(), git.url("config"));
    write_file(folder / "kubeconfig", cluster.kubeconfig());
  }
  [[nodiscard]] Environment settings(const std::string& leader_id = "pod-a") const {
    Environment all{{"KUBECONFIG", (folder / "kubeconfig").string()},
                    {"NAMESPACE", "default"},
                    {"RUNTIME_NAME", "new"},
                    {"RUNTIME_TOKEN", ""},
                    {"USER_TOKEN", kAnn},
                    {"LEADER_ID", leader_id},
                    {"REPOS_DIR", (folder / ("clones-" + leader_id)).string()},
                    {"GIT_INSECURE_HTTP", "true"},
                    {"GIT_USERNAME", "robot"},
                    {"GIT_PASSWORD", "canary-git"},
                    {"ARGO_CD_URL", "http://127.0.0.1:" + std::to_string(argocd.url().port)},
                    {"ARGO_CD_USERNAME", "admin"},
                    {"ARGO_CD_PASSWORD", "canary-password"}};
    all.merge(side.environment());
    return all;
  }
  void start(Environment more = {}) {
    more.merge(settings());
    base.start(std::move(more));
  }
  // After a kill.
  void start_again(Environment more = {}) {
    (void)base.daemon->process().kill();
    EXPECT_THAT(base.logs(), testing::Not(testing::HasSubstr("canary"))) << name;
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
        base64_decode(found->value(nlohmann::json::json_pointer(std::string("/data/") + key), ""));
    return bytes ? *bytes : "";
  }
  [[nodiscard]] std::string token() const { return value("codefresh-token", "token"); }
  // Everything is there, and the process knows it.
  [[nodiscard]] bool is_complete(const AppProxyProcess& process) {
    if (side.runtime_of(token()) != "new" ||
        !argocd.tokens.contains("Bearer " + value("argocd-token", "token")) ||
        !exists(k8s::resources::kSecrets, kIntegration) ||
        !exists(k8s::resources::kApplications, "new") ||
        !exists(k8s::resources::kConfigMaps, kClusterRecord) || side.clusters("new").empty()) {
      return false;
    }
    const auto page = process.status();
    return page.state("registration") == "ok" && page.state("argocd-token") == "ok" &&
           page.state("report of clusters") == "ok" && is_applied(page);
  }
  // Whether the shared configuration repository is applied.
  static bool is_applied(const StatusPage& page) {
    constexpr const char* kPart = "shared configuration repository";
    return page.state(kPart) == "ok" && page.message(kPart) == "applied by Application new";
  }
  Task<bool> until_complete() {
    co_return co_await eventually([this] { return is_complete(*base.daemon); }, "all of it",
                                  kTimeLimit);
  }

  Task<> register_ann() {
    const auto answer = co_await base.ask(
        "mutation RegisterToGitIntegration($args: RegisterToGitIntegrationArgs!){"
        "registerToGitIntegration(args: $args){name}}",
        AppProxyHarness::as(kAnn), nlohmann::json{{"args", {{"token", FakeGitHost::kToken}}}});
    EXPECT_EQ(answer.code(), "") << name << answer.body;
  }
  static nlohmann::json create_request() {
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
    const nlohmann::json wanted = create_request();
    const auto answer =
        co_await base.ask(wanted["query"], AppProxyHarness::as(kAnn), wanted["variables"]);
    EXPECT_EQ(answer.json, (nlohmann::json{{"data", {{"createGitSource", nullptr}}}}))
        << name << answer.body;
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
  [[nodiscard]] std::vector<nlohmann::json> secrets_with(const char* label,
                                                         const char* wanted) const {
    std::vector<nlohmann::json> found;
    const auto* type = cluster.store().find_type("", "v1", "secrets");
    for (const auto& object : cluster.store().list(*type, "default")) {
      const auto labels = object->json["metadata"].value("labels", nlohmann::json::object());
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
    for (const nlohmann::json& list : accounts().life().clusters) {
      std::string line;
      for (const nlohmann::json& one : list) {
        line += (line.empty() ? "" : ", ") + one["name"].get<std::string>() + " " +
                one["info"]["connectionState"]["status"].get<std::string>();
      }
      found.push_back(line);
    }
    return found;
  }

  [[nodiscard]] std::string logs() const { return name + "\n" + base.logs() + side.logs(); }
  Task<> stop() {
    cluster.set_access({});
    co_await base.stop();
    side.stop();
    co_await host.stop();
    co_await argocd.stop();
    co_await cluster.stop();
  }

  std::string name;
  AppProxyHarness base;
  ControlPlaneSide side;
  FakeKubeApi cluster;
  FakeGitHost host;
  FakeArgoCdServer argocd;
  GitServer git;
  HeldPush push;
  TempDir folder;
};

// Plays each story on a harness of its own, a few at the same time: they wait most of the time.
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
              auto kind = ControlPlaneKind::fake;
              if constexpr (requires { story.control_plane; }) kind = story.control_plane;
              BringUpHarness harness(executor, story.name, kind);
              co_await play_in(harness, [&](BringUpHarness& w) { return play(w, story); });
            }
          });
        }
        co_await players.join();
      },
      280s);
}

// Exactly these commits, and one of everything else.
inline void expect_each_once(BringUpHarness& w,
                             const testing::Matcher<std::vector<std::string>>& commits) {
  SCOPED_TRACE(w.name);
  EXPECT_THAT(w.commits(), commits);
  if (!w.side.is_program()) EXPECT_EQ(w.accounts().life().registered.size(), 1U);
  EXPECT_EQ(w.secrets_with("io.codefresh.integration-type", "git").size(), 1U);
  const auto checked = w.git.git("config", {"fsck", "--no-progress", "--no-dangling"});
  EXPECT_EQ(checked.out + checked.err, "");
  const auto application = w.cluster.find(k8s::resources::kApplications, {"default", "new"});
  ASSERT_TRUE(application);
  EXPECT_EQ(application->value("/spec/source/path"_json_pointer, ""), "runtimes/new");
  if (w.side.is_program()) return;
  // A report that was not recorded comes a second time, with the same states.
  const auto& reports = w.accounts().life().clusters;
  ASSERT_FALSE(reports.empty());
  EXPECT_LE(reports.size(), 2U);
  EXPECT_THAT(reports, testing::Each(reports.front()));
}

}  // namespace gitops::test
