#include "gitopsctl/app.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/failure.hpp"

namespace gitops::ctl {

namespace {

constexpr std::size_t kShortRevision = 7;
constexpr auto kWaitPeriod = std::chrono::seconds(2);
constexpr std::size_t kMaxNodes = 1'000;  // of a tree

AppName name_of(const Json& metadata) {
  return {.runtime = string_at(metadata, {"runtime"}),
          .ns = string_at(metadata, {"namespace"}),
          .name = string_at(metadata, {"name"})};
}

std::string revision_at(const Json& item, const Path& path) {
  return short_revision(text_at(item, path));
}

std::string presence_of(const Json& app) {
  const auto presence = text_at(app, {"presence"});
  return presence == "LIVE" ? std::string() : presence;
}

// A column with a state. That of an Application which is not reported any more is not known now.
Column current_state_column(std::string header, std::string_view member) {
  return {.header = std::move(header), .cell = [member](const Json& app, WallTime /*now*/) {
            const bool is_known = text_at(app, {"presence"}) != "STALE";
            return state_cell(is_known ? text_at(app, {member}) : std::string());
          }};
}

Sheet app_sheet() {
  return {
      .schema = "gitopsctl/apps/v1",
      .columns =
          {text_column("RUNTIME", {"metadata", "runtime"}),
           text_column("NAMESPACE", {"metadata", "namespace"}),
           text_column("NAME", {"metadata", "name"}), current_state_column("SYNC", "syncStatus"),
           current_state_column("HEALTH", "healthStatus"),
           own_column("REVISION", [](const Json& app) { return revision_at(app, {"revision"}); }),
           age_column("CHANGED", {"updatedAt"}),
           own_column(
               "OPERATION",
               [](const Json& app) { return text_at(app, {"operationState", "phase"}); }, true),
           text_column("POLICY", {"syncPolicy"}, true), text_column("PROJECT", {"project"}, true),
           text_column("DESTINATION", {"destination", "server"}, true),
           text_column("REPOSITORY", {"repoURL"}, true), own_column("PRESENCE", presence_of, true)},
      .name = [](const Json& app) { return name_of(at(app, {"metadata"})).text(); }};
}

struct ListSettings {
  std::string runtime;
  std::string ns;
  std::vector<std::string> labels;
  std::vector<std::string> health;
  std::vector<std::string> sync;
};

// Returns a state as users write it, "OutOfSync" or "out-of-sync", in the word of the API.
std::string state_word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool begins_word = is_upper && !out.empty() && text != "UNKNOWN" &&
                             std::ranges::any_of(text, [](char l) { return l >= 'a' && l <= 'z'; });
    if (begins_word && out.back() != '_') out += '_';
    if (c == '-' || c == '_') {
      out += '_';
    } else {
      out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return out;
}

Json filters_of(const ListSettings& settings) {
  Json filters{{"runtime", settings.runtime}, {"namespace", settings.ns}};
  const auto words = [](const std::vector<std::string>& texts) {
    Json list = Json::array();
    for (const auto& text : texts) list.push_back(state_word(text));
    return list;
  };
  if (!settings.labels.empty()) filters["labels"] = settings.labels;
  if (!settings.health.empty()) filters["healthStatuses"] = words(settings.health);
  if (!settings.sync.empty()) filters["statuses"] = words(settings.sync);
  return filters;
}

// Names the runtimes that have not been heard of lately: their Applications may be old.
Task<> tell_silent_runtimes(Call& call, const std::vector<Json>& apps) {
  const auto runtimes = co_await read_slices(call.server, kRuntimes, "runtimes", Json::object(), 0);
  if (!runtimes) co_return;  // the list stands without
  std::vector<std::string> silent;
  for (const Json& runtime : runtimes->all) {
    if (at(runtime, {"available"}) != false) continue;
    const auto name = text_at(runtime, {"metadata", "name"});
    const bool is_shown = std::ranges::any_of(
        apps, [&](const Json& app) { return text_at(app, {"metadata", "runtime"}) == name; });
    if (is_shown) silent.push_back(name);
  }
  if (silent.empty()) co_return;
  call.console.err << "silent, so that what is known of their Applications may be old: "
                   << join(silent, ", ") << '\n';
}

cli::Command list() {
  const auto settings = std::make_shared<ListSettings>();
  return list_command(
      {.name = "app list",
       .summary = "List Applications",
       .description = "Those that you may see, of all runtimes. -o name prints them as other "
                      "commands take them.\n\n"
                      "Examples:\n"
                      "  gitopsctl app list\n"
                      "  gitopsctl app list --runtime prod --health Degraded,Missing\n"
                      "  gitopsctl app list --sync OutOfSync -o name\n"
                      "  gitopsctl app list -l team=shop --watch\n",
       .bind =
           [settings](ConfigReader& reader) {
             add_runtime_flag(reader, settings->runtime, "Only those of this runtime");
             reader.add(
                 {.flag = "namespace", .help = "Only those in this namespace", .letter = 'n'},
                 settings->ns);
             reader.add({.flag = "selector",
                         .help = "Only those with these labels, as key=value",
                         .letter = 'l'},
                        settings->labels);
             reader.add({.flag = "health", .help = "Only those in one of these health states"},
                        settings->health);
             reader.add({.flag = "sync", .help = "Only those in one of these sync states"},
                        settings->sync);
           }},
      app_sheet(),
      [settings](Server& server, std::int64_t limit) {
        return read_slices(server, kApplications, "applications",
                           Json{{"filters", filters_of(*settings)}}, limit);
      },
      tell_silent_runtimes);
}

std::string source_text(const Json& app) {
  auto text = text_at(app, {"specSource", "repoURL"});
  for (const auto* part : {"path", "chart"}) {
    if (const auto more = text_at(app, {"specSource", part}); !more.empty()) text += ' ' + more;
  }
  const auto target = text_at(app, {"specSource", "targetRevision"});
  return target.empty() ? text : text + " (" + target + ")";
}

std::string resource_name(const Json& resource) {
  const auto ns = text_at(resource, {"namespace"});
  return (ns.empty() ? "" : ns + "/") + text_at(resource, {"name"});
}

std::string resources_text(const Json& app, const Look& look) {
  cli::Table table;
  table.add({{"KIND"}, {"NAME"}, {"SYNC"}, {"HEALTH"}});
  for (const Json& resource : at(app, {"resources"})) {
    const auto health = text_at(resource, {"healthStatus"});
    table.add({{text_at(resource, {"kind"})},
               {resource_name(resource)},
               state_cell(text_at(resource, {"syncStatus"})),
               health.empty() ? cli::Cell{"-"} : state_cell(health)});
  }
  return table.text(0, look.colour, look.width);
}

std::string app_text(const Json& app, const Look& look) {
  cli::Table facts;
  const auto fact = [&](std::string name, cli::Cell cell) {
    if (!cell.text.empty()) facts.add({{std::move(name)}, std::move(cell)});
  };
  const auto said = [](std::string text, const std::string& more) {
    return more.empty() ? text : text + ": " + more;
  };
  fact("Name:", {text_at(app, {"metadata", "name"})});
  fact("Namespace:", {text_at(app, {"metadata", "namespace"})});
  fact("Runtime:", {text_at(app, {"metadata", "runtime"})});
  fact("Project:", {text_at(app, {"project"})});
  fact("Source:", {source_text(app)});
  fact("Destination:", {text_at(app, {"destination", "server"}) + " " +
                        text_at(app, {"destination", "namespace"})});
  fact("Policy:", {text_at(app, {"syncPolicy"})});
  fact("Sync:", state_cell(text_at(app, {"syncStatus"})));
  auto health = state_cell(text_at(app, {"healthStatus"}));
  health.text = said(health.text, text_at(app, {"healthMessage"}));
  fact("Health:", health);
  fact("Revision:", {text_at(app, {"revision"})});
  const auto author = text_at(app, {"status", "commitAuthor"});
  fact("Commit:",
       {text_at(app, {"status", "commitMessage"}) + (author.empty() ? "" : " (" + author + ")")});
  fact("Operation:", {said(text_at(app, {"operationState", "phase"}),
                           text_at(app, {"operationState", "message"}))});
  fact("Changed:", {age(text_at(app, {"updatedAt"}), look.now) + " ago"});
  fact("Presence:", {presence_of(app)});
  // Messages are not cut to the width of the terminal: they say what is wrong.
  std::string out = facts.text(0, look.colour);
  for (const Json& error : at(app, {"errors"})) {
    out += cli::painted(text_at(error, {"level"}) + ": ", cli::Tone::bad, look.colour) +
           text_at(error, {"message"}) + '\n';
  }
  if (at(app, {"resources"}).is_array()) out += '\n' + resources_text(app, look);
  return out;
}

// Returns whether a runtime has not been heard of lately, so that its Applications may be old.
Task<Result<bool>> is_silent(Server& server, std::string runtime) {
  const auto data = co_await server.ask(kRuntimeAddress.text, Json{{"name", std::move(runtime)}});
  if (!data) co_return std::unexpected(data.error());
  co_return at(*data, {"runtime", "available"}) == false;
}

cli::Command get() {
  const auto settings = std::make_shared<AppSettings>();
  return noun_command({.name = "app get",
                       .summary = "Show one Application with its resources",
                       .description = "Examples:\n"
                                      "  gitopsctl app get shop\n"
                                      "  gitopsctl app get prod/argocd/shop -o yaml\n",
                       .operands = {settings->operand()},
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
                       .work = [settings](Call& call) -> Task<Result<int>> {
                         const auto name = co_await find_app(call.server, settings->wanted());
                         if (!name) co_return std::unexpected(name.error());
                         const auto app = co_await read_app(call.server, *name);
                         if (!app) co_return std::unexpected(app.error());
                         const auto silent = co_await is_silent(call.server, name->runtime);
                         if (silent && *silent) {
                           call.console.err << "runtime " << cli::printable(name->runtime)
                                            << " is silent, so what is known may be old\n";
                         }
                         const bool is_text =
                             call.look.form == Form::table || call.look.form == Form::wide;
                         call.console.out << (is_text ? app_text(*app, call.look)
                                                      : render_item(app_sheet(), *app, call.look));
                         co_return cli::kDone;
                       }});
}

// Whether a resource is one of the child Applications, which have rows of their own. Others may not be there yet.
bool is_among(const Json& children, const Json& resource) {
  if (text_at(resource, {"kind"}) != "Application") return false;
  return std::ranges::any_of(children, [&](const Json& child) {
    return at(child, {"name"}) == at(resource, {"name"}) &&
           at(child, {"namespace"}) == at(resource, {"namespace"});
  });
}

// Adds the rows of an Application and, below them, of its children.
Task<Result<void>> add_tree(Call& call, const AppName& name, const std::string& indent,
                            std::set<std::string>& seen, cli::Table& table) {
  if (!seen.insert(name.text()).second || seen.size() > kMaxNodes) co_return Result<void>();
  const auto app = co_await read_app(call.server, name);
  if (!app && indent.empty()) co_return std::unexpected(app.error());
  if (!app && app.error().code != ErrorCode::not_found) co_return std::unexpected(app.error());
  const auto row = [&](const std::string& text, const std::string& sync,
                       const std::string& health) {
    table.add({{text},
               sync.empty() ? cli::Cell{"-"} : state_cell(sync),
               health.empty() ? cli::Cell{"-"} : state_cell(health)});
  };
  const std::string title = "Application " + cli::printable(name.ns + "/" + name.name);
  if (!app) {
    row(indent + title, "", "MISSING");
    co_return Result<void>();
  }
  row(indent + title, text_at(*app, {"syncStatus"}), text_at(*app, {"healthStatus"}));
  const Json& children = at(*app, {"appsRelations", "children"});
  for (const Json& resource : at(*app, {"resources"})) {
    if (is_among(children, resource)) continue;
    row(indent + "  " + text_at(resource, {"kind"}) + " " + resource_name(resource),
        text_at(resource, {"syncStatus"}), text_at(resource, {"healthStatus"}));
  }
  for (const Json& child : children) {
    const auto added = co_await add_tree(call, name_of(child), indent + "  ", seen, table);
    if (!added) co_return added;
  }
  co_return Result<void>();
}

cli::Command tree() {
  const auto settings = std::make_shared<AppSettings>();
  return noun_command({.name = "app tree",
                       .summary = "Show an Application, its resources and its child Applications",
                       .description = "Examples:\n  gitopsctl app tree shop\n",
                       .operands = {settings->operand()},
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
                       .has_form = false,
                       .work = [settings](Call& call) -> Task<Result<int>> {
                         const auto name = co_await find_app(call.server, settings->wanted());
                         if (!name) co_return std::unexpected(name.error());
                         cli::Table table;
                         table.add({{"NAME"}, {"SYNC"}, {"HEALTH"}});
                         std::set<std::string> seen;
                         const auto added = co_await add_tree(call, *name, "", seen, table);
                         if (!added) co_return std::unexpected(added.error());
                         call.console.out << table.text(0, call.look.colour, call.look.width);
                         if (seen.size() > kMaxNodes) {
                           call.console.err << kMaxNodes << " Applications are shown; those beyond "
                                            << "are left out\n";
                         }
                         co_return cli::kDone;
                       }});
}

Sheet history_sheet() {
  return {.schema = "gitopsctl/history/v1",
          .columns = {text_column("ID", {"historyId"}),
                      own_column("REVISION",
                                 [](const Json& item) {
                                   return revision_at(item, {"syncOperationRevision"});
                                 }),
                      state_column("RESULT", {"operationState", "phase"}),
                      state_column("HEALTH", {"application", "status", "healthStatus"}),
                      age_column("DEPLOYED", {"application", "status", "syncStartedAt"}),
                      text_column("AUTHOR", {"application", "status", "commitAuthor"}),
                      text_column("MESSAGE", {"application", "status", "commitMessage"})},
          .name = [](const Json& item) { return text_at(item, {"historyId"}); }};
}

cli::Command history() {
  const auto settings = std::make_shared<AppSettings>();
  return list_command({.name = "app history",
                       .summary = "List the deployments of an Application, the newest first",
                       .description = "The ID is what gitopsctl app rollback takes.\n\n"
                                      "Examples:\n"
                                      "  gitopsctl app history shop\n"
                                      "  gitopsctl app history shop --limit 5 -o json\n",
                       .operands = {settings->operand()},
                       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); }},
                      history_sheet(),
                      [settings](Server& server, std::int64_t limit) -> Task<Result<Items>> {
                        const auto name = co_await find_app(server, settings->wanted());
                        if (!name) co_return std::unexpected(name.error());
                        co_return co_await read_slices(server, kReleases, "gitopsReleases",
                                                       Json{{"filters", name->variables()}}, limit);
                      });
}

