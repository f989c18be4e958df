#include "contract/populated_control_plane.hpp"

#include <array>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "support/postgres_server.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kCreateRuntime =
    "mutation CreateRuntime($installationArgs: RuntimeInstallationArgs!){createRuntime("
    "installationArgs: $installationArgs){newAccessToken}}";

Json object_of(const std::string& api_version, const std::string& kind,
               const std::string& object_namespace, const std::string& name) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata",
           {{"name", name},
            {"namespace", object_namespace},
            {"uid", "uid-" + name},
            {"creationTimestamp", "2026-03-04T09:00:00Z"}}}};
}

Json application_of(const std::string& object_namespace, const std::string& name,
                    const std::string& sync, const std::string& health) {
  auto application = object_of("argoproj.io/v1alpha1", "Application", object_namespace, name);
  application["spec"] = {
      {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", name}}},
      {"source",
       {{"repoURL", "https://git.example.test/acme/apps.git"},
        {"path", "apps/" + name},
        {"targetRevision", "main"}}}};
  application["status"] = {{"sync", {{"status", sync}, {"revision", std::string(40, 'c')}}},
                           {"health", {{"status", health}, {"message", "m"}}}};
  return application;
}

// The body of an event of an Application, or of a resource with the members of its manager in `source`.
std::string event_of(const Json& object, Json source = Json::object(),
                     const Json& errors = Json::array()) {
  const Json defaults{
      {"desiredManifest", ""},          {"gitManifest", ""},         {"revision", ""},
      {"syncStatus", "Synced"},         {"healthStatus", "Healthy"}, {"historyId", 0},
      {"actualManifest", object.dump()}};
  for (const auto& [key, value] : defaults.items()) {
    if (!source.contains(key)) source[key] = value;
  }
  Json data{{"object", base64_encode(object.dump())}, {"source", std::move(source)}};
  if (!errors.empty()) data["errors"] = errors;
  return Json{{"data", std::move(data)}}.dump();
}

Json managed_by(const std::string& application_namespace, const std::string& name) {
  return {{"appName", name}, {"appNamespace", application_namespace}, {"appUID", "uid-" + name}};
}

Json workflow_build() {
  auto workflow = object_of("argoproj.io/v1alpha1", "Workflow", "ci", "build");
  workflow["metadata"]["labels"] = {{"events.argoproj.io/sensor", "push"},
                                    {"events.argoproj.io/trigger", "build"},
                                    {"codefresh.io/project", "shop"}};
  workflow["spec"] = {{"entrypoint", "main"},
                      {"templates", {{{"name", "main"}}}},
                      {"workflowTemplateRef", {{"name", "ci"}}}};
  workflow["status"] = {{"phase", "Running"},
                        {"progress", "1/2"},
                        {"nodes", {{"n1", {{"type", "Pod"}, {"name", "main"}}}}}};
  return workflow;
}

// A text behind the last `label`, up to the end of its line.
std::string line_behind(const std::string& text, std::string_view label) {
  const auto at = text.rfind(label);
  if (at == std::string::npos) throw std::runtime_error("the log has no " + std::string(label));
  const auto begin = at + label.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string checked(const HttpReply& reply) {
  if (!reply.ok() || reply.body.contains("\"errors\"")) throw std::runtime_error(reply.body);
  return reply.body;
}

}  // namespace

PopulatedControlPlane::PopulatedControlPlane(bool is_on_postgres)
    : program_(is_on_postgres ? PostgresServer::shared().new_database() : std::string(),
               {"--tunnel.domain=tunnels.example.test"}) {
  program_.start();
  log_in();
  program_.stop();
  add_people();
  program_.start();
  add_runtimes();
  send_events();
  send_reports();
}

// The password is that of the first start; the key is made in the session of the login.
void PopulatedControlPlane::log_in() {
  const auto password = line_behind(program_.log(), "Password (shown once): ");
  const auto jar = (folder_ / "cookies").string();
  // On a busy machine a database may be too slow for the first questions, which is a 503.
  const std::vector<std::string> curl{"curl",
                                      "--disable",
                                      "--silent",
                                      "--show-error",
                                      "--fail",
                                      "--retry",
                                      "8",
                                      "--header",
                                      "Content-Type: application/json"};
  auto login = curl;
  login.insert(login.end(), {"--cookie-jar", jar, "--data",
                             Json{{"name", "admin"}, {"password", password}}.dump(),
                             program_.url() + "/console/api/v1/login"});
  admin_id = Json::parse(run_or_throw(login))["_id"];
  auto key = curl;
  key.insert(key.end(), {"--cookie", jar, "--data", R"({"name":"cli","scopes":[]})",
                         program_.url() + "/api/auth/key"});
  admin_key = run_or_throw(key);
}

void PopulatedControlPlane::add_people() {
  program_.add_user("bob", "default");
  bob_key = program_.create_key("bob", "default");
  program_.add_account("other");
  program_.add_user("eve", "other", {"--admin"});
  eve_key = program_.create_key("eve", "other");
}

std::string PopulatedControlPlane::ask(const std::string& token, const std::string& query,
                                       const std::string& variables) const {
  return checked(program_.graphql(token, query, variables));
}

void PopulatedControlPlane::add_runtimes() {
  const auto me = Json::parse(ask(admin_key, "{me{activeAccount{id}}}"));
  account_id = me["data"]["me"]["activeAccount"]["id"];
  const Json prod{{"runtimeName", "prod"},
                  {"runtimeNamespace", "gitops"},
                  {"cluster", "https://kubernetes.default.svc"},
                  {"installationType", "HELM"},
                  {"runtimeVersion", "0.2.0"},
                  {"managed", false},
                  {"ingressHost", "https://" + account_id + "-prod.tunnels.example.test"},
                  {"ingressClass", "nginx"},
                  {"ingressController", "k8s.io/ingress-nginx"},
                  {"componentNames", Json::array()}};
  const auto created =
      Json::parse(ask(admin_key, kCreateRuntime, Json{{"installationArgs", prod}}.dump()));
  prod_token = created["data"]["createRuntime"]["newAccessToken"];
  // An older client with a word that the SDK does not know.
  auto stage = prod;
  stage["runtimeName"] = "stage";
  stage["installationType"] = "CLI";
  stage["runtimeVersion"] = "latest";
  stage.erase("ingressHost");
  const auto other =
      Json::parse(ask(admin_key, kCreateRuntime, Json{{"installationArgs", stage}}.dump()));
  stage_token = other["data"]["createRuntime"]["newAccessToken"];
}

void PopulatedControlPlane::post_event(const std::string& body) {
  const auto sequence = std::to_string(++sequence_);
  checked(
      http_call({.method = "POST",
                 .url = program_.url() + "/2.0/api/events",
                 .headers = {"Authorization: " + prod_token, "Content-Type: application/json",
                             "X-Event-Id: populate/" + sequence, "X-Event-Sequence: " + sequence},
                 .body = body}));
}

void PopulatedControlPlane::send_events() {
  auto own = application_of("gitops", "gitops-runtime", "Synced", "Healthy");
  own["metadata"]["labels"] = {{"codefresh.io/entity", "runtime"}};
  post_event(event_of(own));
  auto app_proxy = object_of("apps/v1", "Deployment", "gitops", "cap-app-proxy");
  app_proxy["metadata"]["labels"] = {{"app.kubernetes.io/version", "0.2.0"}};
  post_event(event_of(app_proxy, managed_by("gitops", "gitops-runtime")));
  auto failing = application_of("gitops", "prod-argo-rollouts", "OutOfSync", "Degraded");
  failing["metadata"]["labels"] = {{"codefresh.io/entity", "component"}};
  post_event(event_of(failing, Json::object(),
                      Json::array({{{"type", "sync"},
                                    {"level", "error"},
                                    {"message", "one or more objects failed to apply"},
                                    {"lastSeen", "2026-03-04T09:00:00Z"}},
                                   {{"type", "health"}, {"level", "warning"}, {"message", "h"}}})));

  auto source = application_of("argocd", "prod-apps", "Synced", "Healthy");
  source["metadata"]["labels"] = {{"codefresh.io/entity", "git-source"}};
  post_event(event_of(source));
  auto shop = application_of("argocd", "shop", "OutOfSync", "Progressing");
  shop["metadata"]["labels"] = {{"team", "a"}};
  post_event(event_of(shop, managed_by("argocd", "prod-apps")));
  auto sensor = object_of("argoproj.io/v1alpha1", "Sensor", "ci", "push");
  sensor["spec"]["triggers"] = {{{"template", {{"name", "build"}}}}};
  post_event(event_of(sensor, managed_by("argocd", "prod-apps")));
  auto promotion = object_of("codefresh.io/v1beta1", "PromotionTemplate", "gitops", "team-a");
  promotion["spec"] = {{"priority", 1},
                       {"applicationSourceSelector", {{"matchLabels", {{"team", "a"}}}}},
                       {"versionSource", {{"file", "Chart.yaml"}, {"jsonPath", "$.appVersion"}}}};
  post_event(event_of(promotion, managed_by("argocd", "prod-apps")));
  post_event(Json{{"data", {{"object", workflow_build().dump()}}}}.dump());
}

void PopulatedControlPlane::send_reports() {
  const auto cluster = [](const char* name, const char* server, const char* status) -> Json {
    return {{"name", name},
            {"runtime", "prod"},
            {"server", server},
            {"info",
             {{"connectionState", {{"status", status}, {"message", "m"}}},
              {"serverVersion", "1.31"},
              {"cacheInfo", {{"resourcesCount", 7}, {"apisCount", 3}}},
              {"applicationsCount", 2}}}};
  };
  ask(prod_token, "mutation($c: [ClusterUpsertArgs]){updateRuntimeClusters(clusters: $c)}",
      Json{{"c",
            {cluster("in-cluster", "https://kubernetes.default.svc", "Successful"),
             cluster("east", "https://10.0.0.1", "Failed")}}}
          .dump());
  ask(prod_token, "mutation($a: UpdateRuntimeStatusArgs!){updateRuntimeStatus(args: $a)}",
      Json{{"a",
            {{"runtime", "prod"},
             {"status", {{"runtimeGitToken", {{"status", "SUCCESSFUL"}}}, {"syncMode", "HELM"}}}}}}
          .dump());
}

PopulatedControlPlane& shared_control_plane(bool is_on_postgres) {
  static std::array<std::unique_ptr<PopulatedControlPlane>, 2> beds;
  auto& bed = beds.at(is_on_postgres ? 1 : 0);
  if (!bed) bed = std::make_unique<PopulatedControlPlane>(is_on_postgres);
  return *bed;
}

}  // namespace gitops::test
