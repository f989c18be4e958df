// The event-reporter as a process under a stream of changes: how long a change takes from its write
// to the acknowledgement of its last event, what it costs, whether that depends on how many
// applications there are, what a restart costs, and how much is asked and posted for one change.
// Its peers are in this process: the double of the Kubernetes API, and an Argo CD and a control
// plane that do as little as they can.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <sched.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/proc.hpp"
#include "bench/reporter_daemon.hpp"
#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/process.hpp"
#include "support/sample_application.hpp"

namespace gitops::test {
namespace {

using bench::print_row;
using bench::ReporterDaemon;
using Json = nlohmann::json;

constexpr int kResources = 19;
constexpr int kRate = 400;  // changes per second
constexpr auto kLong = std::chrono::seconds(60);
constexpr int kMany = 10'000;
constexpr int kFew = 100;
constexpr auto kWarmUp = std::chrono::seconds(15);
constexpr int kPairs = 61;
// The other daemon does not take it for the silence in which it gives memory back.
constexpr auto kSlice = std::chrono::milliseconds(800);
constexpr std::size_t kOwnCpu = 0;
constexpr std::size_t kDaemonCpu = 1;
constexpr auto kPatience = std::chrono::minutes(5);

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// What argocd-server says about applications of `resources` Deployments. The first one's replicas
// are those of its application's last change.
class Answers {
 public:
  explicit Answers(int resources) {
    Json nodes = Json::array();
    Json managed = Json::array();
    for (int i = 0; i < resources; ++i) {
      const auto name = "web-" + std::to_string(i);
      nodes.push_back({{"group", "apps"},
                       {"version", "v1"},
                       {"kind", "Deployment"},
                       {"namespace", "shop"},
                       {"name", name},
                       {"uid", "uid-" + name},
                       {"resourceVersion", "7"},
                       {"createdAt", "2026-03-04T09:15:27Z"},
                       {"health", {{"status", "Healthy"}}}});
      const Json manifest = {{"apiVersion", "apps/v1"},
                             {"kind", "Deployment"},
                             {"metadata", {{"name", name}, {"namespace", "shop"}}},
                             {"spec", {{"replicas", i == 0 ? 314159265 : 2}}}};
      managed.push_back({{"group", "apps"},
                         {"kind", "Deployment"},
                         {"namespace", "shop"},
                         {"name", name},
                         {"targetState", manifest.dump()},
                         {"liveState", manifest.dump()}});
    }
    tree_ = Json{{"nodes", nodes}}.dump();
    auto text = Json{{"items", managed}}.dump();
    const std::string mark = "314159265";
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      parts_.push_back(text.substr(0, at));
      text.erase(0, at + mark.size());
    }
    parts_.push_back(text);
  }

  [[nodiscard]] const std::string& tree() const { return tree_; }
  [[nodiscard]] std::string managed(std::uint64_t replicas) const {
    auto out = parts_.front();
    for (std::size_t i = 1; i < parts_.size(); ++i) out += std::to_string(replicas) + parts_[i];
    return out;
  }

 private:
  std::string tree_;
  std::vector<std::string> parts_;
};

class World {
 public:
  World(const Executor& executor, int applications, int resources)
      : cluster_(executor),
        answers_(resources),
        argocd_(executor, {}, [this](http::Exchange& exchange) { return tell(exchange); }),
        platform_(executor, {}, [this](http::Exchange& exchange) { return take(exchange); }) {
    if (!cluster_.start() || !argocd_.listen() || !platform_.listen()) {
      throw std::runtime_error("the peers do not start");
    }
    write_file(folder_ / "kubeconfig", cluster_.kubeconfig());
    for (int i = 0; i < applications; ++i) {
      names_.push_back("app-" + std::to_string(i));
      const auto stored =
          cluster_.put(k8s::resources::kApplications,
                       Json::parse(sample_application("argocd", names_.back(), "1", resources)));
      by_uid_.emplace(stored["metadata"]["uid"].get<std::string>(), i);
      apps_.emplace_back();
    }
  }
  Task<> stop() {
    co_await argocd_.stop(deadline_after(std::chrono::seconds(1)));
    co_await platform_.stop(deadline_after(std::chrono::seconds(1)));
    co_await cluster_.stop();
  }

