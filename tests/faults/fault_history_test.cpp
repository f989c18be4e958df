#include <csignal>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <optional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "common/core/encoding.hpp"
#include "faults/history_model.hpp"
#include "support/fake_argocd.hpp"
#include "support/fake_kube_api.hpp"
#include "support/fake_platform.hpp"
#include "support/reporter_process.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"

// The real event-reporter goes through a history of changes and faults that one seed decides; when
// the faults are over, a model says whether the control plane was told everything.
// GITOPS_SEED replays a seed, GITOPS_FAULTS sets how many faults there are, GITOPS_LONG=1 makes it
// 1,000.
namespace gitops::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t kApplications = 12;
constexpr std::size_t kResources = 6;  // of one application at most
constexpr auto kSettle = std::chrono::seconds(80);
constexpr const char* kArgoCdToken = "argocd.double.token";
// Longer than what is acknowledged needs to reach the ledger's file, on a busy machine.
constexpr auto kUncommitted = milliseconds(500);

std::string environment_or(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(otherwise);
}

// The seed of this run, printed.
std::uint64_t take_seed() {
  const auto seed =
      std::stoull(environment_or("GITOPS_SEED", std::to_string(std::random_device{}())));
  std::cout << "GITOPS_SEED=" << seed << " replays this history" << std::endl;
  return seed;
}

// The reporter, its peers behind relays, and the truth about the applications. What happens is
// decided by `seed` alone; how it interleaves with the reporter is up to the machine.
class History {
 public:
  struct Figures {
    std::size_t changes = 0;
    std::map<std::string, std::size_t> faults;
    std::size_t restarts = 0;
    // How many events may come twice: what was in flight or not in the ledger's file at a restart,
    // and acknowledgements that were cut off.
    std::size_t allowed_duplicates = 0;
  };

  History(const Executor& executor, std::uint64_t seed)
      : kube(executor), argocd(executor, kube), platform(executor), random_(seed) {
    // A full disk is a limit on the size of files here; what goes beyond it shall be an error.
    std::signal(SIGXFSZ, SIG_IGN);
  }

