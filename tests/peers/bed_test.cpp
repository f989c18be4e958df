// The test bed itself: the real programs start, work together and end.

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/peer_bed.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

struct ProcessState {
  char letter = '?';  // as in /proc/PID/stat: Z is a zombie
  pid_t parent = 0;
};

std::optional<ProcessState> state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const std::size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return std::nullopt;
  ProcessState state;
  std::sscanf(text.c_str() + after_name + 1, " %c %d", &state.letter, &state.parent);
  return state;
}

std::set<pid_t> all_pids() {
  std::set<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) pids.insert(std::stoi(name));
  }
  return pids;
}

std::set<pid_t> own_children() {
  std::set<pid_t> children;
  for (const pid_t pid : all_pids()) {
    const auto state = state_of(pid);
    if (state && state->parent == ::getpid()) children.insert(pid);
  }
  return children;
}

/// All processes whose command line names the folder.
std::set<pid_t> users_of(const fs::path& folder) {
  std::set<pid_t> users;
  for (const pid_t pid : all_pids()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    if (text.contains(folder.string())) users.insert(pid);
  }
  return users;
}

bool is_gone(pid_t pid) {
  const auto state = state_of(pid);
  return !state || state->letter == 'Z' || state->letter == 'X';
}

constexpr const char* kManifests = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.test/web:1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {greeting: hello}
)";

TEST(PeerBed, ClusterIsReady) {
  GITOPS_REQUIRE_PEERS();
  PeerBed& bed = peer_bed();
  const std::string status = bed.cluster().kubectl_ok(
      {"get", "nodes", "--output",
       "jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].status}"});
  EXPECT_EQ(status, "True");
  std::printf("cluster ready after %.1f s, all peers after %.1f s\n",
              static_cast<double>(bed.cluster_start_time().count()) / 1000.0,
              static_cast<double>(bed.start_time().count()) / 1000.0);
}

TEST(PeerBed, ServiceAccountsHaveNoPermissionsUntilBound) {
  GITOPS_REQUIRE_PEERS();
  PeerCluster& cluster = peer_bed().cluster();
  cluster.create_namespace("bed-accounts", {{"purpose", "test"}});
  const std::string token = cluster.service_account_token("bed-accounts", "default");
  const auto list_pods = [&](const std::string& bearer) {
    return http_call({.url = cluster.server_url() + "/api/v1/namespaces/bed-accounts/pods",
                      .headers = {"Authorization: Bearer " + bearer},
                      .ca_file = cluster.ca_file()})
        .status;
  };
  EXPECT_EQ(list_pods(token), 403);
  cluster.kubectl_ok({"create", "rolebinding", "reader", "--namespace", "bed-accounts",
                      "--clusterrole", "view", "--serviceaccount", "bed-accounts:default"});
  EXPECT_TRUE(wait_until([&] { return list_pods(token) == 200; }, seconds(10), "the new right"));
  EXPECT_EQ(list_pods("nonsense"), 401);
  const fs::path kubeconfig = cluster.write_kubeconfig("bed-accounts", token);
  EXPECT_EQ(cluster.kubectl_ok({"auth", "can-i", "list", "pods", "--namespace", "bed-accounts",
                                "--kubeconfig", kubeconfig.string()}),
            "yes");
}

TEST(PeerBed, GitServerAsksForThePassword) {
  GITOPS_REQUIRE_PEERS();
  GitServer& git = peer_bed().git();
  git.create_repository("bed-git");
  const std::string first = git.commit("bed-git", {{"a/one.txt", "1"}, {"two.txt", "2"}}, "first");
  const std::string second =
      git.commit("bed-git", {{"two.txt", std::nullopt}}, "second", {"Ann", "ann@example.test"});
  EXPECT_NE(first, second);
  EXPECT_EQ(git.head("bed-git"), second);
  EXPECT_EQ(git.file_at_head("bed-git", "a/one.txt"), "1");
  EXPECT_EQ(git.file_at_head("bed-git", "two.txt"), std::nullopt);
  EXPECT_EQ(git.git("bed-git", {"log", "-1", "--format=%an %ae %s", "main"}).out,
            "Ann ann@example.test second\n");
  const TempDir home;
  const CommandResult anonymous =
      run_command({"git", "ls-remote", git.url("bed-git")}, isolated_git_environment(home.path()));
  EXPECT_NE(anonymous.exit_code, 0);
}