struct WaitSettings : AppSettings {
  std::string health = "Healthy";
  std::string sync = "Synced";
};

// Returns the mistake of a state that no Application can have; empty when there is none.
std::string state_mistake(const std::string& text, const std::vector<std::string>& known) {
  const bool is_known = text.empty() || std::ranges::any_of(known, [&](const std::string& state) {
                          return state_word(state) == state_word(text);
                        });
  return is_known ? std::string() : "there is no state " + text + ", only " + join(known, ", ");
}

// Returns what is missing; empty when the Application is as wanted.
std::string missing_of(const Json& app, const WaitSettings& settings) {
  std::vector<std::string> missing;
  const auto expect = [&](const char* what, const std::string& wanted, const char* member) {
    const auto is = text_at(app, {member});
    if (!wanted.empty() && is != state_word(wanted)) {
      missing.push_back(std::string(what) + " is " + state_cell(is).text);
    }
  };
  expect("sync", settings.sync, "syncStatus");
  expect("health", settings.health, "healthStatus");
  const auto phase = text_at(app, {"operationState", "phase"});
  if (phase == "Running" || phase == "Terminating") missing.emplace_back("an operation runs");
  if (text_at(app, {"presence"}) == "STALE") missing.emplace_back("it is not reported any more");
  // The reason why the wait is in vain unless somebody does something.
  if (!missing.empty() && (phase == "Failed" || phase == "Error")) {
    const auto message = text_at(app, {"operationState", "message"});
    missing.push_back("its last operation is " + phase + (message.empty() ? "" : ": " + message));
  }
  return join(missing, ", ");
}

