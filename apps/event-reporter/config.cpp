#include "event-reporter/config.hpp"

#include <algorithm>
#include <limits>

#include "common/argo/argocd_client.hpp"
#include "common/core/process.hpp"
#include "common/http/url.hpp"
#include "event-reporter/shards/shard.hpp"
#include "event-reporter/watch/name_pattern.hpp"
#include "event-reporter/watch/resource_kinds.hpp"

namespace gitops::reporter {
namespace {

std::string argocd_mistake(const Config& config) {
  if (const auto server = argo::parse_server(config.argocd_server); !server) {
    return server.error().message;
  }
  return {};
}

std::string url_mistake(const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) return url.error().message;
  if (url->scheme != "http" && url->scheme != "https") return "not http or https";
  return {};
}

std::string token_mistake(bool value, bool file, bool secret) {
  if (value + file + secret <= 1) return {};
  return "the token is given more than once, as a value, a file or a Secret";
}

std::string patterns_mistake(const std::vector<std::string>& patterns) {
  for (const auto& pattern : patterns) {
    if (auto mistake = pattern_mistake(pattern); !mistake.empty()) return mistake;
  }
  return {};
}

std::string kinds_mistake(const Config& config) {
  for (const auto& name : config.kinds) {
    if (find_kind(name) != nullptr) continue;
    std::string known;
    for (const auto& kind : resource_kinds()) known += (known.empty() ? "" : ", ") + kind.name;
    return "\"" + name + "\" is not one of " + known;
  }
  return {};
}

void bind_resource_mode(ConfigReader& reader, Config& config) {
  reader.group("Mode resource");
  reader.add({"report-kinds",
              {"REPORT_KINDS"},
              "Kinds to report: rollouts, analysisruns, replicasets, workflows; empty means all"},
             config.kinds);
  reader.check({"report-kinds"}, [&config] { return kinds_mistake(config); });
  reader.add({"report-all-replicasets",
              {"REPORT_ALL_REPLICASETS"},
              "Report every ReplicaSet, not only those of Rollouts"},
             config.all_replicasets);
  reader.add({"workflow-namespaces",
              {"WORKFLOW_NAMESPACES"},
              "Further namespaces whose Workflows are reported; '*' and '?' match, /x/ is a "
              "regular expression"},
             config.workflow_namespaces);
  reader.check({"workflow-namespaces"},
               [&config] { return patterns_mistake(config.workflow_namespaces); });
  reader.add({"namespaced",
              {"IS_NAMESPACED_RUNTIME"},
              "Watch only the own namespace of the own cluster, whatever the kind"},
             config.namespaced);
  reader.check({"namespaced", "workflow-namespaces"}, [&config] {
    return config.namespaced && !config.workflow_namespaces.empty()
               ? "further namespaces contradict it"
               : std::string{};
  });
  reader.add({"managed-clusters",
              {"REPORT_MANAGED_CLUSTERS"},
              "Also report the managed clusters of Argo CD's cluster Secrets in the own namespace"},
             config.managed_clusters);
  reader.add({"cluster-secrets",
              {"CLUSTER_SECRETS"},
              "Names of the cluster Secrets to report; empty means all, which needs the right to "
              "list every Secret of the namespace"},
             config.cluster_secrets);
  reader.check({"cluster-secrets", "managed-clusters"}, [&config]() -> std::string {
    if (!config.managed_clusters && !config.cluster_secrets.empty()) {
      return "they need managed-clusters";
    }
    for (const auto& name : config.cluster_secrets) {
      if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") != std::string::npos) {
        return "\"" + name + "\" is not the name of a Secret";
      }
    }
    return {};
  });
}

}  // namespace

