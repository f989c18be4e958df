#include "control-plane/views/rollout_view.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kShortCommit = 7;

std::int64_t digits_of(std::string_view text, std::int64_t otherwise) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
}

JsonView canary_steps(JsonView rollout) {
  return rollout["spec"]["strategy"]["canary"]["steps"];
}

// The controller writes the generation as a text.
bool is_observed(JsonView rollout) {
  const auto observed = rollout["status"]["observedGeneration"];
  const auto generation = rollout["metadata"]["generation"];
  if (!observed.exists() || !generation.exists()) return rollout["status"].exists();
  const auto seen = observed.is_text() ? digits_of(observed.text(), -1) : observed.number();
  return seen == generation.number();
}

bool is_complete(JsonView rollout) {
  const auto status = rollout["status"];
  const auto hash = status["currentPodHash"].text();
  const auto stable =
      rollout["spec"]["strategy"]["blueGreen"].exists() && !status["stableRS"].exists()
          ? status["blueGreen"]["activeSelector"].text()
          : status["stableRS"].text();
  return !hash.empty() && hash == stable;
}

bool has_pause(JsonView rollout, std::string_view reason) {
  return std::ranges::any_of(
      rollout["status"]["pauseConditions"].items(),
      [reason](JsonView condition) { return condition["reason"].text() == reason; });
}

bool is_inconclusive(JsonView rollout) {
  return has_pause(rollout, "InconclusiveAnalysisRun");
}

bool has_failed_run(JsonView rollout, std::int64_t step, std::span<const AnalysisRun> runs) {
  const auto hash = rollout["status"]["currentPodHash"].text();
  return std::ranges::any_of(runs, [&](const AnalysisRun& run) {
    return run.step == step && run.pod_hash == hash &&
           (run.phase == "Failed" || run.phase == "Error");
  });
}

// Returns the status of the Rollout's current step.
StepStatus current_step_status(JsonView rollout, JsonView step) {
  const auto status = rollout["status"];
  if (is_inconclusive(rollout)) return StepStatus::paused_inconclusive;
  const bool waits_for_ever = step["pause"].exists() && !step["pause"]["duration"].exists();
  const bool is_paused =
      has_pause(rollout, "CanaryPauseStep") || has_pause(rollout, "BlueGreenPause");
  if (rollout["spec"]["paused"].is_true() || (is_paused && waits_for_ever)) {
    return StepStatus::paused_indefinite;
  }
  if (is_paused && !step.exists()) return StepStatus::paused_indefinite;
  if (status["phase"].text() == "Degraded") return StepStatus::failed;
  return StepStatus::active;
}

std::string_view rollout_phase(JsonView rollout) {
  const auto status = rollout["status"];
  const auto phase = status["phase"].text();
  if (status["abort"].is_true()) return "Terminated";
  constexpr std::array<std::string_view, 4> kKnown{"Degraded", "Healthy", "Paused", "Progressing"};
  const auto* known = std::ranges::find(kKnown, phase);
  return known == kKnown.end() ? "Unknown" : *known;
}

std::string_view analysis_phase(std::string_view phase) {
  constexpr std::array<std::string_view, 6> kKnown{"Error",   "Failed",  "Inconclusive",
                                                   "Pending", "Running", "Successful"};
  const auto* known = std::ranges::find(kKnown, phase);
  // A run has no phase until its controller has seen it.
  return known == kKnown.end() ? "Pending" : *known;
}

// Writes a member of type RolloutAnalysisStatus, from the Rollout's status of a run.
void write_analysis(ObjectJson& out, std::string_view key, JsonView run) {
  if (run["name"].text().empty()) {
    out.null(key);
    return;
  }
  out.object(key, [&](ObjectJson& at) {
    at.text("name", run["name"].text());
    at.text("phase", analysis_phase(run["status"].text()));
    at.text_or_null("message", run["message"].text());
  });
}

void write_step_runs(ObjectJson& out, JsonView rollout, std::span<const AnalysisRun> runs) {
  const auto hash = rollout["status"]["currentPodHash"].text();
  out.array("stepsAnalysisRunStatuses", [&](ArrayJson& items) {
    for (const auto& run : runs) {
      if (run.step < 0 || run.pod_hash != hash) continue;
      items.object([&](ObjectJson& at) {
        at.text("name", run.name);
        at.text("phase", analysis_phase(run.phase));
        at.text_or_null("message", run.message);
        at.number("stepIndex", run.step);
      });
    }
  });
}