Task<Result<int>> wait_for(Call& call, const WaitSettings& settings) {
  const auto name = co_await find_app(call.server, settings.wanted());
  if (!name) co_return std::unexpected(name.error());
  std::string told;
  while (true) {
    auto app = co_await read_app(call.server, *name);
    auto missing = app ? missing_of(*app, settings) : std::string();
    if (app && missing.empty()) {
      const auto silent = co_await is_silent(call.server, name->runtime);
      if (!silent) app = std::unexpected(silent.error());
      if (silent && *silent) missing = "its runtime is silent, so what is known may be old";
    }
    const bool has_time = !call.server.ends_within(kWaitPeriod);
    if (!app && !told.empty() && is_away(app.error()) && has_time) {
      co_await sleep_for(kWaitPeriod);
      continue;
    }
    if (!app) {
      const bool is_over = app.error().code == ErrorCode::timeout && !told.empty();
      if (!is_over) co_return std::unexpected(app.error());
      missing = told;
    }
    if (missing.empty()) {
      call.console.out << "Done: " << name->text() << " is as wanted\n";
      co_return cli::kDone;
    }
    if (missing != told) call.console.err << name->text() << ": " << missing << std::endl;
    told = missing;
    if (!app || !has_time) {
      co_return std::unexpected(
          Error{.code = ErrorCode::timeout,
                .message = name->text() + " is not as wanted in time: " + told,
                .subcode = kNotReached});
    }
    co_await sleep_for(kWaitPeriod);
  }
}

