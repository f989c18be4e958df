#include "app-proxy/runtime/runtime_groups.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_text.hpp"
#include "common/core/json_value.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

using control_plane::RuntimeError;
using Json = nlohmann::json;

constexpr std::size_t kMaxNames = 5;
constexpr std::size_t kMaxText = 500;
constexpr std::string_view kCut = "…";

// Returns the text on one line, truncated to `most` bytes at a whole character.
std::string bounded(std::string text, std::size_t most) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  if (text.size() <= most) return text;
  std::size_t end = most - kCut.size();
  constexpr auto kContinuation = 0x80U;
  constexpr auto kMask = 0xC0U;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & kMask) == kContinuation) --end;
  text.resize(end);
  return text.append(kCut);
}

// Returns the first error condition: "ComparisonError: …".
std::string error_in(const Json& conditions) {
  if (!conditions.is_array()) return {};
  for (const Json& condition : conditions) {
    auto type = string_at(condition, {"type"});
    if (type.ends_with("Error")) return type + ": " + string_at(condition, {"message"});
  }
  return {};
}

// Checks for a reason with which every container waits for a while before its start.
bool is_usual(std::string_view reason) {
  constexpr std::array<std::string_view, 3> kUsual = {"", "ContainerCreating", "PodInitializing"};
  return std::ranges::find(kUsual, reason) != kUsual.end();
}

std::string waiting_container(JsonView statuses) {
  for (const auto status : statuses.items()) {
    const auto reason = status["state"]["waiting"]["reason"].text();
    if (is_usual(reason)) continue;
    return "container " + std::string(status["name"].text()) + ": " + std::string(reason);
  }
  return {};
}

// Returns the time since which the pod has not been ready; nullopt when it is ready.
std::optional<WallTime> unready_since(JsonView pod) {
  auto since = pod["metadata"]["creationTimestamp"].text();
  for (const auto condition : pod["status"]["conditions"].items()) {
    if (condition["type"].text() != "Ready") continue;
    if (condition["status"].text() == "True") return std::nullopt;
    since = condition["lastTransitionTime"].text();
  }
  const auto time = parse_rfc3339(since);
  if (!time) return std::nullopt;
  return *time;
}

bool is_left_out(JsonView pod) {
  const auto phase = pod["status"]["phase"].text();
  return phase == "Succeeded" || phase == "Failed" ||
         pod["metadata"]["deletionTimestamp"].exists() ||
         pod["metadata"]["labels"]["workflows.argoproj.io/workflow"].exists();
}

std::string pod_error(JsonView pod, WallTime now) {
  if (is_left_out(pod)) return {};
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    if (auto waiting = waiting_container(pod["status"][kind]); !waiting.empty()) return waiting;
  }
  const auto since = unready_since(pod);
  return since && now - *since > kSettleTime ? "not ready for more than five minutes" : "";
}

}  // namespace

std::string describe_errors(const RuntimeGroup& group) {
  const auto named = std::min(group.errors.size(), kMaxNames);
  if (named == 0) return {};
  const auto rest = group.errors.size() - named;
  const std::string more = rest > 0 ? "; and " + std::to_string(rest) + " more" : "";
  // A long text must not hide the names of the others.
  constexpr std::size_t kSeparator = 2;
  const std::size_t share = (kMaxText - more.size()) / named - kSeparator;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < named; ++i) texts.push_back(bounded(group.errors[i], share));
  return join(texts, "; ") + more;
}

StatusEntry entry_of(const RuntimeGroup& group) {
  StatusEntry entry{.name = group.name, .message = describe_errors(group)};
  if (!entry.message.empty()) {
    entry.state = StatusState::degraded;
  } else if (!group.unknown.empty()) {
    entry.state = group.is_pending ? StatusState::pending : StatusState::unknown;
  }
  if (!group.unknown.empty()) {
    entry.message +=
        (entry.message.empty() ? "" : "; ") + bounded("not known: " + group.unknown, kMaxText);
  }
  return entry;
}

