#include "peers/reporter_bed.hpp"

#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "support/play.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;

constexpr auto kTimeLimit = std::chrono::seconds(60);
// Longer than a gauge of the reporter lags behind.
constexpr auto kQuiet = std::chrono::milliseconds(1200);
constexpr const char* kNamespace = ReporterBed::kNamespace;
constexpr const char* kRelease = "rt";

std::string make_argocd_token(PeerBed& bed) {
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
      kTimeLimit, "the account of the reporter");
  auto made = json::parse(reply.body).at("token").get<std::string>();
  require_until(
      [&] {
        return http_call(
                   {.url = bed.argocd().url() + "/api/v1/account/can-i/applications/get/default/x",
                    .headers = {"Authorization: Bearer " + made}})
                   .body == R"({"value":"yes"})";
      },
      kTimeLimit, "its right to read applications");
  return made;
}

}  // namespace

ReporterBed::ReporterBed(PeerBed& the_bed, ArgoCdRelease release, const Executor& executor)
    : bed(the_bed),
      release_(release),
      platform(executor, {.server = tls(), .token = kPlatformToken}) {}

std::optional<std::string> ReporterBed::missing(ArgoCdRelease release) {
  if (auto reason = PeerBed::missing(release)) return reason;
  return Helm::missing();
}

const std::string& ReporterBed::argocd_token() const {
  static std::map<const PeerBed*, std::string> tokens;  // one account for each bed
  auto& token = tokens[&bed];
  if (token.empty()) token = make_argocd_token(bed);
  return token;
}

// The values that differ from a customer's installation: there a pod's network resolves services by
// name and on their own ports, and the image contains the program.
json ReporterBed::values() const {
  const auto& argocd = bed.argocd().url();
  json config = {{"listen.address", "127.0.0.1"},
                 {"metrics.listen.address", "127.0.0.1"},
                 {"log.level", "debug"}};
  for (const auto& [name, value] : settings) config[name] = value;
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
             {{"svc", "127.0.0.1"}, {"port", std::stoi(argocd.substr(argocd.rfind(':') + 1))}}}}}}},
        {"event-reporters",
         {{"config", config},
          // The pod's ordinal is the end of its host name, which this machine does not have.
          {"env", {{"LISTEN_PORT", 0}, {"ADMIN_PORT", 0}, {"EVENT_REPORTER_SHARD", 0}}},
          {"persistence", {{"enabled", false}}},
          {"replicaCount", replicas}}}}},
      {"argo-cd", {{"enabled", false}}}};
}

void ReporterBed::install() {
  make_secrets();
  helm();
  workload.emplace(bed.cluster(), kNamespace, "runtime-event-reporter");
}

void ReporterBed::make_secrets() {
  for (const auto& [name, token] : {std::pair("codefresh-token", std::string(kPlatformToken)),
                                    std::pair("argocd-token", argocd_token())}) {
    bed.cluster().kubectl_ok(
        {"-n", kNamespace, "create", "secret", "generic", name, "--from-literal=token=" + token});
  }
}

void ReporterBed::helm() {
  write_file(folder_ / "values.json", values().dump());
  const auto installed = helm_.run({"upgrade", "--install", kRelease, chart_folder(), "-n",
                                    kNamespace, "-f", (folder_ / "values.json").string()},
                                   bed.cluster().kubeconfig());
  if (!installed.ok()) throw std::runtime_error("helm: " + installed.err);
}

void ReporterBed::start_reporter() {
  auto argv = workload->argv();
  argv[0] = std::string(GITOPS_BIN_DIR) + "/" + argv[0];
  reporter.emplace(std::move(argv), workload->process_environment(), kTimeLimit);
}

Task<> ReporterBed::start() {
  CO_ASSERT_OK(platform.start());
  install();
  start_reporter();
  if (!co_await reporter->wait_for_readyz("ready\n")) {
    throw std::runtime_error("the reporter is not ready: " + reporter->last_readyz());
  }
}

std::string ReporterBed::logs() const {
  return reporter ? reporter->report() : std::string();
}

