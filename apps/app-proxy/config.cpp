#include "app-proxy/config.hpp"

#include "common/argo/argocd_client.hpp"
#include "common/core/process.hpp"
#include "common/core/time.hpp"

namespace gitops::app_proxy {
namespace {

// Files of Secrets that app-proxy or somebody else creates after its pod.
constexpr auto kMayComeLater = ConfigReader::SecretFile::may_come_later;

using std::chrono::milliseconds;

Result<ServerUrl> server_url(const std::string& text, Result<http::Url> url) {
  if (!url) return std::unexpected(std::move(url.error()));
  if (!url->userinfo.empty() || !url->query.empty()) {
    return fail(ErrorCode::invalid_argument, "neither user nor query is allowed");
  }
  return ServerUrl{.text = text, .url = std::move(*url)};
}

Result<ServerUrl> parse_control_plane(const std::string& text) {
  auto url = http::parse_url(text);
  if (url && url->scheme != "http" && url->scheme != "https") {
    return fail(ErrorCode::invalid_argument, "not http or https");
  }
  return server_url(text, std::move(url));
}

Result<std::optional<ServerUrl>> parse_argo_server(const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto server = server_url(text, argo::parse_server(text));
  if (!server) return std::unexpected(std::move(server.error()));
  return std::move(*server);
}

bool is_given(const Secret& value, const std::string& file) {
  return !value.empty() || !file.empty();
}

constexpr milliseconds kMaxTtl = std::chrono::minutes(10);

std::string set_ttl(const std::string& text, milliseconds& target) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  const auto value = parse_duration(is_number ? text + "s" : text);
  if (!value) return value.error().message;
  if (*value < milliseconds(0) || *value > kMaxTtl) {
    return "out of range, expected 0s to " + format_duration(kMaxTtl);
  }
  target = *value;
  return {};
}

}  // namespace

