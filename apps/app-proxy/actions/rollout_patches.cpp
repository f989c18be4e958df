#include "app-proxy/actions/rollout_patches.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kRevision = "rollout.argoproj.io/revision";
constexpr std::string_view kHashLabel = "rollouts-pod-template-hash";
constexpr std::size_t kMaxImage = 1'024;
constexpr std::int64_t kMaxRevision = std::numeric_limits<std::int32_t>::max();

std::unexpected<Error> impossible(std::string message) {
  return std::unexpected(Error{.code = ErrorCode::conflict,
                               .message = std::move(message),
                               .subcode = action_errors::kNotPossible});
}

// State of a Rollout on which the patches depend.
struct State {
  bool is_canary = false;
  std::size_t steps = 0;
  std::size_t step = 0;  // the current one, from 0; equal to `steps` after the last
  bool is_paused_by_spec = false;
  bool has_pauses = false;  // status.pauseConditions
  bool is_inconclusive = false;
  bool is_aborted = false;
  bool is_promoted = false;  // the new version is stable
  bool is_promoting_fully = false;
};

State state_of(JsonView rollout) {
  const JsonView spec = rollout["spec"];
  const JsonView status = rollout["status"];
  const JsonView canary = spec["strategy"]["canary"];
  State state;
  state.is_canary = canary.exists();
  if (canary["steps"].is_array()) state.steps = canary["steps"].items().size();
  const auto index = status["currentStepIndex"].number();
  state.step = std::min(static_cast<std::size_t>(std::max<std::int64_t>(index, 0)), state.steps);
  state.is_paused_by_spec = spec["paused"].is_true();
  state.has_pauses =
      status["pauseConditions"].is_array() && status["pauseConditions"].items().size() > 0;
  state.is_inconclusive =
      state.is_canary && state.has_pauses && status["controllerPause"].is_true() &&
      status["canary"]["currentStepAnalysisRunStatus"]["status"].text() == "Inconclusive";
  state.is_aborted = status["abort"].is_true();
  const std::string_view current = status["currentPodHash"].text();
  state.is_promoted = !current.empty() && current == status["stableRS"].text();
  state.is_promoting_fully = status["promoteFull"].is_true();
  return state;
}

RolloutPatch of_spec(std::string body) {
  return {.body = std::move(body)};
}
RolloutPatch of_status(std::string body) {
  return {.of_status = true, .body = std::move(body)};
}

RolloutPatch to_step(std::size_t step, bool ends_controller_pause) {
  return of_status(R"({"status":{"pauseConditions":null,)" +
                   std::string(ends_controller_pause ? R"("controllerPause":false,)" : "") +
                   R"("currentStepIndex":)" + std::to_string(step) + "}}");
}

// Patches that end the pauses in spec and status.
std::vector<RolloutPatch> unpause(const State& state) {
  std::vector<RolloutPatch> patches;
  if (state.has_pauses) patches.push_back(of_status(R"({"status":{"pauseConditions":null}})"));
  if (state.is_paused_by_spec) patches.push_back(of_spec(R"({"spec":{"paused":false}})"));
  return patches;
}

Result<RolloutPlan> plan_promote(const State& state) {
  RolloutPlan plan;
  const std::size_t next = std::min(state.step + 1, state.steps);
  if (state.is_inconclusive && state.steps > 0) {
    plan.patches.push_back(to_step(next, true));
    if (state.is_paused_by_spec) plan.patches.push_back(of_spec(R"({"spec":{"paused":false}})"));
    return plan;
  }
  plan.patches = unpause(state);
  if (!plan.patches.empty()) return plan;
  // The Rollout is in a step that is not a pause.
  if (state.is_canary && state.step < state.steps && !state.is_promoted) {
    plan.patches.push_back(to_step(next, false));
    return plan;
  }
  plan.note = "there is nothing to promote";
  return plan;
}

Result<RolloutPlan> plan_steps(RolloutAction action, const State& state) {
  if (!state.is_canary) return impossible("only a canary has steps");
  if (state.steps == 0) return impossible("the rollout has no steps");
  if (state.step == state.steps) return RolloutPlan{.patches = {}, .note = "no step is left"};
  const bool skips_all = action == RolloutAction::skip_all_steps;
  return RolloutPlan{.patches = {to_step(skips_all ? state.steps : state.step + 1, false)},
                     .note = {}};
}