cli::Command wait() {
  const auto settings = std::make_shared<WaitSettings>();
  return noun_command(
      {.name = "app wait",
       .summary = "Wait until an Application is synced and healthy",
       .description =
           "Waits for --timeout at most, and ends with 1 when it is not as wanted by then.\n\n"
           "Examples:\n"
           "  gitopsctl app wait shop\n"
           "  gitopsctl app wait shop --health= --timeout 2m\n",
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "health", .help = "Health to wait for; empty means any"},
                        settings->health);
             reader.add({.flag = "sync", .help = "Sync state to wait for; empty means any"},
                        settings->sync);
             reader.check({"health"}, [settings] {
               return state_mistake(settings->health, {"Healthy", "Progressing", "Degraded",
                                                       "Suspended", "Missing", "Unknown"});
             });
             reader.check({"sync"}, [settings] {
               return state_mistake(settings->sync, {"Synced", "OutOfSync", "Unknown"});
             });
           },
       .has_form = false,
       .timeout = std::chrono::minutes(5),
       .work = [settings](Call& call) { return wait_for(call, *settings); }});
}

}  // namespace

std::string AppName::text() const {
  return cli::printable((runtime.empty() ? "" : runtime + "/") + (ns.empty() ? "" : ns + "/") +
                        name);
}

