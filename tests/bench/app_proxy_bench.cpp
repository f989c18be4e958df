// app-proxy beside the reference server of GraphQL over HTTP (npm graphql-http on Node.js) with the same
// fields: the CPU that each uses per request; and what app-proxy takes when nobody asks anything. Each
// runs on one CPU, wrk on another; they work by turns in one run. Ratios hold within one run only.
//
// A list of repositories costs app-proxy the user, the integration's Secret and the Git host, which are doubles on a
// thread of this process; the reference server has its list in memory. The host calls its answer fresh for a minute, as
// GitHub does, so app-proxy asks it once, and reads the Secret once a second. A sync costs it the user, a read of the
// Application and the request to argocd-server, and a line of the audit stream.
//
// GITOPS_APP_PROXY_BEFORE=PROGRAM compares these three requests with another app-proxy instead, and measures nothing else.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "bench/median.hpp"
#include "bench/proc.hpp"
#include "common/core/idle_memory.hpp"
#include "common/daemon/loop_thread.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "k8s-client/resource.hpp"
#include "support/git_server.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"
#include "test_http/canned_server.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using bench::cpu_of;
using bench::median;
namespace fs = std::filesystem;

constexpr int kRounds = 7;
constexpr int kPairs = 31;  // of two builds
constexpr int kSeconds = 2;
constexpr double kMaxRatio = 0.1;
constexpr double kMaxOfBuilds = 1.02;
constexpr double kMaxIdle = 14.0;  // MB
constexpr double kMaxWithRepositories = 40.0;
constexpr int kRepositories = 10;   // that it has committed to
constexpr double kMaxStart = 50.0;  // ms

// What the public Go SDK sends.
constexpr const char* kBody =
    R"({"query":"\nquery VersionInfo {\n\tversionInfo {\n\t\tversion\n\t\tplatformHost\n\t\tplatformVersion\n\t}\n}","variables":{}})";

// A page of 100 repositories with every field.
constexpr const char* kListBody =
    R"({"query":"query Repositories($args: GitRepositoriesArgs) { gitRepositories(args: $args) { page count hasNext data { id provider fullName isRepoPrivate pushedAt openIssues cloneUrl sshUrl ownerLogin ownerAvatarUrl repoCreator org defaultBranch isRepoAdmin webUrl project } } }","variables":{"args":{"page":1,"limit":100}}})";
constexpr const char* kSyncBody =
    R"({"query":"mutation($name: String!) { sync(applicationName: $name) { metadata { name } } }","variables":{"name":"guestbook"}})";
constexpr const char* kUser = "user-key.1111";
constexpr const char* kProgram = GITOPS_BIN_DIR "/app-proxy";
constexpr const char* kPath = "/app-proxy/api/graphql";

// As much of an Application as a sync looks at.
http::Response application() {
  http::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = Json{{"metadata", {{"name", "guestbook"}, {"namespace", "argocd"}}},
                       {"spec", {{"project", "default"}}},
                       {"status", {{"sync", {{"status", "OutOfSync"}}}}}}
                      .dump();
  return response;
}

std::string repository(int number) {
  return "repository-" + std::to_string(number);
}

fs::path peer_folder() {
  const char* folder = std::getenv("GITOPS_PEERS_DIR");
  const char* home = std::getenv("HOME");
  return folder != nullptr && *folder != '\0'
             ? fs::path(folder)
             : fs::path(home == nullptr ? "/" : home) / ".cache/gitops-runtime/peers";
}

fs::path modules() {
  return peer_folder() / "share/graphql-http";
}

std::size_t number_behind(const std::string& text, std::string_view key) {
  const auto at = text.find(key);
  return at == std::string::npos
             ? 0
             : static_cast<std::size_t>(std::atoll(text.c_str() + at + key.size()));
}

struct Server {
  Process process;
  int port = 0;
};

Process started(std::vector<std::string> argv, Environment environment, const fs::path& log) {
  argv.insert(argv.begin(), {"taskset", "-c", "0"});
  return Process({.argv = std::move(argv), .env = std::move(environment), .log_file = log});
}