void write_services(ObjectJson& out, JsonView strategy) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kServices{
      {{"canary", "stableService"},
       {"canary", "canaryService"},
       {"blueGreen", "activeService"},
       {"blueGreen", "previewService"}}};
  out.array("services", [&](ArrayJson& services) {
    for (const auto& [kind, name] : kServices) {
      if (const auto service = strategy[kind][name].text(); !service.empty()) {
        services.text(service);
      }
    }
  });
}

// Returns the revision of an entry of the history; with several sources, the first valid one.
std::string_view revision_at(JsonView at) {
  auto revision = at["revision"].text();
  for (const auto one : at["revisions"].items()) {
    if (revision.empty()) revision = one.text();
  }
  return revision;
}

enum class Deployment { absent, replaced, newest };

Deployment deployment_of(JsonView application, std::string_view commit) {
  const bool is_short = commit.size() < kShortCommit;
  const auto fits = [&](JsonView at) {
    const auto revision = revision_at(at);
    return revision == commit || (!is_short && revision.starts_with(commit));
  };
  const auto status = application["status"];
  auto found = Deployment::absent;
  for (const auto entry : status["history"].items()) {
    if (fits(entry)) {
      found = Deployment::newest;
    } else if (found == Deployment::newest) {
      found = Deployment::replaced;
    }
  }
  // The history contains a deployment only after its operation has ended.
  if (fits(status["operationState"]["syncResult"])) return Deployment::newest;
  return found;
}

}  // namespace

std::string_view to_string(StepStatus status) {
  constexpr std::array<std::string_view, 7> kWords{
      "ACTIVE",  "FAILED",    "PASSED", "PAUSED_INCONCLUSIVE", "PAUSED_INDEFINITE",
      "PENDING", "TERMINATED"};
  return kWords.at(static_cast<std::size_t>(status));
}

AnalysisRun analysis_run(JsonView object) {
  const auto labels = object["metadata"]["labels"];
  const auto status = object["status"];
  return {.name = std::string(object["metadata"]["name"].text()),
          .type = std::string(labels["rollout-type"].text()),
          .step = digits_of(labels["step-index"].text(), -1),
          .pod_hash = std::string(labels["rollouts-pod-template-hash"].text()),
          .phase = std::string(status["phase"].text()),
          .message = std::string(status["message"].text())};
}

std::optional<StepStatus> step_status(JsonView rollout, std::int64_t step,
                                      std::span<const AnalysisRun> runs) {
  const auto steps = canary_steps(rollout).items();
  const auto count = static_cast<std::int64_t>(steps.size());
  if (step < 0 || step >= std::max<std::int64_t>(count, 1)) return std::nullopt;
  if (!is_observed(rollout)) return std::nullopt;
  if (is_complete(rollout)) return StepStatus::passed;
  const auto status = rollout["status"];
  if (status["abort"].is_true()) {
    return has_failed_run(rollout, step, runs) ? StepStatus::failed : StepStatus::terminated;
  }
  const auto current = status["currentStepIndex"].number();
  if (step < current) return StepStatus::passed;
  if (step > current) return StepStatus::pending;
  JsonView here;
  std::int64_t at = 0;
  for (const auto one : steps) {
    if (at++ == step) here = one;
  }
  return current_step_status(rollout, here);
}

