#include "gitopsctl/workflow.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/log_lines.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

Sheet workflow_sheet() {
  return {.schema = "gitopsctl/workflows/v1",
          .columns = {text_column("RUNTIME", {"metadata", "runtime"}),
                      text_column("NAMESPACE", {"metadata", "namespace"}),
                      text_column("NAME", {"metadata", "name"}),
                      state_column("PHASE", {"status", "phase"}),
                      text_column("PROGRESS", {"status", "progress"}),
                      age_column("STARTED", {"status", "startedAt"}),
                      text_column("TEMPLATE", {"spec", "workflowTemplateRef", "name"}),
                      text_column("MESSAGE", {"status", "message"}, true),
                      text_column("UID", {"metadata", "uid"}, true)},
          .name = [](const Json& item) {
            return text_at(item, {"metadata", "runtime"}) + "/" +
                   text_at(item, {"metadata", "namespace"}) + "/" +
                   text_at(item, {"metadata", "name"});
          }};
}

struct Filter {
  std::string runtime;
  std::string ns;
  void add_to(ConfigReader& reader) {
    add_runtime_flag(reader, runtime, "Only those of this runtime");
    reader.add({.flag = "namespace", .help = "Only those of this namespace", .letter = 'n'}, ns);
  }
};

Task<Result<Items>> read(Server& server, Filter filter, std::vector<std::string> phases,
                         std::int64_t limit) {
  Json filters{{"runtime", filter.runtime}, {"namespace", filter.ns}};
  if (!phases.empty()) filters["statuses"] = phases;
  co_return co_await read_slices(server, kWorkflows, "workflows",
                                 Json{{"filters", std::move(filters)}}, limit);
}

struct NameSettings : Filter {
  std::string workflow;
  [[nodiscard]] cli::Operand operand() {
    return {.name = "WORKFLOW",
            .help = "NAME, NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME",
            .target = &workflow};
  }
};

Task<Result<Json>> find(Server& server, const NameSettings& settings) {
  const auto items = co_await read(server, settings, {}, 0);
  if (!items) co_return std::unexpected(items.error());
  co_return one_of(items->all, workflow_sheet(), "workflow", settings.workflow);
}

cli::Command list() {
  struct Settings : Filter {
    std::vector<std::string> phases;
  };
  const auto settings = std::make_shared<Settings>();
  return list_command(
      {.name = "workflow list",
       .summary = "List Workflows",
       .description = "Examples:\n"
                      "  gitopsctl workflow list\n"
                      "  gitopsctl workflow list --runtime prod --phase Failed,Error\n",
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "phase", .help = "Only those in one of these phases"},
                        settings->phases);
           }},
      workflow_sheet(), [settings](Server& server, std::int64_t limit) {
        return read(server, *settings, settings->phases, limit);
      });
}

std::string workflow_text(const Json& workflow, const Look& look) {
  cli::Table facts;
  const auto fact = [&](std::string name, cli::Cell cell) {
    if (!cell.text.empty()) facts.add({{std::move(name)}, std::move(cell)});
  };
  fact("Name:", {workflow_sheet().name(workflow)});
  fact("Template:", {text_at(workflow, {"spec", "workflowTemplateRef", "name"})});
  fact("Phase:", state_cell(text_at(workflow, {"status", "phase"})));
  fact("Progress:", {text_at(workflow, {"status", "progress"})});
  fact("Message:", {text_at(workflow, {"status", "message"})});
  fact("Started:", {text_at(workflow, {"status", "startedAt"})});
  fact("Finished:", {text_at(workflow, {"status", "finishedAt"})});
  std::string out = facts.text(0, look.colour);
  cli::Table nodes;
  nodes.add({{"NODE"}, {"TYPE"}, {"PHASE"}, {"MESSAGE"}});
  const Json& all = at(workflow, {"status", "nodes"});
  for (const Json& node : all) {
    auto name = text_at(node, {"displayName"});
    if (name.empty()) name = text_at(node, {"name"});
    nodes.add({{name},
               {text_at(node, {"type"})},
               state_cell(text_at(node, {"phase"})),
               {text_at(node, {"message"})}});
  }
  if (!all.empty()) out += '\n' + nodes.text(0, look.colour);
  return out;
}

