#include <exception>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "support/event_checks.hpp"
#include "support/fake_platform.hpp"
#include "support/peer_bed.hpp"
#include "support/rendered_workload.hpp"
#include "support/reporter_process.hpp"
#include "support/run_coro.hpp"
#include "support/yaml_manifests.hpp"

// The event-reporter as the chart installs it, with real Kubernetes, Argo CD and Git around it and
// a control plane that records.
namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr auto kLimit = std::chrono::seconds(120);
constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr const char* kNamespace = PeerArgoCd::kNamespace;
constexpr const char* kRelease = "rt";
constexpr const char* kPlatformToken = "peers-platform-token";

Deadline soon() {
  return deadline_after(kPatience);
}

// Makes an account of Argo CD that may read applications and nothing else; its token is what the
// reporter gets. Once per process.
const std::string& argocd_token() {
  static const std::string token = [] {
    auto& bed = peer_bed();
    bed.cluster().kubectl_ok({"-n", kNamespace, "patch", "configmap", "argocd-cm", "-p",
                              R"({"data":{"accounts.reporter":"apiKey"}})"});
    bed.cluster().kubectl_ok(
        {"-n", kNamespace, "patch", "configmap", "argocd-rbac-cm", "-p",
         R"({"data":{"policy.csv":"g, bot, role:admin\np, reporter, applications, get, */*, allow"}})"});
    HttpReply reply;
    require_until(
        [&] {
          reply = bed.argocd().request("POST", "/api/v1/account/reporter/token", "{}");
          return reply.ok();
        },
        kPatience, "the account of the reporter");
    auto made = json::parse(reply.body).at("token").get<std::string>();
    require_until(
        [&] {
          return http_call({.url = bed.argocd().url() +
                                   "/api/v1/account/can-i/applications/get/default/x",
                            .headers = {"Authorization: Bearer " + made}})
                     .body == R"({"value":"yes"})";
        },
        kPatience, "its right to read applications");
    return made;
  }();
  return token;
}

// One Application and what it is made of, each under the same name.
struct App {
  std::string name;  // of the repository and the destination's namespace, too
  std::string repo_url;
};

class World {
 public:
  World(PeerBed& the_bed, const Executor& executor)
      : bed(the_bed), platform(executor, {.server = tls(), .token = kPlatformToken}) {}

  // -- the reporter --

  // Everything about the installation that is not as a customer has it: a pod's network reaches
  // services by their names and on their own ports, and the image brings the program.
  [[nodiscard]] json values() const {
    const auto& argocd = bed.argocd().url();
    return {
        {"global",
         {{"codefresh",
           {{"url", platform.url().to_string()},
            {"tls",
             {{"caCerts",
               {{"secret", {{"create", true}, {"content", read_file(authority_.ca_file())}}}}}}}}},
          {"runtime", {{"name", "peers"}}},
          {"integrations",
           {{"argo-cd",
             {{"server",
               {{"svc", "127.0.0.1"},
                {"port", std::stoi(argocd.substr(argocd.rfind(':') + 1))}}}}}}},
          {"event-reporters",
           {{"config",
             {{"listen.address", "127.0.0.1"},
              {"metrics.listen.address", "127.0.0.1"},
              {"log.level", "debug"}}},
            // The pod's number is at the end of its host name, which is not this machine's.
            {"env", {{"LISTEN_PORT", 0}, {"ADMIN_PORT", 0}, {"EVENT_REPORTER_SHARD", 0}}},
            {"replicaCount", replicas}}}}},
        {"argo-cd", {{"enabled", false}}}};
  }

  // As docs/chart.md says: two Secrets, then helm.
  void install() {
    make_secrets();
    helm();
    workload.emplace(bed.cluster(), kNamespace, "event-reporter");
  }
  void make_secrets() {
    for (const auto& [name, token] : {std::pair("codefresh-token", std::string(kPlatformToken)),
                                      std::pair("argocd-token", argocd_token())}) {
      bed.cluster().kubectl_ok(
          {"-n", kNamespace, "create", "secret", "generic", name, "--from-literal=token=" + token});
    }
  }
  void helm() {
    write_file(folder_ / "values.json", values().dump());
    const auto installed = helm_.run({"upgrade", "--install", kRelease, chart_folder(), "-n",
                                      kNamespace, "-f", (folder_ / "values.json").string()},
                                     bed.cluster().kubeconfig());
    if (!installed.ok()) throw std::runtime_error("helm: " + installed.err);
  }
  void start_reporter() {
    auto argv = workload->argv();
    argv[0] = std::string(GITOPS_BIN_DIR) + "/" + argv[0];
    reporter.emplace(std::move(argv), workload->process_environment(), kPatience);
  }
  Task<> start() {
    CO_ASSERT_OK(platform.start());
    install();
    start_reporter();
    if (!co_await reporter->wait_for_readyz("ready\n")) {
      throw std::runtime_error("the reporter is not ready: " + reporter->last_readyz());
    }
  }
  Task<> stop() {
    if (reporter && reporter->process().running()) EXPECT_EQ(co_await reporter->stop(), 0);
    co_await platform.stop();
    auto& cluster = bed.cluster();
    cluster.kubectl_ok({"-n", kNamespace, "delete", "applications.argoproj.io", "--all"});
    helm_.run({"uninstall", kRelease, "-n", kNamespace, "--wait"}, cluster.kubeconfig());
    cluster.kubectl_ok({"-n", kNamespace, "delete", "secret", "codefresh-token", "argocd-token",
                        "--ignore-not-found"});
  }

  // -- Git and Argo CD --

  // Blocking work, while the control plane goes on answering.
  template <class Function>
  Task<std::invoke_result_t<Function>> aside(Function function) {
    return run_on(pool_, std::move(function));
  }
  Task<CommitFacts> commit(App app, FileChanges changes, std::string message) {
    co_return co_await aside([this, app, changes, message] {
      const auto id =
          bed.git().commit(app.name, changes, message, {"Dana Levi", "dana@example.com"});
      return CommitFacts::read(
          [&](auto arguments) {
            const auto result = bed.git().git(app.name, arguments);
            if (!result.ok()) throw std::runtime_error("git: " + result.err);
            return result.out;
          },
          id);
    });
  }
  App make_repository(const std::string& name) {
    return {.name = name, .repo_url = bed.git().create_repository(name)};
  }
  Task<> create(App app) {
    co_await aside([this, app] {
      bed.cluster().create_namespace(app.name);
      bed.argocd().add_repository(bed.git(), app.name);
      bed.argocd().create_application(json{
          {"metadata",
           {{"name", app.name}, {"namespace", kNamespace}, {"labels", {{"team", "shop"}}}}},
          {"spec",
           {{"project", "default"},
            // A sync then costs what it changes, not what there is.
            {"syncPolicy", {{"syncOptions", {"ApplyOutOfSyncOnly=true", "Validate=false"}}}},
            {"destination",
             {{"server", "https://kubernetes.default.svc"}, {"namespace", app.name}}},
            {"source", {{"repoURL", app.repo_url}, {"path", "."}, {"targetRevision", "main"}}}}}}
                                          .dump());
    });
  }
  Task<> sync(App app, std::string revision) {
    co_await aside([this, app, revision] { bed.argocd().sync_to(app.name, revision); });
  }

  // -- what kubectl and curl say --

  Task<json> live(std::string ns, std::string kind, std::string name) {
    co_return co_await aside([this, ns, kind, name] {
      return json::parse(bed.cluster().kubectl_ok(
          {"-n", ns, "get", kind, name, "-o", "json", "--show-managed-fields"}));
    });
  }
  // The Application as it was when it had this resourceVersion.
  Task<json> application_at(App app, std::string version) {
    co_return co_await aside([this, app, version] {
      const auto reply = bed.cluster().request(
          "GET", "/apis/argoproj.io/v1alpha1/namespaces/" + std::string(kNamespace) +
                     "/applications?fieldSelector=metadata.name%3D" + app.name +
                     "&resourceVersionMatch=Exact&resourceVersion=" + version);
      if (!reply.ok()) throw std::runtime_error("application " + app.name + ": " + reply.body);
      return json::parse(reply.body).at("/items/0"_json_pointer);
    });
  }
  // Calls that argocd-server has answered, by method.
  Task<std::map<std::string, long>> calls() {
    const auto counts = co_await aside([this] { return bed.argocd().read_counts(); });
    std::map<std::string, long> calls;
    const std::string service = "application.ApplicationService/";
    for (const auto& [name, count] : counts) {
      if (name.starts_with(service)) calls[name.substr(service.size())] = count;
    }
    co_return calls;
  }
  Task<std::map<std::string, long>> calls_since(std::map<std::string, long> before) {
    auto calls = co_await this->calls();
    for (const auto& [name, count] : before) calls[name] -= count;
    std::erase_if(calls, [](const auto& call) { return call.second == 0; });
    co_return calls;
  }
  Task<json> tree(App app) {
    co_return co_await aside([this, app] {
      return json::parse(
          bed.argocd().request_ok("GET", "/api/v1/applications/" + app.name + "/resource-tree"));
    });
  }
  // The facts for an event: which state of the Application it is about stands in its id.
  Task<ApplicationFacts> facts(App app, const FakePlatform::Report& report, CommitFacts commit) {
    const auto begin = report.event_id.find('/') + 1;
    const auto version = report.event_id.substr(begin, report.event_id.find('/', begin) - begin);
    ApplicationFacts facts;
    facts.application = co_await application_at(app, version);
    facts.tree = co_await tree(app);
    facts.commit = std::move(commit);
    facts.not_before = started_;
    co_return facts;
  }

  // -- what the control plane got --

  Task<bool> quiet() { co_return co_await platform.wait_until_quiet(kQuiet, soon()); }
  // Waits for the event that says that the application is in order at this revision, and until no
  // more come.
  Task<bool> settled(App app, std::string revision, std::size_t first = 0) {
    const auto* root = co_await platform.wait_for(
        [&](const FakePlatform::Report& report) {
          const auto status = [&](const char* pointer) {
            return report.object.value(json::json_pointer(pointer), "");
          };
          return report.kind() == "Application" && report.name() == app.name &&
                 status("/status/sync/status") == "Synced" &&
                 status("/status/sync/revision") == revision &&
                 status("/status/health/status") == "Healthy" &&
                 status("/status/operationState/phase") == "Succeeded" &&
                 status("/status/operationState/syncResult/revision") == revision;
        },
        soon(), first);
    if (root == nullptr) co_return false;
    co_return co_await quiet();
  }
  // The last of an object's events; waits until no more come.
  Task<const FakePlatform::Report*> last(std::string kind, std::string name,
                                         std::size_t first = 0) {
    co_await quiet();
    const auto found = platform.find(kind, name, first);
    co_return found.empty() ? nullptr : found.back();
  }

  PeerBed& bed;
  int replicas = 1;

 private:
  http::ServerOptions tls() {
    const auto certificate = authority_.issue(
        {.common_name = "localhost", .organization = "", .alt_names = {"localhost", "127.0.0.1"}});
    http::ServerOptions options;
    options.tls.emplace();
    options.tls->certificate_file = certificate.cert_file.string();
    options.tls->key_file = certificate.key_file.string();
    return options;
  }

  std::string started_ = utc_now();
  TempDir folder_;
  CertificateAuthority authority_;
  Helm helm_;
  asio::thread_pool pool_{1};

 public:
  FakePlatform platform;
  std::optional<RenderedWorkload> workload;
  std::optional<ReporterProcess> reporter;
};

void play(const std::function<Task<>(World&)>& body) {
  auto& bed = peer_bed();
  run_coro(
      [&]() -> Task<> {
        World world(bed, co_await asio::this_coro::executor);
        std::exception_ptr failure;
        try {
          co_await body(world);
        } catch (...) {
          failure = std::current_exception();
        }
        if (::testing::Test::HasFailure() && world.reporter) {
          std::cerr << world.reporter->log() << world.reporter->last_readyz();
        }
        co_await world.stop();
        if (failure) std::rethrow_exception(failure);
      },
      kLimit);
}

std::string deployment(int replicas) {
  return "# the shop's web server\n"
         "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: " +
         std::to_string(replicas) +
         "\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: "
         "web}}\n"
         "    spec: {containers: [{name: web, image: 'example.com/web:1'}]}\n";
}

std::string settings(const std::string& color) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
         "data: {color: " +
         color + ", html: '<a href=\"?x&y\">ü</a>'}\n";
}

FileChanges five_resources() {
  return {{"web.yaml", deployment(2)},
          {"service.yaml",
           "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
           "spec:\n  selector: {app: web}\n  ports: [{port: 80}]\n"},
          {"settings.yaml", settings("blue")},
          {"credentials.yaml",
           "apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n"
           "stringData: {password: canary-password}\n"},
          {"account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shop}\n"}};
}

// One of the resources above as the cluster's desired state, from the file's text.
json manifest_of(const std::optional<std::string>& text) {
  return parse_manifests(text.value()).value().at(0);
}

#define GITOPS_REQUIRE_EVERYTHING()                                                \
  GITOPS_REQUIRE_PEERS();                                                          \
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking; \
  static_assert(true, "a semicolon follows")

TEST(EventReporterPeers, RunsAsTheChartInstallsIt) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    co_await world.start();
    const auto& environment = world.workload->environment();
    EXPECT_THAT(world.workload->argv(), ElementsAre("event-reporter"));
    EXPECT_THAT(environment,
                AllOf(Contains(Pair("REPORTER_MODE", "app")),
                      Contains(Pair("POD_NAME", "event-reporter-0")),
                      Contains(Pair("POD_NAMESPACE", kNamespace)),
                      Contains(Pair("CODEFRESH_TOKEN", kPlatformToken)),
                      Contains(Pair("CODEFRESH_URL", world.platform.url().to_string())),
                      Contains(Pair("THREADINESS", "100")),
                      Contains(Pair("ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"))));
    const std::string bundle = "/app/config/codefresh-tls-certs/ca-bundle.crt";
    EXPECT_EQ(environment.at("CODEFRESH_SSL_CERT_PATH"), world.workload->local(bundle).string());
    const auto ledger = world.workload->local("/var/lib/event-reporter/ledger.db");
    EXPECT_EQ(environment.at("LEDGER_FILE"), ledger.string());
    EXPECT_TRUE(std::filesystem::is_regular_file(ledger));

    // The process has that environment and no other.
    std::map<std::string, std::string> found;
    std::istringstream stream(
        read_file("/proc/" + std::to_string(world.reporter->process().pid()) + "/environ"));
    for (std::string entry; std::getline(stream, entry, '\0');) {
      const auto name = entry.substr(0, entry.find('='));
      if (!name.ends_with("SAN_OPTIONS")) found[name] = entry.substr(name.size() + 1);
    }
    EXPECT_EQ(found, environment);

    // It is the chart's service account, which may read little.
    const auto as_the_pod = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {Helm::program("kubectl"), "--kubeconfig",
                                           world.workload->kubeconfig().string(), "auth"});
      return run_command(arguments);
    };
    EXPECT_THAT(as_the_pod({"whoami"}).out,
                HasSubstr("system:serviceaccount:argocd:event-reporter"));
    EXPECT_EQ(as_the_pod({"can-i", "list", "applications.argoproj.io"}).out, "yes\n");
    EXPECT_EQ(as_the_pod({"can-i", "list", "secrets"}).out, "no\n");

    EXPECT_EQ(world.reporter->get("/healthz").status, 200);
    EXPECT_EQ(world.reporter->get_main("/healthz").status, 200);
    for (const auto& secret : {std::string(kPlatformToken), argocd_token(),
                               read_file(world.workload->local(
                                   "/var/run/secrets/kubernetes.io/serviceaccount/token"))}) {
      EXPECT_THAT(world.reporter->log(), Not(HasSubstr(secret)));
    }
  });
}

TEST(EventReporterPeers, TheLedgerOutlivesTheContainer) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    co_await world.start();
    const auto app = world.make_repository("remembered");
    const auto commit = co_await world.commit(app, {{"settings.yaml", settings("blue")}}, "one");
    co_await world.create(app);
    co_await world.sync(app, commit.id);
    CO_ASSERT_TRUE(co_await world.settled(app, commit.id));

    CO_ASSERT_EQ(co_await world.reporter->stop(), 0);
    const auto seen = world.platform.reports().size();
    world.start_reporter();
    CO_ASSERT_TRUE(co_await world.reporter->wait_for_readyz("ready\n"));
    co_await world.aside([&] {
      world.bed.cluster().kubectl_ok({"-n", kNamespace, "label", "applications.argoproj.io",
                                      app.name, "--overwrite", "team=after"});
    });
    const auto* relabelled = co_await world.platform.wait_for(
        [&](const FakePlatform::Report& report) {
          return report.name() == app.name &&
                 report.object.value("/metadata/labels/team"_json_pointer, "") == "after";
        },
        soon(), seen);
    CO_ASSERT_TRUE(relabelled != nullptr);
    CO_ASSERT_TRUE(co_await world.quiet());
    EXPECT_THAT(world.platform.find("ConfigMap", "settings", seen), IsEmpty());
  });
}

TEST(EventReporterPeers, HoldsTheLeasesOfItsShardsWithTheRightsOfTheChart) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    world.replicas = 2;
    co_await world.start();
    // Nobody runs the other pod's program, so this one stands in for it.
    const auto held = [&](std::string shard) -> Task<bool> {
      const auto deadline = soon();
      while (Clock::now() < deadline) {
        const auto holder = co_await world.aside([&world, shard] {
          return world.bed.cluster()
              .kubectl({"-n", kNamespace, "get", "lease", "event-reporter-app-" + shard, "-o",
                        "jsonpath={.spec.holderIdentity}"})
              .out;
        });
        if (!holder.empty()) co_return true;
        co_await sleep_for(std::chrono::milliseconds(200));
      }
      co_return false;
    };
    CO_ASSERT_TRUE(co_await held("0"));
    CO_ASSERT_TRUE(co_await held("1"));
    EXPECT_THAT(world.reporter->log(), Not(HasSubstr("forbidden")));
    CO_ASSERT_EQ(co_await world.reporter->stop(), 0);
    for (const auto* shard : {"0", "1"}) {
      const auto name = std::string("event-reporter-app-") + shard;
      const auto lease = co_await world.live(kNamespace, "lease", name);
      EXPECT_EQ(lease.at("spec").value("holderIdentity", ""), "") << name;
    }
    world.bed.cluster().kubectl_ok(
        {"-n", kNamespace, "delete", "lease", "event-reporter-app-0", "event-reporter-app-1"});
  });
}

TEST(EventReporterPeers, SaysWhichRightItLacksAndRecovers) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    CO_ASSERT_OK(world.platform.start());
    world.install();
    world.bed.cluster().kubectl_ok({"delete", "clusterrolebinding", "argocd-event-reporter"});
    world.start_reporter();
    CO_ASSERT_TRUE(co_await world.reporter->wait_for_readyz("applications: "));
    EXPECT_THAT(world.reporter->last_readyz(),
                AllOf(HasSubstr("403"), HasSubstr("system:serviceaccount:argocd:event-reporter")));
    world.helm();
    CO_ASSERT_TRUE(co_await world.reporter->wait_for_readyz("ready\n"));
  });
}

TEST(EventReporterPeers, AnApplicationAndItsResourcesAreReported) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    co_await world.start();
    const auto app = world.make_repository("reported");
    const auto files = five_resources();
    const auto commit = co_await world.commit(app, files, "first version\n\nof the shop");
    co_await world.create(app);
    co_await world.sync(app, commit.id);
    CO_ASSERT_TRUE(co_await world.settled(app, commit.id));

    const auto* root = co_await world.last("Application", app.name);
    expect_application_event(*root, co_await world.facts(app, *root, commit));
    for (const auto& [file, text] : files) {
      const auto manifest = manifest_of(text);
      const auto kind = manifest.at("kind").get<std::string>();
      const auto name = manifest.at("/metadata/name"_json_pointer).get<std::string>();
      const auto* report = co_await world.last(kind, name);
      if (report == nullptr) {
        ADD_FAILURE() << "no event of " << kind << " " << name;
        continue;
      }
      const auto facts = co_await world.facts(app, *report, commit);
      expect_resource_event(*report, facts, desired_state(manifest, facts.application),
                            co_await world.live(app.name, kind, name));
      EXPECT_EQ(report->source("revision"), commit.id);
    }

    std::set<std::string> ids;
    for (const auto& report : world.platform.reports()) {
      EXPECT_TRUE(ids.insert(report.event_id).second) << report.event_id;
      EXPECT_EQ(report.headers.find("Content-Encoding"), "gzip");
      EXPECT_EQ(report.headers.find("Authorization"), kPlatformToken);
      EXPECT_THAT(report.data.dump() + report.object.dump(), Not(HasSubstr("canary")));
    }
    EXPECT_THAT(world.platform.refused(), IsEmpty());
  });
}

TEST(EventReporterPeers, ACommitIsReported) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    co_await world.start();
    const auto app = world.make_repository("scaled");
    const auto first = co_await world.commit(app, five_resources(), "two replicas");
    co_await world.create(app);
    co_await world.sync(app, first.id);
    CO_ASSERT_TRUE(co_await world.settled(app, first.id));

    const auto seen = world.platform.reports().size();
    const auto second = co_await world.commit(
        app, {{"web.yaml", deployment(3)}, {"settings.yaml", settings("red")}}, "three replicas");
    co_await world.sync(app, second.id);
    CO_ASSERT_TRUE(co_await world.settled(app, second.id, seen));

    const auto* scaled = co_await world.last("Deployment", "web", seen);
    CO_ASSERT_TRUE(scaled != nullptr);
    EXPECT_EQ(scaled->source("revision"), second.id);
    EXPECT_EQ(scaled->source("commitMessage"), "three replicas");
    EXPECT_EQ(scaled->source("commitAuthor"), "Dana Levi <dana@example.com>");
    for (const auto* manifest : {"desiredManifest", "actualManifest"}) {
      EXPECT_EQ(json::parse(scaled->source(manifest)).at("/spec/replicas"_json_pointer), 3);
    }
    EXPECT_THAT(scaled->source("gitManifest"), HasSubstr("\n  replicas: 3\n"));
    EXPECT_EQ(scaled->object.at("/status/readyReplicas"_json_pointer), 3);
    const auto facts = co_await world.facts(app, *scaled, second);
    expect_resource_event(*scaled, facts,
                          desired_state(manifest_of(deployment(3)), facts.application),
                          co_await world.live(app.name, "Deployment", "web"));
    // What has no health to wait for is reported early, and yet with that commit.
    const auto* set = co_await world.last("ConfigMap", "settings", seen);
    CO_ASSERT_TRUE(set != nullptr);
    EXPECT_EQ(set->source("revision"), second.id);
    const auto facts_then = co_await world.facts(app, *set, second);
    expect_resource_event(*set, facts_then,
                          desired_state(manifest_of(settings("red")), facts_then.application),
                          co_await world.live(app.name, "ConfigMap", "settings"));
    // Nothing else of it has changed.
    for (std::size_t i = seen; i < world.platform.reports().size(); ++i) {
      EXPECT_THAT(world.platform.reports()[i].kind(),
                  AnyOf("Application", "Deployment", "ConfigMap"));
    }
  });
}

TEST(EventReporterPeers, WhatIsRemovedIsReportedAsGone) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    co_await world.start();
    const auto app = world.make_repository("removed");
    const auto first = co_await world.commit(app, five_resources(), "all of it");
    co_await world.create(app);
    co_await world.sync(app, first.id);
    CO_ASSERT_TRUE(co_await world.settled(app, first.id));

    // A resource leaves Git and is pruned.
    auto seen = world.platform.reports().size();
    const auto second =
        co_await world.commit(app, {{"settings.yaml", std::nullopt}}, "no settings any more");
    co_await world.sync(app, second.id);
    CO_ASSERT_TRUE(co_await world.settled(app, second.id, seen));
    EXPECT_THAT(world.bed.cluster().kubectl({"-n", app.name, "get", "configmap", "settings"}).err,
                HasSubstr("NotFound"));
    const auto* gone = co_await world.last("ConfigMap", "settings", seen);
    CO_ASSERT_TRUE(gone != nullptr);
    EXPECT_EQ(gone->object.at("apiVersion"), "v1");
    EXPECT_EQ(gone->object.at("/metadata/namespace"_json_pointer), app.name);
    expect_gone_event(*gone, co_await world.facts(app, *gone, second));
    EXPECT_THAT(world.platform.find("Secret", "credentials", seen), IsEmpty());

    // The application is deleted, with what is left of its resources.
    const auto uid = gone->data.at("/source/appUID"_json_pointer).get<std::string>();
    seen = world.platform.reports().size();
    co_await world.aside([&] {
      world.bed.argocd().request_ok("DELETE", "/api/v1/applications/" + app.name + "?cascade=true");
      require_until(
          [&] {
            return world.bed.cluster()
                .kubectl({"-n", kNamespace, "get", "applications.argoproj.io", app.name})
                .err.contains("NotFound");
          },
          kPatience, "the end of the application", std::chrono::milliseconds(100));
    });
    for (const auto& [kind, name] :
         {std::pair("Application", "removed"), std::pair("Deployment", "web"),
          std::pair("Service", "web"), std::pair("Secret", "credentials"),
          std::pair("ServiceAccount", "shop")}) {
      const auto* last = co_await world.last(kind, name, seen);
      if (last == nullptr) {
        ADD_FAILURE() << kind << " " << name << " was not reported as gone";
        continue;
      }
      for (const auto* field : {"desiredManifest", "actualManifest", "gitManifest"}) {
        EXPECT_EQ(last->source(field), "") << kind << " " << field;
      }
      if (kind == std::string_view("Application")) {
        EXPECT_EQ(last->object.at("/metadata/uid"_json_pointer), uid);
      } else {
        EXPECT_EQ(last->source("appUID"), uid) << kind;
        EXPECT_EQ(last->object.at("/metadata/namespace"_json_pointer), app.name);
      }
    }
    EXPECT_THAT(world.platform.refused(), IsEmpty());
  });
}

TEST(EventReporterPeers, ArgoCdIsReadTwicePerEvent) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    const auto config_map = [](int number, const std::string& content) {
      return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-" + std::to_string(number) +
             "}\ndata: {content: " + content + "}\n";
    };
    co_await world.start();
    for (const auto& [name, size] : {std::pair("five", 5), std::pair("hundred", 100)}) {
      SCOPED_TRACE(name);
      const auto app = world.make_repository(name);
      FileChanges files;
      for (int i = 0; i < size; ++i) {
        files["c-" + std::to_string(i) + ".yaml"] = config_map(i, "first");
      }
      const auto first = co_await world.commit(app, files, "first");
      co_await world.create(app);
      co_await world.sync(app, first.id);
      CO_ASSERT_TRUE(co_await world.settled(app, first.id));

      // One change, one event.
      auto before = co_await world.calls();
      auto seen = world.platform.reports().size();
      co_await world.aside([&] {
        world.bed.cluster().kubectl_ok({"-n", kNamespace, "label", "applications.argoproj.io",
                                        app.name, "--overwrite", "team=other"});
      });
      CO_ASSERT_TRUE(co_await world.platform.wait_for_count(seen + 1, soon()));
      CO_ASSERT_TRUE(co_await world.quiet());
      EXPECT_EQ(world.platform.reports().size(), seen + 1);
      EXPECT_THAT(co_await world.calls_since(before),
                  ElementsAre(Pair("ManagedResources", 1), Pair("ResourceTree", 1)));

      // A commit not seen before. The other two calls are this test's.
      before = co_await world.calls();
      seen = world.platform.reports().size();
      const auto second =
          co_await world.commit(app, {{"c-0.yaml", config_map(0, "second")}}, "second");
      co_await world.sync(app, second.id);
      CO_ASSERT_TRUE(co_await world.settled(app, second.id, seen));
      const auto events =
          static_cast<long>(world.platform.find("Application", app.name, seen).size());
      EXPECT_THAT(
          co_await world.calls_since(before),
          ElementsAre(Pair("Get", 1), Pair("ManagedResources", events),
                      Pair("ResourceTree", events), Pair("RevisionMetadata", 1), Pair("Sync", 1)));
      for (const auto* report : world.platform.find("ConfigMap", "", seen)) {
        EXPECT_EQ(report->name(), "c-0");
      }
    }
  });
}

}  // namespace
}  // namespace gitops::test