void bind(ConfigReader& reader, Config& config) {
  constexpr std::int64_t kMany = 1'000'000;
  reader.group("Reporting");
  reader.add_choice({"reporter-mode",
                     {"REPORTER_MODE"},
                     "What to report: app: Argo CD Applications; resource: Rollouts, AnalysisRuns, "
                     "ReplicaSets and Workflows"},
                    config.mode, {"app", "resource"});
  reader.add({"app-queue-size",
              {"APP_QUEUE_SIZE"},
              "Applications (or resources) that may wait in the queue"},
             config.queue_size, 1, kMany);
  reader.add({"max-app-retries",
              {"MAX_APP_RETRIES"},
              "Attempts to deliver one event before its application goes back to the queue, and to "
              "read an "
              "application whole before its event is sent with what is known"},
             config.max_retries, 1, 100);
  reader.add(
      {"threadiness", {"THREADINESS"}, "Applications (or resources) reported at the same time"},
      config.workers, 1, 1000);
  reader.add({"resource-threadiness",
              {"RESOURCE_THREADINESS"},
              "Events of one application in flight at the same time"},
             config.resource_workers, 1, 1000);
  reader.add({"application-namespaces",
              {"ARGOCD_APPLICATION_NAMESPACES"},
              "Further namespaces whose Applications are reported; '*' and '?' match, /x/ is a "
              "regular expression"},
             config.application_namespaces);
  reader.check({"application-namespaces"},
               [&config] { return patterns_mistake(config.application_namespaces); });
  reader.add({"ledger-file",
              {"LEDGER_FILE"},
              "File that keeps the acknowledged state; without it a restart reports everything"},
             config.ledger_file);
  reader.add({"heartbeat",
              {"HEARTBEAT_INTERVAL"},
              "Time without a report after which one event is sent again as a heartbeat"},
             config.heartbeat, std::chrono::seconds(1), std::chrono::hours(24));
  reader.add({"sweep-interval",
              {"SWEEP_INTERVAL"},
              "Period in which every resource tree is read once, for changes that Argo CD does not "
              "write into the Application"},
             config.sweep, std::chrono::seconds(1), std::chrono::hours(24));
  reader.add({"reconcile-interval",
              {"RECONCILE_INTERVAL"},
              "Interval in which each object is reported again once, spread over time; corrects "
              "differences that the comparison with acknowledged events misses"},
             config.reconcile, std::chrono::minutes(1), std::chrono::hours(24 * 30));
  reader.add({"resend-on-revision",
              {"EVENT_REPORTER_RESEND_ON_REVISION"},
              "Report every resource again for a new revision, including unchanged ones"},
             config.resend_on_revision);

  bind_resource_mode(reader, config);

  reader.group("Argo CD");
  reader.add({"argocd-server",
              {"ARGOCD_SERVER", "EVENT_REPORTER_APPLICATION_SERVER"},
              "argocd-server as host:port or URL; without a scheme, plain HTTP is used"},
             config.argocd_server);
  reader.check({"argocd-server"}, [&config] { return argocd_mistake(config); });
  reader.add({"argocd-server-path", {"ARGOCD_SERVER_ROOTPATH"}, "argocd-server's root path"},
             config.argocd_root_path);
  reader.add({"argocd-namespace",
              {"ARGOCD_NAMESPACE"},
              "Namespace of Argo CD, whose Applications are reported; empty means the own one"},
             config.argocd_namespace);
  reader.add_secret({"argocd-token", {"ARGOCD_TOKEN"}, "Token for argocd-server"},
                    config.argocd_token, &config.argocd_token_file);
  reader.add({"argocd-token-secret-name",
              {"ARGO_CD_TOKEN_SECRET_NAME"},
              "Secret in the own namespace that holds the token for argocd-server"},
             config.argocd_token_secret);
  reader.add({"argocd-token-secret-key", {"ARGO_CD_TOKEN_SECRET_KEY"}, "Key in that Secret"},
             config.argocd_token_key);
  reader.check({"argocd-token", "argocd-token-secret-name"}, [&config] {
    return token_mistake(!config.argocd_token.empty(), !config.argocd_token_file.empty(),
                         !config.argocd_token_secret.empty());
  });
  reader.add({"argocd-username",
              {"ARGO_CD_USERNAME"},
              "Account for the login to argocd-server with a password"},
             config.argocd_username);
  reader.add_secret({"argocd-password",
                     {"ARGO_CD_PASSWORD"},
                     "Password of that account, for a login instead of a token"},
                    config.argocd_password, &config.argocd_password_file,
                    ConfigReader::SecretFile::may_come_later);
  reader.check({"argocd-password"}, [&config] {
    const bool password = !config.argocd_password.empty() || !config.argocd_password_file.empty();
    const bool token = !config.argocd_token.empty() || !config.argocd_token_file.empty() ||
                       !config.argocd_token_secret.empty();
    if (!config.argocd_password.empty() && !config.argocd_password_file.empty()) {
      return std::string("the password is given as a value and as a file");
    }
    return password && token ? std::string("a token for argocd-server is given, too")
                             : std::string{};
  });
  reader.add(
      {"argocd-ca-file",
       {"ARGOCD_CA_FILE"},
       "PEM file with the certificate authorities of argocd-server, instead of the system's"},
      config.argocd_ca_file);
  reader.add({"argocd-insecure", {"ARGOCD_INSECURE"}, "Accept any certificate of argocd-server"},
             config.argocd_insecure);

  reader.group("Control plane");
  reader.add({"codefresh-url", {"CODEFRESH_URL"}, "Base URL of the control plane"},
             config.platform_url);
  reader.check({"codefresh-url"}, [&config] { return url_mistake(config.platform_url); });
  reader.add_secret({"codefresh-token", {"CODEFRESH_TOKEN"}, "Token for the control plane"},
                    config.platform_token, &config.platform_token_file,
                    ConfigReader::SecretFile::may_come_later);
  reader.check({"codefresh-token"}, [&config] {
    return token_mistake(!config.platform_token.empty(), !config.platform_token_file.empty(),
                         false);
  });
  reader.add({"codefresh-tls-cert-path",
              {"CODEFRESH_SSL_CERT_PATH"},
              "PEM file with the certificate authorities of the control plane, instead of the "
              "system's"},
             config.platform_ca_file);
  reader.add({"codefresh-tls-insecure",
              {"CODEFRESH_TLS_INSECURE"},
              "Accept any certificate of the control plane"},
             config.platform_insecure);

  reader.group("Git");
  reader.add({"app-proxy-url",
              {"APP_PROXY_URL"},
              "Base URL of app-proxy in the cluster, which finds the files in Git that manifests "
              "come from; requests carry the token for the control plane"},
             config.app_proxy_url);
  reader.check({"app-proxy-url"}, [&config]() -> std::string {
    return config.app_proxy_url.empty() ? std::string() : url_mistake(config.app_proxy_url);
  });

  reader.group("Shards");
  reader.add(
      {"replicas",
       {"EVENT_REPORTER_REPLICAS"},
       "Number of replicas that share the applications; 0 and 1 mean one replica reports all"},
      config.replicas, 0, std::numeric_limits<std::int32_t>::max());
  reader.add({"shard",
              {"EVENT_REPORTER_SHARD"},
              "Ordinal of this replica; -1 takes it from the end of the host name"},
             config.shard, -1, std::numeric_limits<std::int32_t>::max());
  reader.check({"replicas", "shard"}, [&config] {
    const auto shard = own_shard(config.replicas, config.shard, host_name());
    return shard ? std::string{} : shard.error().message;
  });
  reader.add({"sharding-method",
              {"EVENT_REPORTER_SHARDING_ALGORITHM", "SHARDING_ALGORITHM"},
              "Sharding algorithm: only legacy, which is FNV-1a of the name"},
             config.sharding_algorithm);
  reader.check({"sharding-method"}, [&config] {
    const auto& name = config.sharding_algorithm;
    return name.empty() || name == "legacy" ? std::string{} : "only legacy is known";
  });

  reader.group("Process");
  reader.add({"listen-address",
              {"LISTEN_ADDRESS", "EVENT_REPORTER_LISTEN_ADDRESS"},
              "Address of the main port; :: is IPv6 and IPv4, or IPv4 where there is no IPv6"},
             config.listen_address);
  reader.add({"port", {"LISTEN_PORT"}, "Main port, serves /healthz; 0 takes a free one"},
             config.listen_port, 0, 65535);
  reader.add({"kubeconfig",
              {},
              "Kubeconfig file; otherwise KUBECONFIG, the pod's service account, ~/.kube/config"},
             config.kubeconfig);
  reader.add({"context", {}, "Context of the kubeconfig; empty means its current one"},
             config.context);
  reader.add({"kubeconfig-exec", {}, "Allow the kubeconfig to start credential programs"},
             config.kubeconfig_exec);
  reader.add({"namespace",
              {"POD_NAMESPACE"},
              "Own namespace; empty means the service account's or the kubeconfig's"},
             config.own_namespace);
  reader.add({"runtime-version", {"RUNTIME_VERSION"}, "Version shown to peers as User-Agent"},
             config.version);
}

}  // namespace gitops::reporter