// Returns the revision of an object; 0 when it has none.
std::int64_t revision_of(JsonView object) {
  const std::string_view text = object["metadata"]["annotations"][kRevision].text();
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool is_one = read.ec == std::errc() && read.ptr == end && number < kMaxRevision;
  return is_one ? number : 0;
}

bool is_owned_by(JsonView object, std::string_view uid) {
  return std::ranges::any_of(object["metadata"]["ownerReferences"].items(),
                             [&](JsonView owner) { return owner["uid"].text() == uid; });
}

// Returns the JSON object without this member.
std::string without_member(std::string_view object, std::string_view name) {
  std::string out = "{";
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    if (key == name) return true;
    if (out.size() > 1) out += ',';
    ((out += '"') += key) += "\":";
    out += value;
    return true;
  });
  return out + "}";
}

// Returns the pod template of a ReplicaSet in the form that the Rollout had.
std::string template_of(std::string_view replica_set) {
  const std::string_view pod = member_text(member_text(replica_set, "spec"), "template");
  return edit_present_member(pod, "metadata", [](std::string_view metadata) {
    return edit_present_member(metadata, "labels", [](std::string_view labels) {
      return without_member(labels, kHashLabel);
    });
  });
}

}  // namespace

std::string_view to_string(RolloutAction action) {
  using enum RolloutAction;
  switch (action) {
    case pause:
      return "pause";
    case resume:
      return "resume";
    case promote:
      return "promote";
    case promote_full:
      return "promote-full";
    case skip_current_step:
      return "skip-current-step";
    case skip_all_steps:
      return "skip-all-steps";
    case abort:
      return "abort";
    case retry:
      return "retry";
    case restart:
      return "restart";
  }
  return {};
}

Result<RolloutPlan> plan_rollout(RolloutAction action, std::string_view rollout, WallTime now) {
  JsonParser parser;
  const auto root = parser.parse_object(rollout, "Rollout");
  if (!root) return std::unexpected(root.error());
  const State state = state_of(*root);
  const auto one = [](RolloutPatch patch) {
    return RolloutPlan{.patches = {std::move(patch)}, .note = {}};
  };
  const auto nothing = [](std::string note) {
    return RolloutPlan{.patches = {}, .note = std::move(note)};
  };
  using enum RolloutAction;
  switch (action) {
    case pause:
      if (state.is_paused_by_spec) return nothing("the rollout is paused already");
      return one(of_spec(R"({"spec":{"paused":true}})"));
    case resume: {
      auto patches = unpause(state);
      if (patches.empty()) return nothing("the rollout is not paused");
      return RolloutPlan{.patches = std::move(patches), .note = {}};
    }
    case promote:
      return plan_promote(state);
    case promote_full:
      if (state.is_promoted) return nothing("there is nothing to promote");
      if (state.is_promoting_fully) return nothing("the rollout is being promoted already");
      return one(of_status(R"({"status":{"promoteFull":true}})"));
    case skip_current_step:
    case skip_all_steps:
      return plan_steps(action, state);
    case abort:
      if (state.is_aborted) return nothing("the rollout is aborted already");
      if (state.is_promoted) return nothing("there is nothing to abort: no update is in progress");
      return one(of_status(R"({"status":{"abort":true}})"));
    case retry:
      if (!state.is_aborted) return nothing("the rollout is not aborted");
      return one(of_status(R"({"status":{"abort":false}})"));
    case restart:
      return one(of_spec(R"({"spec":{"restartAt":")" + format_rfc3339(now) + R"("}})"));
  }
  return RolloutPlan();
}

Result<TemplateOwner> template_owner(std::string_view rollout) {
  JsonParser parser;
  const auto root = parser.parse_object(rollout, "Rollout");
  if (!root) return std::unexpected(root.error());
  const JsonView ref = (*root)["spec"]["workloadRef"];
  if (!ref.exists()) {
    return TemplateOwner{.resource = k8s::resources::kRollouts,
                         .name = std::string((*root)["metadata"]["name"].text()),
                         .path = "/spec/template"};
  }
  const std::string name(ref["name"].text());
  const std::string_view kind = ref["kind"].text();
  if (kind == "Deployment") {
    return TemplateOwner{
        .resource = k8s::resources::kDeployments, .name = name, .path = "/spec/template"};
  }
  if (kind == "ReplicaSet") {
    return TemplateOwner{
        .resource = k8s::resources::kReplicaSets, .name = name, .path = "/spec/template"};
  }
  if (kind == "PodTemplate") {
    return TemplateOwner{
        .resource = {"", "v1", "podtemplates", "PodTemplate"}, .name = name, .path = "/template"};
  }
  return std::unexpected(Error{.code = ErrorCode::unsupported,
                               .message = "the rollout's workloadRef is of kind " +
                                          std::string(kind) +
                                          ", whose pod template is not changed here"});
}

