#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "common/graphql/socket_session.hpp"
#include "daemons/reporter_process.hpp"
#include "e2e/app_proxy_harness.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/permission_audit.hpp"
#include "support/wait.hpp"

// The running app-proxy with the permissions of its ServiceAccount, on the real controllers.
namespace gitops::test {

inline constexpr auto kBob = AppProxyHarness::kBob;
inline constexpr auto kTimeLimit = std::chrono::seconds(40);

#ifdef GITOPS_ARGOCD_2
inline constexpr auto kRelease = ArgoCdRelease::v2_13;
#else
inline constexpr auto kRelease = ArgoCdRelease::v3_2;
#endif

struct Programs {
  static std::optional<std::string> missing() {
    if (auto lacking = PeerBed::missing(kRelease)) return lacking;
    if (auto lacking = PeerWorkflows::missing()) return lacking;
    if (auto lacking = Helm::missing()) return lacking;
    return PeerRollouts::missing();
  }
};

// The namespaces of two releases: one that acts, and one that reports images.
inline constexpr const char* kNamespace = "app-proxy";
inline constexpr const char* kReports = "image-reports";

inline PermissionAudit& audit() {
  static PermissionAudit made({kNamespace, kReports});
  return made;
}

inline PeerBed& bed() {
  return peer_bed(kRelease, {.api_server_flags = audit().flags()});
}

// What the chart renders for app-proxy with these values.
inline std::vector<nlohmann::json> rendered(const std::string& ns,
                                            const std::vector<std::string>& values) {
  std::vector<std::string> arguments{
      "--namespace", ns, "-f", values_file("minimal.yaml"), "--set", "app-proxy.enabled=true"};
  for (const auto& value : values) arguments.insert(arguments.end(), {"--set", value});
  auto objects = Helm().render(arguments);
  std::erase_if(objects, [](const nlohmann::json& one) {
    return !one["metadata"]["name"].get<std::string>().contains("cap-app-proxy") &&
           one["kind"] != "ServiceAccount" && one["kind"] != "ConfigMap";
  });
  return objects;
}

inline constexpr const char* kActions = "app-proxy.actions.enabled=true";

struct Account {
  std::string token;
  std::string kubeconfig;
};

// The ServiceAccount of app-proxy in this namespace, with the permissions of the chart.
inline Account make_account(const std::string& ns, const std::vector<std::string>& values) {
  auto& cluster = bed().cluster();
  cluster.create_namespace(ns);
  for (const nlohmann::json& object : rendered(ns, values)) {
    const std::string kind = object["kind"];
    if (kind.contains("Role") || kind == "ServiceAccount" ||
        object["metadata"]["name"] == "workflow-synchronization-semaphores") {
      cluster.apply(object.dump());
    }
  }
  const auto token = cluster.service_account_token(ns, "cap-app-proxy");
  return {.token = token, .kubeconfig = cluster.write_kubeconfig(ns, token).string()};
}

inline const Account& account() {
  static const Account made = make_account(kNamespace, {kActions});
  return made;
}

// A daemon for all of them, and rules by which Bob may do everything with objects of one namespace.
struct ActionsBed {
  explicit ActionsBed(AppProxyHarness& harness) : base(harness) {}

  void allow(const std::string& ns, std::vector<std::string> actions) {
    nlohmann::json rules = nlohmann::json::array();
    for (const char* type : {"gitopsApplications", "workflows", "workflowTemplates"}) {
      rules.push_back({{"id", type},
                       {"accountId", "acc-1"},
                       {"entityType", type},
                       {"teams", {"t1"}},
                       {"actions", actions},
                       {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}});
    }
    base.platform.accounts().set_team("t1", {"u-bob"});
    base.platform.accounts().set_rules(std::move(rules));
  }
  Task<> start(Environment more = {}) {
    more.insert({{"KUBECONFIG", account().kubeconfig},
                 {"NAMESPACE", kNamespace},
                 {"ARGO_CD_URL", bed().argocd().url()},
                 {"ARGO_CD_TOKEN", bed().argocd().token()},
                 {"RULES_REFRESH", "1s"}});
    base.start(std::move(more));
    co_await base.account_known();
    // The rules come right after the account.
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (base.daemon->status().count_in_state("rules for ", "pending") > 0 &&
           Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(50));
    }
  }
  // The event-reporter of this control plane, for Applications and for what else is reported.
  Task<> start_reporters() {
    write_file(folder / "token", "platform-token");
    bed().cluster().apply(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: reporter-token, namespace: " +
        std::string(PeerArgoCd::kNamespace) + "}\nstringData: {token: \"" + bed().argocd().token() +
        "\"}\n");
    for (const char* mode : {"app", "resource"}) {
      auto& reporter = reporters.emplace_back(
          ReporterProcess::command({"--codefresh-token-file", (folder / "token").string()}),
          Environment{{"REPORTER_MODE", mode},
                      {"WORKFLOW_NAMESPACES", "*"},
                      {"POD_NAMESPACE", PeerArgoCd::kNamespace},
                      {"KUBECONFIG", bed().cluster().kubeconfig().string()},
                      {"ARGOCD_SERVER", bed().argocd().url()},
                      {"ARGO_CD_TOKEN_SECRET_NAME", "reporter-token"},
                      {"CODEFRESH_URL", base.platform.url().to_string()},
                      {"LEDGER_FILE", (folder / (std::string(mode) + ".db")).string()}},
          kTimeLimit);
      CO_ASSERT_TRUE(co_await reporter.wait_for_readyz("ready\n")) << reporter.report();
    }
  }
  Task<> stop_reporters() {
    for (auto& reporter : reporters) EXPECT_EQ(co_await reporter.stop(), 0) << reporter.report();
    reporters.clear();
  }
  // Waits for an event of this object that has, or has had, this value; `first`: among the events from this index on.
  Task<> shown(std::string kind, std::string name, std::string pointer, std::string value,
               std::size_t first = 0) {
    const auto* report = co_await base.platform.wait_for(
        [&](const FakePlatform::Report& seen) {
          if (seen.kind() != kind || seen.name() != name) return false;
          if (pointer == "deleted" && kind == "Application") {
            return seen.source("actualManifest").empty();
          }
          if (pointer == "deleted") return seen.data.value("deleted", false);
          const nlohmann::json found =
              seen.object.value(nlohmann::json::json_pointer(pointer), nlohmann::json());
          return (found.is_string() ? found.get<std::string>() : found.dump()) == value;
        },
        deadline_after(kTimeLimit), first);
    EXPECT_NE(report, nullptr) << "no event of " << kind << " " << name << " with " << pointer
                               << " = " << value;
  }