  [[nodiscard]] bench::PeerAddresses addresses() const {
    const auto local = [](int port) { return "http://127.0.0.1:" + std::to_string(port); };
    return {.kubeconfig = (folder_ / "kubeconfig").string(),
            .argocd = local(argocd_.port()),
            .platform = local(platform_.port())};
  }
  [[nodiscard]] std::size_t applications() const { return apps_.size(); }
  [[nodiscard]] std::string ledger() const { return (folder_ / "ledger.db").string(); }

  // Argo CD has synced a new commit, which changed one of the application's resources.
  void change(std::size_t index) {
    auto object = *cluster_.find(k8s::resources::kApplications, {"argocd", names_[index]});
    char commit[41];
    std::snprintf(commit, sizeof commit, "%040llx", static_cast<unsigned long long>(++changes_));
    auto& status = object["status"];
    status["sync"]["revision"] = commit;
    status["operationState"]["startedAt"] = "2026-03-05T00:00:00Z";
    status["operationState"]["operation"]["sync"]["revision"] = commit;
    status["operationState"]["syncResult"]["revision"] = commit;
    status["history"].back()["revision"] = commit;
    auto& app = apps_[index];
    ++app.replicas;
    const auto written = Clock::now();
    const auto stored = cluster_.put(k8s::resources::kApplications, std::move(object));
    app.waiting.push_back(
        {.version = number(stored["metadata"]["resourceVersion"].get<std::string>()),
         .written = written});
    ++waiting_;
  }

  // Changes applications in turns, at the rate, for that long; then waits for what is due.
  Task<> change_for(Clock::duration time) {
    latencies_.clear();
    const auto begin = Clock::now();
    const auto count = static_cast<int>(seconds(time) * kRate);
    for (int i = 0; i < count; ++i) {
      const auto due = begin + std::chrono::microseconds(1'000'000LL / kRate * i);
      if (due > Clock::now()) co_await sleep_for(due - Clock::now());
      change(static_cast<std::size_t>(i) % apps_.size());
    }
    co_await until([this] { return waiting_ == 0; }, "the last acknowledgement");
  }
  Task<> until(std::function<bool()> condition, std::string what) {
    const auto give_up = deadline_after(kPatience);
    while (!condition()) {
      if (Clock::now() > give_up) throw std::runtime_error("no end of waiting for " + what);
      co_await sleep_for(std::chrono::milliseconds(5));
    }
  }

  struct Counts {
    std::size_t reads = 0;
    std::size_t posts = 0;
    std::size_t application_posts = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  // Of the changes whose every event was acknowledged, in seconds, ascending.
  [[nodiscard]] std::vector<double> latencies() const {
    auto out = latencies_;
    std::ranges::sort(out);
    return out;
  }
  // Changes of which the application's own event never came.
  [[nodiscard]] std::size_t skipped() const { return skipped_; }

 private:
  struct Change {
    std::uint64_t version = 0;
    Clock::time_point written;
    bool application = false;  // its event came
  };
  struct App {
    std::uint64_t replicas = 1;
    std::deque<Change> waiting;
  };

  Task<> tell(http::Exchange& exchange) {
    const auto path = exchange.path();
    std::string body = R"({"Version":"v3.0.0"})";
    if (!path.ends_with("/version")) ++counts_.reads;
    if (path.ends_with("/resource-tree")) {
      body = answers_.tree();
    } else if (path.ends_with("/managed-resources")) {
      const auto name = path.substr(0, path.rfind('/'));
      body = answers_.managed(apps_[number(name.substr(name.rfind('-') + 1))].replicas);
    } else if (path.ends_with("/metadata")) {
      body = R"({"author":"A <a@example.com>","date":"2026-03-04T09:12:02Z","message":"scale"})";
    }
    std::ignore = co_await exchange.reply(
        {.headers = {{"Content-Type", "application/json"}}, .body = std::move(body)});
  }