TEST(PeerBed, GitServerSpeaksTls) {
  GITOPS_REQUIRE_PEERS();
  CertificateAuthority authority;
  const Certificate certificate = authority.issue(
      {.common_name = "git", .organization = {}, .alt_names = {"localhost", "127.0.0.1"}});
  GitServer git(&certificate);
  git.create_repository("secure");
  const std::string address = git.tls_url("secure") + "/info/refs?service=git-upload-pack";
  EXPECT_EQ(http_call({.url = address, .ca_file = authority.ca_file()}).status, 401);
  const CertificateAuthority stranger;
  EXPECT_EQ(http_call({.url = address, .ca_file = stranger.ca_file()}).status, 0);
}

TEST(PeerBed, ArgoCdSyncsARepository) {
  GITOPS_REQUIRE_PEERS();
  PeerBed& bed = peer_bed();
  const std::string url = bed.git().create_repository("bed-sync");
  const std::string revision =
      bed.git().commit("bed-sync", {{"app/all.yaml", kManifests}}, "deploy");
  bed.argocd().add_repository(bed.git(), "bed-sync");
  bed.argocd().create_application("bed-sync", url, "app", "bed-sync");
  ASSERT_TRUE(bed.argocd().wait_for("bed-sync", "OutOfSync", "Missing", seconds(30)));
  bed.argocd().sync("bed-sync");
  ASSERT_TRUE(bed.argocd().wait_for("bed-sync", "Synced", "Healthy", seconds(30)));
  EXPECT_EQ(bed.argocd().app_field("bed-sync", "{.status.sync.revision}"), revision);
  EXPECT_EQ(bed.cluster().kubectl_ok({"get", "deployment", "web", "--namespace", "bed-sync",
                                      "--output", "jsonpath={.status.readyReplicas}"}),
            "2");
}

TEST(PeerBed, ArgoCdFollowsACommitByItself) {
  GITOPS_REQUIRE_PEERS();
  PeerBed& bed = peer_bed();
  const std::string url = bed.git().create_repository("bed-auto");
  bed.git().commit("bed-auto", {{"app/all.yaml", kManifests}}, "deploy");
  bed.argocd().add_repository(bed.git(), "bed-auto");
  bed.argocd().create_application("bed-auto", url, "app", "bed-auto", true);
  ASSERT_TRUE(bed.argocd().wait_for("bed-auto", "Synced", "Healthy", seconds(30)));
  const std::string next = bed.git().commit(
      "bed-auto", {{"app/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"}},
      "more");
  bed.argocd().app_json("bed-auto", "normal");
  EXPECT_TRUE(wait_until(
      [&] { return bed.cluster().kubectl({"get", "cm", "more", "-n", "bed-auto"}).ok(); },
      seconds(30), "the new ConfigMap"));
  EXPECT_TRUE(wait_until(
      [&] { return bed.argocd().app_field("bed-auto", "{.status.sync.revision}") == next; },
      seconds(30), "the new revision"));
}

TEST(PeerBed, ArgoCdReadsAreCounted) {
  GITOPS_REQUIRE_PEERS();
  const PeerArgoCd& argocd = peer_bed().argocd();
  const std::string method = "application.ApplicationService/List";
  const auto before = argocd.read_counts();
  for (int i = 0; i < 3; ++i) argocd.request_ok("GET", "/api/v1/applications");
  auto after = argocd.read_counts();
  const auto found = before.find(method);
  EXPECT_EQ(after[method] - (found == before.end() ? 0 : found->second), 3);
}

TEST(PeerBed, PodsServeTheirLog) {
  GITOPS_REQUIRE_PEERS();
  PeerCluster& cluster = peer_bed().cluster();
  cluster.create_namespace("bed-logs");
  cluster.kubectl_ok(
      {"run", "talker", "--namespace", "bed-logs", "--image", "example.test/talker:1"});
  cluster.kubectl_ok(
      {"wait", "--for=condition=Ready", "pod/talker", "--namespace", "bed-logs", "--timeout=30s"});
  cluster.append_pod_log("a line of this test");
  EXPECT_TRUE(wait_until(
      [&] {
        return cluster.kubectl({"logs", "talker", "--namespace", "bed-logs"})
            .out.contains("a line of this test");
      },
      seconds(10), "the line in the log"));
}

