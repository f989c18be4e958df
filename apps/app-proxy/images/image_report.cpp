#include "app-proxy/images/image_report.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/gzip.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxQuery = std::size_t{256} * 1024;       // inflated
constexpr std::size_t kMaxDockerfile = std::size_t{128} * 1024;  // inflated
constexpr std::size_t kMaxParameters = 200;
constexpr std::size_t kMaxImage = 512;
constexpr std::string_view kPrefix = "CF_";
constexpr const char* kDockerfile = "CF_DOCKERFILE_CONTENT";

// Variables whose names differ between the reporter and the tasks. For all others only the prefix
// differs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRenamed{
    {{"CF_IMAGE", "IMAGE_NAME"},
     {"CF_GIT_REPO", "REPO"},
     {"CF_GIT_BRANCH", "BRANCH"},
     {"CF_GIT_REVISION", "REVISION"},
     {"CF_JIRA_FAIL_ON_NOT_FOUND", "FAIL_ON_NOT_FOUND"},
     {"CF_DOCKERFILE_CONTENT", "DOCKERFILE_CONTENT"}}};
// Variables whose values are names of integrations. The older name for issues is the last one.
constexpr std::array<std::pair<std::string_view, std::string ImageReport::*>, 4> kIntegrations{
    {{"CF_CONTAINER_REGISTRY_INTEGRATION", &ImageReport::registry_integration},
     {"CF_GIT_INTEGRATION", &ImageReport::git_integration},
     {"CF_ISSUE_TRACKING_INTEGRATION", &ImageReport::jira_integration},
     {"CF_JIRA_INTEGRATION", &ImageReport::jira_integration}}};
constexpr std::string_view kInsecure = "CF_INSECURE";
constexpr std::array<std::string_view, 4> kNames{"WORKFLOW_NAME", "WORKFLOW_URL", "LOGS_URL",
                                                 "GIT_PROVIDER"};
constexpr std::array<std::string_view, 11> kFamilies{
    "REGISTRY_", "AWS_",    "GCR_",       "GOOGLE_", "DOCKER_", "DOCKERHUB_",
    "GITHUB_",   "GITLAB_", "BITBUCKET_", "GERRIT_", "JIRA_"};

using Parameters = std::map<std::string, std::string>;

std::unexpected<Error> mistake(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Result<std::string> decoded(std::string text) {
  std::ranges::replace(text, '+', ' ');
  auto value = percent_decode(text);
  if (!value) return mistake("a parameter is not percent-encoded");
  return value;
}

// Parses "a=1&b=2". A repeated name is an error.
Result<Parameters> split(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (parameters.size() == kMaxParameters) return mistake("too many parameters");
    const auto equals = std::min(pair.find('='), pair.size());
    auto name = decoded(std::string(pair.substr(0, equals)));
    auto value = decoded(std::string(pair.substr(std::min(equals + 1, pair.size()))));
    if (!name) return std::unexpected(std::move(name.error()));
    if (!value) return std::unexpected(std::move(value.error()));
    if (value->contains('\0')) return mistake("a parameter holds a NUL");
    if (!parameters.emplace(std::move(*name), std::move(*value)).second) {
      return mistake("a parameter is there twice");
    }
  }
  return parameters;
}

// Decodes base64 of the zlib form. Accepts both alphabets; a space is a '+' that a form decoder has
// replaced.
Result<std::string> inflated(std::string text, std::size_t limit, const char* what) {
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  std::ranges::replace(text, ' ', '+');
  const auto bytes = base64_decode(text);
  if (!bytes) return mistake(std::string(what) + " is not base64");
  http::Inflater inflater(limit);
  std::string out;
  if (auto fed = inflater.feed(*bytes, out); !fed) {
    if (fed.error().code == ErrorCode::too_large) {
      return fail(ErrorCode::too_large, std::string(what) + " is too large");
    }
    return mistake(std::string(what) + " is not compressed");
  }
  if (!inflater.finished()) return mistake(std::string(what) + " is cut off");
  return out;
}

// Stores the value when the variable names an integration, and returns whether it does.
bool note_integration(ImageReport& report, std::string_view name, const std::string& value) {
  const auto* found = std::ranges::find(
      kIntegrations, name, &std::pair<std::string_view, std::string ImageReport::*>::first);
  if (found == kIntegrations.end()) return false;
  auto& noted = report.*found->second;
  if (noted.empty()) noted = value;
  return true;
}