Task<> ReporterBed::stop() {
  if (reporter && reporter->process().running()) EXPECT_EQ(co_await reporter->stop(), 0);
  co_await platform.stop();
  auto& cluster = bed.cluster();
  cluster.kubectl_ok({"-n", kNamespace, "delete", "applications.argoproj.io", "--all"});
  helm_.run({"uninstall", kRelease, "-n", kNamespace, "--wait"}, cluster.kubeconfig());
  cluster.kubectl_ok({"-n", kNamespace, "delete", "secret", "codefresh-token", "argocd-token",
                      "--ignore-not-found"});
}

ReporterBed::App ReporterBed::make_repository(const std::string& name) const {
  return {.name = name, .repo_url = bed.git().create_repository(name)};
}

Task<CommitFacts> ReporterBed::commit(App app, FileChanges changes, std::string message) {
  co_return co_await aside([this, app, changes, message] {
    const auto id = bed.git().commit(app.name, changes, message, {"Dana Levi", "dana@example.com"});
    return CommitFacts::read(
        [&](auto arguments) {
          const auto result = bed.git().git(app.name, arguments);
          if (!result.ok()) throw std::runtime_error("git: " + result.err);
          return result.out;
        },
        id);
  });
}

Task<> ReporterBed::create(App app) {
  co_await aside([this, app] {
    bed.cluster().create_namespace(app.name);
    bed.argocd().add_repository(bed.git(), app.name);
    bed.argocd().create_application(json{
        {"metadata",
         {{"name", app.name}, {"namespace", kNamespace}, {"labels", {{"team", "shop"}}}}},
        {"spec",
         {{"project", "default"},
          // The cost of a sync then depends on its changes, not on the number of resources.
          {"syncPolicy", {{"syncOptions", {"ApplyOutOfSyncOnly=true", "Validate=false"}}}},
          {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", app.name}}},
          {"source", {{"repoURL", app.repo_url}, {"path", "."}, {"targetRevision", "main"}}}}}}
                                        .dump());
  });
}

Task<> ReporterBed::sync(App app, std::string revision) {
  co_await aside([this, app, revision] { bed.argocd().sync_to(app.name, revision); });
}

Task<> ReporterBed::remove(App app, std::string query) {
  co_await aside([this, app, query] {
    bed.argocd().request_ok("DELETE", "/api/v1/applications/" + app.name + "?" + query);
    require_until(
        [&] {
          return bed.cluster()
              .kubectl({"-n", kNamespace, "get", "applications.argoproj.io", app.name})
              .err.contains("NotFound");
        },
        kTimeLimit, "the end of the application", std::chrono::milliseconds(100));
  });
}

Task<json> ReporterBed::live(std::string ns, std::string kind, std::string name) {
  co_return co_await aside([this, ns, kind, name] {
    return json::parse(bed.cluster().kubectl_ok(
        {"-n", ns, "get", kind, name, "-o", "json", "--show-managed-fields"}));
  });
}

Task<json> ReporterBed::application_at(App app, std::string version) {
  co_return co_await aside([this, app, version] {
    const auto reply = bed.cluster().request(
        "GET", "/apis/argoproj.io/v1alpha1/namespaces/" + std::string(kNamespace) +
                   "/applications?fieldSelector=metadata.name%3D" + app.name +
                   "&resourceVersionMatch=Exact&resourceVersion=" + version);
    if (!reply.ok()) throw std::runtime_error("application " + app.name + ": " + reply.body);
    return json::parse(reply.body).at("/items/0"_json_pointer);
  });
}

Task<std::map<std::string, long>> ReporterBed::calls() {
  const auto counts = co_await aside([this] { return bed.argocd().read_counts(); });
  std::map<std::string, long> calls;
  const std::string service = "application.ApplicationService/";
  for (const auto& [name, count] : counts) {
    if (name.starts_with(service)) calls[name.substr(service.size())] = count;
  }
  co_return calls;
}

Task<std::map<std::string, long>> ReporterBed::calls_since(std::map<std::string, long> before) {
  auto calls = co_await this->calls();
  for (const auto& [name, count] : before) calls[name] -= count;
  std::erase_if(calls, [](const auto& call) { return call.second == 0; });
  co_return calls;
}

Task<json> ReporterBed::tree(App app) {
  co_return co_await aside([this, app] {
    return json::parse(
        bed.argocd().request_ok("GET", "/api/v1/applications/" + app.name + "/resource-tree"));
  });
}

Task<ApplicationFacts> ReporterBed::facts(App app, const FakePlatform::Report& report,
                                          CommitFacts commit) {
  // The events of a report follow that of its application.
  std::string version;
  const auto uid = report.event_id.substr(0, report.event_id.find('/') + 1);
  for (const auto& candidate : platform.reports()) {
    if (candidate.kind() == "Application" && candidate.event_id.starts_with(uid)) {
      version = candidate.object.at("/metadata/resourceVersion"_json_pointer).get<std::string>();
    }
    if (&candidate == &report) break;
  }
  ApplicationFacts facts;
  facts.application = co_await application_at(app, version);
  facts.tree = co_await tree(app);
  facts.commit = std::move(commit);
  facts.not_before = started_;
  // Annotations became the default with 3.0.
  if (release_ == ArgoCdRelease::v2_13) facts.tracking_method = "label";
  co_return facts;
}

Task<bool> ReporterBed::quiet() {
  const auto limit = soon(kEventLimit);
  while (co_await platform.wait_until_quiet(kQuiet, limit)) {
    const auto metrics = co_await aside([this] { return reporter->get("/metrics").body; });
    if (metrics.contains("\ngitops_event_reporter_oldest_dirty_seconds 0\n")) co_return true;
    co_await sleep_for(std::chrono::milliseconds(200));
  }
  co_return false;
}

Task<bool> ReporterBed::settled(App app, std::string revision, std::size_t first) {
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
      soon(kEventLimit), first);
  if (root == nullptr) co_return false;
  co_return co_await quiet();
}