cli::Command get() {
  const auto settings = std::make_shared<NameSettings>();
  return noun_command({.name = "workflow get",
                       .summary = "Show a Workflow with its steps",
                       .description = "Examples:\n  gitopsctl workflow get build-7x2kq\n",
                       .operands = {settings->operand()},
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
                       .work = [settings](Call& call) -> Task<Result<int>> {
                         const auto found = co_await find(call.server, *settings);
                         if (!found) co_return std::unexpected(found.error());
                         const auto data = co_await call.server.ask(
                             kWorkflow.text, Json{{"uid", at(*found, {"metadata", "uid"})}});
                         if (!data) co_return std::unexpected(data.error());
                         const Json& workflow = at(*data, {"workflow"});
                         if (!workflow.is_object())
                           co_return not_found("workflow", settings->workflow);
                         const bool is_text =
                             call.look.form == Form::table || call.look.form == Form::wide;
                         Sheet sheet = workflow_sheet();
                         sheet.schema = "gitopsctl/workflow/v1";
                         call.console.out << (is_text ? workflow_text(workflow, call.look)
                                                      : render_item(sheet, workflow, call.look));
                         co_return cli::kDone;
                       }});
}

cli::Command logs() {
  struct Settings : NameSettings {
    LogSettings log;
  };
  const auto settings = std::make_shared<Settings>();
  return noun_command(
      {.name = "workflow logs",
       .summary = "Print the logs of the pods of a Workflow",
       .description = "Examples:\n"
                      "  gitopsctl workflow logs build-7x2kq\n"
                      "  gitopsctl workflow logs build-7x2kq --follow\n",
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             settings->log.add_to(reader, "Only lines that match this regular expression");
           },
       .has_form = false,
       .is_endless = [settings] { return settings->log.follow; },
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto found = co_await find(call.server, *settings);
         if (!found) co_return std::unexpected(found.error());
         const auto name = string_at(*found, {"metadata", "name"});
         const auto ns = string_at(*found, {"metadata", "namespace"});
         co_return co_await print_log(call, string_at(*found, {"metadata", "runtime"}),
                                      {{"workflowName", name}, {"namespace", ns}}, settings->log);
       }});
}

struct ActionSettings : NameSettings {
  std::string message;
  bool restart = false;
  bool yes = false;
};

// One of the requests of an app-proxy about a Workflow.
struct WorkflowAction {
  std::string word;
  std::string summary;
  const Document& document;
  std::string done;                                               // "is being ended"
  std::function<void(ConfigReader&, ActionSettings&)> bind = {};  // of its own settings
  std::string effect = {};                                        // not empty: needs --yes
};

Task<Result<int>> act(Call& call, const WorkflowAction& action, const ActionSettings& settings) {
  const auto found = co_await find(call.server, settings);
  if (!found) co_return std::unexpected(found.error());
  const auto name = workflow_sheet().name(*found);
  if (!action.effect.empty() && !settings.yes) {
    co_return needs_yes("this " + action.effect + " Workflow " + name);
  }
  Json variables{{"namespace", at(*found, {"metadata", "namespace"})},
                 {"name", at(*found, {"metadata", "name"})}};
  if (!settings.message.empty()) variables["message"] = settings.message;
  if (settings.restart) variables["restart"] = true;
  const auto answer = co_await call.server.ask_runtime(string_at(*found, {"metadata", "runtime"}),
                                                       action.document.text, std::move(variables));
  auto done = "Workflow " + name + " " + action.done;
  if (answer) {
    const auto made = text_at(*answer, {"resubmitWorkflow", "newWorkflowName"});
    if (!made.empty()) done += " as " + made;
  }
  co_return tell_outcome(call, answer, done, "gitopsctl workflow get " + name);
}

cli::Command action(WorkflowAction made) {
  const auto settings = std::make_shared<ActionSettings>();
  const auto shared = std::make_shared<WorkflowAction>(std::move(made));
  return noun_command(
      {.name = "workflow " + shared->word,
       .summary = shared->summary,
       .description = kOutcomeHelp + std::string("Examples:\n  gitopsctl workflow ") +
                      shared->word + " build-7x2kq" + (shared->effect.empty() ? "" : " --yes") +
                      "\n",
       .operands = {settings->operand()},
       .bind =
           [settings, shared](ConfigReader& reader) {
             settings->add_to(reader);
             if (shared->bind) shared->bind(reader, *settings);
             if (!shared->effect.empty()) add_yes(reader, settings->yes);
           },
       .has_form = false,
       .work = [settings, shared](Call& call) { return act(call, *shared, *settings); }});
}

// Whether a text begins with NAME=.
bool begins_parameter(std::string_view text) {
  constexpr std::string_view kNameCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const auto name = trimmed(text.substr(0, equals));
  return !name.empty() && name.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

// Splits a list of parameters. A value may have commas: one ends it only where NAME= follows, and
// one with a backslash before it never does.
std::vector<std::string> split_parameters(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  parts.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' && begins_parameter(text.substr(i + 1))) {
      parts.emplace_back();
      continue;
    }
    if (text.substr(i).starts_with("\\,")) ++i;
    parts.back() += text[i];
  }
  return parts;
}

