#include "gitopsctl/rule.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/app.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"
#include "gitopsctl/people_changes.hpp"

namespace gitops::ctl {

namespace {

std::string joined(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return join(texts, ",");
}

std::string attributes_of(const Json& rule) {
  std::vector<std::string> texts;
  for (const Json& attribute : at(rule, {"attributes"})) {
    const auto key = text_at(attribute, {"key"});
    texts.push_back(text_at(attribute, {"name"}) + (key.empty() ? "" : "[" + key + "]") + "=" +
                    text_at(attribute, {"value"}));
  }
  return join(texts, ",");
}

cli::Command list() {
  const Sheet sheet{
      .schema = "gitopsctl/rules/v1",
      .columns = {text_column("ID", {"id"}), text_column("ENTITY", {"entityType"}),
                  own_column("TEAMS", [](const Json& rule) { return joined(at(rule, {"teams"})); }),
                  own_column("ACTIONS",
                             [](const Json& rule) { return joined(at(rule, {"actions"})); }),
                  own_column("ATTRIBUTES", attributes_of)},
      .name = [](const Json& rule) { return text_at(rule, {"id"}); }};
  return list_command({.name = "rule list",
                       .summary = "List the access rules of the account",
                       .description = "Examples:\n  gitopsctl rule list\n"},
                      sheet, [](Server& server, std::int64_t limit) -> Task<Result<Items>> {
                        const auto data = co_await server.ask(kRules.text, Json::object());
                        if (!data) co_return std::unexpected(data.error());
                        co_return whole_list(at(*data, {"abacRules"}), limit);
                      });
}

struct TestSettings : AppSettings {
  std::string action;
  std::string user;
};

Sheet decision_sheet() {
  return {
      .schema = "gitopsctl/access/v1",
      .columns = {text_column("USER", {"user", "name"}), text_column("ACTION", {"action"}),
                  own_column("ALLOWED",
                             [](const Json& decision) {
                               return std::string(at(decision, {"allowed"}) == true ? "yes" : "no");
                             }),
                  state_column("REASON", {"reason"}), text_column("TEAM", {"team", "name"}),
                  text_column("RULE", {"rule", "id"})},
      .name = [](const Json& decision) {
        return text_at(decision, {"user", "name"}) + "/" + text_at(decision, {"action"});
      }};
}

Task<Result<int>> test_rules(Call& call, const TestSettings& settings) {
  const auto name = co_await find_app(call.server, settings.wanted());
  if (!name) co_return std::unexpected(name.error());
  const Json entity{{"entityType", "gitopsApplications"},
                    {"runtime", name->runtime},
                    {"namespace", name->ns},
                    {"name", name->name}};
  const bool is_of_all = !settings.action.empty() && settings.user.empty();
  Json variables{{"entity", entity}};
  if (is_of_all) variables["action"] = settings.action;
  if (!settings.user.empty()) variables["user"] = settings.user;
  const auto data = co_await call.server.ask(is_of_all ? kUsersWithAccess.text : kAccess.text,
                                             std::move(variables));
  if (!data) co_return std::unexpected(data.error());
  const auto all = whole_list(at(*data, {is_of_all ? "usersWithAccess" : "access"}), 0);
  if (!all) co_return std::unexpected(all.error());
  std::vector<Json> decisions;
  std::vector<std::string> actions;
  for (const Json& decision : all->all) {
    actions.push_back(text_at(decision, {"action"}));
    if (settings.action.empty() || actions.back() == settings.action) decisions.push_back(decision);
  }
  // An empty table would be taken for "may not".
  if (!is_of_all && decisions.empty() && !settings.action.empty()) {
    co_return usage_error("there is no action " + settings.action + ", only " +
                          join(actions, ", "));
  }
  call.console.out << render_list(decision_sheet(), decisions, call.look);
  co_return cli::kDone;
}

cli::Command test() {
  const auto settings = std::make_shared<TestSettings>();
  return noun_command(
      {.name = "rule test",
       .summary = "Show who may do what with an Application, and by which rule",
       .description = "Without flags: what you may do. With --action alone: who may do that. Other "
                      "users than\n"
                      "yourself: administrators only.\n\n"
                      "Examples:\n"
                      "  gitopsctl rule test shop\n"
                      "  gitopsctl rule test shop --action SYNC\n"
                      "  gitopsctl rule test shop --user 6621… --action SYNC\n",
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "action", .help = "Only this action, such as SYNC"},
                        settings->action);
             reader.add(
                 {.flag = "user", .help = "Id of the user, as in gitopsctl user list -o wide"},
                 settings->user);
           },
       .work = [settings](Call& call) { return test_rules(call, *settings); }});
}