// The port that the log tells behind `key`.
int port_of(const fs::path& log, const std::string& key) {
  require_until([&] { return number_behind(read_file(log), key) > 0; }, std::chrono::seconds(20),
                "a server to start");
  return static_cast<int>(number_behind(read_file(log), key));
}

// CPU per request in µs, of one slice.
double slice(Server& server, const std::string& path, const fs::path& script,
             int seconds = kSeconds) {
  const auto before = cpu_of(server.process.pid());
  const auto out = run_or_throw({"taskset", "-c", "1", "wrk", "-t1", "-c32",
                                 "-d" + std::to_string(seconds) + "s", "-s", script.string(),
                                 "http://127.0.0.1:" + std::to_string(server.port) + path});
  const auto used = cpu_of(server.process.pid()) - before;
  if (out.contains("Non-2xx") || out.contains("Socket errors")) {
    throw std::runtime_error("not every request was answered:\n" + out);
  }
  const auto end = out.find(" requests in ");
  const auto begin = out.rfind('\n', end) + 1;
  const double requests = std::stod(out.substr(begin, end - begin));
  if (requests < 1) throw std::runtime_error("no request was answered:\n" + out);
  return used * 1e6 / requests;
}

// What app-proxy needs for a list: a control plane, an API server and a Git host. They live on a loop of
// their own thread.
class Doubles {
 public:
  Doubles()
      : platform_(loop_.executor()),
        cluster_(loop_.executor()),
        host_(loop_.executor(), app_proxy::ProviderKind::github),
        argocd_(loop_.executor(), {application()}) {
    auto& accounts = platform_.accounts();
    accounts.add({.id = "acc-1", .name = "acme", .admins = {"u-ann"}, .git_provider = {}});
    accounts.add(kUser, FakeAccounts::User{.id = "u-ann", .name = "Ann", .account_id = "acc-1"});
    accounts.add("runtime.2222", FakeAccounts::Runtime{.name = "prod", .account_id = "acc-1"});
    for (int i = 0; i < 100; ++i) {
      host_.add_repository("acme", repository(i));
    }
    git_.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    for (int i = 0; i < kRepositories; ++i) {
      git_.create_repository(repository(i));
      git_.commit(repository(i), {{"deploy/app.yaml", "replicas: 1\n"}}, "begin");
      host_.find("acme", repository(i))->clone_url = git_.url(repository(i));
    }
    on_loop([this]() -> Task<> {
      const bool listening = platform_.start() && cluster_.start() && host_.start();
      if (!listening) throw std::runtime_error("no port for the doubles");
      co_return;
    });
  }
  ~Doubles() {
    on_loop([this]() -> Task<> {
      co_await argocd_.stop();
      co_await host_.stop();
      co_await cluster_.stop();
      co_await platform_.stop();
    });
  }
  Doubles(const Doubles&) = delete;
  Doubles& operator=(const Doubles&) = delete;

  [[nodiscard]] Environment environment(const TempDir& folder) const {
    write_file(folder / "kubeconfig", cluster_.kubeconfig());
    return {{"CF_HOST", platform_.url().to_string()},
            {"RUNTIME_TOKEN", "runtime.2222"},
            {"RUNTIME_STORE_IV", "iv"},
            {"RUNTIME_NAME", "prod"},
            {"KUBECONFIG", (folder / "kubeconfig").string()},
            {"NAMESPACE", "default"},
            {"REPOS_DIR", (folder / "clones").string()},
            {"GIT_INSECURE_HTTP", "true"},
            {"ARGO_CD_URL", argocd_.url().to_string()},
            {"ARGO_CD_TOKEN", "argocd"},
            {"AUDIT_FILE", (folder / "audit").string()}};
  }
  // A pod of the runtime with a log of about that many bytes; returns how many.
  std::size_t add_log(const std::string& pod, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; text.size() < bytes; ++i) {
      text +=
          "2026-11-24T09:15:27.123456789Z level=info msg=\"request served\" path=/api/items id=" +
          std::to_string(i) + " status=200 duration=12ms\n";
    }
    const auto size = text.size();
    on_loop([&]() -> Task<> {
      cluster_.put(k8s::resources::kPods, {{"apiVersion", "v1"},
                                           {"kind", "Pod"},
                                           {"metadata", {{"name", pod}, {"namespace", "default"}}},
                                           {"spec", {{"containers", {{{"name", "main"}}}}}}});
      cluster_.append_pod_log(text);
      co_return;
    });
    return size;
  }
  [[nodiscard]] std::string git_url() const { return host_.api_root().text(); }

 private:
  template <class Work>
  void on_loop(Work work) {
    asio::co_spawn(loop_.executor(), std::move(work), asio::use_future).get();
  }

  LoopThread loop_;
  FakePlatform platform_;
  FakeKubeApi cluster_;
  FakeGitHost host_;
  CannedServer argocd_;
  GitServer git_;
};