// Parameters of the form NAME=VALUE; nothing when one is not.
std::optional<Json> parameters_of(std::string_view texts) {
  Json all = Json::array();
  for (const auto& text : split_parameters(texts)) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) return {};
    const std::string name(trimmed(std::string_view(text).substr(0, equals)));
    if (name.empty()) return {};
    all.push_back({{"name", name}, {"value", text.substr(equals + 1)}});
  }
  return all;
}

cli::Command submit() {
  struct Settings {
    std::string runtime;
    std::string workflow_template;
    Json parameters = Json::array();
  };
  const auto settings = std::make_shared<Settings>();
  return noun_command(
      {.name = "workflow submit",
       .summary = "Start a Workflow from a WorkflowTemplate",
       .description =
           kOutcomeHelp +
           std::string(
               "A value may have commas: one ends it only where NAME= follows, and \\, never "
               "does.\n\n"
               "Examples:\n"
               "  gitopsctl workflow submit prod ci/build --parameter branch=main,hosts=a,b\n"
               "  gitopsctl workflow submit prod ci/build --parameter a=1 --parameter b=2\n"),
       .operands = {{.name = "RUNTIME",
                     .help = "Name of the runtime",
                     .target = &settings->runtime},
                    {.name = "TEMPLATE",
                     .help = "NAMESPACE/NAME of the WorkflowTemplate",
                     .target = &settings->workflow_template}},
       .bind =
           [settings](ConfigReader& reader) {
             reader.add({.flag = "parameter",
                         .help = "Parameters as NAME=VALUE,NAME=VALUE; may be given several times",
                         .repeats = true},
                        "TEXT", "", [settings](const std::string& text) -> std::string {
                          const auto more = parameters_of(text);
                          if (!more) return "expected NAME=VALUE";
                          for (const Json& one : *more) settings->parameters.push_back(one);
                          return {};
                        });
           },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto slash = settings->workflow_template.find('/');
         if (slash == std::string::npos) co_return usage_error("TEMPLATE is NAMESPACE/NAME");
         const auto answer = co_await call.server.ask_runtime(
             settings->runtime, kSubmitWorkflow.text,
             Json{{"namespace", settings->workflow_template.substr(0, slash)},
                  {"template", settings->workflow_template.substr(slash + 1)},
                  {"parameters", settings->parameters}});
         const auto name =
             answer ? text_at(*answer, {"createWorkflowFromWorkflowTemplate", "newWorkflowName"})
                    : std::string();
         const auto look = "gitopsctl workflow list --runtime " + settings->runtime;
         if (answer && name.empty()) {
           co_return tell_outcome(call, fail(ErrorCode::protocol, "the answer names no Workflow"),
                                  "", look);
         }
         co_return tell_outcome(call, answer, "Workflow " + name + " has begun", look);
       }});
}

}  // namespace

std::vector<cli::Command> workflow_commands() {
  return {list(),
          get(),
          logs(),
          submit(),
          action({.word = "stop",
                  .summary = "End a Workflow, its exit handlers run",
                  .document = kStopWorkflow,
                  .done = "is being stopped",
                  .bind =
                      [](ConfigReader& reader, ActionSettings& settings) {
                        reader.add({.flag = "message", .help = "Why, for its status"},
                                   settings.message);
                      }}),
          action({.word = "terminate",
                  .summary = "End a Workflow at once, without exit handlers",
                  .document = kTerminateWorkflow,
                  .done = "is being ended"}),
          action({.word = "suspend",
                  .summary = "Let a Workflow begin no further steps",
                  .document = kSuspendWorkflow,
                  .done = "is suspended"}),
          action({.word = "resume",
                  .summary = "Let a suspended Workflow go on",
                  .document = kResumeWorkflow,
                  .done = "goes on"}),
          action({.word = "retry",
                  .summary = "Run the failed steps of a Workflow again",
                  .document = kRetryWorkflow,
                  .done = "runs again",
                  .bind =
                      [](ConfigReader& reader, ActionSettings& settings) {
                        reader.add({.flag = "restart-successful",
                                    .help = "Run the steps that succeeded, too"},
                                   settings.restart);
                      }}),
          action({.word = "resubmit",
                  .summary = "Start a Workflow again as a new one",
                  .document = kResubmitWorkflow,
                  .done = "is submitted again"}),
          action({.word = "delete",
                  .summary = "Delete a Workflow from the cluster",
                  .document = kDeleteWorkflow,
                  .done = "is deleted",
                  .effect = "deletes"})};
}

}  // namespace gitops::ctl
