// The parts of the scene in which the runtime registers itself, and in which a user changes the
// application through the tunnel and app-proxy.
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "scene.hpp"
#include "support/run_on.hpp"

namespace gitops::demo {
namespace {

using nlohmann::json;

constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kProject = "acme/shop";  // the repository, by its name at the Git host
constexpr const char* kWebhookSecret = "demo-webhook-secret";
constexpr const char* kDeployment = "deployment.yaml";
constexpr const char* kHook = "wait.yaml";

// Number of state changes that act() makes.
constexpr std::size_t kChanges = 10;

// A hook that never ends, since no node fits its pod.
constexpr const char* kEndlessJob =
    "apiVersion: batch/v1\n"
    "kind: Job\n"
    "metadata:\n"
    "  name: wait\n"
    "  annotations: {argocd.argoproj.io/hook: PreSync}\n"
    "spec:\n"
    "  template:\n"
    "    spec:\n"
    "      restartPolicy: Never\n"
    "      nodeSelector: {no: where}\n"
    "      containers: [{name: main, image: \"registry.example.com/wait:1.0\"}]\n";

}  // namespace

Task<> Scene::start_router_and_app_proxy() {
  git_host_ = std::make_unique<test::FakeGitHost>(co_await asio::this_coro::executor,
                                                  app_proxy::ProviderKind::github);
  check(git_host_->start().has_value(), "no port for the Git host");
  git_host_->add_repository("acme", kRepository).clone_url = repository_url_;
  git_.add_user(test::FakeGitHost::kLogin, test::FakeGitHost::kToken);

  const auto port = std::to_string(test::free_port());
  test::write_file(folder_ / "webhook-secret", kWebhookSecret);
  router_ = std::make_unique<test::RouterHarness>(test::RouterHarness::Options{
      .environment = {
          {"WEBHOOK_PORT", std::to_string(world_.event_source_port)},
          {"WEBHOOK_SIGNATURES", "argo/github=github:" + (folder_ / "webhook-secret").string()},
          {"UPSTREAM_ALLOWED_ADDRESSES", "127.0.0.1"},
          {"APP_PROXY_URL", "http://127.0.0.1:" + port},
          {"CORS", plane_.url()},
          {"TRUSTED_PROXIES", "127.0.0.1"}}});  // address of the tunnel-client
  const auto router = "http://127.0.0.1:" + std::to_string(router_->port());
  narrator_.step("request-router started (pid " + std::to_string(router_->process().pid()) + "), " +
                 router);
  app_proxy_ = std::make_unique<test::AppProxyProcess>(
      test::Environment{{"PORT", port},
                        {"CF_HOST", plane_.url()},
                        {"USER_TOKEN", plane_.key()},
                        {"RUNTIME_TOKEN", ""},
                        {"RUNTIME_STORE_IV", "demo"},
                        {"RUNTIME_NAME", kRuntime},
                        {"LEADER_ID", "demo"},
                        {"INGRESS_HOST", router},
                        {"CORS", plane_.url()},
                        {"KUBECONFIG", world_.kubeconfig},
                        {"NAMESPACE", world_.app_namespace},
                        {"ARGO_CD_URL", world_.argocd_url},
                        {"ARGO_CD_TOKEN", world_.argocd_token},
                        {"GIT_INSECURE_HTTP", "true"}});
  narrator_.step("app-proxy started (pid " + std::to_string(app_proxy_->process().pid()) +
                 ") with that key, " + app_proxy_->url());
}

Task<> Scene::wait_for_registration() {
  const auto deadline = deadline_after(kTimeLimit);
  const auto poll = [&](const char* otherwise) -> Task<> {
    check(app_proxy_->process().running(), "app-proxy has ended");
    check(Clock::now() < deadline, otherwise);
    co_await sleep_for(std::chrono::milliseconds(5));
  };
  while (runtime_token_.empty()) {
    co_await poll("app-proxy stores no token of the runtime");
    runtime_token_ = co_await world_.secret("codefresh-token", "token");
  }
  // app-proxy serves before it has read its account.
  while (!app_proxy_->log().contains("the account is known")) {
    co_await poll("app-proxy does not come to know its account");
  }
  const auto runtime = co_await plane_.ask(
      "query($name: String!) { runtime(name: $name) { metadata { namespace } ingressHost } }",
      {{"name", kRuntime}});
  check(runtime.is_object(), "the control plane does not know the runtime");
  narrator_.step("app-proxy has registered the runtime \"" + std::string(kRuntime) +
                 "\", and stored its token in Secret codefresh-token");
}

Task<json> Scene::ask_app_proxy(std::string document, json variables) {
  const auto answer = co_await ask_through_tunnel(
      json{{"query", std::move(document)}, {"variables", std::move(variables)}}.dump());
  check(answer.status == 200,
        "app-proxy answered with " + std::to_string(answer.status) + ": " + answer.body);
  const auto body = json::parse(answer.body, nullptr, false);
  check(body.is_object() && !body.contains("errors") && body.contains("data"),
        "app-proxy refused: " + answer.body);
  co_return body.at("data").begin().value();
}

Task<json> Scene::application() {
  return ask_app_proxy(
      "query($name: String!) { applicationProxyQuery(name: $name) { status { health { status } "
      "sync { status revision } history { id revision } operationState { phase message } } } }",
      {{"name", kAppName}});
}

Task<> Scene::sync_as_user() {
  co_await ask_app_proxy(
      "mutation($name: String!, $options: SyncOptions) { sync(applicationName: $name, options: "
      "$options) { metadata { name } } }",
      {{"name", kAppName}, {"options", {{"prune", true}}}});
}

Task<std::string> Scene::commit_as_user(json file, std::string message) {
  const auto commit = co_await ask_app_proxy(
      "mutation($args: CommitFilesArgs!) { commitFiles(args: $args) { sha committer { name } } }",
      {{"args",
        {{"repo", kProject}, {"files", json::array({std::move(file)})}, {"msg", message}}}});
  last_revision_ = commit.at("sha");
  ++commits_;
  const auto head = co_await test::run_on(pool_, [this] { return git_.head(kRepository); });
  check(head == last_revision_, "app-proxy's commit is not in the repository");
  narrator_.step("commitFiles: commit " + last_revision_.substr(0, 7) + " \"" + message + "\" by " +
                 commit.at("/committer/name"_json_pointer).get<std::string>());
  co_return last_revision_;
}

Task<> Scene::wait_for_operation(std::string phase) {
  const auto deadline = deadline_after(kTimeLimit);
  while (true) {
    const auto app = co_await application();
    const auto operation = app.value("/status/operationState"_json_pointer, json());
    // The message comes after the phase.
    if (operation.is_object() && operation.value("phase", "") == phase &&
        operation.at("message").is_string()) {
      narrator_.step("applicationProxyQuery: the operation is " + phase + ", \"" +
                     operation.value("message", "") + "\"");
      co_return;
    }
    check(Clock::now() < deadline, "the operation does not come to " + phase + ": " + app.dump());
    co_await sleep_for(std::chrono::milliseconds(20));
  }
}

Task<> Scene::act() {
  const auto integration = co_await ask_app_proxy(
      "mutation($args: AddGitIntegrationArgs!) { addGitIntegration(args: $args) { name } }",
      {{"args",
        {{"provider", "GITHUB"},
         {"apiUrl", git_host_->api_root().text() + "/"},
         {"sharingPolicy", "ALL_USERS_IN_ACCOUNT"}}}});
  co_await ask_app_proxy(
      "mutation($args: RegisterToGitIntegrationArgs!) { registerToGitIntegration(args: $args) { "
      "name } }",
      {{"args", {{"token", test::FakeGitHost::kToken}}}});
  narrator_.step("addGitIntegration \"" + integration.at("name").get<std::string>() + "\", and " +
                 std::string(Plane::kUser) + " registers her Git token");

  const auto before = page_->rows().size();
  const auto scaled =
      co_await commit_as_user({{"path", kDeployment}, {"data", deployment(4)}}, "scale to 4");
  co_await sync_as_user();
  narrator_.step("sync: Argo CD has taken it");
  const auto* app = co_await wait_for_revision(before, "Application", scaled);
  check(app->text("author") == "Dana Example <dana@example.test>",
        "the commit's author is shown as \"" + app->text("author") + "\"");
  narrator_.shown(app->arrived,
                  describe(*app) + " \"" + app->text("message") + "\" by Dana Example");
  co_await wait_for_deployment(scaled, 4);
  co_await roll_back();
  co_await terminate();
  const auto lines = audited();
  check(lines == kChanges, "the audit stream has " + std::to_string(lines) + " changes of " +
                               std::to_string(kChanges));
  narrator_.step("app-proxy's audit stream has all " + std::to_string(lines) +
                 " changes, with who asked for them");
}

Task<> Scene::roll_back() {
  const auto app = co_await application();
  const auto& history = app.at("/status/history"_json_pointer);
  check(history.size() > 1, "the application has no earlier deployment: " + app.dump());
  const auto& earlier = history.at(history.size() - 2);
  const auto before = page_->rows().size();
  co_await ask_app_proxy(
      "mutation($name: String!, $id: Int!) { appRollback(appName: $name, appNamespace: \"" +
          world_.app_namespace + "\", historyId: $id) }",
      {{"name", kAppName}, {"id", earlier.at("id")}});
  narrator_.step("appRollback to deployment " + earlier.at("id").dump() + " of the history");
  // The cluster differs from the branch now.
  const auto* resource =
      co_await wait_for(before, "the Deployment that differs", [](const Row& row) {
        return row.kind() == "Deployment" && row.text("sync") == "OUT_OF_SYNC";
      });
  narrator_.shown(resource->arrived, describe(*resource));
  co_await wait_for_deployment(earlier.at("revision"));
}

Task<> Scene::terminate() {
  co_await commit_as_user({{"path", kHook}, {"data", kEndlessJob}}, "wait for a job");
  co_await sync_as_user();
  co_await wait_for_operation("Running");
  const auto ended = co_await ask_app_proxy(
      "mutation($name: String!) { terminateApplicationOperation(applicationName: $name) { "
      "terminated } }",
      {{"name", kAppName}});
  check(ended.value("terminated", false), "no operation was terminated");
  narrator_.step("terminateApplicationOperation: terminated");
  co_await wait_for_operation("Failed");

  const auto before = page_->rows().size();
  const auto removed = co_await ask_app_proxy(
      "mutation($args: DeleteFilesArgs!) { deleteFiles(args: $args) { sha } }",
      {{"args", {{"repo", kProject}, {"paths", json::array({kHook})}, {"msg", "wait no longer"}}}});
  last_revision_ = removed.at("sha");
  ++commits_;
  narrator_.step("deleteFiles: commit " + last_revision_.substr(0, 7) + " \"wait no longer\"");
  co_await sync_as_user();
  const auto* resource = co_await wait_for_revision(before, "Deployment", last_revision_);
  narrator_.shown(resource->arrived, describe(*resource));
}

std::size_t Scene::audited() const {
  std::size_t count = 0;
  std::istringstream log(app_proxy_->log());
  for (std::string line; std::getline(log, line);) {
    const auto entry = json::parse(line, nullptr, false);
    if (entry.is_object() && entry.value("stream", "") == "audit" &&
        entry.value("result", "") == "ok") {
      ++count;
    }
  }
  return count;
}

}  // namespace gitops::demo