Json must(const std::string& url, const Json& body) {
  const auto reply = http_call(
      {.method = "POST",
       .url = url,
       .headers = {"Content-Type: application/json", std::string("Authorization: ") + kUser},
       .body = body.dump()});
  Json json = Json::parse(reply.body, nullptr, false);
  if (!reply.ok() || json.contains("errors")) throw std::runtime_error(reply.body);
  return json;
}

// Waits until the daemon knows its account, and registers the user with the Git host.
void prepare(const std::string& url, const Doubles& doubles, const fs::path& log) {
  require_until([&] { return read_file(log).contains("the account is known"); },
                std::chrono::seconds(20), "the account");
  must(url,
       {{"query", "mutation($args: AddGitIntegrationArgs!){addGitIntegration(args:$args){name}}"},
        {"variables",
         {{"args",
           {{"provider", "GITHUB"},
            {"apiUrl", doubles.git_url()},
            {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}}}}});
  must(url, {{"query",
              "mutation($args: RegisterToGitIntegrationArgs!){registerToGitIntegration(args:$args)"
              "{name}}"},
             {"variables", {{"args", {{"token", FakeGitHost::kToken}}}}}});
  const auto page = must(url, Json::parse(kListBody));
  if (page["data"]["gitRepositories"]["count"] != 100) {
    throw std::runtime_error("not 100 repositories: " + page.dump());
  }
}

fs::path post_script(const TempDir& folder, const std::string& name, const std::string& body) {
  const auto script = folder / name;
  write_file(script,
             "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\n"
             "wrk.headers['Authorization'] = '" +
                 std::string(kUser) + "'\nwrk.body = [==[" + body + "]==]\n");
  return script;
}

// An app-proxy with its peers and a user who is registered with the Git host.
struct Side {
  explicit Side(const std::string& program) {
    auto environment = doubles.environment(folder);
    environment.merge(Environment{{"PORT", "0"},
                                  {"ADMIN_PORT", "0"},
                                  {"LISTEN_ADDRESS", "127.0.0.1"},
                                  {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                                  {"MAX_OPERATIONS_PER_USER", "100"}});
    server.emplace(Server{.process = started({program}, std::move(environment), log())});
    server->port = port_of(log(), R"("message":"serving","port":)");
  }
  [[nodiscard]] fs::path log() const { return folder / "log"; }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server->port) + kPath;
  }
  void register_user() const { prepare(url(), doubles, log()); }

  TempDir folder;
  Doubles doubles;
  std::optional<Server> server;
};

