#include "contract/client_rules.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <span>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "support/process.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

enum class Need {
  object,
  object_or_null,
  list,
  list_or_null,
  empty_list_or_null,
  text,
  text_or_null,
  version,  // semantic
  word,     // a member of an enum
  word_or_null,
  flag,
  flag_or_null,
  integer_or_null,
  void_value,  // null or {}
};

// A rule about the values at a path below `data`. Elements of lists are on the path without a name of their own.
struct Rule {
  std::string_view path;
  Need need;
  std::string_view words = {};  // of an enum, between blanks
};

constexpr std::string_view kSync = " OUT_OF_SYNC SYNCED SYNCING UNKNOWN ";
constexpr std::string_view kHealth =
    " DEGRADED HEALTHY MISSING PROGRESSING SUSPENDED TERMINATED UNKNOWN ";
constexpr std::string_view kInstallation = " COMPLETED FAILED IN_PROGRESS ";
constexpr std::string_view kType = " HELM HELM_HOSTED ";
constexpr std::string_view kAccess = " INGRESS TUNNEL ";
constexpr std::string_view kProvider = " BITBUCKET BITBUCKET_SERVER GERRIT GITHUB GITLAB ";
constexpr std::string_view kConnection = " Failed Successful Unknown ";
constexpr std::string_view kPhase = " Error Failed Pending Running Succeeded Unknown ";
constexpr std::string_view kLevel = " ERROR WARNING ";

using enum Need;