std::string pod_selector(std::string_view rollout) {
  JsonParser parser;
  const auto root = parser.parse_object(rollout, "Rollout");
  if (!root) return {};
  std::string selector((*root)["status"]["selector"].text());
  if (!selector.empty()) return selector;
  for (const auto& [key, value] : (*root)["spec"]["selector"]["matchLabels"].members()) {
    if (!selector.empty()) selector += ',';
    selector.append(key).append("=").append(value.text());
  }
  return selector;
}

Result<UndoPlan> plan_undo(std::string_view rollout, std::string_view replica_sets,
                           std::int64_t revision, std::string_view template_path) {
  JsonParser parser;
  const auto root = parser.parse_object(rollout, "Rollout");
  if (!root) return std::unexpected(root.error());
  JsonParser of_list;
  if (const auto list = of_list.parse_object(replica_sets, "list of ReplicaSets"); !list) {
    return std::unexpected(list.error());
  }
  const std::string uid((*root)["metadata"]["uid"].text());
  const std::int64_t current = revision_of(*root);
  UndoPlan plan{.new_revision = current};
  std::int64_t latest = current;
  std::int64_t wanted = revision;
  std::string_view found;
  for_each_item(member_text(replica_sets, "items"), [&](std::string_view text) {
    JsonParser one;
    const auto set = one.parse_object(text, "ReplicaSet");
    if (!set || !is_owned_by(*set, uid)) return;
    const std::int64_t own = revision_of(*set);
    latest = std::max(latest, own);
    if (own <= 0) return;
    const bool is_previous = revision == 0 && own < current && own > wanted;
    if (is_previous) wanted = own;
    if (is_previous || (revision > 0 && own == revision)) found = text;
  });
  if (revision != 0 && revision == current) {
    plan.changes = false;
    plan.from_revision = current;
    return plan;
  }
  if (found.empty()) {
    return impossible(revision == 0 ? "the rollout has no earlier revision"
                                    : "the rollout has no revision " + std::to_string(revision) +
                                          " any more");
  }
  plan.from_revision = wanted;
  plan.new_revision = latest + 1;
  plan.patch = R"([{"op":"replace","path":")" + std::string(template_path) + R"(","value":)" +
               template_of(found) + "}]";
  return plan;
}

Result<std::string> plan_image(std::string_view owner, std::string_view template_path,
                               std::string_view container, std::string_view image) {
  const bool is_image = !image.empty() && image.size() <= kMaxImage &&
                        std::ranges::none_of(image, [](char c) { return c <= ' ' || c == '\x7f'; });
  if (!is_image) return fail(ErrorCode::invalid_argument, "image: not the name of an image");
  JsonParser parser;
  const auto root = parser.parse_object(owner, "object");
  if (!root) return std::unexpected(root.error());
  const JsonView pod = template_path == "/template" ? (*root)["template"]["spec"]
                                                    : (*root)["spec"]["template"]["spec"];
  std::string patch = "[";
  bool is_known = false;
  for (const std::string_view list : {"initContainers", "containers"}) {
    std::size_t index = 0;
    for (const auto item : pod[list].items()) {
      const std::string at =
          std::string(template_path) + "/spec/" + std::string(list) + "/" + std::to_string(index++);
      if (container != "*" && item["name"].text() != container) continue;
      is_known = true;
      if (item["image"].text() == image) continue;
      if (patch.size() > 1) patch += ',';
      patch += R"({"op":"test","path":")" + at + R"(/name","value":)" +
               json_string(item["name"].text()) + R"(},{"op":"replace","path":")" + at +
               R"(/image","value":)" + json_string(image) + "}";
    }
  }
  if (!is_known) {
    return impossible("there is no container " + std::string(container) + " in the pod template");
  }
  return patch.size() == 1 ? std::string() : patch + "]";
}

}  // namespace gitops::app_proxy
