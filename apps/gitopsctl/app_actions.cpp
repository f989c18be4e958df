#include "gitopsctl/app_actions.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/yaml_text.hpp"
#include "gitopsctl/app.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/line_diff.hpp"
#include "gitopsctl/log_lines.hpp"

namespace gitops::ctl {

namespace {

constexpr auto kReportTime = std::chrono::seconds(10);  // for an operation to be reported
constexpr auto kReportPeriod = std::chrono::seconds(1);

std::string look_at(const AppName& name) {
  return "gitopsctl app get " + name.text();
}

// Returns when the last operation of an Application began; nothing when it cannot be read.
Task<std::optional<std::string>> operation_start(Server& server, AppName name) {
  const auto app = co_await read_app(server, std::move(name));
  if (!app) co_return std::nullopt;
  co_return text_at(*app, {"operationState", "startedAt"});
}

// Waits until an operation that has begun is reported: `app wait` would take the state before it
// for its end.
// `before` is that of the operation before it.
Task<> wait_for_report(Call& call, AppName name, std::string before) {
  call.console.out << std::flush;
  const auto until = Clock::now() + kReportTime;
  while (Clock::now() < until && !call.server.ends_within(kReportPeriod)) {
    co_await sleep_for(kReportPeriod);
    const auto now = co_await operation_start(call.server, name);
    if (now && *now != before) co_return;
  }
  call.console.err << name.text()
                   << ": the operation is not reported yet; until then gitopsctl app wait sees "
                      "the state before it\n";
}

struct SyncSettings : AppSettings {
  bool prune = false;
  bool dry_run = false;
  std::string revision;
};

cli::Command sync() {
  const auto settings = std::make_shared<SyncSettings>();
  return noun_command(
      {.name = "app sync",
       .summary = "Start a sync of an Application",
       .description =
           kOutcomeHelp + std::string("Examples:\n"
                                      "  gitopsctl app sync shop\n"
                                      "  gitopsctl app sync shop --prune\n"
                                      "  gitopsctl app sync shop && gitopsctl app wait shop\n"),
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add(
                 {.flag = "prune", .help = "Delete resources that Git does not have any more"},
                 settings->prune);
             reader.add({.flag = "dry-run", .help = "Only check what a sync would do"},
                        settings->dry_run);
             reader.add({.flag = "revision", .help = "Revision to sync; empty means the target's"},
                        settings->revision);
           },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto name = co_await find_app(call.server, settings->wanted());
         if (!name) co_return std::unexpected(name.error());
         const auto before = co_await operation_start(call.server, *name);
         Json options{{"prune", settings->prune}, {"dryRun", settings->dry_run}};
         if (!settings->revision.empty()) options["revision"] = settings->revision;
         const auto answer = co_await call.server.ask_runtime(
             name->runtime, kSync.text,
             Json{{"name", name->name}, {"namespace", name->ns}, {"options", std::move(options)}});
         const int code = tell_outcome(call, answer,
                                       std::string(settings->dry_run ? "a dry run" : "the sync") +
                                           " of " + name->text() + " has begun",
                                       look_at(*name));
         if (answer && before && !settings->dry_run) {
           co_await wait_for_report(call, *name, *before);
         }
         co_return code;
       }});
}

struct RefreshSettings : AppSettings {
  bool hard = false;
};

cli::Command refresh() {
  const auto settings = std::make_shared<RefreshSettings>();
  return noun_command(
      {.name = "app refresh",
       .summary = "Let Argo CD compare an Application with Git again",
       .description = kOutcomeHelp + std::string("Examples:\n"
                                                 "  gitopsctl app refresh shop\n"
                                                 "  gitopsctl app refresh shop --hard\n"),
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "hard", .help = "Render the manifests again, too"},
                        settings->hard);
           },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto name = co_await find_app(call.server, settings->wanted());
         if (!name) co_return std::unexpected(name.error());
         const auto answer = co_await call.server.ask_runtime(
             name->runtime, kRefresh.text,
             Json{{"name", name->name},
                  {"namespace", name->ns},
                  {"options", {{"refresh", settings->hard ? "hard" : "normal"}}}});
         co_return tell_outcome(call, answer, name->text() + " is compared with Git again",
                                look_at(*name));
       }});
}

struct RollbackSettings : AppSettings {
  std::string id;
  bool prune = false;
  bool dry_run = false;
};

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return {};
  return number;
}

cli::Command rollback() {
  const auto settings = std::make_shared<RollbackSettings>();
  return noun_command(
      {.name = "app rollback",
       .summary = "Roll an Application back to an entry of its history",
       .description = "Needs auto-sync to be off.\n\n" + std::string(kOutcomeHelp) +
                      "Examples:\n"
                      "  gitopsctl app history shop\n"
                      "  gitopsctl app rollback shop 3\n",
       .operands = {settings->operand(),
                    {.name = "ID", .help = "As in gitopsctl app history", .target = &settings->id}},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "prune", .help = "Delete resources that the entry does not have"},
                        settings->prune);
             reader.add({.flag = "dry-run", .help = "Only check what it would do"},
                        settings->dry_run);
           },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto id = number_of(settings->id);
         if (!id) co_return usage_error("ID is a number, as gitopsctl app history shows it");
         const auto name = co_await find_app(call.server, settings->wanted());
         if (!name) co_return std::unexpected(name.error());
         const auto before = co_await operation_start(call.server, *name);
         const auto answer = co_await call.server.ask_runtime(name->runtime, kRollback.text,
                                                              Json{{"name", name->name},
                                                                   {"namespace", name->ns},
                                                                   {"id", *id},
                                                                   {"dryRun", settings->dry_run},
                                                                   {"prune", settings->prune}});
         const int code = tell_outcome(
             call, answer, "the rollback of " + name->text() + " to " + settings->id + " has begun",
             look_at(*name));
         if (answer && before && !settings->dry_run) {
           co_await wait_for_report(call, *name, *before);
         }
         co_return code;
       }});
}