void append_rollout_state(std::string& out, const ObjectState& state, JsonView rollout,
                          std::span<const AnalysisRun> runs) {
  const auto status = rollout["status"];
  const auto strategy = rollout["spec"]["strategy"];
  const auto steps = canary_steps(rollout).items();
  const bool is_canary = !strategy["blueGreen"].exists();
  const bool complete = is_complete(rollout);
  ObjectJson at(out);
  at.text("name", state.key.name);
  at.text_or_null("uid", state.uid);
  at.number(
      "currentRevision",
      digits_of(rollout["metadata"]["annotations"]["rollout.argoproj.io/revision"].text(), 0));
  at.text("phase", rollout_phase(rollout));
  at.text_or_null("message", status["message"].text());
  at.text("currentStrategyName", is_canary ? "canary" : "blueGreen");
  at.number("steps", static_cast<std::int64_t>(steps.size()));
  at.number_or_null("currentStepIndex", status["currentStepIndex"]);
  std::int64_t index = 0;
  std::string spec;
  for (const auto step : steps) {
    if (index++ == status["currentStepIndex"].number()) spec = step.to_text();
  }
  at.text_or_null("currentStepSpec", spec);
  write_services(at, strategy);
  const auto canary = status["canary"];
  const auto blue_green = status["blueGreen"];
  write_analysis(at, "prePromotionAnalysisRunStatus", blue_green["prePromotionAnalysisRunStatus"]);
  write_analysis(at, "postPromotionAnalysisRunStatus",
                 blue_green["postPromotionAnalysisRunStatus"]);
  write_analysis(at, "backgroundAnalysisRunStatus", canary["currentBackgroundAnalysisRunStatus"]);
  write_step_runs(at, rollout, runs);
  at.flag("isComplete", complete);
  at.flag("paused", status["controllerPause"].is_true() || rollout["spec"]["paused"].is_true());
  at.flag("pausedInconclusive", is_inconclusive(rollout));
  at.flag("abort", status["abort"].is_true());
  // The weight is known only with traffic management.
  const auto weight = canary["weights"]["canary"]["weight"];
  if (weight.is_integer()) {
    at.number_or_null("weightOfNew", weight);
  } else {
    at.number("weightOfNew", complete ? 100 : 0);
  }
  at.end();
}

Result<std::optional<RolloutRow>> find_rollout(store::Connection& connection, std::int64_t account,
                                               const ObjectRow& resource) {
  const auto& key = resource.state.key;
  auto own = find_object(connection, account,
                         {.kind = "Rollout",
                          .runtime = key.runtime,
                          .object_namespace = key.object_namespace,
                          .name = key.name,
                          .origin = Origin::resource},
                         BodyUse::read);
  if (!own) return std::unexpected(own.error());
  const bool is_same = *own && (*own)->state.uid == resource.state.uid;
  RolloutRow found{.row = is_same ? std::move(**own) : resource, .runs = {}};
  const auto runs = list_children(connection, account,
                                  {.runtime = key.runtime,
                                   .manager_namespace = key.object_namespace,
                                   .manager_name = key.name,
                                   .manager_uid = found.row.state.uid,
                                   .kinds = {"AnalysisRun"},
                                   .origin = Origin::resource},
                                  BodyUse::read);
  if (!runs) return std::unexpected(runs.error());
  ParsedBody parsed;
  for (const auto& run : *runs) {
    parsed.read(run.body);
    found.runs.push_back(analysis_run(parsed.live()));
  }
  return std::optional<RolloutRow>(std::move(found));
}

Result<std::optional<StepStatus>> find_step_status(store::Connection& connection,
                                                   std::int64_t account,
                                                   const StepQuestion& question) {
  ObjectName name{.runtime = question.runtime,
                  .object_namespace = question.application_namespace,
                  .name = question.application};
  auto application = find_object(connection, account, name, BodyUse::read);
  if (application && !*application) {
    // Public clients send a text that is not a namespace.
    name.object_namespace.clear();
    application = find_object(connection, account, name, BodyUse::read);
  }
  if (!application) return std::unexpected(application.error());
  if (!*application || question.commit.empty()) return std::optional<StepStatus>();
  ParsedBody parsed;
  parsed.read((*application)->body);
  const auto deployment = deployment_of(parsed.live(), question.commit);
  if (deployment == Deployment::absent) return std::optional<StepStatus>();
  if (deployment == Deployment::replaced) return std::optional(StepStatus::terminated);
  const auto& key = (*application)->state.key;
  const auto resources = list_children(connection, account,
                                       {.runtime = key.runtime,
                                        .manager_namespace = key.object_namespace,
                                        .manager_name = key.name,
                                        .kinds = {"Rollout"},
                                        .origin = Origin::application},
                                       BodyUse::read);
  if (!resources) return std::unexpected(resources.error());
  const auto resource = std::ranges::find(*resources, question.rollout,
                                          [](const ObjectRow& row) { return row.state.key.name; });
  if (resource == resources->end()) return std::optional<StepStatus>();
  const auto rollout = find_rollout(connection, account, *resource);
  if (!rollout) return std::unexpected(rollout.error());
  parsed.read((*rollout)->row.body);
  return step_status(parsed.live(), question.step, (*rollout)->runs);
}

}  // namespace gitops::control_plane_server
