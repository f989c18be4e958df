// The option --keep: all programs keep running, and the output explains how to use them.
#include <filesystem>
#include <stdexcept>
#include <string>

#include "scene.hpp"
#include "support/run_on.hpp"

namespace gitops::demo {
namespace {

// Returns a shell command that signs a webhook and sends it.
std::string signed_webhook(const std::filesystem::path& secret_file, const std::string& url) {
  return R"sh(body='{"ref":"refs/heads/main","after":"0123456"}'; sign=$(printf %s "$body" | )sh"
         R"sh(openssl dgst -sha256 -hex -hmac "$(cat )sh" +
         shell_word(secret_file) +
         R"sh()" | sed 's/.* //'); curl -i -H 'X-GitHub-Event: push' )sh"
         R"sh(-H 'Content-Type: application/json' -H "X-Hub-Signature-256: sha256=$sign" )sh"
         R"sh(-d "$body" )sh" +
         url;
}

}  // namespace

Task<> Scene::follow() {
  auto known = last_revision_;
  auto seen = page_->rows().size();
  auto seen_events = world_.events().size();
  while (true) {
    co_await sleep_for(std::chrono::milliseconds(500));
    check(plane_.program().process().running(), "the control plane has ended");
    check(daemon_->running(), "event-reporter has ended");
    check(router_->process().running(), "request-router has ended");
    check(app_proxy_->process().running(), "app-proxy has ended");
    check(tunnel_client_->process().running(), "tunnel-client has ended");
    check(tunnel_server_->process().running(), "tunnel-server has ended");
    for (const auto events = world_.events(); seen_events < events.size(); ++seen_events) {
      narrator_.step("event source received: " + describe_push(events[seen_events]));
    }
    const auto head = co_await test::run_on(pool_, [this] { return git_.head(kRepository); });
    if (head != known) {
      known = head;
      narrator_.step("new commit " + head.substr(0, 7) + ", Argo CD syncs");
      std::string failure;
      try {
        co_await world_.sync(kAppName, head);
      } catch (const std::runtime_error& error) {
        failure = error.what();
      }
      const auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) co_return;
      if (failure.empty()) {
        narrator_.step("Argo CD synced " + head.substr(0, 7));
      } else {
        narrator_.failure(failure);
      }
    }
    for (; seen < page_->rows().size(); ++seen) {
      const auto& row = page_->rows()[seen];
      // The application comes with both topics of the page.
      if (row.kind() == "Application" && row.text("topic") != "index") continue;
      narrator_.shown(row.arrived, describe(row));
    }
  }
}

void Scene::print_hints() {
  const auto admin = "http://127.0.0.1:" + std::to_string(admin_port_);
  auto clone = repository_url_;
  clone.insert(clone.find("://") + 3, git_.username() + ":" + git_.password() + "@");
  const auto applications =
      world_.kubectl.empty()
          ? "curl -s " + world_.kubernetes_url + "/apis/argoproj.io/v1alpha1/applications"
          : world_.kubectl + " --kubeconfig " + shell_word(world_.kubeconfig) +
                " get applications -A";
  const auto address = "http://127.0.0.1:" + std::to_string(router_->port());
  struct Hint {
    std::string what;
    std::string command;
  };
  narrator_.headline("Everything keeps running until Ctrl-C. To play with it:");
  for (const auto& [what, command] : {
           Hint{
               "the console; user " + std::string(Plane::kUser) + ", password " + plane_.password(),
               plane_.page("/applications/" + std::string(kRuntime) + "/" + world_.app_namespace +
                           "/" + kAppName)},
           Hint{"commit and push: Argo CD syncs it, and what the page shows is told below",
                "git clone " + clone},
           Hint{"the applications", applications},
           Hint{"what Argo CD has deployed",
                "curl -s -H 'Authorization: Bearer " + world_.argocd_token + "' '" +
                    world_.argocd_url + "/api/v1/applications/" + kAppName +
                    "/resource-tree?appNamespace=" + world_.app_namespace + "&project=default'"},
           Hint{"what the control plane knows, by its API",
                "curl -s -H 'Authorization: " + plane_.key() +
                    "' -H 'Content-Type: application/json' -d '{\"query\":\"{ applications { edges "
                    "{ node { metadata { name } syncStatus healthStatus status { revision "
                    "commitMessage } } } } }\"}' " +
                    plane_.url() + "/2.0/api/graphql"},
           Hint{"a webhook with its signature; what the event source receives is told below",
                signed_webhook(folder_ / "webhook-secret", address + kWebhook)},
           Hint{"a sync by app-proxy, through the tunnel",
                tunnel_command("{\"query\":\"mutation { sync(applicationName: \\\"" +
                               std::string(kAppName) + "\\\") { metadata { name } } }\"}")},
           Hint{"app-proxy's log and audit stream",
                "tail -f " + shell_word(app_proxy_->process().log_file())},
           Hint{"request-router's log", "tail -f " + shell_word(router_->folder() / "log")},
           Hint{"tunnel-client's log", "tail -f " + shell_word(tunnel_client_->log_file())},
           Hint{"tunnel-server's log", "tail -f " + shell_word(tunnel_server_->log_file())},
           Hint{"control-plane's log", "tail -f " + shell_word(plane_.program().log_file())},
           Hint{"how event-reporter is", "curl -s " + admin + "/statusz"},
           Hint{"its metrics", "curl -s " + admin + "/metrics"},
           Hint{"its log", "tail -f " + shell_word(folder_ / "event-reporter.log")},
       }) {
    narrator_.plain("  # " + what + "\n  " + command);
  }
  narrator_.plain("");
}

}  // namespace gitops::demo