  Task<> start() {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(argocd.start());
    CO_ASSERT_OK(platform.start());
    const auto executor = co_await asio::this_coro::executor;
    for (const DoubleServer* server : servers_) {
      relays_.emplace_back(executor, "127.0.0.1", server->url().port);
    }
    kube.put(k8s::resources::kSecrets,
             {{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", {{"name", "argocd-token"}, {"namespace", "argocd"}}},
              {"data", {{"token", gitops::base64_encode(std::string(kArgoCdToken))}}}});
    auto kubeconfig = kube.kubeconfig();
    const auto url = kube.url().to_string();
    kubeconfig.replace(kubeconfig.find(url), url.size(), through(0));
    write_file(folder_ / "kubeconfig", kubeconfig);
    write_file(folder_ / "platform-token", "platform-token\n");
    for (int revision = 0; revision < 10; ++revision) {
      argocd.set_revision("r" + std::to_string(revision),
                          {{"author", "a"}, {"date", "2026-03-04T09:12:02Z"}, {"message", "m"}});
    }
    start_daemon();
    CO_ASSERT_TRUE(co_await daemon->wait_for_readyz("ready\n"));
  }

  Task<> stop() {
    end_faults();
    if (daemon && daemon->process().running()) EXPECT_EQ(co_await daemon->stop(), 0);
    for (auto& relay : relays_) co_await relay.stop();
    co_await platform.stop();
    co_await argocd.stop();
    co_await kube.stop();
  }

  // -- changes --

  void change() {
    ++figures.changes;
    const auto name = "app-" + std::to_string(pick(kApplications));
    const auto found = uids_.find(name);
    if (found == uids_.end()) {
      create(name);
      return;
    }
    auto& app = model.app(found->second);
    const auto resource = name + "-c" + std::to_string(pick(kResources));
    switch (pick(12)) {
      case 0:
        app.state.revision = "r" + std::to_string(pick(10));
        break;
      case 1:
        app.state.health = pick_from({"Healthy", "Degraded", "Progressing"});
        break;
      case 2:
        app.state.sync = pick_from({"Synced", "OutOfSync"});
        break;
      case 3:
      case 4:
        change_resource(app, resource);
        break;
      case 5:
        // Argo CD does not write the Application for this.
        if (app.resources.contains(resource)) {
          app.resources[resource].health = pick_from({"Healthy", "Degraded", "Progressing"});
          version(resource);
          write_answers(app);
          return;
        }
        change_resource(app, resource);
        break;
      case 6:
      case 7:
        if (app.resources.erase(resource) == 0) change_resource(app, resource);
        break;
      case 8:
        remove(name);
        return;
      case 9:
        remove(name);
        create(name);
        return;
      case 10:
        // Several states in a row, back to the first.
        for (const auto* health : {"Degraded", "Progressing", "Healthy"}) {
          app.state.health = health;
          write(app);
        }
        break;
      default:
        break;
    }
    app.state.content = next_content();
    write(app);
  }

  // Every application and every resource gets another content, by one write each.
  void change_all() {
    for (const auto& [name, uid] : uids_) {
      auto& app = model.app(uid);
      app.state.content = next_content();
      for (std::size_t i = 0; i < kResources; ++i) {
        change_resource(app, name + "-c" + std::to_string(i));
      }
      write(app);
    }
  }
  void create_all() {
    for (std::size_t i = 0; i < kApplications; ++i) {
      const auto name = "app-" + std::to_string(i);
      if (!uids_.contains(name)) create(name);
    }
  }

  // Changes with short pauses, so that the reporter is somewhere in the middle of its work.
  Task<> live(std::size_t changes) {
    for (std::size_t i = 0; i < changes; ++i) {
      for (auto more = 1 + pick(3); more > 0; --more) change();
      co_await sleep_for(milliseconds(pick(60)));
    }
  }

  // -- faults --

  Task<> fault() {
    static const std::vector<std::pair<const char*, Task<> (History::*)()>> kinds{
        {"kill -9", &History::killed},
        {"kill -9", &History::killed},
        {"kill -9 right after a change", &History::killed_at_once},
        {"SIGTERM", &History::terminated},
        {"watches cut", &History::watches_cut},
        {"watches ended", &History::watches_ended},
        {"watches silent", &History::watches_silent},
        {"410", &History::too_old},
        {"connections cut", &History::connections_cut},
        {"connections cut", &History::connections_cut},
        {"half-open", &History::half_open},
        {"half-open", &History::half_open},
        {"unreachable", &History::unreachable},
        {"429", &History::too_many},
        {"5xx", &History::burst},
        {"5xx", &History::burst},
        {"no answer", &History::aborted},
        {"slow", &History::slow},
        {"full disk", &History::full_disk},
    };
    const auto& [name, inject] = kinds[pick(kinds.size())];
    ++figures.faults[name];
    log_ += std::string(name) + "; ";
    co_await (this->*inject)();
  }

  // Waits until nothing is lost. Everything is well again; the reporter may take its time to find
  // out: its pauses last up to 30 seconds.
  Task<bool> settled(Clock::duration limit) {
    end_faults();
    const auto deadline = deadline_after(limit);
    while (true) {
      receive();
      if (model.lost().empty() && co_await platform.wait_until_quiet(milliseconds(500), deadline)) {
        receive();
        if (model.lost().empty()) co_return true;
      }
      if (Clock::now() >= deadline) co_return false;
      std::ignore = co_await platform.wait_for_count(
          received_ + 1, std::min(deadline, deadline_after(std::chrono::seconds(1))));
    }
  }

  void receive() {
    for (; received_ < platform.reports().size(); ++received_) {
      model.receive(platform.reports()[received_]);
    }
  }

  // What the daemon has not written into its ledger yet; nothing when it does not answer.
  [[nodiscard]] std::optional<std::string> ledger_pending() const {
    const auto metrics = daemon->get("/metrics").body;
    const std::string name = "\ngitops_event_reporter_ledger_pending_rows ";
    const auto at = metrics.find(name);
    if (at == std::string::npos) return std::nullopt;
    const auto begin = at + name.size();
    return metrics.substr(begin, metrics.find('\n', begin) - begin);
  }

  void start_daemon() {
    daemon.emplace(
        std::vector<std::string>{std::string(GITOPS_BIN_DIR) + "/event-reporter", "--port=0",
                                 "--listen-address=127.0.0.1", "--admin-port=0",
                                 "--admin-address=127.0.0.1", "--ledger-file", ledger().string(),
                                 "--codefresh-token-file", (folder_ / "platform-token").string()},
        Environment{{"POD_NAMESPACE", "argocd"},
                    {"KUBECONFIG", (folder_ / "kubeconfig").string()},
                    {"ARGOCD_SERVER", through(1)},
                    {"ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"},
                    {"CODEFRESH_URL", through(2)},
                    {"APP_QUEUE_SIZE", "3"},  // smaller than the work, so that keys are refused
                    {"THREADINESS", "3"},
                    {"SWEEP_INTERVAL", "2s"},
                    {"LOG_LEVEL", "debug"}});
  }
  void kill_daemon() {
    allow_uncommitted();
    daemon->process().kill();
    ++figures.restarts;
  }
  [[nodiscard]] std::filesystem::path ledger() const { return folder_ / "ledger.db"; }
  [[nodiscard]] const std::string& log() const { return log_; }

  HistoryModel model;
  Figures figures;
  FakeKubeApi kube;
  FakeArgoCd argocd;
  FakePlatform platform;
  std::optional<ReporterProcess> daemon;

 private:
  // The same on every machine, which the distributions of the standard library are not.
  std::size_t pick(std::size_t n) { return random_() % n; }
  std::string pick_from(std::vector<std::string> values) { return values[pick(values.size())]; }
  std::string next_content() { return "content-" + std::to_string(++contents_); }
  [[nodiscard]] std::string through(std::size_t server) const {
    return "http://127.0.0.1:" + std::to_string(relays_[server].port());
  }

  // -- writing the truth --

  void create(const std::string& name) {
    const auto uid = "uid-" + name + "-" + std::to_string(++incarnations_);
    uids_[name] = uid;
    auto& app = model.add(uid, name);
    app.state = {
        .content = next_content(), .revision = "r0", .sync = "Synced", .health = "Healthy"};
    for (std::size_t i = pick(kResources); i > 0; --i) {
      change_resource(app, name + "-c" + std::to_string(i));
    }
    write(app);
  }
  void remove(const std::string& name) {
    const auto uid = uids_.at(name);
    uids_.erase(name);
    model.remove(uid);
    kube.remove(k8s::resources::kApplications, {.ns = "argocd", .name = name});
  }
  void change_resource(HistoryModel::App& app, const std::string& resource) {
    app.resources[resource] = {.content = next_content(),
                               .sync = pick_from({"Synced", "OutOfSync"}),
                               .health = pick_from({"Healthy", "Degraded"})};
    version(resource);
  }
  void version(const std::string& resource) { ++versions_[resource]; }

  // What Argo CD answers about an application: its tree and its manifests.
  void write_answers(const HistoryModel::App& app) {
    json nodes = json::array();
    json items = json::array();
    for (const auto& [name, resource] : app.resources) {
      const auto version = std::to_string(versions_[name]);
      const json id{{"kind", "ConfigMap"}, {"namespace", "shop"}, {"name", name}};
      json node = id;
      node["version"] = "v1";
      node["uid"] = "uid-" + name;
      node["resourceVersion"] = version;
      node["health"] = {{"status", resource.health}};
      nodes.push_back(std::move(node));
      json manifest{{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", name}, {"namespace", "shop"}}},
                    {"data", {{"content", resource.content}}}};
      json item = id;
      item["targetState"] = manifest.dump();
      manifest["metadata"]["resourceVersion"] = version;
      item["liveState"] = manifest.dump();
      items.push_back(std::move(item));
    }
    argocd.set_tree(app.name, {{"nodes", std::move(nodes)}});
    argocd.set_managed_resources(app.name, std::move(items));
  }
  void write(const HistoryModel::App& app) {
    write_answers(app);
    json entries = json::array();
    for (const auto& [name, resource] : app.resources) {
      entries.push_back({{"kind", "ConfigMap"},
                         {"namespace", "shop"},
                         {"name", name},
                         {"version", "v1"},
                         {"status", resource.sync}});
    }
    kube.put(
        k8s::resources::kApplications,
        {{"apiVersion", "argoproj.io/v1alpha1"},
         {"kind", "Application"},
         {"metadata", {{"name", app.name}, {"namespace", "argocd"}, {"uid", uids_.at(app.name)}}},
         {"spec",
          {{"project", "default"},
           {"source", {{"repoURL", "https://git.example.com/x.git"}}},
           {"destination", {{"server", "https://kubernetes.default.svc"}}}}},
         {"status",
          {{"sync", {{"status", app.state.sync}, {"revision", app.state.revision}}},
           {"health", {{"status", app.state.health}}},
           {"content", app.state.content},
           {"resources", std::move(entries)}}}});
  }

  // -- kinds of faults --

  void allow_uncommitted() {
    const auto since = Clock::now() - kUncommitted;
    const auto& reports = platform.reports();
    for (auto it = reports.rbegin(); it != reports.rend() && it->arrived > since; ++it) {
      ++figures.allowed_duplicates;
    }
    allow_unanswered();
  }
  // Each connection to the control plane may have a post on it whose answer gets lost.
  void allow_unanswered() { figures.allowed_duplicates += relays_[2].connections(); }

  Task<> restart() {
    const auto down = pick(4);
    co_await live(down);
    start_daemon();
    // Not always in peace: it may be killed again before it has listed anything.
    if (pick(3) > 0) CO_ASSERT_TRUE(co_await daemon->started());
    co_await live(1 + pick(3));
  }
  Task<> killed() {
    co_await live(1);
    kill_daemon();
    co_await restart();
  }
  Task<> killed_at_once() {
    const auto seen = platform.reports().size();
    for (int i = 0; i < 4; ++i) change();
    std::ignore =
        co_await platform.wait_for_count(seen + 1 + pick(6), deadline_after(milliseconds(300)));
    kill_daemon();
    co_await restart();
  }
  Task<> terminated() {
    co_await live(1);
    allow_unanswered();
    ++figures.restarts;
    CO_ASSERT_TRUE(co_await daemon->started());
    EXPECT_EQ(co_await daemon->stop(), 0);
    co_await restart();
  }
  Task<> watches_cut() {
    kube.cut_watches();
    co_await live(2);
  }
  Task<> watches_ended() {
    kube.end_watches();
    co_await live(2);
  }
  Task<> watches_silent() {
    kube.stall_watches(true);
    co_await live(3);
    if (pick(2) == 0) kube.cut_watches();
    kube.stall_watches(false);
    co_await live(1);
  }
  Task<> too_old() {
    kube.stall_watches(true);
    co_await live(2);
    kube.compact();
    kube.cut_watches();
    kube.stall_watches(false);
    co_await live(1);
  }
  Task<> connections_cut() {
    auto& relay = relays_[pick(relays_.size())];
    for (auto times = 1 + pick(3); times > 0; --times) {
      change();
      co_await sleep_for(milliseconds(pick(20)));
      allow_unanswered();
      relay.cut();
    }
    co_await live(1);
  }
  Task<> half_open() {
    auto& relay = relays_[pick(relays_.size())];
    relay.hold();
    co_await live(3 + pick(5));
    if (pick(2) == 0) {
      allow_unanswered();
      relay.cut();
    }
    relay.release();
    co_await live(1);
  }
  Task<> unreachable() {
    auto& relay = relays_[pick(relays_.size())];
    allow_unanswered();
    relay.close();
    co_await live(2 + pick(4));
    relay.open();
    co_await live(1);
  }
  Task<> too_many() {
    servers_[pick(servers_.size())]->fail_next(1 + pick(3), 429, std::chrono::seconds(1));
    co_await live(3);
  }
  Task<> burst() {
    const auto server = pick(servers_.size());
    // A 500 of Argo CD is about one application, and after some of them the reporter does without
    // the answer for minutes.
    const int status = server != 1 && pick(2) == 0 ? 500 : 503;
    servers_[server]->fail_next(1 + pick(12), status);
    co_await live(3);
    servers_[server]->end_faults();
  }
  Task<> aborted() {
    allow_unanswered();
    servers_[pick(servers_.size())]->abort_next(1 + pick(4));
    co_await live(3);
  }
  Task<> slow() {
    auto& server = *servers_[pick(servers_.size())];
    server.delay_answers(milliseconds(50 + pick(400)));
    co_await live(3);
    server.end_faults();
  }
  Task<> full_disk() {
    CO_ASSERT_TRUE(co_await daemon->started());
    limit_files(4096);
    co_await live(3 + pick(5));
    limit_files(RLIM_INFINITY);
    // What the file lacks now would be lost by the next kill.
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (ledger_pending() != "0") {
      CO_ASSERT_TRUE(Clock::now() < deadline) << "the ledger stays behind";
      co_await sleep_for(milliseconds(50));
    }
  }
  void limit_files(rlim_t bytes) {
    rlimit limit{};
    ::prlimit(daemon->process().pid(), RLIMIT_FSIZE, nullptr, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    EXPECT_EQ(::prlimit(daemon->process().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }
  void end_faults() {
    for (auto* server : servers_) server->end_faults();
    kube.stall_watches(false);
    for (auto& relay : relays_) {
      relay.open();
      relay.release();
    }
  }

  TempDir folder_;
  std::vector<DoubleServer*> servers_{&kube, &argocd, &platform};
  std::deque<TcpRelay> relays_;  // beside servers_
  std::mt19937_64 random_;
  std::map<std::string, std::string> uids_;      // of the applications that exist, by name
  std::map<std::string, std::size_t> versions_;  // of resources
  std::size_t incarnations_ = 0;
  std::size_t contents_ = 0;
  std::size_t received_ = 0;
  std::string log_;
};

void play(std::chrono::seconds limit, const std::function<Task<>(History&)>& body) {
  const auto seed = take_seed();
  run_coro(
      [&]() -> Task<> {
        History history(co_await asio::this_coro::executor, seed);
        co_await history.start();
        std::exception_ptr failure;
        try {
          if (!::testing::Test::HasFailure()) co_await body(history);
        } catch (...) {
          failure = std::current_exception();
        }
        if (::testing::Test::HasFailure() && history.daemon) {
          const auto log = history.daemon->log();
          std::cout << "faults: " << history.log() << "\nthe end of the last log:\n"
                    << log.substr(log.size() - std::min<std::size_t>(log.size(), 20'000))
                    << std::endl;
        }
        co_await history.stop();
        if (failure) std::rethrow_exception(failure);
      },
      limit);
}

std::size_t number_of_faults() {
  const bool is_long = environment_or("GITOPS_LONG", "") == "1";
  return std::stoul(environment_or("GITOPS_FAULTS", is_long ? "1000" : "100"));
}

TEST(FaultHistory, NothingIsLostWhateverFails) {
  const auto faults = number_of_faults();
  play(std::chrono::seconds(120 + 2 * faults), [faults](History& history) -> Task<> {
    const auto begin = Clock::now();
    bool settled = true;
    for (std::size_t i = 1; i <= faults && settled; ++i) {
      co_await history.live(1);
      co_await history.fault();
      if (::testing::Test::HasFatalFailure()) co_return;
      // What is lost now may be repaired by a later change.
      if (i % 10 == 0) settled = co_await history.settled(kSettle);
    }
    const std::chrono::duration<double> played = Clock::now() - begin;
    settled = settled && co_await history.settled(kSettle);
    const std::chrono::duration<double> took = Clock::now() - begin;
    const auto lost = history.model.lost();
    const auto& figures = history.figures;
    std::cout << "faults " << faults << ", restarts " << figures.restarts << ", changes "
              << figures.changes << ", events " << history.model.events() << ", duplicates "
              << history.model.duplicates() << " of at most " << figures.allowed_duplicates
              << ", lost " << lost.size() << "; " << played.count() << " s, settled after "
              << (took - played).count() << " s more" << std::endl;
    for (const auto& [name, count] : figures.faults)
      std::cout << "  " << name << ": " << count << "\n";
    for (const auto& lines : {lost, history.model.wrong()}) {
      for (const auto& line : lines) {
        std::cout << line << "\n" << history.model.trail(line.substr(0, line.find_first_of(" :")));
      }
    }
    EXPECT_TRUE(settled);
    EXPECT_THAT(lost, IsEmpty());
    EXPECT_THAT(history.model.wrong(), IsEmpty());
    EXPECT_THAT(history.platform.refused(), IsEmpty());
    EXPECT_LE(history.model.duplicates(), figures.allowed_duplicates);
    EXPECT_GT(history.model.events(), faults);
  });
}

TEST(FaultHistory, ADamagedLedgerMeansThatEverythingIsReportedAgain) {
  play(std::chrono::seconds(100), [](History& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    history.kill_daemon();
    const auto before = history.platform.reports().size();
    write_file(history.ledger(), std::string(8192, 'x'));
    for (const auto* rest : {"-wal", "-shm"}) {
      std::filesystem::remove(history.ledger().string() + rest);
    }
    history.start_daemon();
    constexpr auto kEvents = kApplications * (1 + kResources);
    CO_ASSERT_TRUE(co_await history.platform.wait_for_count(
        before + kEvents, deadline_after(std::chrono::seconds(30))));
    // And is of use again.
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    EXPECT_THAT(history.model.wrong(), IsEmpty());
    EXPECT_EQ(history.model.duplicates(), kEvents);
  });
}

TEST(FaultHistory, TheModelSeesALostEvent) {
  play(std::chrono::seconds(60), [](History& history) -> Task<> {
    history.create_all();
    history.change_all();
    CO_ASSERT_TRUE(co_await history.settled(std::chrono::seconds(30)));
    // One event each is the last about its object, and one in 50 gets lost.
    history.platform.forget_every(50);
    history.change_all();
    EXPECT_FALSE(co_await history.settled(std::chrono::seconds(5)));
    EXPECT_THAT(history.platform.forgotten(), Not(IsEmpty()));
    EXPECT_EQ(history.model.lost().size(), history.platform.forgotten().size());
    // A new state of everything repairs it.
    history.platform.forget_every(0);
    history.change_all();
    EXPECT_TRUE(co_await history.settled(std::chrono::seconds(30)));
  });
}

}  // namespace
}  // namespace gitops::test