Json AppName::variables() const {
  return {{"runtime", runtime}, {"namespace", ns}, {"name", name}};
}

std::string short_revision(const std::string& revision) {
  const bool is_commit =
      (revision.size() == 40 || revision.size() == 64) &&
      std::ranges::all_of(revision, [](unsigned char c) { return std::isxdigit(c) != 0; });
  return is_commit ? revision.substr(0, kShortRevision) : revision;
}

AppName parse_app_name(const std::string& text) {
  const auto last = text.rfind('/');
  if (last == std::string::npos) return {.name = text};
  const auto first = text.find('/');
  AppName name{.name = text.substr(last + 1)};
  if (first != last) name.runtime = text.substr(0, first);
  name.ns = first == last ? text.substr(0, last) : text.substr(first + 1, last - first - 1);
  return name;
}

Task<Result<AppName>> find_app(Server& server, AppName wanted) {
  if (!wanted.runtime.empty() && !wanted.ns.empty()) co_return wanted;
  const Json filters{{"applications", Json::array({wanted.name})},
                     {"runtime", wanted.runtime},
                     {"namespace", wanted.ns}};
  const auto found =
      co_await read_slices(server, kApplications, "applications", Json{{"filters", filters}}, 20);
  if (!found) co_return std::unexpected(found.error());
  if (found->all.empty()) co_return not_found("application", wanted.text());
  if (found->all.size() == 1) co_return name_of(at(found->all[0], {"metadata"}));
  std::vector<std::string> names;
  for (const Json& app : found->all) names.push_back(name_of(at(app, {"metadata"})).text());
  co_return usage_error("several Applications are called " + wanted.text() + ": " +
                        join(names, ", "));
}

Task<Result<Json>> read_app(Server& server, AppName name) {
  const auto data = co_await server.ask(kApplication.text, name.variables());
  if (!data) co_return std::unexpected(data.error());
  const Json& app = at(*data, {"application"});
  if (!app.is_object()) co_return not_found("application", name.text());
  co_return Json(app);
}

cli::Operand AppSettings::operand() {
  return {.name = "APP", .help = "NAME, NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME", .target = &app};
}

void AppSettings::add_to(ConfigReader& reader) {
  add_runtime_flag(reader, runtime,
                   "Runtime of the Application, when several have one of that name");
  reader.add({.flag = "namespace", .help = "Its namespace", .letter = 'n'}, ns);
}

AppName AppSettings::wanted() const {
  auto name = parse_app_name(app);
  if (!runtime.empty()) name.runtime = runtime;
  if (!ns.empty()) name.ns = ns;
  return name;
}

std::vector<cli::Command> app_commands() {
  return {list(), get(), tree(), history(), wait()};
}

}  // namespace gitops::ctl