Task<const FakePlatform::Report*> ReporterBed::gone(std::string kind, std::string name,
                                                    std::size_t first) {
  co_return co_await platform.wait_for(
      [&](const FakePlatform::Report& report) {
        return report.kind() == kind && report.name() == name &&
               report.source("actualManifest").empty();
      },
      soon(kEventLimit), first);
}

Task<const FakePlatform::Report*> ReporterBed::last(std::string kind, std::string name,
                                                    std::size_t first) {
  co_await quiet();
  const auto found = platform.find(kind, name, first);
  co_return found.empty() ? nullptr : found.back();
}

http::ServerOptions ReporterBed::tls() {
  const auto certificate = authority_.issue(
      {.common_name = "localhost", .organization = "", .alt_names = {"localhost", "127.0.0.1"}});
  http::ServerOptions options;
  options.tls.emplace();
  options.tls->certificate_file = certificate.cert_file.string();
  options.tls->key_file = certificate.key_file.string();
  return options;
}

void play(ArgoCdRelease release, const std::function<Task<>(ReporterBed&)>& body,
          std::chrono::seconds limit) {
  auto& bed = peer_bed(release);
  run_coro(
      [&]() -> Task<> {
        ReporterBed reporter_bed(bed, release, co_await asio::this_coro::executor);
        co_await play_in(reporter_bed, body);
      },
      limit);
}

std::string deployment(int replicas) {
  return "# the shop's web server\n"
         "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: " +
         std::to_string(replicas) +
         "\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: "
         "web}}\n"
         "    spec: {containers: [{name: web, image: 'example.com/web:1'}]}\n";
}

std::string settings_map(const std::string& color) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
         "data: {color: " +
         color + ", html: '<a href=\"?x&y\">ü</a>'}\n";
}

FileChanges five_resources() {
  return {{"web.yaml", deployment(2)},
          {"service.yaml",
           "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
           "spec:\n  selector: {app: web}\n  ports: [{port: 80}]\n"},
          {"settings.yaml", settings_map("blue")},
          {"credentials.yaml",
           "apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n"
           "stringData: {password: canary-password}\n"},
          {"account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shop}\n"}};
}

json manifest_of(const std::optional<std::string>& text) {
  return parse_manifests(text.value()).value().at(0);
}

}  // namespace gitops::test