constexpr Rule kRules[] = {
    {"me", object},
    {"me.id", text_or_null},
    {"me.name", text_or_null},
    {"me.email", text_or_null},
    {"me.isAdmin", flag_or_null},
    {"me.accounts", list_or_null},
    {"me.accounts.id", text},
    {"me.accounts.name", text},
    {"me.activeAccount", object},
    {"me.activeAccount.id", text},
    {"me.activeAccount.name", text},
    {"me.activeAccount.gitProvider", word_or_null, kProvider},
    {"me.activeAccount.gitApiUrl", text_or_null},
    {"me.activeAccount.sharedConfigRepo", text_or_null},
    {"me.activeAccount.admins", list},
    {"me.activeAccount.features", object},
    {"me.activeAccount.features.gitopsPlanEnforcement", flag},

    {"runtimes", object},
    {"runtimes.edges", list},
    {"runtimes.edges.node", object},
    {"runtimes.edges.node.metadata", object},
    {"runtimes.edges.node.metadata.name", text},
    {"runtimes.edges.node.metadata.namespace", text_or_null},
    {"runtimes.edges.node.self", object_or_null},
    {"runtimes.edges.node.self.syncStatus", word, kSync},
    {"runtimes.edges.node.self.healthStatus", word_or_null, kHealth},
    {"runtimes.edges.node.self.healthMessage", text_or_null},
    {"runtimes.edges.node.syncStatus", word, kSync},
    {"runtimes.edges.node.healthStatus", word_or_null, kHealth},
    {"runtimes.edges.node.healthMessage", text_or_null},
    {"runtimes.edges.node.managed", flag},
    {"runtimes.edges.node.cluster", text_or_null},
    {"runtimes.edges.node.ingressHost", text_or_null},
    {"runtimes.edges.node.runtimeVersion", version},
    {"runtimes.edges.node.installationStatus", word, kInstallation},
    {"runtimes.edges.node.installationType", word, kType},

    {"runtime", object_or_null},
    {"runtime.metadata", object},
    {"runtime.metadata.name", text},
    {"runtime.metadata.namespace", text_or_null},
    {"runtime.self", object_or_null},
    {"runtime.self.syncStatus", word, kSync},
    {"runtime.self.healthStatus", word_or_null, kHealth},
    {"runtime.syncStatus", word, kSync},
    {"runtime.healthStatus", word_or_null, kHealth},
    {"runtime.healthMessage", text_or_null},
    {"runtime.cluster", text_or_null},
    {"runtime.managed", flag},
    {"runtime.isRemoteClusterConnected", flag},
    {"runtime.ingressHost", text_or_null},
    {"runtime.internalIngressHost", text_or_null},
    {"runtime.ingressClass", text_or_null},
    {"runtime.ingressController", text_or_null},
    {"runtime.runtimeVersion", version},
    {"runtime.installationStatus", word, kInstallation},
    {"runtime.installationType", word, kType},
    {"runtime.repo", text_or_null},
    {"runtime.managedClustersNum", integer_or_null},
    {"runtime.gitProvider", word_or_null, kProvider},
    {"runtime.accessMode", word, kAccess},

    {"clusters", object},
    {"clusters.edges", list},
    {"clusters.edges.node", object},
    {"clusters.edges.node.metadata", object},
    {"clusters.edges.node.metadata.name", text},
    {"clusters.edges.node.metadata.runtime", text},
    {"clusters.edges.node.server", text},
    {"clusters.edges.node.info", object},
    {"clusters.edges.node.info.connectionState", object},
    {"clusters.edges.node.info.connectionState.status", word, kConnection},
    {"clusters.edges.node.info.connectionState.message", text_or_null},
    {"clusters.edges.node.info.serverVersion", text_or_null},
    {"clusters.edges.node.info.cacheInfo", object_or_null},
    {"clusters.edges.node.info.cacheInfo.resourcesCount", integer_or_null},
    {"clusters.edges.node.info.cacheInfo.apisCount", integer_or_null},
    {"clusters.pageInfo", object},
    {"clusters.pageInfo.hasNextPage", flag},
    {"clusters.pageInfo.endCursor", text_or_null},

    {"components", object},
    {"components.edges", list},
    {"components.edges.node", object},
    {"components.edges.node.metadata", object},
    {"components.edges.node.metadata.name", text},
    {"components.edges.node.metadata.runtime", text},
    {"components.edges.node.version", text},
    {"components.edges.node.self", object_or_null},
    {"components.edges.node.self.status", object},
    {"components.edges.node.self.status.syncStatus", word, kSync},
    {"components.edges.node.self.status.healthStatus", word_or_null, kHealth},
    {"components.edges.node.self.errors", list_or_null},
    {"components.edges.node.self.errors.title", text},
    {"components.edges.node.self.errors.message", text},
    {"components.edges.node.self.errors.suggestion", text_or_null},
    {"components.edges.node.self.errors.level", word, kLevel},

    {"gitSources", object},
    {"gitSources.edges", list},
    {"gitSources.edges.node", object},
    {"gitSources.edges.node.metadata", object},
    {"gitSources.edges.node.metadata.name", text},
    {"gitSources.edges.node.self", object_or_null},
    {"gitSources.edges.node.self.path", text_or_null},
    {"gitSources.edges.node.self.repoURL", text_or_null},
    {"gitSources.edges.node.self.status", object},
    {"gitSources.edges.node.self.status.syncStatus", word, kSync},
    {"gitSources.edges.node.self.status.healthStatus", word_or_null, kHealth},

    {"workflows", object},
    {"workflows.edges", list},
    {"workflows.edges.node", object},
    {"workflows.edges.node.metadata", object},
    {"workflows.edges.node.metadata.uid", text},
    {"workflows.edges.node.metadata.name", text},
    {"workflows.edges.node.metadata.namespace", text},
    {"workflows.edges.node.metadata.runtime", text},
    {"workflows.edges.node.projects", list_or_null},
    {"workflows.edges.node.spec", object},
    {"workflows.edges.node.spec.entrypoint", text_or_null},
    {"workflows.edges.node.spec.templates", empty_list_or_null},
    {"workflows.edges.node.spec.workflowTemplateRef", object_or_null},
    {"workflows.edges.node.status", object},
    {"workflows.edges.node.status.phase", word, kPhase},
    {"workflows.edges.node.status.progress", text_or_null},
    {"workflows.edges.node.status.nodes", list_or_null},
    {"workflows.edges.node.status.nodes.type", text},
    {"workflows.edges.node.status.nodes.name", text},
    {"workflows.edges.node.pipeline", object_or_null},
    {"workflows.edges.node.pipeline.metadata", object},
    {"workflows.edges.node.pipeline.metadata.name", text},
    {"workflows.edges.node.pipeline.metadata.namespace", text},

    {"workflow", object_or_null},
    {"workflow.metadata", object},
    {"workflow.metadata.uid", text},
    {"workflow.metadata.name", text},
    {"workflow.metadata.namespace", text},
    {"workflow.metadata.runtime", text},
    {"workflow.spec", object},
    {"workflow.spec.templates", empty_list_or_null},
    {"workflow.status", object},
    {"workflow.status.phase", word, kPhase},
    {"workflow.status.nodes", list_or_null},
    {"workflow.status.nodes.type", text},
    {"workflow.status.nodes.name", text},
    {"workflow.pipeline", object_or_null},
    {"workflow.pipeline.metadata", object},
    {"workflow.pipeline.metadata.name", text},
    {"workflow.pipeline.metadata.namespace", text},

    {"pipelines", object},
    {"pipelines.edges", list},
    {"pipelines.edges.node", object},
    {"pipelines.edges.node.metadata", object},
    {"pipelines.edges.node.metadata.name", text},
    {"pipelines.edges.node.metadata.namespace", text},
    {"pipelines.edges.node.metadata.runtime", text},
    {"pipelines.edges.node.self", object_or_null},
    {"pipelines.edges.node.self.healthStatus", word_or_null, kHealth},
    {"pipelines.edges.node.self.syncStatus", word, kSync},
    {"pipelines.edges.node.self.version", integer_or_null},
    {"pipelines.edges.node.projects", list_or_null},
    {"pipelines.edges.node.spec", object},
    {"pipelines.edges.node.spec.trigger", text},

    {"pipeline", object_or_null},
    {"pipeline.metadata", object},
    {"pipeline.metadata.name", text},
    {"pipeline.metadata.namespace", text},
    {"pipeline.metadata.runtime", text},
    {"pipeline.self", object_or_null},
    {"pipeline.self.healthStatus", word_or_null, kHealth},
    {"pipeline.self.syncStatus", word, kSync},
    {"pipeline.spec", object},
    {"pipeline.spec.trigger", text},

    {"promotions", object},
    {"promotions.edges", list},
    {"promotions.edges.node", object},
    {"promotions.pageInfo", object},
    {"promotions.pageInfo.hasNextPage", flag},
    {"promotions.pageInfo.hasPrevPage", flag},
    {"productReleases", object},
    {"productReleases.edges", list},
    {"productReleases.edges.node", object},

    {"limitsStatus", object},
    {"limitsStatus.usage", object},
    {"limitsStatus.usage.clusters", integer_or_null},
    {"limitsStatus.usage.applications", integer_or_null},
    {"limitsStatus.limits", object_or_null},
    {"limitsStatus.status", flag},
    {"latestCliRelease", text_or_null},
    {"promotionTemplateByRuntime", object_or_null},
    {"promotionTemplateByRuntime.versionSource", object_or_null},
    {"promotionTemplateByRuntime.versionSource.file", text},
    {"promotionTemplateByRuntime.versionSource.jsonPath", text},

    {"createRuntime", object},
    {"createRuntime.name", text},
    {"createRuntime.newAccessToken", text},
    {"deleteRuntime", integer_or_null},
    {"deleteManagedRuntime", integer_or_null},
    {"reportRuntimeErrors", integer_or_null},
    {"suggestIscRepo", text},
    {"updateCsdpSettings", void_value},
    {"migrateRuntime", void_value},

    // Steps of pipelines and app-proxy.
    {"applications", object},
    {"applications.edges", list},
    {"applications.edges.node", object},
    {"applications.edges.node.metadata.name", text},
    {"applications.edges.node.metadata.runtime", text},
    {"applications.edges.node.syncStatus", word, kSync},
    {"applications.edges.node.healthStatus", word_or_null, kHealth},
    {"applications.edges.node.errors", list_or_null},
    {"applications.edges.node.errors.level", word, kLevel},
    {"applications.edges.node.status", object},
    {"gitopsReleases", object},
    {"gitopsReleases.edges", list},
    {"gitopsReleases.edges.node", object},
    {"gitopsReleases.edges.node.application", object},
    {"gitopsReleases.edges.node.application.status", object},
    {"gitopsReleases.edges.node.application.status.syncStatus", word, kSync},
    {"gitopsReleases.edges.node.application.status.healthStatus", word_or_null, kHealth},
};

