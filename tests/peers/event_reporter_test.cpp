#include <exception>
#include <optional>
#include <set>
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
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

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
            {"env", {{"LISTEN_PORT", 0}, {"ADMIN_PORT", 0}}}}}}},
        {"argo-cd", {{"enabled", false}}}};
  }

  // As docs/chart.md says: two Secrets, then helm.
  void install() {
    for (const auto& [name, token] : {std::pair("codefresh-token", std::string(kPlatformToken)),
                                      std::pair("argocd-token", argocd_token())}) {
      bed.cluster().kubectl_ok(
          {"-n", kNamespace, "create", "secret", "generic", name, "--from-literal=token=" + token});
    }
    write_file(folder_ / "values.json", values().dump());
    const auto installed = helm_.run({"upgrade", "--install", kRelease, chart_folder(), "-n",
                                      kNamespace, "-f", (folder_ / "values.json").string()},
                                     bed.cluster().kubeconfig());
    if (!installed.ok()) throw std::runtime_error("helm: " + installed.err);
    workload.emplace(bed.cluster(), kNamespace, "event-reporter");
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
    CO_ASSERT_TRUE(co_await reporter->wait_for_readyz("ready\n"));
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
           {{"name", app.name},
            {"namespace", kNamespace},
            {"labels", {{"team", "shop"}}},
            {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}},
          {"spec",
           {{"project", "default"},
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

  Task<bool> quiet() { return platform.wait_until_quiet(kQuiet, soon()); }
  // The last of an object's events; waits until no more come.
  Task<const FakePlatform::Report*> last(std::string kind, std::string name,
                                         std::size_t first = 0) {
    co_await quiet();
    const auto found = platform.find(kind, name, first);
    co_return found.empty() ? nullptr : found.back();
  }

  PeerBed& bed;

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

FileChanges five_resources() {
  return {{"web.yaml", deployment(2)},
          {"service.yaml",
           "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
           "spec:\n  selector: {app: web}\n  ports: [{port: 80}]\n"},
          {"settings.yaml",
           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
           "data: {color: blue, html: '<a href=\"?x&y\">ü</a>'}\n"},
          {"credentials.yaml",
           "apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n"
           "stringData: {password: canary-password}\n"},
          {"account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shop}\n"}};
}

#define GITOPS_REQUIRE_EVERYTHING()                                                \
  GITOPS_REQUIRE_PEERS();                                                          \
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking; \
  static_assert(true, "a semicolon follows")

TEST(EventReporterPeers, AnApplicationAndItsResourcesAreReported) {
  GITOPS_REQUIRE_EVERYTHING();
  play([](World& world) -> Task<> {
    co_await world.start();
    const auto app = world.make_repository("reported");
    const auto files = five_resources();
    const auto commit = co_await world.commit(app, files, "first version\n\nof the shop");
    co_await world.create(app);
    co_await world.sync(app, commit.id);

    const auto* root = co_await world.last("Application", app.name);
    CO_ASSERT_TRUE(root != nullptr);
    expect_application_event(*root, co_await world.facts(app, *root, commit));
    for (const auto& [file, text] : files) {
      const auto manifest = parse_manifests(*text).value().at(0);
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
    }
  });
}

}  // namespace
}  // namespace gitops::test
