#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/control_plane/graphql.hpp"
#include "common/core/config_reader.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"
#include "common/net/address_list.hpp"

namespace gitops::app_proxy {

// URL of a server.
struct ServerUrl {
  std::string text;  // as given
  http::Url url;
};

// Maximum age of the account's rules while the control plane is unreachable.
inline constexpr std::chrono::milliseconds kMaxRulesAge{900'000};

// Configuration of app-proxy, in addition to that of every daemon.
struct Config {
  std::string listen_address = "::";
  std::int64_t port = 8080;
  std::vector<std::string> cors_origins = {"https://g.codefresh.io"};
  bool playground = false;
  std::int64_t max_connections = 2'000;
  std::int64_t max_operations_per_user = 20;
  net::AddressList trusted_proxies;

  ServerUrl control_plane{
      .text = "https://g.codefresh.io",
      .url = {.scheme = "https", .host = "g.codefresh.io", .port = 443, .path = {}}};
  Secret runtime_token;
  std::string runtime_token_file;
  std::string ca_file;        // replaces the system's certificate authorities
  std::string extra_ca_file;  // in addition to them
  bool control_plane_insecure = false;

  std::chrono::milliseconds user_cache_ttl{30'000};
  std::chrono::milliseconds user_outage{300'000};
  std::chrono::milliseconds rules_refresh{20'000};
  std::string audit_file;  // empty: standard error

  std::optional<ServerUrl> argocd;  // unset: no Argo CD
  Secret argocd_token;
  std::string argocd_token_file;
  std::string argocd_username;
  Secret argocd_password;
  std::string argocd_password_file;
  bool argocd_insecure = false;

  std::optional<ServerUrl> workflows;  // unset: no Argo Workflows
  Secret workflows_token;
  std::string workflows_token_file;  // empty, and no token given: that of the pod's ServiceAccount
  bool workflows_insecure = false;

  std::string kubeconfig;
  std::string context;
  Secret runtime_store_iv;
  std::string runtime_store_iv_file;
  bool skip_permissions_validation = false;
  bool git_insecure_http = false;
  std::chrono::milliseconds git_check_period{3'600'000};
  std::string commit_signing_key_file;
  std::string repos_dir;  // empty: a folder of this user below the temporary folder

  bool logs_without_login = false;

  // Settings for the registration of the runtime by itself.
  Secret user_token;
  std::string user_token_file;
  std::string chart_version;
  std::string runtime_version;
  std::string cluster = "https://kubernetes.default.svc";
  std::string ingress_class;
  std::string ingress_controller;
  std::string ingress_host;
  control_plane::InstallationType installation_type = control_plane::InstallationType::helm;
  bool is_managed = false;
  bool has_external_argocd = false;
  std::string leader_id;  // empty: the name of the host, which is that of the pod

  std::int64_t cluster_chunk_size = 50;  // 0: no limit
  net::AddressList special_cluster_addresses;

  // Settings of the Workflows that report images; times in seconds.
  std::string image_service_account = "codefresh-image-enrichment-sa";
  std::string image_semaphore_config_map = "workflow-synchronization-semaphores";
  std::string image_semaphore_key = "imageReportExecutor";
  std::string image_pod_gc = "OnWorkflowCompletion";
  std::int64_t image_kept = 86'400;
  std::int64_t image_longest = 900;
  std::int64_t image_heartbeat = 5;
  // Empty: the default in images/image_report.hpp.
  std::string image_report_task;
  std::string image_git_task;
  std::string image_jira_task;

  std::string runtime_name;
  bool is_configuration_runtime = false;
  std::string git_username = "username";
  Secret git_password;
  std::string git_password_file;
  bool share_sealing_key = false;
  std::string helm_repository = "https://argoproj.github.io/argo-helm";
  std::string own_namespace;
};

void bind(ConfigReader& reader, Config& config);

// Options of each HTTP client of the program. `insecure` accepts any certificate.
http::ClientOptions client_options(const Config& config, http::ProxySettings proxy, bool insecure);

}  // namespace gitops::app_proxy