bool is_word(const Json& value, std::string_view words) {
  return value.is_string() && !value.get_ref<const std::string&>().empty() &&
         words.contains(" " + value.get<std::string>() + " ");
}

bool is_version(const Json& value) {
  static const std::regex kVersion(R"((0|[1-9]\d*)(\.(0|[1-9]\d*)){2}([-+][0-9A-Za-z.+-]*)?)");
  return value.is_string() && std::regex_match(value.get<std::string>(), kVersion);
}

bool is_fulfilled(const Rule& rule, const Json& value) {
  switch (rule.need) {
    case object:
      return value.is_object();
    case object_or_null:
      return value.is_object() || value.is_null();
    case list:
      return value.is_array();
    case list_or_null:
      return value.is_array() || value.is_null();
    case empty_list_or_null:
      return value.is_null() || (value.is_array() && value.empty());
    case text:
      return value.is_string();
    case text_or_null:
      return value.is_string() || value.is_null();
    case version:
      return is_version(value);
    case word:
      return is_word(value, rule.words);
    case word_or_null:
      return value.is_null() || is_word(value, rule.words);
    case flag:
      return value.is_boolean();
    case flag_or_null:
      return value.is_boolean() || value.is_null();
    case integer_or_null:
      return value.is_number_integer() || value.is_null();
    case void_value:
      return value.is_null() || (value.is_object() && value.empty());
  }
  return false;
}