std::vector<RuntimeError> errors_of(const std::vector<RuntimeGroup>& groups) {
  std::vector<RuntimeError> errors;
  for (const auto& group : groups) {
    const auto described = describe_errors(group);
    if (described.empty()) continue;
    errors.push_back(
        {.level = RuntimeError::Level::error, .message = group.name + ": " + described});
  }
  return errors;
}

RuntimeGroup connectivity_group(const Connectivity& servers) {
  RuntimeGroup group{.name = "connectivity"};
  const auto add = [&](std::string_view server, const std::string& error) {
    if (!error.empty()) group.errors.push_back(std::string(server) + ": " + error);
  };
  add("control plane", servers.control_plane);
  add("Argo CD", servers.argocd.value_or(""));
  add("Argo Workflows", servers.workflows.value_or(""));
  add("Git", servers.git);
  return group;
}

OwnApplication read_application(std::string name, std::string_view object) {
  OwnApplication application{.name = std::move(name), .exists = !object.empty()};
  if (object.empty()) return application;
  const Json json = parse_json_object(object);
  application.sync = string_at(json, {"status", "sync", "status"});
  application.health = string_at(json, {"status", "health", "status"});
  application.health_message = string_at(json, {"status", "health", "message"});
  application.error = error_in(value_at(json, {"status", "conditions"}));
  const auto phase = string_at(json, {"status", "operationState", "phase"});
  if (phase == "Failed" || phase == "Error") {
    application.sync_error = string_at(json, {"status", "operationState", "message"});
  }
  return application;
}

bool is_unsettled(const OwnApplication& application) {
  return !application.exists || application.sync == "OutOfSync" ||
         application.health == "Missing" || application.health == "Unknown";
}

std::string error_of(const OwnApplication& application, bool is_lasting) {
  const auto with = [&](const std::string& state, const std::string& message) {
    return application.name + ": " + state + (message.empty() ? "" : ": " + message);
  };
  if (!application.error.empty()) return with(application.error, "");
  if (application.health == "Degraded") {
    return with(application.health, application.health_message);
  }
  if (!is_lasting || !is_unsettled(application)) return {};
  if (!application.exists) return with("there is no such Application", "");
  if (application.sync == "OutOfSync") return with(application.sync, application.sync_error);
  return with(application.health, application.health_message);
}

std::vector<std::string> pod_errors(std::string_view list, WallTime now) {
  std::vector<std::string> errors;
  for_each_item(member_text(list, "items"), [&](std::string_view text) {
    JsonParser parser;
    const auto pod = parser.parse_object(text, "pod");
    if (!pod) return;
    if (auto error = pod_error(*pod, now); !error.empty()) {
      errors.push_back(std::string((*pod)["metadata"]["name"].text()) + ": " + error);
    }
  });
  std::ranges::sort(errors);
  return errors;
}

RuntimeGroup git_sources_group(bool has_git_token, const std::optional<std::string>& error) {
  RuntimeGroup group{.name = "Git sources"};
  if (!has_git_token) {
    group.unknown = kNoGitToken;
  } else if (!error) {
    group.unknown = "not looked at yet";
    group.is_pending = true;
  } else if (!error->empty()) {
    group.errors.push_back("shared configuration repository: " + *error);
  }
  return group;
}

RuntimeGroup clusters_group(const Result<std::vector<control_plane::ClusterState>>& unreachable) {
  RuntimeGroup group{.name = "clusters"};
  if (!unreachable) {
    group.unknown = unreachable.error().message;
    // The list may be available in a moment.
    group.is_pending = unreachable.error().code == ErrorCode::unavailable;
    return group;
  }
  for (const auto& cluster : *unreachable) {
    group.errors.push_back((cluster.name.empty() ? cluster.server : cluster.name) +
                           ": Argo CD cannot reach it");
  }
  std::ranges::sort(group.errors);
  return group;
}

}  // namespace gitops::app_proxy
