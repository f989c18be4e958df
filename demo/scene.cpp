#include "scene.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include <nlohmann/json.hpp>

#include "common/core/error.hpp"
#include "common/core/task_group.hpp"
#include "support/run_on.hpp"

namespace gitops::demo {

namespace {

using Json = nlohmann::json;

constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kPlatformToken = "demo-platform-token";
const test::CommitAuthor kAuthor{"Dana Example", "dana@example.test"};

test::FileChanges first_files() {
  return {{"deployment.yaml", deployment(2)},
          {"service.yaml",
           "apiVersion: v1\nkind: Service\nmetadata:\n  name: guestbook-ui\n"
           "spec:\n  selector: {app: guestbook}\n  ports:\n  - {port: 80}\n"},
          {"settings.yaml",
           "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: guestbook-settings\n"
           "data:\n  color: blue\n"},
          {"credentials.yaml",
           "apiVersion: v1\nkind: Secret\nmetadata:\n  name: guestbook-credentials\n"
           "stringData:\n  password: not-so-secret\n"},
          {"account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: guestbook\n"}};
}

const std::map<std::string, std::string>& first_resources() {
  static const std::map<std::string, std::string> resources{{"Deployment", "guestbook-ui"},
                                                            {"Service", "guestbook-ui"},
                                                            {"ConfigMap", "guestbook-settings"},
                                                            {"Secret", "guestbook-credentials"},
                                                            {"ServiceAccount", "guestbook"}};
  return resources;
}

std::string short_id(const std::string& revision) {
  return revision.substr(0, 7);
}

std::string fixed(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string last_lines(const std::string& text, std::size_t lines) {
  std::size_t from = text.size();
  for (std::size_t line = 0; line <= lines && from > 0; ++line) {
    from = text.rfind('\n', from - 1);
    if (from == std::string::npos) return text;
  }
  return text.substr(std::min(from + 1, text.size()));
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Returns the number of replicas in a report; -1 when it is missing.
int replicas_in(const test::FakePlatform::Report& report) {
  const auto live = Json::parse(report.source("actualManifest"), nullptr, false);
  return live.is_object() ? live.value("/spec/replicas"_json_pointer, -1) : -1;
}

// True for a report without manifests, which means a deletion. Such reports begin while the object
// is being deleted; `is_gone` is the last one.
bool is_deletion(const test::FakePlatform::Report& report) {
  return report.source("actualManifest").empty() && report.source("desiredManifest").empty();
}

bool is_gone(const test::FakePlatform::Report& report) {
  return is_deletion(report) && report.event_id.ends_with("/gone");
}

// Returns the value of a metric without labels; 0 when it is absent.
double metric(const std::string& text, const std::string& name) {
  const auto line = text.find("\n" + name + " ");
  return line == std::string::npos ? 0
                                   : std::strtod(text.c_str() + line + name.size() + 2, nullptr);
}

// Returns the deployed commit in the report; empty when absent.
std::string revision_of(const test::FakePlatform::Report& report) {
  if (report.kind() != "Application") return report.source("revision");
  return report.object.value("/status/sync/revision"_json_pointer, "");
}

}  // namespace

std::string deployment(int replicas) {
  return "apiVersion: apps/v1\n"
         "kind: Deployment\n"
         "metadata:\n"
         "  name: guestbook-ui\n"
         "spec:\n"
         "  replicas: " +
         std::to_string(replicas) +
         "\n"
         "  selector: {matchLabels: {app: guestbook}}\n"
         "  template:\n"
         "    metadata: {labels: {app: guestbook}}\n"
         "    spec:\n"
         "      containers:\n"
         "      - {name: ui, image: \"registry.example.com/guestbook:1.0\"}\n";
}

std::string describe(const test::FakePlatform::Report& report) {
  std::string text = report.kind() + " " + report.name();
  if (is_gone(report)) return text + " is gone";
  if (is_deletion(report)) return text + " is being deleted";
  text += ", " + report.source("syncStatus");
  if (const auto health = report.source("healthStatus"); !health.empty()) text += ", " + health;
  if (const auto revision = revision_of(report); !revision.empty()) {
    text += ", revision " + short_id(revision);
  }
  return text;
}

Scene::Scene(Narrator& narrator, World& world, test::GitServer& git, test::FakePlatform& platform,
             asio::thread_pool& pool, std::string daemon_program)
    : narrator_(narrator),
      world_(world),
      git_(git),
      platform_(platform),
      pool_(pool),
      daemon_program_(std::move(daemon_program)),
      folder_("gitops-demo") {
  platform_.set_token(kPlatformToken);
}

void Scene::check(bool condition, const std::string& otherwise) const {
  if (!condition) throw Failure(otherwise);
}

Task<std::string> Scene::push(test::FileChanges changes, std::string message) {
  const auto revision = co_await test::run_on(pool_, [this, &changes, &message] {
    return git_.commit(kRepository, changes, message, kAuthor);
  });
  last_revision_ = revision;
  ++commits_;
  narrator_.step("commit " + short_id(revision) + " \"" + message + "\" pushed to " + kRepository +
                 ".git");
  co_return revision;
}

Task<const Scene::Report*> Scene::wait_for(std::size_t after, std::string what,
                                           std::function<bool(const Report&)> matches) {
  const auto* report = co_await platform_.wait_for(
      [this, &matches](const Report& candidate) {
        // A daemon that has ended sends no more reports.
        if (!daemon_->running()) throw Failure("event-reporter has ended");
        return matches(candidate);
      },
      deadline_after(kTimeLimit), after);
  if (report == nullptr) {
    throw Failure(what + " was not reported within " + std::to_string(kTimeLimit.count()) + " s");
  }
  co_return report;
}

Task<> Scene::while_syncing(std::string said, std::function<Task<>()> body) {
  std::string sync_failure;
  TaskGroup syncing(co_await asio::this_coro::executor,
                    [&](const std::string&, const std::string& what) { sync_failure = what; });
  syncing.spawn("sync", [this, said = std::move(said)]() -> Task<> {
    co_await world_.sync(last_revision_);
    narrator_.step(said);
  });
  std::exception_ptr failure;
  try {
    co_await body();
  } catch (...) {
    failure = std::current_exception();
  }
  // Runs also after a cancellation: the sync must end before the scene does.
  co_await asio::this_coro::reset_cancellation_state();
  if (failure) syncing.cancel();
  co_await syncing.join();
  if (!sync_failure.empty()) throw Failure(sync_failure);
  if (failure) std::rethrow_exception(failure);
}

Task<> Scene::play(bool keep) {
  repository_url_ =
      co_await test::run_on(pool_, [this] { return git_.create_repository(kRepository); });
  narrator_.headline("On this machine: " + world_.description);
  narrator_.step("Kubernetes API  " + world_.kubernetes_url);
  narrator_.step("Argo CD         " + world_.argocd_url);
  narrator_.step("Git repository  " + repository_url_);
  narrator_.step("control plane   " + platform_.url().to_string() + ", records what it is sent");

  narrator_.headline("Something is deployed");
  first_revision_ = co_await push(first_files(), "first version");
  co_await world_.create_app(repository_url_);
  co_await world_.sync(last_revision_);
  narrator_.step("Argo CD synced application " + std::string(kAppName) +
                 ": 5 resources in namespace " + kDestination);
  co_await start_daemon("/readyz");
  co_await report_what_is_there();

  narrator_.headline("A change in Git reaches the control plane");
  co_await scale();

  narrator_.headline("A resource is removed from Git");
  co_await remove_resource();

  narrator_.headline("A webhook and a request come in from outside");
  co_await send_inbound();

  narrator_.headline("Users come through the tunnel, whose network is cut");
  co_await tunnel();

  narrator_.headline("A user changes the application through the tunnel");
  co_await act();

  narrator_.headline("The control plane is away, and event-reporter is killed");
  co_await outage();

  if (!keep) {
    narrator_.headline("The application is deleted");
    co_await delete_application();
  }
  co_await summary(keep);
}

Task<Result<http::Response>> Scene::ask_daemon(std::string target) {
  Metrics metrics;
  net::Resolver resolver(metrics);
  http::Client client(co_await asio::this_coro::executor, resolver, {});
  http::Url admin;
  admin.scheme = "http";
  admin.host = "127.0.0.1";
  admin.port = static_cast<std::uint16_t>(admin_port_);
  co_return co_await client.send(
      admin, {.method = "GET", .target = std::move(target), .headers = {}, .body = {}},
      deadline_after(std::chrono::seconds(2)));
}

Task<> Scene::start_daemon(const char* awaited) {
  main_port_ = test::free_port();
  admin_port_ = test::free_port();
  const http::Url argocd = http::parse_url(world_.argocd_url).value();
  const auto begin = Clock::now();
  daemon_.emplace(test::ProcessOptions{
      .argv = {daemon_program_},
      .env = {{"CODEFRESH_URL", platform_.url().to_string()},
              {"CODEFRESH_TOKEN", kPlatformToken},
              {"ARGOCD_SERVER", argocd.host + ":" + std::to_string(argocd.port)},
              {"ARGOCD_TOKEN", world_.argocd_token},
              {"KUBECONFIG", world_.kubeconfig},
              {"POD_NAMESPACE", world_.app_namespace},
              {"LISTEN_ADDRESS", "127.0.0.1"},
              {"LISTEN_PORT", std::to_string(main_port_)},
              {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
              {"ADMIN_PORT", std::to_string(admin_port_)},
              {"LEDGER_FILE", (folder_ / "ledger.db").string()},
              {"LOG_LEVEL", "debug"},
              {"HTTP_PROXY", std::nullopt},
              {"http_proxy", std::nullopt},
              {"HTTPS_PROXY", std::nullopt},
              {"https_proxy", std::nullopt}},
      .working_dir = folder_.path(),
      .log_file = folder_ / "event-reporter.log"});

  std::string why = "no answer";
  const auto deadline = deadline_after(kTimeLimit);
  while (true) {
    check(daemon_->running(), "event-reporter ended before it was ready");
    const auto answer = co_await ask_daemon(awaited);
    if (answer && answer->status == 200) break;
    if (answer) why = answer->body;
    check(Clock::now() < deadline, "event-reporter does not answer as it should: " + why);
    co_await sleep_for(std::chrono::milliseconds(5));
  }
  const auto took = std::chrono::duration<double>(Clock::now() - begin).count();
  narrator_.step("event-reporter started (pid " + std::to_string(daemon_->pid()) + "), " + awaited +
                 " is fine after " + fixed(took * 1000, 0) + " ms");
}

Task<> Scene::report_what_is_there() {
  const auto* root = co_await wait_for(0, "the application", [](const Report& report) {
    return report.kind() == "Application" && report.source("syncStatus") == "Synced";
  });
  check(root->name() == kAppName, "the first report names " + root->name());
  std::vector<const Report*> reports{root};
  for (const auto& [kind, name] : first_resources()) {
    const auto* report = co_await wait_for(0, kind + " " + name, [&](const Report& candidate) {
      return candidate.kind() == kind && candidate.name() == name;
    });
    check(report->source("revision") == first_revision_,
          kind + " " + name + " was reported with revision " + report->source("revision"));
    check(report->source("syncStatus") == "Synced", kind + " " + name + " is not Synced");
    check(report->source("appName") == kAppName, kind + " " + name + " names no application");
    check(report->source("commitMessage") == "first version",
          kind + " " + name + " lacks the commit's message");
    reports.push_back(report);
  }
  std::ranges::sort(reports, {}, &Report::arrived);
  for (const auto* report : reports) narrator_.received(report->arrived, describe(*report));
  const auto secrets = platform_.find("Secret", "guestbook-credentials");
  check(!secrets.front()->data.dump().contains("not-so-secret"), "the Secret's value was reported");
}

Task<const Scene::Report*> Scene::wait_for_replicas(std::size_t after, int replicas,
                                                    std::string sync_status) {
  return wait_for(after, "the Deployment with " + std::to_string(replicas) + " replicas",
                  [replicas, sync_status = std::move(sync_status)](const Report& candidate) {
                    return candidate.kind() == "Deployment" && replicas_in(candidate) == replicas &&
                           candidate.source("syncStatus") == sync_status;
                  });
}

Task<> Scene::scale() {
  const auto before = platform_.reports().size();
  const auto reads_before = co_await world_.reads();
  const auto revision = co_await push({{"deployment.yaml", deployment(3)}}, "scale to 3");
  const auto pushed = Clock::now();
  co_await while_syncing("Argo CD synced " + short_id(revision), [&]() -> Task<> {
    const auto* report = co_await wait_for_replicas(before, 3);
    check(report->source("revision") == revision, "the scaled Deployment has another revision");
    check(report->name() == "guestbook-ui", "the report names " + report->name());
    const auto author = report->source("commitAuthor");
    check(author == kAuthor.name + " <" + kAuthor.email + ">",
          "the commit's author was reported as \"" + author + "\"");
    const auto message = first_line(report->source("commitMessage"));
    check(message == "scale to 3", "the commit's message was reported as \"" + message + "\"");
    check(report->source("gitManifest").contains("replicas: 3"),
          "the manifest from Git was not reported");
    latencies_.push_back(std::chrono::duration<double>(report->arrived - pushed).count());
    const auto* root = co_await wait_for(
        before, "the application at the new revision", [&](const Report& candidate) {
          return candidate.kind() == "Application" && candidate.source("syncStatus") == "Synced" &&
                 revision_of(candidate) == revision;
        });
    const auto narrate_root = [&] { narrator_.received(root->arrived, describe(*root)); };
    if (root->arrived < report->arrived) narrate_root();
    narrator_.received(report->arrived, describe(*report) + ", replicas 2 -> 3, \"" + message +
                                            "\" by " + kAuthor.name);
    if (root->arrived >= report->arrived) narrate_root();
  });
  const auto reads = co_await world_.reads();
  check(reads.revisions == reads_before.revisions + 1,
        "the metadata of one new commit took " +
            std::to_string(reads.revisions - reads_before.revisions) + " reads of Argo CD");
}

Task<> Scene::remove_resource() {
  const auto before = platform_.reports().size();
  const auto revision = co_await push({{"settings.yaml", std::nullopt}}, "no settings any more");
  const auto pushed = Clock::now();
  co_await while_syncing("Argo CD synced " + short_id(revision) + " and pruned", [&]() -> Task<> {
    const auto* report =
        co_await wait_for(before, "the removed ConfigMap", [](const Report& candidate) {
          return candidate.kind() == "ConfigMap" && candidate.name() == "guestbook-settings" &&
                 is_gone(candidate);
        });
    latencies_.push_back(std::chrono::duration<double>(report->arrived - pushed).count());
    narrator_.received(report->arrived, describe(*report));
  });
}

// Returns the average seconds from an application's change to its last acknowledgement.
Task<double> Scene::own_part() {
  const auto metrics = co_await ask_daemon("/metrics");
  check(metrics.has_value() && metrics->status == 200, "event-reporter shows no metrics");
  const auto reports = metric(metrics->body, "gitops_event_reporter_report_seconds_count");
  const auto seconds = metric(metrics->body, "gitops_event_reporter_report_seconds_sum");
  check(reports > 0, "event-reporter counts no reports");
  co_return seconds / reports;
}

Task<> Scene::wait_until_quiet() {
  // No report may be in flight while the reads are counted.
  check(co_await platform_.wait_until_quiet(std::chrono::milliseconds(200),
                                            deadline_after(kTimeLimit)),
        "reports do not end");
}

Task<> Scene::delete_application() {
  const auto before = platform_.reports().size();
  narrator_.step("deleting application " + std::string(kAppName));
  co_await world_.delete_app();
  const auto* report =
      co_await wait_for(before, "the deleted application", [](const Report& candidate) {
        return candidate.kind() == "Application" && candidate.name() == kAppName &&
               is_gone(candidate);
      });
  narrator_.received(report->arrived, describe(*report));
}

Task<> Scene::summary(bool keep) {
  co_await wait_until_quiet();
  if (!keep) co_await stop_daemons();

  auto reads = co_await world_.reads();
  reads.trees -= outage_reads_.trees;
  reads.managed -= outage_reads_.managed;
  reads.revisions -= outage_reads_.revisions;
  const auto commits = commits_ - outage_commits_;
  if (!platform_.refused().empty()) {
    throw Failure("the control plane refused a request: " + platform_.refused().front());
  }
  // A state that a newer one supersedes needs no managed resources.
  check(reads.managed <= reads.trees, "Argo CD was read " + std::to_string(reads.trees) +
                                          " times for trees and " + std::to_string(reads.managed) +
                                          " times for managed resources");
  check(reads.revisions == commits, "Argo CD was asked " + std::to_string(reads.revisions) +
                                        " times for the metadata of " + std::to_string(commits) +
                                        " commits");
  check(world_.events().size() == 1, "an event came of a forged webhook");
  narrator_.headline("All of it was checked");
  narrator_.plain("  events received      " + std::to_string(platform_.reports().size()) + " for " +
                  std::to_string(commits_) + " commits, none refused");
  narrator_.plain("  reads of Argo CD     at most 2 for each of " + std::to_string(reads.trees) +
                  " changes of the application, 1 for each commit (without the outage)");
  narrator_.plain("  pushed -> reported   at most " +
                  fixed(*std::ranges::max_element(latencies_), 2) + " s, with what Argo CD takes");
  narrator_.plain("  changed -> reported  " + fixed(own_part_ * 1000, 0) +
                  " ms on average, event-reporter's own part (before the outage)");
  narrator_.plain("  all in all           " + fixed(narrator_.seconds(), 1) + " s");
}

Task<> Scene::stop_daemons() {
  if (daemon_) co_await stop(*daemon_, "event-reporter");
  if (tunnel_client_) co_await stop(tunnel_client_->process(), "tunnel-client");
  if (tunnel_server_) co_await stop(tunnel_server_->process(), "tunnel-server");
  if (router_) co_await stop(router_->process(), "request-router");
  if (app_proxy_) co_await stop(app_proxy_->process(), "app-proxy");
}

Task<> Scene::stop(test::Process& daemon, std::string name) {
  if (!daemon.running()) co_return;
  const auto begin = Clock::now();
  daemon.signal(SIGTERM);
  while (daemon.running() && Clock::now() < begin + kTimeLimit) {
    co_await sleep_for(std::chrono::milliseconds(5));
  }
  check(!daemon.running(), name + " did not end after SIGTERM");
  const auto code = daemon.wait(std::chrono::milliseconds(0));
  check(code == 0, name + " ended with exit code " + std::to_string(code.value_or(-1)));
  narrator_.step(name + " stopped in order, after " +
                 fixed(std::chrono::duration<double>(Clock::now() - begin).count() * 1000, 0) +
                 " ms");
}

std::string Scene::daemon_logs(std::size_t lines) const {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& log) {
    text += "\nthe last log lines of " + name + ":\n" + last_lines(log, lines);
  };
  if (daemon_) add("event-reporter", test::read_file(folder_ / "event-reporter.log"));
  if (router_) add("request-router", router_->log());
  if (app_proxy_) add("app-proxy", app_proxy_->log());
  if (tunnel_client_) add("tunnel-client", tunnel_client_->log());
  if (tunnel_server_) add("tunnel-server", tunnel_server_->log());
  return text;
}

}  // namespace gitops::demo
