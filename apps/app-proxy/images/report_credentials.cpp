#include "app-proxy/images/report_credentials.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr const char* kTypeLabel = "io.codefresh.integration-type";
constexpr std::string_view kRegistry = "registry.";
constexpr std::string_view kJira = "issue.jira";

// A variable of a task, and the names of its value in an integration (in the form of canonical()).
struct Variable {
  const char* task;
  std::vector<std::string_view> keys;
  bool is_required = true;
};

const std::vector<Variable>& variables_of(std::string_view registry) {
  static const std::vector<Variable> amazon{
      {"AWS_REGION", {"region"}},
      {"AWS_ROLE", {"rolearn", "role"}, false},
      {"AWS_ACCESS_KEY", {"accesskeyid", "accesskey"}, false},
      {"AWS_SECRET_KEY", {"secretaccesskey", "secretkey"}, false}};
  static const std::vector<Variable> docker_hub{{"DOCKERHUB_USERNAME", {"username"}},
                                                {"DOCKERHUB_PASSWORD", {"password", "token"}}};
  static const std::vector<Variable> google{
      {"GOOGLE_REGISTRY_HOST", {"domain", "host", "registryhost"}, false},
      {"GOOGLE_JSON_KEY", {"jsonkey", "keyjson", "key", "password"}}};
  // Registries with Docker's protocol: Quay, GitHub, JFrog and others.
  static const std::vector<Variable> any{
      {"REGISTRY_DOMAIN", {"domain", "host", "server", "hosturl", "url"}},
      {"REGISTRY_USERNAME", {"username"}},
      {"REGISTRY_PASSWORD", {"password", "token", "apitoken"}}};
  if (registry == "ecr") return amazon;
  if (registry == "dockerhub" || registry == "docker") return docker_hub;
  if (registry == "gcr" || registry == "gar" || registry == "google") return google;
  return any;
}

// Makes "role_arn", "roleArn" and "role-arn" equal.
std::string canonical(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// Returns "quay.io" for "https://quay.io/": the task adds the scheme.
std::string host_of(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (url.starts_with(scheme)) url.remove_prefix(scheme.size());
  }
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url);
}

void drop(ImageReport& report, std::initializer_list<std::string_view> prefixes) {
  std::erase_if(report.environment, [&](const auto& entry) {
    return std::ranges::any_of(
        prefixes, [&](std::string_view prefix) { return entry.first.starts_with(prefix); });
  });
}

std::unexpected<Error> mistake(const StoredIntegration& integration, const std::string& what) {
  return fail(ErrorCode::invalid_argument, "the integration " + integration.name + " " + what);
}

Result<void> fill(ImageReport& report, const StoredIntegration& integration,
                  std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    const auto found = std::ranges::find_if(integration.values, [&](const auto& entry) {
      return !entry.second.empty() &&
             std::ranges::find(variable.keys, canonical(entry.first)) != variable.keys.end();
    });
    if (found != integration.values.end()) {
      report.environment[variable.task] = found->second;
    } else if (variable.is_required) {
      return mistake(integration, "has no value " + std::string(variable.keys.front()) +
                                      "; if it is a credential, see whether Secret "
                                      "codefresh-integration-" +
                                      integration.name + " is there");
    }
  }
  return {};
}

}  // namespace

StoredIntegration stored_integration(std::string_view name, std::string_view config_map,
                                     std::string_view secret) {
  StoredIntegration integration{.name = std::string(name), .type = {}, .values = {}};
  const Json info = parse_json_object(config_map);
  integration.type = string_at(info, {"metadata", "labels", kTypeLabel});
  const auto read = [&integration](const Json& data, auto value_of) {
    if (!data.is_object()) return;
    for (const auto& [key, value] : data.items()) {
      if (!value.is_string()) continue;
      integration.values.insert_or_assign(
          key, Secret(value_of(value.template get_ref<const std::string&>())));
    }
  };
  read(value_at(info, {"data"}), [](const std::string& text) { return text; });
  const Json credentials = secret.empty() ? Json() : parse_json_object(secret);
  read(value_at(credentials, {"data"}),
       [](const std::string& text) { return base64_decode(text).value_or(std::string()); });
  return integration;
}

Result<void> use_registry(ImageReport& report, const StoredIntegration& integration) {
  drop(report, {"REGISTRY_", "AWS_", "GCR_", "GOOGLE_", "DOCKER_", "DOCKERHUB_"});
  if (!integration.type.starts_with(kRegistry)) return mistake(integration, "is no registry");
  const auto filled =
      fill(report, integration, variables_of(canonical(integration.type.substr(kRegistry.size()))));
  if (!filled) return filled;
  if (const auto domain = report.environment.find("REGISTRY_DOMAIN");
      domain != report.environment.end()) {
    domain->second = Secret(host_of(domain->second.reveal()));
  }
  if (report.environment.contains("AWS_REGION") && !report.environment.contains("AWS_ROLE") &&
      !report.environment.contains("AWS_SECRET_KEY")) {
    return mistake(integration, "has neither a role nor a secret key");
  }
  return {};
}