void bind(ConfigReader& reader, Config& config) {
  reader.group("Requests");
  reader.add({"listen-address",
              {"LISTEN_ADDRESS"},
              "Address of the main port; :: is IPv6 and IPv4, or IPv4 where there is no IPv6"},
             config.listen_address);
  reader.add({"port", {"PORT"}, "Main port; 0 chooses a free one"}, config.port, 0, 65'535);
  reader.add(
      {"cors", {"CORS"}, "Origins of web pages that may read responses and send credentials"},
      config.cors_origins);
  reader.add({"graphql-playground",
              {"GRAPHQL_PLAYGROUND"},
              "Serve a page for GraphQL queries at /api/graphql"},
             config.playground);
  reader.add({"max-connections", {"MAX_CONNECTIONS"}, "Maximum number of concurrent connections"},
             config.max_connections, 1, 100'000);
  reader.add({"max-operations-per-user",
              {"MAX_OPERATIONS_PER_USER"},
              "Maximum number of concurrent GraphQL operations and log streams of one user"},
             config.max_operations_per_user, 1, 10'000);
  reader.add_parsed_list(
      {"trusted-proxies",
       {"TRUSTED_PROXIES"},
       "Addresses and networks of trusted reverse proxies; their X-Forwarded-For is used"},
      config.trusted_proxies, {}, net::AddressList::parse);

  reader.group("Control plane");
  reader.add_parsed({"codefresh-url", {"CF_HOST"}, "Base URL of the control plane"},
                    config.control_plane, config.control_plane.text, parse_control_plane);
  reader.add_secret({"runtime-token", {"RUNTIME_TOKEN"}, "Token of the runtime"},
                    config.runtime_token, &config.runtime_token_file, kMayComeLater);
  reader.add({"ca-file",
              {"CA_FILE"},
              "PEM file with the certificate authorities of all peers, instead of the system's"},
             config.ca_file);
  reader.add({"extra-ca-file",
              {"NODE_EXTRA_CA_CERTS"},
              "PEM file, or folder of such files, with authorities in addition to these; may be "
              "empty"},
             config.extra_ca_file);
  reader.add({"codefresh-tls-insecure",
              {"CODEFRESH_TLS_INSECURE"},
              "Accept any certificate of the control plane"},
             config.control_plane_insecure);

  reader.group("Registration");
  reader.add_secret(
      {"user-token",
       {"USER_TOKEN"},
       "User token with which app-proxy registers the runtime and manages the Secrets "
       "codefresh-token and argocd-token; without it, app-proxy does neither"},
      config.user_token, &config.user_token_file, kMayComeLater);
  reader.add({"chart-version", {"CHART_VERSION"}, "Version of the chart, as it is registered"},
             config.chart_version);
  reader.add(
      {"runtime-version", {"RUNTIME_VERSION"}, "Version of the runtime, as it is registered"},
      config.runtime_version);
  reader.add({"cluster", {"CLUSTER"}, "URL of the API server, as it is registered"},
             config.cluster);
  reader.add({"ingress-class", {"INGRESS_CLASS_NAME"}, "Class of the ingress, as it is registered"},
             config.ingress_class);
  reader.add({"ingress-controller",
              {"INGRESS_CONTROLLER"},
              "Controller of the ingress, as it is registered"},
             config.ingress_controller);
  reader.add({"ingress-host",
              {"INGRESS_HOST"},
              "URL of the runtime, as it is registered, and where Git hosts send browsers back to "
              "after a login"},
             config.ingress_host);
  reader.add_choice({"installation-type",
                     {"INSTALLATION_TYPE"},
                     "How the runtime was installed, as it is registered"},
                    config.installation_type, {"HELM", "HELM_HOSTED"});
  reader.add({"managed", {"MANAGED"}, "The runtime is managed by the control plane's operator"},
             config.is_managed);
  reader.add({"external-argocd",
              {"IS_EXTERNAL_ARGOCD"},
              "Argo CD was not installed with the runtime, as it is registered"},
             config.has_external_argocd);
  reader.add(
      {"leader-id",
       {"LEADER_ID"},
       "Name of this process among the replicas, of which one leads; empty: that of the host"},
      config.leader_id);
  reader.group("Users");
  reader.add(
      {"user-cache-ttl",
       {"USER_CACHE_TTL"},
       "Time for which the result of a token check is cached; a number without a unit is seconds"},
      "DURATION", format_duration(config.user_cache_ttl),
      [&config](const std::string& text) { return set_ttl(text, config.user_cache_ttl); });
  reader.add({"user-outage",
              {"USER_OUTAGE"},
              "Time for which a cached result stays valid while the control plane is unreachable"},
             config.user_outage, milliseconds(0), std::chrono::hours(1));
  reader.add(
      {"rules-refresh", {"RULES_REFRESH"}, "Interval between fetches of the account's rules"},
      config.rules_refresh, milliseconds(1'000), kMaxRulesAge / 2);
  reader.add({"audit-file",
              {"AUDIT_FILE"},
              "File of the audit stream, a line of JSON for each change of state; empty: standard "
              "error"},
             config.audit_file);

  reader.add({"logs-without-login",
              {"LOGS_WITHOUT_LOGIN"},
              "Serve the archive of the runtime's own logs without authentication, for the command "
              "line, which sends no credential"},
             config.logs_without_login);

  reader.group("Git");
  reader.add_secret(
      {"runtime-store-iv",
       {"RUNTIME_STORE_IV"},
       "Input, together with the runtime's token, of the key that encrypts users' Git tokens"},
      config.runtime_store_iv, &config.runtime_store_iv_file, kMayComeLater);
  reader.add({"skip-permissions-validation",
              {"SKIP_PERMISSIONS_VALIDATION"},
              "Register Git tokens without checking their permissions"},
             config.skip_permissions_validation);
  reader.add({"git-insecure-http",
              {"GIT_INSECURE_HTTP"},
              "Allow Git hosts without TLS: tokens can be read on the way"},
             config.git_insecure_http);
  reader.add({"git-check-period",
              {"GIT_CHECK_PERIOD"},
              "Interval between checks that Git hosts still accept the tokens, and of users' "
              "permissions for the repositories of Git sources"},
             config.git_check_period, std::chrono::seconds(1), std::chrono::hours(24 * 7));
  reader.add({"repos-dir",
              {"REPOS_DIR"},
              "Folder for clones of repositories, at most 4 GiB, of one process alone; empty: "
              "gitops-app-proxy-UID below the temporary folder"},
             config.repos_dir);
  reader.add({"commit-signing-key-file",
              {"COMMIT_SIGNING_KEY_FILE"},
              "Private SSH key in OpenSSH's format, Ed25519 without a passphrase, that signs every "
              "commit; empty: commits are not signed"},
             config.commit_signing_key_file);

  reader.group("Argo");
  reader.add_parsed({"argocd-server",
                     {"ARGO_CD_URL"},
                     "argocd-server as URL or host:port, with its root path; empty: there is none"},
                    config.argocd, {}, parse_argo_server);
  reader.add_secret({"argocd-token", {"ARGO_CD_TOKEN"}, "Token for argocd-server"},
                    config.argocd_token, &config.argocd_token_file, kMayComeLater);
  reader.add({"argocd-username",
              {"ARGO_CD_USERNAME"},
              "Account for the login to argocd-server with a password"},
             config.argocd_username);
  reader.add_secret({"argocd-password", {"ARGO_CD_PASSWORD"}, "Password of that account"},
                    config.argocd_password, &config.argocd_password_file, kMayComeLater);
  reader.check({"argocd-token", "argocd-password"}, [&config] {
    return is_given(config.argocd_token, config.argocd_token_file) &&
                   is_given(config.argocd_password, config.argocd_password_file)
               ? "both a token and a password for argocd-server are given"
               : "";
  });
  reader.add({"argocd-insecure", {"ARGO_CD_INSECURE"}, "Accept any certificate of argocd-server"},
             config.argocd_insecure);
  reader.add_parsed({"argo-workflows-url",
                     {"ARGO_WORKFLOWS_URL"},
                     "API server of Argo Workflows as URL or host:port; empty: there is none"},
                    config.workflows, {}, parse_argo_server);
  reader.add_secret({"argo-workflows-token",
                     {"ARGO_WORKFLOWS_TOKEN"},
                     "Token for that server; default: the token of the pod's service account"},
                    config.workflows_token, &config.workflows_token_file);
  reader.add({"argo-workflows-insecure",
              {"ARGO_WORKFLOWS_INSECURE"},
              "Accept any certificate of that server"},
             config.workflows_insecure);

  reader.group("Kubernetes");
  reader.add({"kubeconfig",
              {},
              "Kubeconfig file; otherwise KUBECONFIG, the pod's service account, ~/.kube/config"},
             config.kubeconfig);
  reader.add({"context", {}, "Context of the kubeconfig; empty means its current one"},
             config.context);

  reader.group("Clusters");
  reader.add({"cluster-chunk-size",
              {"CLUSTER_CHUNK_SIZE"},
              "Clusters in one report to the control plane; 0: all at once"},
             config.cluster_chunk_size, 0, 10'000);
  reader.add_parsed_list(
      {"special-cluster-addresses",
       {"SPECIAL_CLUSTER_ADDRESSES"},
       "Loopback, link-local and similar addresses and networks that clusters may have; "
       "others of that kind are refused"},
      config.special_cluster_addresses, {}, net::AddressList::parse);

  reader.group("Reports of images");
  reader.add({"image-report-service-account",
              {"IRW_SERVICE_ACCOUNT"},
              "ServiceAccount of the Workflows that report images"},
             config.image_service_account);
  reader.add({"image-report-semaphore",
              {"IRW_CONCURRENCY_CM_NAME"},
              "ConfigMap with the maximum number of such Workflows that run concurrently"},
             config.image_semaphore_config_map);
  reader.add({"image-report-semaphore-key",
              {"IRW_CONCURRENCY_CM_KEY"},
              "Key of that number in the ConfigMap"},
             config.image_semaphore_key);
  reader.add({"image-report-pod-gc",
              {"IRW_POD_GC_STRATEGY"},
              "Pod garbage collection strategy of these Workflows"},
             config.image_pod_gc);
  reader.add({"image-report-kept",
              {"IRW_TTL_AFTER_COMPLETION_IN_SECONDS"},
              "Seconds from the end of such a Workflow to its deletion"},
             config.image_kept, 0, 31'536'000);
  reader.add({"image-report-longest",
              {"IRW_TTL_ACTIVE_IN_SECONDS"},
              "Time limit of such a Workflow in seconds"},
             config.image_longest, 1, 86'400);
  reader.add({"image-report-heartbeat",
              {"IRW_HEARTBEAT_INTERVAL_IN_SECONDS"},
              "Seconds between heartbeats to the client"},
             config.image_heartbeat, 1, 50);
  reader.add({"image-report-task-image",
              {"IRW_REPORT_IMAGE_TASK_IMAGE"},
              "Image of the task that reports; empty: the one this release was made for"},
             config.image_report_task);
  reader.add({"image-report-git-task-image",
              {"IRW_GIT_ENRICHMENT_TASK_IMAGE"},
              "Image of the task that adds commits; empty: the one this release was made for"},
             config.image_git_task);
  reader.add({"image-report-jira-task-image",
              {"IRW_JIRA_ENRICHMENT_TASK_IMAGE"},
              "Image of the task that adds issues; empty: the one this release was made for"},
             config.image_jira_task);

  reader.group("Runtime");
  reader.add({"runtime-name", {"RUNTIME_NAME"}, "Name of the runtime"}, config.runtime_name);
  reader.add({"namespace", {"NAMESPACE"}, "Namespace of the runtime"}, config.own_namespace);
  reader.add({"configuration-runtime",
              {"IS_CONFIGURATION_RUNTIME"},
              "This runtime applies the folder \"configurations\" of the shared configuration "
              "repository"},
             config.is_configuration_runtime);
  reader.add({"git-username", {"GIT_USERNAME"}, "User of the runtime's Git token"},
             config.git_username);
  reader.add_secret(
      {"git-password",
       {"GIT_PASSWORD"},
       "Git token of the runtime, with which it puts its files into the shared configuration "
       "repository"},
      config.git_password, &config.git_password_file);
  reader.add({"share-sealing-key",
              {"SHARE_SEALING_KEY"},
              "Keep a private key of this namespace's Sealed Secrets at the control plane, so that "
              "all runtimes of the account can unseal integrations"},
             config.share_sealing_key);
  reader.add({"helm-repository",
              {"HELM_REPOSITORY"},
              "Helm repository with the chart of Argo Rollouts, for createArgoRollouts"},
             config.helm_repository);
}

http::ClientOptions client_options(const Config& config, http::ProxySettings proxy, bool insecure) {
  http::ClientOptions options;
  options.tls = {.ca_file = config.ca_file,
                 .extra_ca_file = config.extra_ca_file,
                 .insecure_skip_verify = insecure};
  options.proxy = std::move(proxy);
  options.user_agent = "gitops-app-proxy/" + std::string(version());
  return options;
}

}  // namespace gitops::app_proxy