void print(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// CPU-seconds of all children that have ended.
double cpu_of_children() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The log of a pod through app-proxy as server-sent events, and by kubectl, from the same server.
void measure_logs(Server& server, Doubles& doubles, const TempDir& folder) {
  constexpr std::size_t kLog = std::size_t{64} * 1000 * 1000;
  const double megabytes = static_cast<double>(doubles.add_log("one-pod", kLog)) / 1e6;
  const auto kubectl = peer_folder() / "bin/kubectl";
  const bool has_peer = fs::exists(kubectl);
  std::vector<double> own;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    const auto before = cpu_of(server.process.pid());
    const auto text = folder / "log";
    run_or_throw({"curl", "-sSf", "-o", text.string(), "-H", std::string("Authorization: ") + kUser,
                  "-H", "Accept: text/event-stream",
                  "http://127.0.0.1:" + std::to_string(server.port) +
                      "/app-proxy/api/applications/logs?componentName=one-pod"});
    own.push_back((cpu_of(server.process.pid()) - before) * 1e3 / megabytes);
    if (fs::file_size(text) < kLog) throw std::runtime_error("the log is not complete");
    if (!has_peer) continue;
    const auto before_peer = cpu_of_children();
    run_or_throw({"sh", "-c", "exec \"$0\" --kubeconfig \"$1\" -n default logs one-pod > \"$2\"",
                  kubectl.string(), (folder / "kubeconfig").string(), text.string()});
    theirs.push_back((cpu_of_children() - before_peer) * 1e3 / megabytes);
    if (fs::file_size(text) < kLog) throw std::runtime_error("the peer's log is not complete");
    ratios.push_back(own.back() / theirs.back());
  }
  Json row{{"name", "app-proxy-logs"}, {"unit", "ms CPU per MB"}, {"ours", median(own)}};
  if (has_peer) {
    row["peer"] = median(theirs);
    row["ratio"] = median(ratios);
  }
  row["note"] = has_peer ? "a log of 64 MB as server-sent events; peer: kubectl logs"
                         : "peer not run: ./dev peers kubernetes";
  print(row);
}

// CPU per request of this build and of another one, in slices by turns: what else the machine does meets both.
void compare_builds(const std::string& before) {
  Side ours(kProgram);
  Side theirs(before);
  for (const auto* side : {&ours, &theirs}) {
    side->register_user();
    must(side->url(), Json::parse(kSyncBody));
  }
  const TempDir scripts;
  const std::pair<const char*, const char*> requests[] = {
      {"version", kBody}, {"repositories", kListBody}, {"sync", kSyncBody}};
  for (const auto& [name, body] : requests) {
    const auto script = post_script(scripts, std::string(name) + ".lua", body);
    std::vector<double> of_ours;
    std::vector<double> of_theirs;
    std::vector<double> ratios;
    for (int pair = 0; pair < kPairs; ++pair) {
      of_theirs.push_back(slice(*theirs.server, kPath, script, 1));
      of_ours.push_back(slice(*ours.server, kPath, script, 1));
      ratios.push_back(of_ours.back() / of_theirs.back());
    }
    const auto ratio = median(ratios);
    print({{"name", std::string("app-proxy-before-") + name},
           {"unit", "µs CPU per request"},
           {"ours", median(of_ours)},
           {"peer", median(of_theirs)},
           {"ratio", ratio},
           {"goal", "<= 1.02"},
           {"holds", ratio <= kMaxOfBuilds},
           {"note", "peer: the program of GITOPS_APP_PROXY_BEFORE"}});
  }
}

