#include "scene.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include <nlohmann/json.hpp>

#include "common/core/error.hpp"
#include "common/core/task_group.hpp"
#include "daemons/daemon_program.hpp"
#include "support/run_on.hpp"

namespace gitops::demo {

namespace {

using Json = nlohmann::json;

constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr auto kPoll = std::chrono::milliseconds(10);
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

// Writes a word of the control plane as people do: "OUT_OF_SYNC" is "out of sync".
std::string word(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return text;
}

// Kind and name of the resources that the control plane shows of the application.
std::map<std::string, std::string> resources_of(const Json& application) {
  std::map<std::string, std::string> resources;
  if (!application.at("resources").is_array()) return resources;
  for (const Json& resource : application.at("resources")) {
    resources[resource.at("kind")] = resource.at("name");
  }
  return resources;
}

// Returns the value of a metric without labels; 0 when it is absent.
double metric(const std::string& text, const std::string& name) {
  const auto line = text.find("\n" + name + " ");
  return line == std::string::npos ? 0
                                   : std::strtod(text.c_str() + line + name.size() + 2, nullptr);
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

std::string describe(const OpenPage::Row& row) {
  if (row.is_gone) return "an object is gone";
  auto text = row.kind() + " " + row.name() + ", " + word(row.text("sync"));
  if (const auto health = row.text("health"); !health.empty()) text += ", " + word(health);
  if (const auto revision = row.text("revision"); !revision.empty()) {
    text += ", revision " + short_id(revision);
  }
  return text;
}

Scene::Scene(Narrator& narrator, World& world, test::GitServer& git, Plane& plane,
             asio::thread_pool& pool)
    : narrator_(narrator),
      world_(world),
      git_(git),
      plane_(plane),
      pool_(pool),
      folder_("gitops-demo") {}

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

Task<const Scene::Row*> Scene::wait_for(std::size_t after, std::string what,
                                        std::function<bool(const Row&)> matches) {
  const auto* row = co_await page_->wait_for(
      [this, &matches](const Row& candidate) {
        // A daemon that has ended sends no more events.
        if (!daemon_->running()) throw Failure("event-reporter has ended");
        return matches(candidate);
      },
      deadline_after(kTimeLimit), after);
  if (row == nullptr) {
    throw Failure(what + " was not shown within " + std::to_string(kTimeLimit.count()) + " s");
  }
  co_return row;
}

Task<const Scene::Row*> Scene::wait_for_revision(std::size_t after, std::string kind,
                                                 std::string revision, std::string sync) {
  return wait_for(after, kind + " at revision " + short_id(revision), [=](const Row& row) {
    return row.kind() == kind && row.text("revision") == revision && row.text("sync") == sync;
  });
}

Task<Json> Scene::wait_for_application(std::string what, std::function<bool(const Json&)> matches) {
  const auto deadline = deadline_after(kTimeLimit);
  while (true) {
    auto application = co_await plane_.ask(
        "query($runtime: String, $namespace: String, $name: String) { application(runtime: "
        "$runtime, namespace: $namespace, name: $name) { metadata { uid } syncStatus healthStatus "
        "status { revision commitAuthor commitMessage } resources { kind name syncStatus } } }",
        {{"runtime", kRuntime}, {"namespace", world_.app_namespace}, {"name", kAppName}});
    if (application.is_object() && matches(application)) co_return application;
    check(daemon_->running(), "event-reporter has ended");
    check(Clock::now() < deadline,
          "the control plane does not show " + what + ": " + application.dump());
    co_await sleep_for(kPoll);
  }
}

Task<> Scene::wait_for_deployment(std::string revision, std::optional<int> replicas) {
  const auto deadline = deadline_after(kTimeLimit);
  while (true) {
    const auto deployments = co_await plane_.ask(
        "query($filters: GitopsReleaseFilterArgs) { gitopsReleases(filters: $filters, pagination: "
        "{first: 1}) { edges { node { argoHistoryId application { status { revision } } toState { "
        "services { name replicas } } } } } }",
        {{"filters", {{"runtime", kRuntime}, {"name", kAppName}}}});
    const auto newest = deployments.value("/edges/0/node"_json_pointer, Json::object());
    if (newest.value("/application/status/revision"_json_pointer, "") == revision &&
        (!replicas ||
         newest.value("/toState/services/0/replicas"_json_pointer, Json()) == *replicas)) {
      narrator_.shown(Clock::now(),
                      "deployment " + newest.at("argoHistoryId").dump() + ", of " +
                          short_id(revision) +
                          (replicas ? ", with " + std::to_string(*replicas) + " replicas" : ""));
      co_return;
    }
    check(Clock::now() < deadline, "the control plane does not show the deployment of " +
                                       short_id(revision) + ": " + newest.dump());
    co_await sleep_for(kPoll);
  }
}

Task<> Scene::while_syncing(std::string said, std::function<Task<>()> body) {
  std::string sync_failure;
  TaskGroup syncing(co_await asio::this_coro::executor,
                    [&](const std::string&, const std::string& what) { sync_failure = what; });
  syncing.spawn("sync", [this, said = std::move(said)]() -> Task<> {
    co_await world_.sync(kAppName, last_revision_);
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

Task<> Scene::begin() {
  repository_url_ =
      co_await test::run_on(pool_, [this] { return git_.create_repository(kRepository); });
  narrator_.headline("On this machine: " + world_.description);
  narrator_.step("Kubernetes API  " + world_.kubernetes_url);
  narrator_.step("Argo CD         " + world_.argocd_url);
  narrator_.step("Git repository  " + repository_url_);

  narrator_.headline("A control plane starts, and a runtime registers itself");
  co_await plane_.start();
  narrator_.step("control-plane started (pid " + std::to_string(plane_.program().process().pid()) +
                 ") on " + (world_.database.empty() ? "SQLite" : "PostgreSQL") +
                 "; first administrator: " + std::string(Plane::kUser) + ", password " +
                 plane_.password());
  narrator_.see(plane_.page("/"));
  if (!plane_.has_console()) {
    narrator_.step(
        "its pages were left out, as Node.js 20.19 is missing: ./dev demo --keep fetches it");
  }
  narrator_.step(std::string(Plane::kUser) + " logs in and makes an API key");
  co_await start_router_and_app_proxy();
  co_await wait_for_registration();
  narrator_.see(plane_.page("/runtimes/" + std::string(kRuntime)));

  narrator_.headline("Something is deployed");
  first_revision_ = co_await push(first_files(), "first version");
  co_await world_.create_app(kAppName, repository_url_);
  co_await world_.sync(kAppName, last_revision_);
  narrator_.step("Argo CD synced application " + std::string(kAppName) +
                 ": 5 resources in namespace " + kDestination);
  co_await start_daemon("/readyz");
  co_await show_what_is_there();
}

Task<> Scene::play(bool keep) {
  co_await begin();
  const auto page = plane_.page("/applications/" + std::string(kRuntime) + "/" +
                                world_.app_namespace + "/" + kAppName);
  narrator_.see(page);

  narrator_.headline("A change in Git reaches the control plane");
  co_await scale();
  narrator_.see(page + "/timeline");

  narrator_.headline("A resource is removed from Git");
  co_await remove_resource();
  narrator_.see(page + "/tree");

  narrator_.headline("A webhook and a request come in from outside");
  co_await send_inbound();

  narrator_.headline("Users come through the tunnel, whose network is cut");
  co_await tunnel();

  narrator_.headline("A user changes the application through the tunnel");
  co_await act();
  narrator_.see(page + "/timeline");

  narrator_.headline("The control plane and event-reporter are killed");
  co_await outage();
  narrator_.see(page + "/tree");

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
      .argv = {test::daemon_program("event-reporter")},
      .env = {{"CODEFRESH_URL", plane_.url()},
              {"CODEFRESH_TOKEN", runtime_token_},
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

Task<> Scene::show_what_is_there() {
  const auto shown = co_await wait_for_application("the application", [this](const Json& app) {
    return app.value("/status/revision"_json_pointer, "") == first_revision_ &&
           app.value("syncStatus", "") == "SYNCED" && resources_of(app) == first_resources();
  });
  const auto message = shown.value("/status/commitMessage"_json_pointer, "");
  check(message == "first version", "the commit's message is shown as \"" + message + "\"");
  narrator_.shown(Clock::now(), "Application " + std::string(kAppName) + ", synced, revision " +
                                    short_id(first_revision_) + " \"" + message +
                                    "\", with its 5 resources");
  app_uid_ = shown.at("/metadata/uid"_json_pointer);
  page_ = std::make_unique<OpenPage>(co_await asio::this_coro::executor, plane_.client(),
                                     http::parse_url(plane_.url()).value(), plane_.key(),
                                     "index,app:" + app_uid_);
  co_await page_->wait_until_live();
  narrator_.step(std::string(Plane::kUser) +
                 " keeps its page open, which is told of every change:");
}

Task<> Scene::scale() {
  const auto before = page_->rows().size();
  const auto reads_before = co_await world_.reads();
  const auto revision = co_await push({{"deployment.yaml", deployment(3)}}, "scale to 3");
  const auto pushed = Clock::now();
  co_await while_syncing("Argo CD synced " + short_id(revision), [&]() -> Task<> {
    const auto* resource = co_await wait_for_revision(before, "Deployment", revision);
    latencies_.push_back(std::chrono::duration<double>(resource->arrived - pushed).count());
    const auto* app = co_await wait_for_revision(before, "Application", revision);
    const auto message = app->text("message");
    check(message == "scale to 3", "the commit's message is shown as \"" + message + "\"");
    check(app->text("author").contains(kAuthor.name),
          "the commit's author is shown as \"" + app->text("author") + "\"");
    const auto narrate_app = [&] {
      narrator_.shown(app->arrived, describe(*app) + " \"" + message + "\" by " + kAuthor.name);
    };
    if (app->arrived < resource->arrived) narrate_app();
    narrator_.shown(resource->arrived, describe(*resource));
    if (app->arrived >= resource->arrived) narrate_app();
  });
  co_await wait_for_deployment(revision, 3);
  const auto reads = co_await world_.reads();
  check(reads.revisions == reads_before.revisions + 1,
        "the metadata of one new commit took " +
            std::to_string(reads.revisions - reads_before.revisions) + " reads of Argo CD");
}

Task<> Scene::remove_resource() {
  const auto revision = co_await push({{"settings.yaml", std::nullopt}}, "no settings any more");
  const auto pushed = Clock::now();
  co_await while_syncing("Argo CD synced " + short_id(revision) + " and pruned", [&]() -> Task<> {
    const auto shown = co_await wait_for_application(
        "the application without its ConfigMap",
        [](const Json& app) { return !resources_of(app).contains("ConfigMap"); });
    latencies_.push_back(std::chrono::duration<double>(Clock::now() - pushed).count());
    narrator_.shown(Clock::now(), "ConfigMap guestbook-settings is gone, " +
                                      std::to_string(resources_of(shown).size()) + " are left");
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

Task<> Scene::delete_application() {
  const auto before = page_->rows().size();
  narrator_.step("deleting application " + std::string(kAppName));
  co_await world_.delete_app(kAppName);
  const auto* row = co_await wait_for(before, "the deleted application", [this](const Row& one) {
    return one.is_gone && one.text("uid") == app_uid_;
  });
  narrator_.shown(row->arrived, "Application " + std::string(kAppName) + " is gone");
}

Task<> Scene::summary(bool keep) {
  co_await plane_.wait_until_quiet();
  const auto events = co_await plane_.events();
  if (!keep) co_await stop_daemons();

  auto reads = co_await world_.reads();
  reads.trees -= outage_reads_.trees;
  reads.managed -= outage_reads_.managed;
  reads.revisions -= outage_reads_.revisions;
  const auto commits = commits_ - outage_commits_;
  check(events.refused == 0, "the control plane refused events");
  check(events.repeated == 0, "an event came twice");
  // A state that a newer one supersedes needs no managed resources.
  check(reads.managed <= reads.trees, "Argo CD was read " + std::to_string(reads.trees) +
                                          " times for trees and " + std::to_string(reads.managed) +
                                          " times for managed resources");
  check(reads.revisions == commits, "Argo CD was asked " + std::to_string(reads.revisions) +
                                        " times for the metadata of " + std::to_string(commits) +
                                        " commits");
  check(world_.events().size() == 1, "an event came of a forged webhook");
  narrator_.headline("All of it was checked");
  narrator_.plain("  events stored        " + std::to_string(stored_ + events.stored) + " for " +
                  std::to_string(commits_) + " commits, none twice, none refused");
  narrator_.plain("  reads of Argo CD     at most 2 for each of " + std::to_string(reads.trees) +
                  " changes of the application, 1 for each commit (without the outage)");
  narrator_.plain("  pushed -> shown      at most " +
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
  if (plane_.is_started()) co_await stop(plane_.program().process(), "control-plane");
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
  if (plane_.is_started()) add("control-plane", plane_.log());
  if (daemon_) add("event-reporter", test::read_file(folder_ / "event-reporter.log"));
  if (router_) add("request-router", router_->log());
  if (app_proxy_) add("app-proxy", app_proxy_->log());
  if (tunnel_client_) add("tunnel-client", tunnel_client_->log());
  if (tunnel_server_) add("tunnel-server", tunnel_server_->log());
  return text;
}

}  // namespace gitops::demo