struct CreateSettings {
  std::string entity = "gitopsApplications";
  std::vector<std::string> teams;
  std::vector<std::string> actions;
  std::vector<std::string> attributes;
  void add_to(ConfigReader& reader) {
    reader.add({.flag = "entity", .help = "What it is about, such as workflows"}, entity);
    reader.add({.flag = "team", .help = "Teams that it allows something, by name or id"}, teams);
    reader.add({.flag = "action", .help = "Actions, such as VIEW,SYNC"}, actions);
    reader.add({.flag = "attribute", .help = "Conditions: NAMESPACE=shop, LABEL[team]=pay"},
               attributes);
  }
};

// Reads a condition as `rule list` shows it: NAME=VALUE or NAME[KEY]=VALUE. Nothing when it is none.
std::optional<Json> attribute_of(const std::string& text) {
  const auto bracket_end = text.find("]=");
  const auto equals = bracket_end == std::string::npos ? text.find('=') : bracket_end + 1;
  if (equals == std::string::npos || equals == 0) return {};
  std::string name = text.substr(0, equals);
  Json attribute{{"value", text.substr(equals + 1)}};
  if (const auto bracket = name.find('['); bracket != std::string::npos) {
    if (!name.ends_with(']')) return {};
    attribute["key"] = name.substr(bracket + 1, name.size() - bracket - 2);
    name.resize(bracket);
  }
  attribute["name"] = std::move(name);
  return attribute;
}

Task<Result<int>> create_rule(Call& call, const CreateSettings& settings) {
  if (settings.teams.empty() || settings.actions.empty()) {
    co_return usage_error("a rule has --team and --action");
  }
  Json attributes = Json::array();
  for (const auto& text : settings.attributes) {
    auto attribute = attribute_of(text);
    if (!attribute) co_return usage_error("--attribute is NAME=VALUE or LABEL[KEY]=VALUE");
    attributes.push_back(std::move(*attribute));
  }
  Json teams = Json::array();
  for (const auto& name : settings.teams) {
    const auto team = co_await find_by_name(call.server, "/api/team", "team", name);
    if (!team) co_return std::unexpected(team.error());
    teams.push_back(at(*team, {"_id"}));
  }
  const auto answer =
      co_await call.server.ask(kCreateRule.text, Json{{"rule",
                                                       {{"entityType", settings.entity},
                                                        {"teams", std::move(teams)},
                                                        {"actions", settings.actions},
                                                        {"attributes", std::move(attributes)}}}});
  const auto id = answer ? text_at(*answer, {"createAbacRule", "id"}) : std::string();
  if (answer && id.empty()) {
    co_return tell_outcome(call, fail(ErrorCode::protocol, "the answer names no rule"), "",
                           "gitopsctl rule list");
  }
  co_return tell_outcome(call, answer, "rule " + id + " is created", "gitopsctl rule list");
}

cli::Command create() {
  const auto settings = std::make_shared<CreateSettings>();
  return noun_command(
      {.name = "rule create",
       .summary = "Create an access rule (administrators)",
       .description =
           "The first rule with VIEW hides all other Applications from everybody but "
           "administrators.\n\n" +
           std::string(kOutcomeHelp) +
           "Examples:\n"
           "  gitopsctl rule create --team pay --action VIEW,SYNC --attribute NAMESPACE=pay\n",
       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
       .has_form = false,
       .work = [settings](Call& call) { return create_rule(call, *settings); }});
}

struct DeleteSettings {
  std::string id;
  bool yes = false;
};

Task<Result<int>> delete_rule(Call& call, const DeleteSettings& settings) {
  const auto data = co_await call.server.ask(kRules.text, Json::object());
  if (!data) co_return std::unexpected(data.error());
  const auto& rules = at(*data, {"abacRules"});
  const bool is_there =
      std::ranges::any_of(rules, [&](const Json& rule) { return at(rule, {"id"}) == settings.id; });
  if (!is_there) co_return not_found("rule", settings.id);
  if (!settings.yes) co_return needs_yes("this deletes rule " + settings.id);
  const auto answer = co_await call.server.ask(kRemoveRule.text, Json{{"id", settings.id}});
  co_return tell_outcome(call, answer, "rule " + settings.id + " is deleted",
                         "gitopsctl rule list");
}

cli::Command remove() {
  const auto settings = std::make_shared<DeleteSettings>();
  return noun_command(
      {.name = "rule delete",
       .summary = "Delete an access rule (administrators)",
       .description =
           kOutcomeHelp + std::string("Examples:\n  gitopsctl rule delete 65f1a2b3c4d5 --yes\n"),
       .operands = {{.name = "RULE",
                     .help = "Id, as in gitopsctl rule list",
                     .target = &settings->id}},
       .bind = [settings](ConfigReader& reader) { add_yes(reader, settings->yes); },
       .has_form = false,
       .work = [settings](Call& call) { return delete_rule(call, *settings); }});
}

}  // namespace

std::vector<cli::Command> rule_commands() {
  return {list(), test(), create(), remove()};
}

}  // namespace gitops::ctl
