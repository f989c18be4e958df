#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/config_reader.hpp"
#include "common/core/secret.hpp"

namespace gitops::reporter {

// The settings of event-reporter, filled by the ConfigReader and constant afterwards. The environment
// variables have the names that the charts of the existing program set.
struct Config {
  enum class Mode { app, resource } mode = Mode::app;
  std::int64_t queue_size = 1000;
  std::int64_t max_retries = 5;
  std::int64_t workers = 16;
  std::int64_t resource_workers = 10;
  std::vector<std::string> application_namespaces;
  std::string ledger_file;
  std::chrono::milliseconds heartbeat = std::chrono::minutes(9);
  std::chrono::milliseconds sweep = std::chrono::minutes(5);
  std::chrono::milliseconds reconcile = std::chrono::hours(24);
  bool resend_on_revision = false;

  std::vector<std::string> kinds;  // names of resource_kinds(); empty: all
  bool all_replicasets = false;
  std::vector<std::string> workflow_namespaces;
  bool namespaced = false;
  bool managed_clusters = false;
  std::vector<std::string> cluster_secrets;  // names; empty: all with Argo CD's label

  std::string argocd_server = "argo-cd-server:80";
  std::string argocd_root_path;
  std::string argocd_namespace;  // empty: own_namespace
  Secret argocd_token;
  std::string argocd_token_file;
  std::string argocd_token_secret;
  std::string argocd_token_key = "token";
  std::string argocd_username = "admin";
  Secret argocd_password;
  std::string argocd_password_file;
  std::string argocd_ca_file;
  bool argocd_insecure = false;

  std::string platform_url = "https://g.codefresh.io";
  Secret platform_token;
  std::string platform_token_file;
  std::string platform_ca_file;
  bool platform_insecure = false;

  std::string app_proxy_url;  // empty: events contain no files in Git

  std::int64_t replicas = 0;
  std::int64_t shard = -1;
  std::string sharding_algorithm;

  std::string listen_address = "::";
  std::int64_t listen_port = 8088;

  std::string kubeconfig;
  std::string context;
  bool kubeconfig_exec = false;
  std::string own_namespace;
  std::string version;
};

// Adds a row per setting, and the checks; `config` outlives the reader.
void bind(ConfigReader& reader, Config& config);

}  // namespace gitops::reporter