  Task<> take(http::Exchange& exchange) {
    if (!co_await exchange.read_body(std::size_t{16} * 1024 * 1024)) co_return;
    const std::string id(exchange.request().headers.find("X-Event-Id").value_or(""));
    std::ignore = co_await exchange.reply({.body = "{}"});
    // <uid>/<resourceVersion>/<part>/<content>
    const auto uid_end = id.find('/');
    const auto version_end = id.find('/', uid_end + 1);
    const auto app = by_uid_.find(id.substr(0, uid_end));
    if (app == by_uid_.end()) co_return;
    const bool of_application = id.substr(version_end + 1).starts_with("application/");
    ++counts_.posts;
    counts_.application_posts += of_application;
    settle(apps_[app->second], number(id.substr(uid_end + 1, version_end - uid_end - 1)),
           of_application);
  }

  // A change is settled by the first event of a resource that is as new as it is; before that comes
  // the application's own.
  void settle(App& app, std::uint64_t version, bool of_application) {
    for (auto& change : app.waiting) {
      if (of_application && change.version == version) change.application = true;
    }
    while (!of_application && !app.waiting.empty() && app.waiting.front().version <= version) {
      latencies_.push_back(seconds(Clock::now() - app.waiting.front().written));
      skipped_ += !app.waiting.front().application;
      app.waiting.pop_front();
      --waiting_;
    }
  }

  TempDir folder_;
  FakeKubeApi cluster_;
  Answers answers_;
  http::Server argocd_;
  http::Server platform_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> by_uid_;
  std::deque<App> apps_;
  std::uint64_t changes_ = 0;
  std::size_t waiting_ = 0;
  std::size_t skipped_ = 0;
  std::vector<double> latencies_;
  Counts counts_;
};

// The processes that it starts inherit where this one may run.
void run_on(std::size_t cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
    throw std::runtime_error("needs two CPUs: one for the daemon, one for its peers");
  }
}

ReporterDaemon start_daemon(const World& world) {
  run_on(kDaemonCpu);
  ReporterDaemon daemon(world.addresses(), {{"LEDGER_FILE", world.ledger()}});
  run_on(kOwnCpu);
  return daemon;
}

// Applications and the daemon that reports them.
struct Side {
  Side(const Executor& executor, int applications)
      : world(executor, applications, kResources), daemon(start_daemon(world)) {}

  Task<> report_all() {
    co_await world.until(
        [&] { return world.counts().posts >= world.applications() * (kResources + 1); },
        "the first reports");
  }
  // CPU seconds of the daemon per change, at the rate.
  Task<double> cost_for(Clock::duration time) {
    const auto before = bench::cpu_of(daemon.pid());
    co_await world.change_for(time);
    const auto used = bench::cpu_of(daemon.pid()) - before;
    co_return used / static_cast<double>(world.latencies().size());
  }