TEST(PeerCluster, SurvivesRestartsAndForgetsOldVersions) {
  GITOPS_REQUIRE_PEERS();
  PeerCluster cluster({.uncached_resources = {"configmaps"}, .request_timeout = seconds(3)});
  cluster.kubectl_ok({"create", "configmap", "kept"});
  const std::string version = cluster.kubectl_ok(
      {"get", "configmap", "kept", "--output", "jsonpath={.metadata.resourceVersion}"});
  cluster.compact_etcd();
  const HttpReply watch = cluster.request(
      "GET", "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=2&resourceVersion=" +
                 version);
  EXPECT_EQ(watch.status, 200);
  EXPECT_TRUE(watch.body.contains(R"("code":410)")) << watch.body;

  for (const auto how : {PeerCluster::Stop::kill, PeerCluster::Stop::terminate}) {
    cluster.stop_api_server(how);
    EXPECT_EQ(cluster.request("GET", "/readyz").status, 0);
    cluster.start_api_server();
    EXPECT_EQ(cluster.request("GET", "/api/v1/namespaces/default/configmaps/kept").status, 200);
  }
}

TEST(PeerCluster, TearsDownEverything) {
  GITOPS_REQUIRE_PEERS();
  const std::set<pid_t> before = own_children();
  std::vector<pid_t> pids;
  fs::path folder;
  {
    const PeerCluster cluster;
    pids = cluster.pids();
    folder = cluster.folder();
    EXPECT_EQ(pids.size(), 5U);
    EXPECT_FALSE(users_of(folder).empty());
  }
  for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid)) << pid;
  EXPECT_EQ(own_children(), before);
  EXPECT_TRUE(users_of(folder).empty());
  EXPECT_FALSE(fs::exists(folder));
}

TEST(Process, EndsWithACrashedTest) {
  const TempDir folder;
  const fs::path pid_file = folder / "pid";
  const pid_t crashing = ::fork();
  ASSERT_GE(crashing, 0);
  if (crashing == 0) {
    const Process sleeper({.argv = {"sleep", "600"}});
    write_file(folder / "pid.new", std::to_string(sleeper.pid()));
    fs::rename(folder / "pid.new", pid_file);
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(crashing, nullptr, 0), crashing);
  ASSERT_TRUE(fs::exists(pid_file));
  const pid_t sleeper = std::stoi(read_file(pid_file));
  EXPECT_TRUE(wait_until([&] { return is_gone(sleeper); }, seconds(5), "the kernel to clean up"));
}

TEST(Process, ReportsHowAProgramEnded) {
  Process quick({.argv = {"sh", "-c", "exit 7"}});
  EXPECT_EQ(quick.wait(seconds(5)), 7);
  EXPECT_FALSE(quick.running());

  Process stubborn({.argv = {"sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"}});
  EXPECT_TRUE(stubborn.running());
  EXPECT_EQ(stubborn.wait(std::chrono::milliseconds(50)), std::nullopt);
  EXPECT_EQ(stubborn.stop(std::chrono::milliseconds(200)), 128 + SIGKILL);

  EXPECT_THROW(Process({.argv = {"no-such-program-anywhere"}}), std::runtime_error);
}

TEST(Process, CommandsTakeInputAndTimeOut) {
  const CommandResult echo = run_command({"sh", "-c", "cat; echo \"$WHO\" >&2; exit 3"},
                                         {{"WHO", "me"}, {"HOME", std::nullopt}}, "input");
  EXPECT_EQ(echo.exit_code, 3);
  EXPECT_EQ(echo.out, "input");
  EXPECT_EQ(echo.err, "me\n");
  const CommandResult slow = run_command({"sleep", "600"}, {}, {}, std::chrono::milliseconds(100));
  EXPECT_EQ(slow.exit_code, -1);
  EXPECT_TRUE(slow.err.contains("killed after 100 ms")) << slow.err;
}

}  // namespace
}  // namespace gitops::test