  Task<AppProxyHarness::Answer> ask(const char* user, std::string query,
                                    nlohmann::json variables = {}) {
    return base.ask(std::move(query), AppProxyHarness::as(user), std::move(variables));
  }
  // The data of the only field of an operation that must succeed.
  Task<nlohmann::json> data(const char* user, std::string query, nlohmann::json variables = {}) {
    const auto answer = co_await ask(user, std::move(query), std::move(variables));
    EXPECT_EQ(answer.code(), "") << answer.body;
    EXPECT_FALSE(answer.json.contains("errors")) << answer.body;
    const nlohmann::json all = answer.json.value("data", nlohmann::json::object());
    co_return all.is_object() && !all.empty() ? all.begin().value() : nlohmann::json();
  }
  static bool is_forbidden(const AppProxyHarness::Answer& answer) {
    return answer.status == 200 &&
           answer.json.value(nlohmann::json::json_pointer("/errors/0/message"), "") ==
               "Forbidden" &&
           answer.json.value(nlohmann::json::json_pointer("/errors/0/extensions"),
                             nlohmann::json()) == 403;
  }

  AppProxyHarness& base;
  TempDir folder;
  std::list<ReporterProcess> reporters;
};

inline void in_actions_bed(const std::function<Task<>(ActionsBed&)>& body) {
  // Started on the main thread, outside of the loop.
  (void)bed();
  (void)account();
  run_coro(
      [&]() -> Task<> {
        AppProxyHarness harness(co_await asio::this_coro::executor);
        ActionsBed actions(harness);
        co_await play_in(harness, [&](AppProxyHarness&) -> Task<> {
          co_await body(actions);
          co_await actions.stop_reporters();
        });
      },
      std::chrono::seconds(150));
}

inline nlohmann::json object(const std::string& path) {
  const auto reply = bed().cluster().request("GET", path);
  return reply.ok() ? nlohmann::json::parse(reply.body) : nlohmann::json();
}

inline std::string text_at(const nlohmann::json& json, const char* pointer) {
  const nlohmann::json value =
      json.is_null() ? nlohmann::json()
                     : json.value(nlohmann::json::json_pointer(pointer), nlohmann::json());
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

// --- Argo CD -----------------------------------------------------------------------------------

inline std::string deployment(const std::string& image) {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ui}\nspec:\n  replicas: 1\n"
         "  selector: {matchLabels: {app: ui}}\n  template:\n    metadata: {labels: {app: ui}}\n"
         "    spec: {containers: [{name: main, image: \"" +
         image + "\"}]}\n";
}

// An Application of its own name, repository and destination namespace.
struct App {
  explicit App(std::string given,
               FileChanges files = {{"ui.yaml", deployment("example.test/ui:1")}},
               bool automated = false)
      : name(std::move(given)) {
    auto& argocd = bed().argocd();
    const auto url = bed().git().create_repository(name);
    bed().git().commit(name, files, "first");
    argocd.add_repository(bed().git(), name);
    argocd.create_application(name, url, ".", name, automated);
    const auto is_compared = [&] {
      return argocd.app_field(name, "{.status.sync.status}") == "OutOfSync";
    };
    if (!automated) EXPECT_TRUE(wait_until(is_compared, kTimeLimit, "the first comparison"));
  }
  [[nodiscard]] nlohmann::json read() const {
    return object("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/" + name);
  }
  [[nodiscard]] std::string image() const {
    return text_at(object("/apis/apps/v1/namespaces/" + name + "/deployments/ui"),
                   "/spec/template/spec/containers/0/image");
  }
  std::string name;
};

inline constexpr const char* kStatus =
    "query appProxyQuery($name: String!) { applicationProxyQuery(name: $name) { metadata { name } "
    "spec { syncPolicy { automated { prune } } } status { health { status } sync { status } } } }";

inline Task<bool> healthy_and_synced(ActionsBed& w, std::string name) {
  const auto deadline = deadline_after(kTimeLimit);
  while (Clock::now() < deadline) {
    nlohmann::json status = (co_await w.data(kBob, kStatus, {{"name", name}}))["status"];
    if (status["health"]["status"] == "HEALTHY" && status["sync"]["status"] == "SYNCED") {
      co_return true;
    }
    co_await sleep_for(std::chrono::milliseconds(100));
  }
  co_return false;
}

}  // namespace gitops::test
