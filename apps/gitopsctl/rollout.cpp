#include "gitopsctl/rollout.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "gitopsctl/app.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

struct RolloutSettings : AppSettings {
  std::string rollout;
  [[nodiscard]] std::vector<cli::Operand> operands() {
    return {operand(), {.name = "ROLLOUT", .help = "NAME or NAMESPACE/NAME", .target = &rollout}};
  }
};

// A Rollout and the Application that deploys it.
struct Found {
  AppName app = {};
  Json resource = {};  // as the control plane has it
  [[nodiscard]] std::string text() const {
    return text_at(resource, {"namespace"}) + "/" + text_at(resource, {"name"});
  }
  // The variables of requests about it.
  [[nodiscard]] Json variables() const {
    return {{"app", app.name},
            {"appNamespace", app.ns},
            {"namespace", at(resource, {"namespace"})},
            {"name", at(resource, {"name"})}};
  }
};

Sheet rollout_sheet() {
  return {
      .schema = "gitopsctl/rollouts/v1",
      .columns = {text_column("NAMESPACE", {"namespace"}), text_column("NAME", {"name"}),
                  state_column("SYNC", {"syncStatus"}), state_column("HEALTH", {"healthStatus"}),
                  text_column("MESSAGE", {"healthMessage"})},
      .name = [](const Json& item) {
        return text_at(item, {"namespace"}) + "/" + text_at(item, {"name"});
      }};
}

Task<Result<std::pair<AppName, std::vector<Json>>>> rollouts_of(Server& server, AppName wanted) {
  const auto name = co_await find_app(server, std::move(wanted));
  if (!name) co_return std::unexpected(name.error());
  const auto app = co_await read_app(server, *name);
  if (!app) co_return std::unexpected(app.error());
  std::vector<Json> rollouts;
  for (const Json& resource : at(*app, {"resources"})) {
    if (at(resource, {"group"}) == "argoproj.io" && at(resource, {"kind"}) == "Rollout") {
      rollouts.push_back(resource);
    }
  }
  co_return std::pair{*name, std::move(rollouts)};
}

Task<Result<Found>> find_rollout(Server& server, const RolloutSettings& settings) {
  auto all = co_await rollouts_of(server, settings.wanted());
  if (!all) co_return std::unexpected(all.error());
  auto resource = one_of(all->second, rollout_sheet(), "rollout", settings.rollout);
  if (!resource) co_return std::unexpected(resource.error());
  co_return Found{.app = std::move(all->first), .resource = std::move(*resource)};
}

cli::Command list() {
  const auto settings = std::make_shared<AppSettings>();
  return list_command({.name = "rollout list",
                       .summary = "List the Rollouts of an Application",
                       .description = "Examples:\n  gitopsctl rollout list shop\n",
                       .operands = {settings->operand()},
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); }},
                      rollout_sheet(),
                      [settings](Server& server, std::int64_t limit) -> Task<Result<Items>> {
                        const auto all = co_await rollouts_of(server, settings->wanted());
                        if (!all) co_return std::unexpected(all.error());
                        co_return whole_list(Json(all->second), limit);
                      });
}

// Returns the progress of a Rollout by its object.
Json progress_of(const Found& found, const Json& live) {
  const Json& status = at(live, {"status"});
  const Json& canary = at(live, {"spec", "strategy", "canary"});
  Json progress{
      {"application", found.app.text()},
      {"namespace", at(live, {"metadata", "namespace"})},
      {"name", at(live, {"metadata", "name"})},
      {"strategy", canary.is_object() ? "Canary" : "BlueGreen"},
      {"phase", at(status, {"phase"})},
      {"message", at(status, {"message"})},
      {"abort", at(status, {"abort"}) == true},
      {"paused", at(status, {"controllerPause"}) == true || at(live, {"spec", "paused"}) == true},
      {"revision", at(live, {"metadata", "annotations", "rollout.argoproj.io/revision"})},
      {"weight", at(status, {"canary", "weights", "canary", "weight"})},
      {"replicas", at(live, {"spec", "replicas"})},
      {"updatedReplicas", at(status, {"updatedReplicas"})},
      {"readyReplicas", at(status, {"readyReplicas"})},
      {"availableReplicas", at(status, {"availableReplicas"})}};
  if (const Json& steps = at(canary, {"steps"}); steps.is_array()) {
    progress["steps"] = steps.size();
    progress["currentStep"] = at(status, {"currentStepIndex"});
  }
  Json images = Json::array();
  for (const Json& container : at(live, {"spec", "template", "spec", "containers"})) {
    images.push_back(at(container, {"image"}));
  }
  progress["images"] = std::move(images);
  return progress;
}

