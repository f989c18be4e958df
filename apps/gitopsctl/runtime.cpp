#include "gitopsctl/runtime.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "gitopsctl/log_lines.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

struct Settings {
  std::string name;
  bool yes = false;
};

std::string state_of(const Json& runtime) {
  return value_at(runtime, {"available"}) == true ? "ONLINE" : "OFFLINE";
}

Sheet runtime_sheet() {
  return {
      .schema = "gitopsctl/runtimes/v1",
      .columns = {text_column("NAME", {"metadata", "name"}),
                  text_column("NAMESPACE", {"metadata", "namespace"}),
                  {.header = "STATUS",
                   .cell = [](const Json& item, WallTime) { return state_cell(state_of(item)); }},
                  state_column("SYNC", {"syncStatus"}),
                  state_column("HEALTH", {"healthStatus"}),
                  text_column("VERSION", {"runtimeVersion"}),
                  age_column("SEEN", {"lastUpdated"}),
                  age_column("AGE", {"metadata", "created"}),
                  text_column("CLUSTER", {"metadata", "cluster"}, true),
                  text_column("INGRESS", {"ingressHost"}, true),
                  text_column("INSTALLATION", {"installationStatus"}, true)},
      .name = [](const Json& item) { return text_at(item, {"metadata", "name"}); }};
}

cli::Command list() {
  return list_command({.name = "runtime list",
                       .summary = "List the runtimes of the account",
                       .description = "Examples:\n"
                                      "  gitopsctl runtime list\n"
                                      "  gitopsctl runtime list -o wide\n"
                                      "  gitopsctl runtime list --watch\n"},
                      runtime_sheet(), [](Server& server, std::int64_t limit) {
                        return read_slices(server, kRuntimes, "runtimes", Json::object(), limit);
                      });
}

cli::Cell check_cell(const Json& item) {
  const Json& status = value_at(item, {"status"});
  return state_cell(text_at(status.is_object() ? status : item, {"status"}));
}

std::string status_text(const Json& data, const Look& look) {
  const Json& runtime = at(data, {"runtime"});
  cli::Table facts;
  const auto fact = [&](std::string name, cli::Cell cell) {
    if (!cell.text.empty()) facts.add({{std::move(name)}, std::move(cell)});
  };
  fact("Name:", {text_at(runtime, {"metadata", "name"})});
  fact("Namespace:", {text_at(runtime, {"metadata", "namespace"})});
  fact("Cluster:", {text_at(runtime, {"metadata", "cluster"})});
  fact("Version:", {text_at(runtime, {"runtimeVersion"})});
  fact("Ingress:", {text_at(runtime, {"ingressHost"})});
  fact("Status:", state_cell(state_of(runtime)));
  fact("Seen:", {age(text_at(runtime, {"lastUpdated"}), look.now) + " ago"});
  fact("Sync:", state_cell(text_at(runtime, {"syncStatus"})));
  fact("Health:", state_cell(text_at(runtime, {"healthStatus"})));
  fact("Message:", {text_at(runtime, {"healthMessage"})});
  fact("Argo CD:", state_cell(text_at(runtime, {"status", "argoCdState"})));
  std::string out = facts.text(0, look.colour);

  cli::Table checks;
  checks.add({{"CHECK"}, {"STATE"}, {"DESCRIPTION"}});
  for (const auto& [name, item] : at(runtime, {"status"}).items()) {
    if (!item.is_object()) continue;
    std::vector<cli::Cell> row{{cli::printable(name)}, check_cell(item)};
    if (auto about = text_at(item, {"description"}); !about.empty()) {
      row.push_back({std::move(about)});
    }
    checks.add(std::move(row));
  }
  out += '\n' + checks.text(0, look.colour);

  const Json& components = at(data, {"components", "edges"});
  cli::Table parts;
  parts.add({{"COMPONENT"}, {"VERSION"}, {"SYNC"}, {"HEALTH"}});
  for (const Json& edge : components) {
    parts.add({{text_at(edge, {"node", "metadata", "name"})},
               {text_at(edge, {"node", "version"})},
               state_cell(text_at(edge, {"node", "syncStatus"})),
               state_cell(text_at(edge, {"node", "healthStatus"}))});
  }
  if (!components.empty()) out += '\n' + parts.text(0, look.colour, look.width);
  for (const Json& error : at(runtime, {"errors"})) {
    out += '\n' + text_at(error, {"level"}) + ": " + text_at(error, {"message"}) + '\n';
  }
  return out;
}

cli::Command status() {
  const auto settings = std::make_shared<Settings>();
  return noun_command(
      {.name = "runtime status",
       .summary = "Show one runtime: its checks, components and errors",
       .description = "Examples:\n"
                      "  gitopsctl runtime status prod\n"
                      "  gitopsctl runtime status prod -o json\n",
       .operands = {{.name = "RUNTIME", .help = "Name of the runtime", .target = &settings->name}},
       .work = [settings](Call& call) -> Task<Result<int>> {
         const auto data = co_await call.server.ask(kRuntime.text, Json{{"name", settings->name}});
         if (!data) co_return std::unexpected(data.error());
         if (!at(*data, {"runtime"}).is_object()) co_return not_found("runtime", settings->name);
         const bool is_text = call.look.form == Form::table || call.look.form == Form::wide;
         call.console.out << (is_text ? status_text(*data, call.look)
                                      : render_item(runtime_sheet(), at(*data, {"runtime"}),
                                                    call.look));
         co_return cli::kDone;
       }});
}