void run() {
  const TempDir folder;
  const auto script = folder / "post.lua";
  write_file(script, std::string("wrk.method = 'POST'\nwrk.headers['Content-Type'] = "
                                 "'application/json'\nwrk.body = [==[") +
                         kBody + "]==]\n");
  Server ours{.process = started({kProgram},
                                 {{"PORT", "0"},
                                  {"ADMIN_PORT", "0"},
                                  {"LISTEN_ADDRESS", "127.0.0.1"},
                                  {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                                  {"CF_HOST", "http://127.0.0.1:9"},
                                  {"RUNTIME_TOKEN", "token"}},
                                 folder / "ours")};
  ours.port = port_of(folder / "ours", R"("message":"serving","port":)");
  port_of(folder / "ours", R"("start_ms":)");
  const auto start =
      static_cast<double>(number_behind(read_file(folder / "ours"), R"("start_ms":)"));
  const auto print_idle = [](const char* name, Server& server, const char* note) {
    // One request has been answered.
    (void)http_call({.method = "POST",
                     .url = "http://127.0.0.1:" + std::to_string(server.port) + kPath,
                     .headers = {"Content-Type: application/json"},
                     .body = kBody});
    // Longer than a process is quiet until it gives memory back (core/idle_memory).
    std::this_thread::sleep_for(2 * QuietWatch::kPeriod + std::chrono::seconds(1));
    const auto idle = bench::memory_of(server.process.pid(), "VmRSS:");
    print({{"name", name},
           {"unit", "MB"},
           {"ours", idle},
           {"goal", "<= 14"},
           {"holds", idle <= kMaxIdle},
           {"note", note}});
  };
  print_idle("app-proxy-rss-idle", ours, "without a cluster");
  print({{"name", "app-proxy-start"},
         {"unit", "ms"},
         {"ours", start},
         {"goal", "<= 50"},
         {"holds", start <= kMaxStart}});

  std::optional<Server> peer;
  std::string lacking;
  if (!fs::is_directory(modules() / "node_modules/graphql-http")) {
    lacking = "not run: ./dev peers graphql-http";
  } else if (!find_program("node")) {
    lacking = "not run: node is missing";
  } else {
    peer.emplace(
        Server{.process = started(
                   {"node", GITOPS_SOURCE_DIR "/tests/peers/graphql-http/server.mjs"},
                   {{"GRAPHQL_HTTP_MODULES", modules().string()}, {"NODE_ENV", "production"}},
                   folder / "peer")});
    peer->port = port_of(folder / "peer", "port ");
  }
  const auto compare = [&](const char* name, Server& server, const fs::path& body,
                           const std::string& note) {
    std::vector<double> own;
    std::vector<double> theirs;
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round) {
      own.push_back(slice(server, kPath, body));
      if (!peer) continue;
      theirs.push_back(slice(*peer, "/", body));
      if (round == 0) theirs.pop_back(), own.pop_back();  // its compiler warms up
      if (round > 0) ratios.push_back(own.back() / theirs.back());
    }
    Json row{
        {"name", name}, {"unit", "µs CPU per request"}, {"ours", median(own)}, {"goal", "<= 0.1"}};
    if (peer) {
      row["peer"] = median(theirs);
      row["ratio"] = median(ratios);
      row["holds"] = median(ratios) <= kMaxRatio;
      row["note"] = note;
    } else {
      row["note"] = lacking;
    }
    print(row);
  };
  compare("app-proxy-graphql-version", ours, script,
          "peer: npm graphql-http on Node.js, the same field; 32 connections");

  Side side(kProgram);
  auto& with_git = *side.server;
  print_idle("app-proxy-rss-idle-git", with_git, "with Git integrations and commits");
  const auto own_url = side.url();
  side.register_user();
  compare("app-proxy-graphql-repositories", with_git, post_script(folder, "list.lua", kListBody),
          "a page of 100 repositories of one user, kept as long as the Git host calls it fresh, as "
          "GitHub does for a minute; peer: npm graphql-http with the same list in memory; 32 "
          "connections");

  const auto sync_script = post_script(folder, "sync.lua", kSyncBody);
  must(own_url, Json::parse(kSyncBody));
  std::vector<double> syncs;
  for (int round = 0; round < kRounds; ++round) {
    syncs.push_back(slice(with_git, kPath, sync_script));
  }
  print({{"name", "app-proxy-sync"},
         {"unit", "µs CPU per request"},
         {"ours", median(syncs)},
         {"note",
          "user, rights, a read of the Application, the sync and its audit line; 32 "
          "connections"}});

  measure_logs(with_git, side.doubles, side.folder);

  for (int i = 0; i < kRepositories; ++i) {
    must(own_url,
         {{"query", "mutation($args: CommitFilesArgs!){commitFiles(args: $args){sha}}"},
          {"variables",
           {{"args",
             {{"repo", "acme/" + repository(i)},
              {"files", Json::array({{{"path", "deploy/app.yaml"}, {"data", "replicas: 2\n"}}})},
              {"msg", "scale"}}}}}});
  }
  const auto used = bench::memory_of(with_git.process.pid(), "VmRSS:");
  print({{"name", "app-proxy-rss-repositories"},
         {"unit", "MB"},
         {"ours", used},
         {"goal", "<= 40"},
         {"holds", used <= kMaxWithRepositories},
         {"note", "after commits to " + std::to_string(kRepositories) +
                      " repositories, and after the load above"}});
}

}  // namespace
}  // namespace gitops::test

int main() {
  try {
    if (const char* before = std::getenv("GITOPS_APP_PROXY_BEFORE")) {
      gitops::test::compare_builds(before);
    } else {
      gitops::test::run();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
