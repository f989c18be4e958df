#include "gitopsctl/people.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/text.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

// A list that a REST route returns whole.
cli::Command rest_list(NounCommand command, Sheet sheet, std::string path) {
  return list_command(
      std::move(command), std::move(sheet),
      [path = std::move(path)](Server& server, std::int64_t limit) -> Task<Result<Items>> {
        const auto list = co_await server.call("GET", path);
        if (!list) co_return std::unexpected(list.error());
        co_return whole_list(*list, limit);
      });
}

Column flag_column(std::string header, std::string_view member, const char* yes, const char* no) {
  return own_column(std::move(header), [member, yes, no](const Json& item) {
    return std::string(at(item, {member}) == true ? yes : no);
  });
}

std::string joined(const Json& list, std::string_view member) {
  std::vector<std::string> texts;
  for (const Json& item : list) {
    texts.push_back(item.is_string() ? cli::printable(item.get<std::string>())
                                     : text_at(item, {member}));
  }
  return join(texts, ",");
}

cli::Command users() {
  return rest_list(
      {.name = "user list",
       .summary = "List the users of the account (administrators)",
       .description = "Examples:\n  gitopsctl user list -o wide\n"},
      {.schema = "gitopsctl/users/v1",
       .columns = {text_column("NAME", {"userName"}), text_column("EMAIL", {"email"}),
                   flag_column("ADMIN", "isAdmin", "yes", "no"),
                   flag_column("STATUS", "disabled", "Disabled", "Active"),
                   age_column("SEEN", {"lastLogin"}), text_column("ID", {"_id"}, true)},
       .name = [](const Json& item) { return text_at(item, {"userName"}); }},
      "/console/api/v1/users");
}

cli::Command teams() {
  return rest_list({.name = "team list",
                    .summary = "List the teams of the account",
                    .description = "Examples:\n  gitopsctl team list\n"},
                   {.schema = "gitopsctl/teams/v1",
                    .columns = {text_column("NAME", {"name"}), text_column("TYPE", {"type"}),
                                own_column("USERS",
                                           [](const Json& team) {
                                             return joined(at(team, {"users"}), "userName");
                                           }),
                                text_column("ID", {"_id"}, true)},
                    .name = [](const Json& item) { return text_at(item, {"name"}); }},
                   "/api/team");
}

cli::Command tokens() {
  return rest_list(
      {.name = "token list",
       .summary = "List your API keys",
       .description = "Shows the beginning of each key alone.\n\n"
                      "Examples:\n  gitopsctl token list\n"},
      {.schema = "gitopsctl/tokens/v1",
       .columns = {text_column("NAME", {"name"}), text_column("PREFIX", {"tokenPrefix"}),
                   own_column("SCOPES",
                              [](const Json& key) {
                                const auto scopes = joined(at(key, {"scopes"}), "");
                                return scopes.empty() ? "all" : scopes;
                              }),
                   age_column("USED", {"lastUsed"}), age_column("AGE", {"created"}),
                   text_column("EXPIRES", {"expires"}, true), text_column("ID", {"_id"}, true)},
       .name = [](const Json& item) { return text_at(item, {"name"}); }},
      "/api/auth/keys");
}

cli::Command service_accounts() {
  return rest_list(
      {.name = "service-account list",
       .summary = "List the service accounts of the account (administrators)",
       .description = "Examples:\n  gitopsctl service-account list\n"},
      {.schema = "gitopsctl/service-accounts/v1",
       .columns = {text_column("NAME", {"userName"}),
                   own_column("ROLES",
                              [](const Json& item) { return joined(at(item, {"roles"}), ""); }),
                   flag_column("STATUS", "enabled", "Active", "Disabled"),
                   age_column("AGE", {"created"}), text_column("ID", {"_id"}, true)},
       .name = [](const Json& item) { return text_at(item, {"userName"}); }},
      "/api/service-users");
}

}  // namespace

std::vector<cli::Command> people_commands() {
  return {users(), teams(), tokens(), service_accounts()};
}

}  // namespace gitops::ctl