cli::Command terminate() {
  const auto settings = std::make_shared<AppSettings>();
  return noun_command(
      {.name = "app terminate",
       .summary = "End the operation of an Application that runs",
       .description = kOutcomeHelp + std::string("Examples:\n  gitopsctl app terminate shop\n"),
       .operands = {settings->operand()},
       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto name = co_await find_app(call.server, settings->wanted());
         if (!name) co_return std::unexpected(name.error());
         const auto answer = co_await call.server.ask_runtime(
             name->runtime, kTerminate.text, Json{{"name", name->name}, {"namespace", name->ns}});
         const bool was_idle =
             answer && at(*answer, {"terminateApplicationOperation", "terminated"}) == false;
         co_return tell_outcome(call, answer,
                                was_idle ? "no operation of " + name->text() + " ran"
                                         : "the operation of " + name->text() + " is being ended",
                                look_at(*name));
       }});
}

struct AppLogSettings : AppSettings {
  LogSettings log;
};

Task<Result<int>> print_logs(Call& call, const AppLogSettings& settings) {
  const auto name = co_await find_app(call.server, settings.wanted());
  if (!name) co_return std::unexpected(name.error());
  co_return co_await print_log(call, name->runtime,
                               {{"applicationName", name->name}, {"appNamespace", name->ns}},
                               settings.log);
}

cli::Command logs() {
  const auto settings = std::make_shared<AppLogSettings>();
  return noun_command(
      {.name = "app logs",
       .summary = "Print the logs of the pods of an Application",
       .description =
           "Ends with 3 when the logs of a pod could not be read; the others are printed.\n\n"
           "Examples:\n"
           "  gitopsctl app logs shop\n"
           "  gitopsctl app logs shop --follow --pod ui-7c9\n",
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             settings->log.add_to(reader, "Only lines with this text; with ! those without");
           },
       .has_form = false,
       .is_endless = [settings] { return settings->log.follow; },
       .work = [settings](Call& call) { return print_logs(call, *settings); }});
}

// Returns the difference of a resource between the cluster and Git, with its head.
std::string resource_diff(const Json& resource, const Json& states) {
  const auto yaml = [&](const char* member) {
    const auto text = string_at(states, {"resource", member});
    if (text.empty() || text == "null") return std::string();
    auto converted = json_to_yaml(text);
    return converted ? std::move(*converted) : text;
  };
  const auto lines = unified_diff(yaml("normalizedLiveState"), yaml("predictedLiveState"));
  if (lines.empty()) return {};
  const std::string name = text_at(resource, {"kind"}) + " " + text_at(resource, {"namespace"}) +
                           "/" + text_at(resource, {"name"});
  std::string out = "--- live " + name + "\n+++ git  " + name + '\n';
  for (std::size_t begin = 0; begin < lines.size();) {
    const auto end = lines.find('\n', begin);
    out += cli::printable(std::string_view(lines).substr(begin, end - begin)) + '\n';
    begin = end + 1;
  }
  return out;
}

Task<Result<int>> print_diff(Call& call, const AppSettings& settings) {
  const auto name = co_await find_app(call.server, settings.wanted());
  if (!name) co_return std::unexpected(name.error());
  const auto app = co_await read_app(call.server, *name);
  if (!app) co_return std::unexpected(app.error());
  bool is_whole = at(*app, {"resources"}).is_array();
  if (!is_whole) call.console.err << "the resources of " << name->text() << " are not known\n";
  for (const Json& resource : at(*app, {"resources"})) {
    if (at(resource, {"syncStatus"}) == "SYNCED" || at(resource, {"hook"}) == true) continue;
    const auto states =
        co_await call.server.ask_runtime(name->runtime, kResource.text,
                                         Json{{"app", name->name},
                                              {"appNamespace", name->ns},
                                              {"group", at(resource, {"group"})},
                                              {"version", at(resource, {"version"})},
                                              {"kind", at(resource, {"kind"})},
                                              {"namespace", at(resource, {"namespace"})},
                                              {"name", at(resource, {"name"})}});
    if (!states) co_return std::unexpected(states.error());
    // Argo CD tells nothing of an object that it does not manage any more, or has not compared yet.
    const bool is_told = !string_at(*states, {"resource", "normalizedLiveState"}).empty() ||
                         !string_at(*states, {"resource", "predictedLiveState"}).empty();
    if (!is_told) {
      call.console.err << text_at(resource, {"kind"}) << " " << text_at(resource, {"namespace"})
                       << "/" << text_at(resource, {"name"})
                       << " is out of sync, but Argo CD does not tell how\n";
      is_whole = false;
      continue;
    }
    call.console.out << resource_diff(resource, *states);
  }
  co_return is_whole ? cli::kDone : cli::kNotKnown;
}

cli::Command diff() {
  const auto settings = std::make_shared<AppSettings>();
  return noun_command({.name = "app diff",
                       .summary = "Show what a sync would change in the cluster",
                       .description = "Compares the resources that are out of sync: - is in the "
                                      "cluster, + in Git. Ends with 3\n"
                                      "when a difference is not known; the others are printed.\n\n"
                                      "Examples:\n  gitopsctl app diff shop\n",
                       .operands = {settings->operand()},
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
                       .has_form = false,
                       .work = [settings](Call& call) { return print_diff(call, *settings); }});
}

}  // namespace

std::vector<cli::Command> app_action_commands() {
  return {sync(), refresh(), rollback(), terminate(), logs(), diff()};
}

}  // namespace gitops::ctl