  World world;
  ReporterDaemon daemon;
};

// What a change costs among many and among few, in turns: what else the machine does meets both.
Task<> compare(Side& many, Side& few) {
  co_await few.cost_for(kWarmUp);
  double of_many = 0;
  double of_few = 0;
  std::vector<double> ratios;
  for (int i = 0; i < kPairs; ++i) {
    const auto one_of_few = co_await few.cost_for(kSlice);
    const auto one_of_many = co_await many.cost_for(kSlice);
    of_few += one_of_few / kPairs;
    of_many += one_of_many / kPairs;
    ratios.push_back(one_of_many / one_of_few);
  }
  std::ranges::sort(ratios);
  char note[200];
  std::snprintf(note, sizeof note,
                "median of %d pairs of %.1f s each, %.2f to %.2f; %.3f ms of CPU per change among "
                "%zu, %.3f ms among %zu applications",
                kPairs, seconds(kSlice), ratios.front(), ratios.back(), of_few * 1000,
                few.world.applications(), of_many * 1000, many.world.applications());
  print_row("event-reporter, cost of a change, 10,000 : 100 applications", "ratio",
            ratios[ratios.size() / 2], 1.1, note);
}

Task<> measure_many(const Executor& executor, http::Client& http) {
  std::fprintf(stderr, "changes: making %d applications\n", kMany);
  Side few(executor, kFew);
  Side many(executor, kMany);
  co_await few.report_all();
  co_await many.report_all();
  std::fprintf(stderr, "changes: reported; %d changes a second for %.0f s\n", kRate,
               seconds(kLong));
  const auto cost = co_await many.cost_for(kLong);
  const auto latencies = many.world.latencies();
  const auto at = [&](double part) {
    return latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))];
  };
  char note[200];
  std::snprintf(note, sizeof note,
                "write of the Application to acknowledgement of its last event; %zu changes of "
                "%d applications, one commit and one of %d resources each; median %.3f s, most "
                "%.3f s",
                latencies.size(), kMany, kResources, at(0.5), at(1));
  print_row("event-reporter, 400 changes/s, p99", "s", at(0.99), 1, note);
  print_row("event-reporter, changes whose event was skipped", "changes",
            static_cast<double>(many.world.skipped()), 0, "of the same run");
  print_row("event-reporter, CPU per change", "ms", cost * 1000, 8.3,
            "two events, three reads of Argo CD; the goal is a tenth of the 83 ms that the "
            "existing program was measured with elsewhere");
  print_row("event-reporter, memory after all that", "MB",
            bench::memory_of(many.daemon.pid(), "VmRSS:"), 64, "resident, 10,000 applications");

  std::fprintf(stderr, "changes: among %d and among %d applications in turns\n", kMany, kFew);
  co_await compare(many, few);
  co_await few.daemon.stop();
  co_await few.world.stop();
  co_await many.daemon.stop();

  const auto posts = many.world.counts().posts;
  const auto begin = Clock::now();
  auto daemon = start_daemon(many.world);
  co_await daemon.until_ready(http);
  const auto ready = seconds(Clock::now() - begin);
  co_await daemon.until_settled(http);
  print_row("event-reporter, restart to ready with 10,000 applications", "ms", ready * 1000, 2000,
            "the ledger holds all of them");
  print_row("event-reporter, events after that restart", "events",
            static_cast<double>(many.world.counts().posts - posts), 0, "nothing has changed");
  co_await daemon.stop();
  co_await many.world.stop();
}

// One commit that changes one of N resources.
Task<> measure_fan_out(const Executor& executor) {
  for (const int resources : {5, 30, 100, 1000}) {
    World world(executor, 1, resources);
    auto daemon = start_daemon(world);
    co_await world.until(
        [&] { return world.counts().posts >= static_cast<std::size_t>(resources) + 1; },
        "the first report");
    const auto before = world.counts();
    co_await world.change_for(std::chrono::milliseconds(1001 / kRate + 1));
    co_await daemon.stop();
    const auto reads = world.counts().reads - before.reads;
    const auto posts = world.counts().posts - before.posts;
    char note[160];
    std::snprintf(note, sizeof note,
                  "%zu reads of Argo CD and %zu posts; the existing program's source makes %d "
                  "and %d when all are due",
                  reads, posts, resources + 5, resources + 1);
    print_row("event-reporter, requests for a change of 1 of " + std::to_string(resources),
              "requests", static_cast<double>(reads + posts), 5, note);
    co_await world.stop();
  }
}

Task<> measure() {
  run_on(kOwnCpu);
  const auto executor = co_await asio::this_coro::executor;
  Metrics metrics;
  net::Resolver resolver(metrics);
  http::Client http(executor, resolver, {});
  co_await measure_fan_out(executor);
  co_await measure_many(executor, http);
}

}  // namespace
}  // namespace gitops::test

int main() {
  return gitops::bench::run("changes", [] { return gitops::test::measure(); });
}