std::string progress_text(const Json& progress, const Look& look) {
  cli::Table facts;
  const auto fact = [&](std::string name, cli::Cell cell) {
    if (!cell.text.empty()) facts.add({{std::move(name)}, std::move(cell)});
  };
  const auto text = [&](std::string_view member) { return text_at(progress, {member}); };
  fact("Name:", {text("namespace") + "/" + text("name")});
  fact("Application:", {text("application")});
  fact("Strategy:", {text("strategy")});
  fact("Phase:", state_cell(text("phase")));
  fact("Message:", {text("message")});
  fact("Revision:", {text("revision")});
  if (!text("steps").empty()) fact("Step:", {text("currentStep") + " of " + text("steps")});
  if (!text("weight").empty()) fact("Weight:", {text("weight") + " % of the new version"});
  fact("Paused:", {at(progress, {"paused"}) == true ? "yes" : "no"});
  fact("Aborted:", {at(progress, {"abort"}) == true ? "yes" : ""});
  fact("Replicas:", {text("replicas") + " wanted, " + text("updatedReplicas") + " updated, " +
                     text("readyReplicas") + " ready"});
  for (const Json& image : at(progress, {"images"})) {
    fact("Image:", {image.is_string() ? cli::printable(image.get<std::string>()) : ""});
  }
  return facts.text(0, look.colour);
}

Task<Result<int>> show(Call& call, const RolloutSettings& settings) {
  const auto found = co_await find_rollout(call.server, settings);
  if (!found) co_return std::unexpected(found.error());
  Json variables = found->variables();
  for (const char* member : {"group", "version", "kind"}) {
    variables[member] = at(found->resource, {member});
  }
  const auto answer =
      co_await call.server.ask_runtime(found->app.runtime, kLiveState.text, std::move(variables));
  if (!answer) co_return std::unexpected(answer.error());
  const Json live = parse_json_object(string_at(*answer, {"resource", "liveState"}));
  if (!live.is_object()) co_return not_found("rollout", settings.rollout);
  const Json progress = progress_of(*found, live);
  const bool is_text = call.look.form == Form::table || call.look.form == Form::wide;
  Sheet sheet = rollout_sheet();
  sheet.schema = "gitopsctl/rollout/v1";
  call.console.out << (is_text ? progress_text(progress, call.look)
                               : render_item(sheet, progress, call.look));
  co_return cli::kDone;
}

cli::Command get() {
  const auto settings = std::make_shared<RolloutSettings>();
  return noun_command({.name = "rollout get",
                       .summary = "Show the progress of a Rollout",
                       .description = "Examples:\n"
                                      "  gitopsctl rollout get shop ui\n"
                                      "  gitopsctl rollout get shop web/ui -o json\n",
                       .operands = settings->operands(),
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
                       .work = [settings](Call& call) { return show(call, *settings); }});
}

std::string look_at(const Found& found) {
  return "gitopsctl rollout get " + found.app.text() + " " + found.text();
}

// Sends a change whose response says whether it was needed.
Task<Result<int>> change(Call& call, const Found& found, const Document& document,
                         std::string_view field, Json variables) {
  const auto answer =
      co_await call.server.ask_runtime(found.app.runtime, document.text, std::move(variables));
  const auto message = answer ? string_at(*answer, {field, "message"}) : std::string();
  co_return tell_outcome(call, answer,
                         "rollout " + found.text() + (message.empty() ? "" : ": " + message),
                         look_at(found));
}

Task<Result<int>> act(Call& call, const RolloutSettings& settings, std::string action) {
  const auto found = co_await find_rollout(call.server, settings);
  if (!found) co_return std::unexpected(found.error());
  Json variables = found->variables();
  variables["action"] = std::move(action);
  co_return co_await change(call, *found, kRolloutAction, "rolloutAction", std::move(variables));
}

cli::Command action(const std::string& word, std::string summary, std::string action) {
  const auto settings = std::make_shared<RolloutSettings>();
  return noun_command(
      {.name = "rollout " + word,
       .summary = std::move(summary),
       .description =
           kOutcomeHelp + std::string("Examples:\n  gitopsctl rollout ") + word + " shop ui\n",
       .operands = settings->operands(),
       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
       .has_form = false,
       .work = [settings,
                action = std::move(action)](Call& call) { return act(call, *settings, action); }});
}