// Returns the tasks' name of a variable; empty when they do not have it.
std::string task_name(std::string_view name) {
  for (const auto& [from, to] : kRenamed) {
    if (name == from) return std::string(to);
  }
  if (!name.starts_with(kPrefix) || !is_name(name)) return {};
  name.remove_prefix(kPrefix.size());
  const bool is_known = std::ranges::find(kNames, name) != kNames.end() ||
                        std::ranges::any_of(kFamilies, [name](std::string_view family) {
                          return name.starts_with(family) && name.size() > family.size();
                        });
  return is_known ? std::string(name) : std::string();
}

bool is_image(std::string_view image) {
  return !image.empty() && image.size() <= kMaxImage &&
         std::ranges::all_of(image, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

Json task(const ImageReportOptions& options, const char* name, const std::string& image,
          std::string_view secret) {
  return {{"name", name},
          {"retryStrategy", {{"limit", "10"}}},
          {"container",
           {{"image", image},
            {"env", {{{"name", "CF_HOST_URL"}, {"value", options.control_plane_url}}}},
            {"envFrom", {{{"secretRef", {{"name", secret}}}}}}}},
          {"outputs",
           {{"parameters",
             {{{"name", "exit_error"},
               {"valueFrom", {{"path", "/cf-outputs/exit_error"}, {"default", ""}}}}}}}}};
}

}  // namespace

Result<ImageReport> parse_image_report(std::string_view query) {
  if (query.size() > kMaxQuery) return fail(ErrorCode::too_large, "the query is too large");
  auto parameters = split(query);
  if (!parameters) return std::unexpected(std::move(parameters.error()));
  const auto data = parameters->find("data");
  const bool is_compressed = data != parameters->end();
  if (is_compressed) {
    auto whole = inflated(std::move(data->second), kMaxQuery, "data");
    if (!whole) return std::unexpected(std::move(whole.error()));
    parameters = split(*whole);
    if (!parameters) return std::unexpected(std::move(parameters.error()));
  }
  ImageReport report;
  for (auto& [name, value] : *parameters) {
    if (note_integration(report, name, value)) continue;
    if (name == kInsecure && value == "true") {
      report.warnings.emplace_back("CF_INSECURE is ignored: the tasks check certificates");
    }
    auto known = task_name(name);
    if (known.empty() || value.empty()) continue;
    if (name == kDockerfile) {
      auto content = is_compressed ? inflated(std::move(value), kMaxDockerfile, kDockerfile)
                                   : base64_decode(value);
      if (!content) {
        if (content.error().code == ErrorCode::too_large) {
          return std::unexpected(std::move(content.error()));
        }
        return mistake(std::string(kDockerfile) + " is malformed");
      }
      if (content->size() > kMaxDockerfile) {
        return fail(ErrorCode::too_large, std::string(kDockerfile) + " is too large");
      }
      value = base64_encode(*content);
    }
    if (known == "IMAGE_NAME") report.image = value;
    report.has_git = report.has_git || known == "REPO";
    report.has_jira = report.has_jira || known.starts_with("JIRA_");
    report.environment[std::move(known)] = Secret(std::move(value));
  }
  report.has_jira = report.has_jira || !report.jira_integration.empty();
  if (!report.has_git && report.environment.contains("GIT_PROVIDER")) {
    report.warnings.emplace_back("no commits are added: CF_GIT_REPO is missing");
  }
  if (!is_image(report.image)) return mistake("CF_IMAGE is missing, or not the name of an image");
  return report;
}

std::string image_report_catalogue() {
  struct Section {
    const char* name;
    std::vector<const char*> variables;
  };
  const Section sections[] = {
      {"Image", {"CF_IMAGE", "CF_WORKFLOW_NAME", "CF_WORKFLOW_URL", "CF_LOGS_URL", kDockerfile}},
      {"Registry",
       {"CF_CONTAINER_REGISTRY_INTEGRATION", "CF_REGISTRY_DOMAIN", "CF_REGISTRY_USERNAME",
        "CF_REGISTRY_PASSWORD", "CF_DOCKERHUB_USERNAME", "CF_DOCKERHUB_PASSWORD", "CF_AWS_ROLE",
        "CF_AWS_ACCESS_KEY", "CF_AWS_SECRET_KEY", "CF_AWS_REGION", "CF_GOOGLE_REGISTRY_HOST",
        "CF_GOOGLE_JSON_KEY"}},
      {"Git",
       {"CF_GIT_PROVIDER", "CF_GIT_REPO", "CF_GIT_BRANCH", "CF_GIT_INTEGRATION", "CF_GITHUB_TOKEN",
        "CF_GITLAB_TOKEN", "CF_BITBUCKET_USERNAME", "CF_BITBUCKET_PASSWORD"}},
      {"Jira",
       {"CF_ISSUE_TRACKING_INTEGRATION", "CF_JIRA_HOST_URL", "CF_JIRA_EMAIL", "CF_JIRA_API_TOKEN",
        "CF_JIRA_SERVER_PAT", "CF_JIRA_MESSAGE", "CF_JIRA_PROJECT_PREFIX"}}};
  Json list = Json::array();
  for (const auto& section : sections) {
    Json parameters = Json::array();
    for (const char* variable : section.variables) {
      parameters.push_back(
          {{"displayName", variable}, {"required", std::string_view(variable) == "CF_IMAGE"}});
    }
    list.push_back({{"displayName", section.name}, {"parameters", std::move(parameters)}});
  }
  return to_text({{"sections", std::move(list)}});
}

std::string image_report_workflow(const ImageReportOptions& options, const ImageReport& report,
                                  std::string_view name) {
  constexpr const char* kReport = "report-image-info";
  Json tasks = Json::array({{{"name", kReport}, {"template", kReport}}});
  Json templates = Json::array({task(options, kReport, options.report_image, name)});
  const auto follow = [&](const char* step, const std::string& image) {
    tasks.push_back({{"name", step}, {"template", step}, {"dependencies", {kReport}}});
    templates.push_back(task(options, step, image, name));
  };
  if (report.has_git) follow("git-info", options.git_image);
  if (report.has_jira) follow("jira-info", options.jira_image);
  templates.push_back({{"name", "main"}, {"dag", {{"tasks", std::move(tasks)}}}});
  return to_text(
      {{"apiVersion", "argoproj.io/v1alpha1"},
       {"kind", "Workflow"},
       {"metadata", {{"name", name}, {"namespace", options.own_namespace}}},
       {"spec",
        {{"entrypoint", "main"},
         {"serviceAccountName", options.service_account},
         {"synchronization",
          {{"semaphore",
            {{"configMapKeyRef",
              {{"name", options.semaphore_config_map}, {"key", options.semaphore_key}}}}}}},
         {"podGC", {{"strategy", options.pod_gc}}},
         {"ttlStrategy", {{"secondsAfterCompletion", options.kept_after_completion.count()}}},
         {"activeDeadlineSeconds", options.longest.count()},
         {"templates", std::move(templates)}}}});
}

Secret image_report_secret(const ImageReportOptions& options, const ImageReport& report,
                           const Secret& api_key, std::string_view name, std::string_view uid) {
  Json data{{"CF_API_KEY", base64_encode(api_key.reveal())}};
  for (const auto& [key, value] : report.environment) data[key] = base64_encode(value.reveal());
  return Secret(to_text({{"apiVersion", "v1"},
                         {"kind", "Secret"},
                         {"metadata",
                          {{"name", name},
                           {"namespace", options.own_namespace},
                           {"ownerReferences",
                            {{{"apiVersion", "argoproj.io/v1alpha1"},
                              {"kind", "Workflow"},
                              {"name", name},
                              {"uid", uid}}}}}},
                         {"type", "Opaque"},
                         {"data", std::move(data)}}));
}

bool ImageReportState::is_over() const {
  return phase == "Succeeded" || phase == "Failed" || phase == "Error";
}

ImageReportState image_report_state(std::string_view workflow) {
  const Json json = parse_json_object(workflow);
  ImageReportState state{.phase = string_at(json, {"status", "phase"}),
                         .message = string_at(json, {"status", "message"})};
  const Json& nodes = value_at(json, {"status", "nodes"});
  if (!nodes.is_object()) return state;
  // The message of a task is more specific than that of the Workflow.
  for (const Json& node : nodes) {
    const Json& outputs = value_at(node, {"outputs", "parameters"});
    if (!outputs.is_array()) continue;
    for (const Json& output : outputs) {
      const auto value = string_at(output, {"value"});
      if (string_at(output, {"name"}) == "exit_error" && !value.empty()) state.message = value;
    }
  }
  return state;
}

}  // namespace gitops::app_proxy
