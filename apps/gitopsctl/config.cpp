#include "gitopsctl/config.hpp"

#include <filesystem>
#include <system_error>

#include "common/argo/argocd_client.hpp"
#include "common/http/url.hpp"

namespace gitops::ctl {

namespace {

// Adds a setting whose value shells complete as a file name.
void add_file(ConfigReader& reader, SettingNames names, std::string& target) {
  reader.add(std::move(names), "FILE", target, [&target](const std::string& text) {
    target = text;
    return std::string();
  });
}

std::string lookup(const cli::Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string url_mistake(const std::string& text) {
  if (text.empty()) return {};
  const auto url = http::parse_url(text);
  if (!url) return url.error().message;
  return url->scheme == "http" || url->scheme == "https" ? "" : "not http or https";
}

}  // namespace

void KubernetesSettings::add_to(ConfigReader& reader, std::string_view context_flag) {
  reader.group("Kubernetes");
  add_file(reader,
           {.flag = "kubeconfig",
            .help = "Kubeconfig file; default: KUBECONFIG, ~/.kube/config, the pod's service "
                    "account"},
           kubeconfig);
  reader.add(
      {.flag = context_flag, .help = "Context of the kubeconfig; empty means its current context"},
      context);
}

void KubernetesSettings::add_namespace_to(ConfigReader& reader) {
  reader.add({.flag = "namespace",
              .help = "Namespace of the runtime; empty means the context's",
              .letter = 'n'},
             ns);
}

Result<k8s::ClusterConfig> find_cluster(const KubernetesSettings& settings,
                                        const cli::Environment& environment) {
  std::string path = settings.kubeconfig;
  const std::string home = lookup(environment, "HOME");
  if (path.empty() && lookup(environment, "KUBECONFIG").empty() && !home.empty()) {
    std::error_code error;
    const std::string own = home + "/.kube/config";
    if (std::filesystem::exists(own, error)) path = own;
  }
  auto config = k8s::load_cluster_config(path, settings.context, environment,
                                         k8s::ExecPolicy::allow_inheriting);
  if (config && !settings.ns.empty()) config->default_namespace = settings.ns;
  return config;
}

void ArgoCdSettings::add_to(ConfigReader& reader) {
  reader.group("Argo CD");
  reader.add({.flag = "argocd-server",
              .env = {"ARGOCD_SERVER"},
              .help = "argocd-server as host:port or URL; without a scheme, http:// is used"},
             server);
  reader.check({"argocd-server"}, [this]() -> std::string {
    if (server.empty()) return {};
    const auto url = argo::parse_server(server);
    return url ? "" : url.error().message;
  });
  reader.add({.flag = "argocd-server-path",
              .env = {"ARGOCD_SERVER_ROOTPATH"},
              .help = "argocd-server's root path"},
             root_path);
  reader.add_secret({.flag = "argocd-token",
                     .env = {"ARGOCD_TOKEN", "ARGOCD_AUTH_TOKEN"},
                     .help = "File with the token for argocd-server"},
                    token);
  add_file(reader,
           {.flag = "argocd-ca-file",
            .env = {"ARGOCD_CA_FILE"},
            .help = "PEM file with the certificate authorities of argocd-server, instead of the "
                    "system's"},
           ca_file);
  reader.add({.flag = "argocd-insecure",
              .env = {"ARGOCD_INSECURE"},
              .help = "Accept any certificate of argocd-server"},
             insecure);
}

void ControlPlaneSettings::add_to(ConfigReader& reader) {
  reader.group("Control plane");
  reader.add({.flag = "control-plane-url",
              .env = {"CODEFRESH_URL"},
              .help = "Base URL of the control plane"},
             url);
  reader.check({"control-plane-url"}, [this] { return url_mistake(url); });
  reader.add_secret({.flag = "control-plane-token",
                     .env = {"CODEFRESH_TOKEN"},
                     .help = "File with the token for the control plane"},
                    token);
  add_file(reader,
           {.flag = "control-plane-ca-file",
            .env = {"CODEFRESH_SSL_CERT_PATH"},
            .help = "PEM file with the certificate authorities of the control plane, instead of "
                    "the system's"},
           ca_file);
  reader.add({.flag = "control-plane-insecure",
              .env = {"CODEFRESH_TLS_INSECURE"},
              .help = "Accept any certificate of the control plane"},
             insecure);
}

void add_installation(ConfigReader& reader, Installation& installation) {
  reader.group("Installation (decides which rights are needed; defaults as in the chart)");
  reader.add({.flag = "single-namespace",
              .env = {"IS_NAMESPACED_RUNTIME"},
              .help = "The runtime is confined to its namespace (global.runtime.singleNamespace)"},
             installation.single_namespace);
  reader.add(
      {.flag = "applications-everywhere", .help = "Applications live in other namespaces, too"},
      installation.applications_everywhere);
  reader.add({.flag = "workflows-everywhere",
              .help = "Workflows of other namespaces are reported, too (workflow.namespaces)"},
             installation.workflows_everywhere);
  reader.add({.flag = "managed-clusters",
              .env = {"REPORT_MANAGED_CLUSTERS"},
              .help = "Clusters that Argo CD manages are reported, too (managedClusters)"},
             installation.managed_clusters);
  reader.add({.flag = "cluster-secrets",
              .env = {"CLUSTER_SECRETS"},
              .help = "Names of the clusters' Secrets; empty means all (clusterSecrets)"},
             installation.cluster_secrets);
  reader.add({.flag = "argo-events",
              .help = "Argo Events report in place of cluster-event-reporter (form: argo-events)"},
             installation.argo_events);
  reader.add({.flag = "app-proxy", .help = "app-proxy is installed (app-proxy.enabled)"},
             installation.app_proxy);
  reader.add({.flag = "app-proxy-actions",
              .help = "app-proxy changes state, too (app-proxy.actions.enabled)"},
             installation.app_proxy_actions);
  reader.add({.flag = "image-reports",
              .help = "Pipelines report images by app-proxy (app-proxy.image-enrichment.enabled)"},
             installation.image_reports);
  reader.add({.flag = "git-credentials",
              .help = "The runtime has a Git token (global.runtime.gitCredentials)"},
             installation.git_credentials);
  reader.add({.flag = "registration",
              .help = "app-proxy registers the runtime (global.codefresh.userToken)"},
             installation.registration);
  reader.add({.flag = "replicas",
              .env = {"EVENT_REPORTER_REPLICAS"},
              .help = "Replicas of each reporter (replicaCount)"},
             installation.replicas, 0, 1000);
  reader.add({.flag = "argocd-token-secret-name",
              .env = {"ARGO_CD_TOKEN_SECRET_NAME"},
              .help = "Secret that holds the token for argocd-server; empty when there is none"},
             installation.argocd_token_secret);
  reader.add({.flag = "daemon",
              .help = "Daemon whose rights are checked, such as runtime-event-reporter; empty "
                      "means every daemon"},
             installation.daemon);
  reader.check({"daemon"}, [&installation]() -> std::string {
    if (installation.daemon.empty() || !permissions_of_runtime(installation).empty()) return {};
    return "no daemon of that name needs rights";
  });
}

}  // namespace gitops::ctl
