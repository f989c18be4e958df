#include "gitopsctl/rule.hpp"

#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/app.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"

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
  std::vector<Json> decisions;
  for (const Json& decision : at(*data, {is_of_all ? "usersWithAccess" : "access"})) {
    const bool is_asked =
        settings.action.empty() || text_at(decision, {"action"}) == settings.action;
    if (is_asked) decisions.push_back(decision);
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

}  // namespace

std::vector<cli::Command> rule_commands() {
  return {list(), test()};
}

}  // namespace gitops::ctl
