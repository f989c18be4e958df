#include "gitopsctl/people.hpp"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/noun.hpp"
#include "gitopsctl/people_changes.hpp"

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

// Reads the users of the account with their last logins, and the invitations that are open.
Task<Result<Items>> read_users(Server& server, std::int64_t limit) {
  const auto account = co_await account_id(server);
  if (!account) co_return std::unexpected(account.error());
  const auto all =
      co_await server.call("GET", "/api/accounts/" + percent_encode(*account) + "/users");
  if (!all) co_return std::unexpected(all.error());
  const auto list = co_await server.call("GET", "/console/api/v1/users");
  if (!list) co_return std::unexpected(list.error());
  const auto members = whole_list(*list, 0);
  if (!members) co_return std::unexpected(members.error());
  auto users = whole_list(*all, limit);
  if (!users) co_return std::unexpected(users.error());
  for (Json& user : users->all) {
    const auto id = text_at(user, {"_id"});
    for (const Json& member : members->all) {
      if (!id.empty() && text_at(member, {"_id"}) == id) user.update(member);
    }
  }
  co_return std::move(*users);
}

std::string user_status(const Json& user) {
  const auto status = text_at(user, {"status"});
  if (status == "pending") return "Pending";
  return status == "disabled" ? "Disabled" : "Active";
}

cli::Command users() {
  return list_command(
      {.name = "user list",
       .summary = "List the users of the account (administrators)",
       .description = "Open invitations are Pending.\n\n"
                      "Examples:\n  gitopsctl user list -o wide\n"},
      {.schema = "gitopsctl/users/v1",
       .columns = {text_column("NAME", {"userName"}), text_column("EMAIL", {"email"}),
                   flag_column("ADMIN", "isAdmin", "yes", "no"), own_column("STATUS", user_status),
                   age_column("SEEN", {"lastLogin"}), text_column("ID", {"_id"}, true)},
       .name = [](const Json& item) { return text_at(item, {"userName"}); }},
      read_users);
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