Result<void> use_issue_tracker(ImageReport& report, const StoredIntegration& integration) {
  static const std::vector<Variable> variables{{"JIRA_HOST_URL", {"hosturl", "host", "url"}},
                                               {"JIRA_EMAIL", {"email", "username"}, false},
                                               {"JIRA_API_TOKEN", {"apitoken", "token"}, false},
                                               {"JIRA_SERVER_PAT", {"serverpat", "pat"}, false}};
  drop(report,
       {"JIRA_HOST_URL", "JIRA_EMAIL", "JIRA_API_TOKEN", "JIRA_SERVER_PAT", "JIRA_CONTEXT"});
  if (integration.type != kJira) return mistake(integration, "is not one with Jira");
  if (auto filled = fill(report, integration, variables); !filled) return filled;
  const bool has_pat = report.environment.contains("JIRA_SERVER_PAT");
  if (has_pat) {  // the task uses one of the two
    report.environment.erase("JIRA_API_TOKEN");
    report.environment.erase("JIRA_EMAIL");
  } else if (!report.environment.contains("JIRA_API_TOKEN")) {
    return mistake(integration, "has no token; see whether Secret codefresh-integration-" +
                                    integration.name + " is there");
  }
  return {};
}

void use_issue_tracker_of_control_plane(ImageReport& report, std::string_view name) {
  drop(report, {"JIRA_HOST_URL", "JIRA_EMAIL", "JIRA_API_TOKEN", "JIRA_SERVER_PAT"});
  report.environment["JIRA_CONTEXT"] = Secret(std::string(name));
}

bool has_git_credentials(const ImageReport& report) {
  constexpr std::array kCredentials{"GITHUB_TOKEN", "GITHUB_CONTEXT", "GITLAB_TOKEN",
                                    "BITBUCKET_PASSWORD", "GERRIT_PASSWORD"};
  return std::ranges::any_of(kCredentials,
                             [&](const char* name) { return report.environment.contains(name); });
}

Result<void> use_git_host(ImageReport& report, const GitHostAccess& host) {
  struct Provider {
    std::string_view wire;     // name at the control plane
    std::string_view task;     // name for the task
    std::string_view api_end;  // suffix of the URL after the address for the task
  };
  constexpr std::array<Provider, 4> kProviders{
      {{"GITHUB", "github", ""},
       {"GITLAB", "gitlab", "/api/v4"},
       {"BITBUCKET", "bitbucket", ""},
       {"BITBUCKET_SERVER", "bitbucket-server", "/rest/api/1.0"}}};
  drop(report, {"GITHUB_", "GITLAB_", "BITBUCKET_", "GERRIT_"});
  const auto* provider = std::ranges::find(kProviders, host.provider, &Provider::wire);
  // Gitea is reported as GitHub, but has another interface.
  if (provider == kProviders.end() || host.api_url.ends_with("/api/v1")) {
    return fail(ErrorCode::invalid_argument,
                "no commits are known of a Git host of the kind that the runtime has");
  }
  auto& environment = report.environment;
  if (const auto named = environment.find("GIT_PROVIDER");
      named != environment.end() && named->second.reveal() != provider->task) {
    return fail(ErrorCode::invalid_argument, "the runtime's Git host is of the kind " +
                                                 std::string(provider->task) +
                                                 ", not of CF_GIT_PROVIDER");
  }
  environment["GIT_PROVIDER"] = Secret(std::string(provider->task));
  std::string_view url = host.api_url;
  if (url.ends_with(provider->api_end)) url.remove_suffix(provider->api_end.size());
  const auto put = [&environment](const char* name, std::string_view value) {
    environment[name] = Secret(std::string(value));
  };
  if (provider->wire == "GITHUB") {
    // The task takes path and host separately.
    const auto path = std::min(url.find('/', url.find("://") + 3), url.size());
    put("GITHUB_API_HOST_URL", url.substr(0, path));
    if (path < url.size()) put("GITHUB_API_PATH_PREFIX", url.substr(path));
    environment["GITHUB_TOKEN"] = host.token;
  } else if (provider->wire == "GITLAB") {
    put("GITLAB_HOST_URL", url);
    environment["GITLAB_TOKEN"] = host.token;
  } else {
    put("BITBUCKET_HOST_URL", url);
    put("BITBUCKET_USERNAME", host.username);
    environment["BITBUCKET_PASSWORD"] = host.token;
  }
  return {};
}

}  // namespace gitops::app_proxy
