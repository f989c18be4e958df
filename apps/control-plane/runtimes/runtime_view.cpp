#include "control-plane/runtimes/runtime_view.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "common/core/time.hpp"
#include "common/http/url.hpp"
#include "control-plane/projection/event.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDescription = 2'000;  // bytes
constexpr std::size_t kMaxShownErrors = 100;
constexpr std::string_view kInternalConfig = "internal-config";
constexpr std::string_view kInClusterName = "in-cluster";

constexpr std::array<std::string_view, 8> kStatusItems{"appProxyStarted",
                                                       "gitSourceConfigured",
                                                       "defaultGitIntegration",
                                                       "encryptionKey",
                                                       "encryptionIv",
                                                       "isc",
                                                       "eventReporterArgoCDToken",
                                                       "runtimeGitToken"};

// Returns the word of the list, or `otherwise` when the list does not contain it. Never borrows from `word`.
std::string_view known_word(std::string_view word, std::initializer_list<std::string_view> known,
                            std::string_view otherwise) {
  for (const auto one : known) {
    if (one == word) return one;
  }
  return otherwise;
}

Json null_if_empty(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

Json moment(Micros at) {
  if (at == 0) return {};
  return format_rfc3339_millis(WallTime(std::chrono::milliseconds(at / 1'000)));
}

// Returns a version that clients can parse. The public command line fails on any other text.
std::string version_of(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::string_view rest = text.substr(0, text.find_first_of("-+"));
  int parts = 0;
  while (true) {
    const auto dot = rest.find('.');
    const auto part = rest.substr(0, dot);
    const bool is_number = !part.empty() && part.size() <= 9 &&
                           part.find_first_not_of("0123456789") == std::string_view::npos &&
                           (part.size() == 1 || part.front() != '0');
    if (!is_number) return "0.0.0";
    ++parts;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  const bool is_shown = std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
  });
  return parts == 3 && is_shown ? std::string(text) : "0.0.0";
}

bool is_below(std::string_view ingress_host, std::string_view domain) {
  if (domain.empty()) return false;
  const auto url = http::parse_url(ingress_host);
  return url && url->host.ends_with("." + std::string(domain));
}

std::string_view access_mode(const Json& arguments, std::string_view tunnel_domain) {
  if (is_below(string_at(arguments, {"ingressHost"}), tunnel_domain)) return "TUNNEL";
  return string_at(arguments, {"accessMode"}) == "TUNNEL" ? "TUNNEL" : "INGRESS";
}

Json status_item(const Json& status, std::string_view name) {
  const auto description = string_at(status, {name, "description"});
  return {{"status",
           known_word(string_at(status, {name, "status"}), {"FAILED", "SUCCESSFUL"}, "UNKNOWN")},
          {"description", null_if_empty(shortened(description, kMaxDescription))}};
}

// Returns the sync mode: a word, or the description of an item of older runtimes.
std::string_view sync_mode(const Json& status) {
  auto word = string_at(status, {"syncMode"});
  if (word.empty()) word = string_at(status, {"syncMode", "description"});
  return known_word(word, {"GITOPS", "HELM"}, "UNKNOWN");
}

std::string_view argocd_state(const Json& status) {
  const auto word = known_word(string_at(status, {"argoCdState"}),
                               {"CONNECTED", "NOT_AUTHORIZED", "NOT_FOUND"}, {});
  if (!word.empty()) return word;
  const auto state = string_at(status, {"argoCdState", "status"});
  if (state == "SUCCESSFUL") return "CONNECTED";
  if (state != "FAILED") return "UNKNOWN";
  const auto description = string_at(status, {"argoCdState", "description"});
  for (const auto* text : {"401", "403", "nauthorized", "orbidden", "ermission"}) {
    if (description.contains(text)) return "NOT_AUTHORIZED";
  }
  for (const auto* text : {"404", "not found", "no such host", "resolve"}) {
    if (description.contains(text)) return "NOT_FOUND";
  }
  return "UNKNOWN";
}

Json status_json(const Json& status) {
  Json json = Json::object();
  for (const auto name : kStatusItems) json[std::string(name)] = status_item(status, name);
  json["syncMode"] = sync_mode(status);
  json["argoCdState"] = argocd_state(status);
  return json;
}

Json errors_json(const Json& errors, Micros now) {
  Json list = Json::array();
  if (!errors.is_array()) return list;
  for (const Json& error : errors) {
    if (list.size() == kMaxShownErrors) break;
    const auto message = shortened(string_at(error, {"message"}), kMaxDescription);
    list.push_back({{"__typename", "HealthError"},
                    {"level", known_word(string_at(error, {"level"}), {"WARNING"}, "ERROR")},
                    {"title", "The runtime reports a problem"},
                    {"message", message},
                    {"suggestion", nullptr},
                    {"code", "UNKNOWN"},
                    {"lastSeen", moment(now)}});
  }
  return list;
}

const RuntimeApplication* application_of(const RuntimeFacts& facts, std::string_view entity) {
  const auto found = std::ranges::find(facts.applications, entity, &RuntimeApplication::entity);
  return found == facts.applications.end() ? nullptr : &*found;
}

// Returns the Application that deploys the shared configuration to the runtime's own cluster. Managed clusters have
// Applications of the same entity, with the clusters' names.
const RuntimeApplication* in_cluster_application(const RuntimeFacts& facts) {
  const auto found = std::ranges::find_if(facts.applications, [](const auto& application) {
    return application.entity == kInternalConfig && application.name == kInClusterName;
  });
  return found == facts.applications.end() ? nullptr : &*found;
}

Json self_json(const RuntimeApplication& application, const RuntimeRow& runtime,
               const Account& account) {
  return {{"metadata",
           {{"group", "argoproj.io"},
            {"version", application.version.empty() ? "v1alpha1" : application.version},
            {"kind", "Application"},
            {"name", application.name},
            {"namespace", application.application_namespace},
            {"runtime", runtime.name},
            {"account", account.id},
            {"uid", null_if_empty(application.uid)},
            {"created", moment(application.created_at)},
            {"lastUpdated", moment(application.changed_at)}}},
          {"latest", true},
          {"syncStatus", to_string(application.sync)},
          {"healthStatus", null_if_empty(to_string(application.health))},
          {"healthMessage", null_if_empty(application.health_message)}};
}

}  // namespace

std::string_view public_git_provider(std::string_view provider) {
  return known_word(provider, {"BITBUCKET", "BITBUCKET_SERVER", "GERRIT", "GITHUB", "GITLAB"}, {});
}

std::string runtime_json(const RuntimeRow& runtime, const RuntimeFacts& facts) {
  const Json arguments = parse_json_object(runtime.arguments);
  const Json status = parse_json_object(runtime.status);
  const Json errors = Json::parse(runtime.errors, nullptr, false);
  const auto& account = facts.account;
  const auto argument = [&arguments](std::string_view name) {
    return null_if_empty(string_at(arguments, {name}));
  };
  const auto* application = application_of(facts, "runtime");
  const auto* in_cluster = in_cluster_application(facts);
  const auto* internal_config =
      in_cluster != nullptr ? in_cluster : application_of(facts, kInternalConfig);
  const bool has_git_token = string_at(status, {"runtimeGitToken", "status"}) == "SUCCESSFUL";
  Json render_errors = errors_json(errors, runtime.seen_at == 0 ? facts.now : runtime.seen_at);
  Json message = application != nullptr ? null_if_empty(application->health_message) : Json();
  if (message.is_null() && !render_errors.empty()) message = render_errors[0]["message"];

  Json json{{"metadata",
             {{"group", "codefresh.io"},
              {"version", "v1alpha1"},
              {"kind", "Runtime"},
              {"name", runtime.name},
              {"namespace", null_if_empty(runtime.runtime_namespace)},
              {"runtime", runtime.name},
              {"cluster", null_if_empty(runtime.cluster)},
              {"account", account.id},
              {"created", moment(runtime.created_at)},
              {"lastUpdated", moment(runtime.seen_at)}}},
            {"self", application != nullptr ? self_json(*application, runtime, account) : Json()},
            {"syncStatus", application != nullptr ? to_string(application->sync) : "UNKNOWN"},
            {"healthStatus",
             application != nullptr ? null_if_empty(to_string(application->health)) : Json()},
            {"healthMessage", std::move(message)},
            {"errors", std::move(render_errors)},
            {"cluster", null_if_empty(runtime.cluster)},
            {"installationType",
             string_at(arguments, {"installationType"}) == "HELM_HOSTED" ? "HELM_HOSTED" : "HELM"},
            {"managed", value_at(arguments, {"managed"}) == true},
            {"isRemoteClusterConnected", facts.clusters.connected > 0},
            {"ingressHost", argument("ingressHost")},
            {"internalIngressHost", argument("internalIngressHost")},
            {"ingressClass", argument("ingressClass")},
            {"ingressController", argument("ingressController")},
            {"gatewayName", argument("gatewayName")},
            {"gatewayNamespace", argument("gatewayNamespace")},
            {"runtimeVersion", version_of(string_at(arguments, {"runtimeVersion"}))},
            {"chartVersion", argument("chartVersion")},
            {"lastUpdated", moment(runtime.seen_at)},
            {"installationStatus",
             has_git_token && !account.shared_config_repo.empty() ? "COMPLETED" : "IN_PROGRESS"},
            {"repo", null_if_empty(account.shared_config_repo)},
            {"managedClusters", Json::array()},
            {"managedClustersNum", facts.clusters.managed},
            {"gitProvider", null_if_empty(public_git_provider(account.git_provider))},
            {"accessMode", access_mode(arguments, facts.tunnel_domain)},
            {"available", runtime.seen_at != 0 && facts.now - runtime.seen_at <= kRuntimeOnline},
            {"status", status_json(status)},
            {"isConfigurationRuntime", runtime.is_configuration_runtime},
            {"internalSharedConfigAppName",
             internal_config != nullptr ? Json(internal_config->name) : Json()},
            {"inClusterApplicationName", in_cluster != nullptr ? Json(in_cluster->name) : Json()},
            {"runtimeApplicationName", application != nullptr ? Json(application->name) : Json()},
            {"isExternalArgoCd", value_at(arguments, {"isExternalArgoCd"}) == true}};
  for (const auto& cluster : facts.managed_clusters) {
    json["managedClusters"].push_back(Json::parse(cluster, nullptr, false));
  }
  return to_text(json);
}

}  // namespace gitops::control_plane_server