constexpr const char* kNameRule =
    "RUNTIME has 1 to 38 lower-case letters, digits and hyphens, begins with a letter, and has no "
    "hyphen at its end";

// Whether the chart takes this name for a runtime. A control plane also takes longer ones.
bool is_runtime_name(std::string_view name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 38 && name.front() >= 'a' && is_plain(name.front()) &&
         is_plain(name.back()) &&
         std::ranges::all_of(name, [&](char c) { return c == '-' || is_plain(c); });
}

cli::Command add() {
  const auto settings = std::make_shared<Settings>();
  return noun_command(
      {.name = "runtime add",
       .summary = "Print the commands that install a runtime",
       .description = "Changes nothing: the runtime registers itself when it starts.\n\n"
                      "Examples:\n"
                      "  gitopsctl runtime add prod\n",
       .operands = {{.name = "RUNTIME",
                     .help = "Name of the new runtime",
                     .target = &settings->name}},
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         if (!is_runtime_name(settings->name)) co_return usage_error(kNameRule);
         const auto data =
             co_await call.server.ask(kRuntimeAddress.text, Json{{"name", settings->name}});
         if (!data) co_return std::unexpected(data.error());
         if (at(*data, {"runtime"}).is_object()) {
           call.console.err << "There is a runtime of that name: a second installation would take "
                               "its place.\n";
         }
         call.console.err
             << "The file user-token has an API key of yours: gitopsctl token create " +
                    settings->name +
                    " >user-token\nThe chart's values are explained in "
                    "docs/get-started/quickstart.md.\n";
         call.console.out << kTokenCommand << '\n'
                          << install_command(address_for_pods(call.server.context().url),
                                             settings->name)
                          << '\n';
         co_return cli::kDone;
       }});
}

struct LogsSettings {
  std::string runtime;
  std::string component;
  LogSettings log;
};

cli::Command logs() {
  const auto settings = std::make_shared<LogsSettings>();
  return noun_command(
      {.name = "runtime logs",
       .summary = "Print the logs of a component of a runtime (administrators)",
       .description = "Examples:\n"
                      "  gitopsctl runtime logs prod cap-app-proxy\n"
                      "  gitopsctl runtime logs prod event-reporter --follow\n",
       .operands = {{.name = "RUNTIME",
                     .help = "Name of the runtime",
                     .target = &settings->runtime},
                    {.name = "COMPONENT",
                     .help = "As in gitopsctl runtime status",
                     .target = &settings->component}},
       .bind =
           [settings](ConfigReader& reader) {
             settings->log.add_to(reader, "Only lines with this text; with ! those without");
           },
       .has_form = false,
       .is_endless = [settings] { return settings->log.follow; },
       .work =
           [settings](Call& call) {
             return print_log(call, settings->runtime, {{"componentName", settings->component}},
                              settings->log);
           }});
}

cli::Command remove() {
  const auto settings = std::make_shared<Settings>();
  return noun_command(
      {.name = "runtime remove",
       .summary = "Remove a runtime from the control plane, with its tokens and objects",
       .description = "What runs in the cluster stays; uninstall the chart to remove it, too.\n\n"
                      "Examples:\n"
                      "  gitopsctl runtime remove staging --yes\n",
       .operands = {{.name = "RUNTIME", .help = "Name of the runtime", .target = &settings->name}},
       .bind = [settings](ConfigReader& reader) { add_yes(reader, settings->yes); },
       .has_form = false,
       .work = [settings](Call& call) -> Task<Result<int>> {
         const Json name{{"name", settings->name}};
         const auto data = co_await call.server.ask(kRuntimeAddress.text, name);
         if (!data) co_return std::unexpected(data.error());
         if (!at(*data, {"runtime"}).is_object()) co_return not_found("runtime", settings->name);
         if (!settings->yes) {
           co_return needs_yes("this removes runtime " + settings->name +
                               ", its tokens and all that it has reported");
         }
         const auto answer = co_await call.server.ask(kDeleteRuntime.text, name);
         co_return tell_outcome(call, answer, "runtime " + settings->name + " is removed",
                                "gitopsctl runtime list");
       }});
}

}  // namespace

std::vector<cli::Command> runtime_commands() {
  return {list(), status(), logs(), add(), remove()};
}

std::string address_for_pods(const std::string& url) {
  const auto parsed = http::parse_url(url);
  if (!parsed) return url;
  const auto& host = parsed->host;
  const bool is_here = host == "localhost" || host == "::1" || host.starts_with("127.");
  return is_here ? "http://control-plane.gitops-control-plane" : url;
}

std::string install_command(std::string_view address, std::string_view name) {
  return "helm upgrade --install gitops-runtime charts/gitops-runtime -n argocd \\\n"
         "  --set global.codefresh.url=" +
         cli::printable(address) +
         " \\\n"
         "  --set global.codefresh.userToken.secretKeyRef.name=gitops-user-token \\\n"
         "  --set global.codefresh.userToken.secretKeyRef.key=token \\\n"
         "  --set global.runtime.name=" +
         cli::printable(name) +
         " \\\n"
         "  --set "
         "global.integrations.argo-cd.server.auth.passwordSecretKeyRef.name=argocd-initial-admin-"
         "secret \\\n"
         "  --set global.integrations.argo-cd.server.auth.passwordSecretKeyRef.key=password \\\n"
         "  --set app-proxy.enabled=true \\\n"
         "  --set global.imageRegistry=registry.example.com/team";
}

}  // namespace gitops::ctl