// Applies a rule to each value at the rest of its path. A member that the document does not select is absent.
void apply(const Rule& rule, std::string_view rest, const Json& at, ClientCheck& check) {
  if (at.is_array() && !rest.empty()) {
    for (const Json& item : at) apply(rule, rest, item, check);
    return;
  }
  if (rest.empty()) {
    ++check.values;
    if (is_fulfilled(rule, at)) return;
    check.findings.push_back(std::string(rule.path) + " is " + at.dump());
    return;
  }
  if (!at.is_object()) return;  // the rule of the parent reports it
  const auto dot = std::min(rest.find('.'), rest.size());
  const auto found = at.find(rest.substr(0, dot));
  if (found == at.end()) return;
  apply(rule, rest.substr(std::min(dot + 1, rest.size())), *found, check);
}

bool is_rule_of(const Rule& rule, std::string_view root_field) {
  return rule.path.starts_with(root_field) &&
         (rule.path.size() == root_field.size() || rule.path[root_field.size()] == '.');
}

}  // namespace

std::vector<ClientRequest> client_requests() {
  const auto text = read_file(std::filesystem::path(GITOPS_SOURCE_DIR) / "tests" / "contract" /
                              "client_requests.txt");
  std::vector<ClientRequest> requests;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("# ")) {
      requests.push_back({.name = line.substr(2, line.find(':') - 2), .body = {}});
    } else if (!line.empty()) {
      requests.back().body = line;
    }
  }
  return requests;
}

std::string client_request(std::string_view name) {
  for (auto& request : client_requests()) {
    if (request.name == name) return request.body;
  }
  throw std::runtime_error("client_requests.txt has no request " + std::string(name));
}

std::string root_field_of(const ClientRequest& request) {
  const auto query = Json::parse(request.body)["query"].get<std::string>();
  static const std::regex kField(R"(\{\s*(\w+))");
  std::smatch found;
  if (!std::regex_search(query, found, kField)) throw std::runtime_error("no field: " + query);
  return found[1];
}

ClientCheck check_response(std::string_view root_field, std::string_view body) {
  ClientCheck check;
  const Json response = Json::parse(body, nullptr, false);
  if (!response.is_object() || !response.contains("data")) {
    check.findings.emplace_back("the response has no data");
    return check;
  }
  if (response.contains("errors") && !response["errors"].is_null()) {
    check.findings.push_back("errors is " + response["errors"].dump());
    return check;
  }
  const Json& data = response["data"];
  if (!data.is_object() || data.size() != 1 || !data.contains(root_field)) {
    check.findings.push_back("data has not exactly the member " + std::string(root_field));
    return check;
  }
  const auto before = check.values;
  for (const Rule& rule : kRules) {
    if (is_rule_of(rule, root_field)) apply(rule, rule.path, data, check);
  }
  if (check.values == before) {
    check.findings.push_back("no rule is about " + std::string(root_field));
  }
  // The SDK takes the cursor of a page that is followed by another one.
  if (const Json& page = data.at(root_field); page.is_object() && page.contains("pageInfo")) {
    const Json& info = page["pageInfo"];
    if (info.is_object() && info.value("hasNextPage", false) && info["endCursor"].is_null()) {
      check.findings.push_back(std::string(root_field) + ".pageInfo.endCursor is null");
    }
  }
  return check;
}

}  // namespace gitops::test