struct PromoteSettings : RolloutSettings {
  bool full = false;
  bool skip_step = false;
  bool skip_all_steps = false;
};

cli::Command promote() {
  const auto settings = std::make_shared<PromoteSettings>();
  return noun_command(
      {.name = "rollout promote",
       .summary = "Let a Rollout go on from its pause",
       .description = kOutcomeHelp + std::string("Examples:\n"
                                                 "  gitopsctl rollout promote shop ui\n"
                                                 "  gitopsctl rollout promote shop ui --full\n"),
       .operands = settings->operands(),
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "full", .help = "Skip all steps, pauses and analysis"},
                        settings->full);
             reader.add({.flag = "skip-current-step", .help = "Skip the step at which it is"},
                        settings->skip_step);
             reader.add({.flag = "skip-all-steps", .help = "Skip the steps that are left"},
                        settings->skip_all_steps);
           },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const int flags =
             int{settings->full} + int{settings->skip_step} + int{settings->skip_all_steps};
         if (flags > 1) co_return usage_error("--full and the two of steps exclude each other");
         const char* const action = settings->full             ? "PROMOTE_FULL"
                                    : settings->skip_step      ? "SKIP_CURRENT_STEP"
                                    : settings->skip_all_steps ? "SKIP_ALL_STEPS"
                                                               : "PROMOTE";
         co_return co_await act(call, *settings, action);
       }});
}

struct RevisionSettings : RolloutSettings {
  std::int64_t revision = 0;
};

cli::Command rollback() {
  const auto settings = std::make_shared<RevisionSettings>();
  return noun_command(
      {.name = "rollout rollback",
       .summary = "Roll a Rollout back to an earlier revision",
       .description = kOutcomeHelp + std::string("Examples:\n"
                                                 "  gitopsctl rollout rollback shop ui\n"
                                                 "  gitopsctl rollout rollback shop ui "
                                                 "--revision 3\n"),
       .operands = settings->operands(),
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "revision", .help = "Revision; 0 means the one before"},
                        settings->revision, 0, 1'000'000'000);
           },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto found = co_await find_rollout(call.server, *settings);
         if (!found) co_return std::unexpected(found.error());
         Json variables = found->variables();
         variables["revision"] = settings->revision;
         const auto answer = co_await call.server.ask_runtime(
             found->app.runtime, kRolloutRollback.text, std::move(variables));
         const auto made =
             answer ? text_at(*answer, {"rolloutRollback", "newRevision"}) : std::string();
         co_return tell_outcome(call, answer,
                                "rollout " + found->text() + " goes back" +
                                    (made.empty() ? "" : ", as revision " + made),
                                look_at(*found));
       }});
}

struct ImageSettings : RolloutSettings {
  std::string container;
  std::string image;
};

cli::Command set_image() {
  const auto settings = std::make_shared<ImageSettings>();
  auto operands = settings->operands();
  operands.push_back(
      {.name = "CONTAINER", .help = "Its name; * means all", .target = &settings->container});
  operands.push_back({.name = "IMAGE", .help = "The new image", .target = &settings->image});
  return noun_command(
      {.name = "rollout set-image",
       .summary = "Set an image of a Rollout (administrators)",
       .description = "Git still has the old one: the next sync brings it back.\n\n" +
                      std::string(kOutcomeHelp) +
                      "Examples:\n  gitopsctl rollout set-image shop ui ui registry/ui:1.2\n",
       .operands = std::move(operands),
       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto found = co_await find_rollout(call.server, *settings);
         if (!found) co_return std::unexpected(found.error());
         Json variables = found->variables();
         variables["container"] = settings->container;
         variables["image"] = settings->image;
         co_return co_await change(call, *found, kSetRolloutImage, "setRolloutImage",
                                   std::move(variables));
       }});
}

}  // namespace

std::vector<cli::Command> rollout_commands() {
  return {list(),
          get(),
          promote(),
          action("pause", "Let a Rollout stay at its step", "PAUSE"),
          action("resume", "Let a paused Rollout go on", "RESUME"),
          action("abort", "Give all traffic back to the stable version", "ABORT"),
          action("retry", "Begin an aborted Rollout again", "RETRY"),
          action("restart", "Replace the pods of a Rollout one after the other", "RESTART"),
          rollback(),
          set_image()};
}

}  // namespace gitops::ctl
