#include "gitopsctl/people_changes.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/failure.hpp"

namespace gitops::ctl {

namespace {

constexpr const char* kPrintedOnce = "It is shown only now.\n";

// Settings of all these commands; each binds those that it has.
struct Settings {
  std::string name;    // of the object that is changed
  std::string member;  // of what it has: a user of a team, a key of a service account
  std::string display_name;
  std::string expires;
  std::vector<std::string> scopes;
  std::vector<std::string> teams;
  bool admin = false;
  bool yes = false;
};
using Change = std::function<Task<Result<int>>(Call&, const Settings&)>;

struct ChangeCommand {
  std::string name;
  std::string summary;
  std::string example;                                        // behind the name of the command
  std::vector<std::pair<std::string, std::string>> operands;  // at most two, with their help
  std::function<void(ConfigReader&, Settings&)> bind = {};
  bool needs_yes = false;
  bool has_form = false;
  std::string about = {};  // the first lines of the description
  Change change = {};
};

cli::Command change_command(ChangeCommand made) {
  const auto settings = std::make_shared<Settings>();
  const auto shared = std::make_shared<ChangeCommand>(std::move(made));
  NounCommand command{.name = shared->name,
                      .summary = shared->summary,
                      .description = (shared->about.empty() ? "" : shared->about + "\n\n") +
                                     kOutcomeHelp + "Examples:\n  gitopsctl " + shared->name + " " +
                                     shared->example + (shared->needs_yes ? " --yes\n" : "\n"),
                      .has_form = shared->has_form};
  for (std::size_t i = 0; i < shared->operands.size(); ++i) {
    command.operands.push_back({.name = shared->operands[i].first,
                                .help = shared->operands[i].second,
                                .target = i == 0 ? &settings->name : &settings->member});
  }
  command.bind = [settings, shared](ConfigReader& reader) {
    if (shared->bind) shared->bind(reader, *settings);
    if (shared->needs_yes) add_yes(reader, settings->yes);
  };
  command.work = [settings, shared](Call& call) -> Task<Result<int>> {
    if (call.look.form == Form::name) {
      co_return usage_error("-o name would not show what is shown only once");
    }
    co_return co_await shared->change(call, *settings);
  };
  return noun_command(std::move(command));
}

std::string path_of(std::string_view begin, const std::string& id, std::string_view end = {}) {
  return std::string(begin) + percent_encode(id) + std::string(end);
}

std::string id_of(const Json& object) {
  return string_at(object, {"_id"});
}

// A user of the account, also a pending one, and the path of its routes.
struct User {
  std::string path;
  Json json;
};
Task<Result<User>> find_user(Server& server, std::string name) {
  const auto account = co_await account_id(server);
  if (!account) co_return std::unexpected(account.error());
  const auto path = path_of("/api/accounts/", *account, "/");
  auto user = co_await find_by_name(server, path + "users", "user", std::move(name));
  if (!user) co_return std::unexpected(user.error());
  co_return User{.path = path + percent_encode(id_of(*user)), .json = std::move(*user)};
}

Task<Result<Json>> find_team(Server& server, std::string name) {
  co_return co_await find_by_name(server, "/api/team", "team", std::move(name));
}
Task<Result<Json>> find_service_account(Server& server, std::string name) {
  co_return co_await find_by_name(server, "/api/service-users", "service account", std::move(name));
}

// Shows a secret that the server shows once: alone on standard output, or as a member of JSON and YAML.
int show_once(Call& call, Json facts, const char* member, const std::string& secret,
              const std::string& done) {
  switch (call.look.form) {
    case Form::json:
    case Form::yaml:
      facts[member] = secret;
      call.console.out << render_document(facts, call.look.form);
      break;
    case Form::name:
    case Form::table:
    case Form::wide:
      call.console.out << cli::printable(secret) << '\n';
      break;
  }
  call.console.err << "Done: " << cli::printable(done) << ". " << kPrintedOnce;
  return cli::kDone;
}

// Users.

cli::Command add_user() {
  return change_command(
      {.name = "user add",
       .summary = "Invite a user to the account (administrators)",
       .example = "ann@example.com",
       .operands = {{"EMAIL", "Mail address of the user"}},
       .bind =
           [](ConfigReader& reader, Settings& settings) {
             reader.add(
                 {.flag = "name", .help = "Name of the user; empty means that of the address"},
                 settings.display_name);
           },
       .has_form = true,
       .about = "Prints the link of the invitation once. Nothing is mailed.",
       .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
         const auto account = co_await account_id(call.server);
         if (!account) co_return std::unexpected(account.error());
         const Json body = settings.display_name.empty() ? Json{{"userDetails", settings.name}}
                                                         : Json{{"userName", settings.display_name},
                                                                {"email", settings.name}};
         const auto answer = co_await call.server.call(
             "POST", path_of("/api/accounts/", *account, "/adduser"), to_text(body));
         if (!answer) co_return tell_outcome(call, answer, "", "gitopsctl user list");
         auto link = string_at(*answer, {"inviteUrl"});
         // A server that does not know its own address sends the path.
         if (link.starts_with('/')) {
           auto base = call.server.context().url;
           while (base.ends_with('/')) base.pop_back();
           link.insert(0, base);
         }
         if (link.empty() && id_of(*answer).empty()) {
           co_return tell_outcome(call, fail(ErrorCode::protocol, "the answer has no invitation"),
                                  "", "gitopsctl user list");
         }
         if (link.empty()) {
           co_return tell_outcome(call, answer, settings.name + " is a member already", "");
         }
         co_return show_once(call,
                             {{"schema", "gitopsctl/invitation/v1"},
                              {"name", text_at(*answer, {"userName"})},
                              {"email", text_at(*answer, {"email"})},
                              {"id", text_at(*answer, {"_id"})},
                              {"expires", text_at(*answer, {"expires"})}},
                             "inviteUrl", link, settings.name + " is invited by this link");
       }});
}

// A change of a user by one request.
cli::Command change_user(std::string word, std::string summary, std::string done, bool needs_yes,
                         std::function<Task<Result<Json>>(Server&, User)> request) {
  return change_command(
      {.name = "user " + word,
       .summary = std::move(summary),
       .example = "ann",
       .operands = {{"USER", "Name, mail address or id"}},
       .needs_yes = needs_yes,
       .change = [done = std::move(done), needs_yes, request = std::move(request)](
                     Call& call, const Settings& settings) -> Task<Result<int>> {
         auto user = co_await find_user(call.server, settings.name);
         if (!user) co_return std::unexpected(user.error());
         const auto name = text_at(user->json, {"userName"});
         if (needs_yes && !settings.yes) {
           co_return ctl::needs_yes("this removes user " + name + " from the account");
         }
         const auto answer = co_await request(call.server, std::move(*user));
         co_return tell_outcome(call, answer, "user " + name + " " + done, "gitopsctl user list");
       }});
}

Task<Result<Json>> set_disabled(Server& server, User user, bool disabled) {
  co_return co_await server.call("PATCH", path_of("/console/api/v1/users/", id_of(user.json)),
                                 to_text(Json{{"disabled", disabled}}));
}

cli::Command reset_password() {
  return change_command(
      {.name = "user reset-password",
       .summary = "Give a user a new password, which ends its sessions (administrators)",
       .example = "ann",
       .operands = {{"USER", "Name, mail address or id"}},
       .has_form = true,
       .about = "Prints the new password once.",
       .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
         const auto user = co_await find_user(call.server, settings.name);
         if (!user) co_return std::unexpected(user.error());
         const auto name = text_at(user->json, {"userName"});
         const auto answer = co_await call.server.call(
             "PUT", path_of("/console/api/v1/users/", id_of(user->json), "/password"), "{}");
         if (!answer) co_return tell_outcome(call, answer, "", "gitopsctl audit");
         const auto password = string_at(*answer, {"password"});
         if (password.empty()) {
           co_return tell_outcome(call, fail(ErrorCode::protocol, "the answer has no password"), "",
                                  "gitopsctl audit");
         }
         co_return show_once(call,
                             {{"schema", "gitopsctl/password/v1"},
                              {"name", name},
                              {"id", text_at(*answer, {"_id"})}},
                             "password", password, "user " + name + " has this new password");
       }});
}

// Teams.

cli::Command create_team() {
  return change_command({.name = "team create",
                         .summary = "Create a team (administrators)",
                         .example = "payments",
                         .operands = {{"NAME", "Name of the new team"}},
                         .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
                           const auto answer = co_await call.server.call(
                               "POST", "/api/team", to_text(Json{{"name", settings.name}}));
                           co_return tell_outcome(call, answer,
                                                  "team " + settings.name + " is created",
                                                  "gitopsctl team list");
                         }});
}

cli::Command delete_team() {
  return change_command({.name = "team delete",
                         .summary = "Delete a team; rules that name it stay (administrators)",
                         .example = "payments",
                         .operands = {{"TEAM", "Name or id"}},
                         .needs_yes = true,
                         .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
                           const auto team = co_await find_team(call.server, settings.name);
                           if (!team) co_return std::unexpected(team.error());
                           const auto name = text_at(*team, {"name"});
                           if (!settings.yes) co_return needs_yes("this deletes team " + name);
                           const auto answer = co_await call.server.call(
                               "DELETE", path_of("/api/team/", id_of(*team)));
                           co_return tell_outcome(call, answer, "team " + name + " is deleted",
                                                  "gitopsctl team list");
                         }});
}

cli::Command rename_team() {
  return change_command({.name = "team rename",
                         .summary = "Rename a team (administrators)",
                         .example = "payments billing",
                         .operands = {{"TEAM", "Name or id"}, {"NAME", "The new name"}},
                         .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
                           const auto team = co_await find_team(call.server, settings.name);
                           if (!team) co_return std::unexpected(team.error());
                           const auto answer = co_await call.server.call(
                               "PUT", path_of("/api/team/", id_of(*team), "/renameTeam"),
                               to_text(Json{{"name", settings.member}}));
                           co_return tell_outcome(
                               call, answer,
                               "team " + text_at(*team, {"name"}) + " is called " + settings.member,
                               "gitopsctl team list");
                         }});
}

cli::Command change_members(const char* word, const char* summary, const char* route,
                            const char* done) {
  return change_command(
      {.name = std::string("team ") + word,
       .summary = summary,
       .example = "payments ann",
       .operands = {{"TEAM", "Name or id"}, {"USER", "Name, mail address or id"}},
       .change = [route, done](Call& call, const Settings& settings) -> Task<Result<int>> {
         const auto team = co_await find_team(call.server, settings.name);
         if (!team) co_return std::unexpected(team.error());
         const auto user = co_await find_user(call.server, settings.member);
         if (!user) co_return std::unexpected(user.error());
         const auto answer =
             co_await call.server.call("PUT", path_of("/api/team/", id_of(*team), "/") +
                                                  path_of("", id_of(user->json), route));
         co_return tell_outcome(
             call, answer,
             "user " + text_at(user->json, {"userName"}) + done + text_at(*team, {"name"}),
             "gitopsctl team list");
       }});
}

// Keys.

// The control plane takes any scope, and a key with none that it knows may do nothing.
std::string scope_mistake(const std::vector<std::string>& scopes) {
  constexpr std::array<std::string_view, 5> kKnown = {"read", "write", "runtimes", "images",
                                                      "app-proxy"};
  for (const auto& scope : scopes) {
    if (std::ranges::find(kKnown, scope) == kKnown.end()) return "there is no scope " + scope;
  }
  return {};
}

void bind_key(ConfigReader& reader, Settings& settings) {
  reader.add(
      {.flag = "scope", .help = "Scopes: read, write, runtimes, images, app-proxy; none means all"},
      settings.scopes);
  reader.check({"scope"}, [&settings] { return scope_mistake(settings.scopes); });
  reader.add({.flag = "expires", .help = "Its end (RFC 3339); empty means never"},
             settings.expires);
}

constexpr const char* kLookAtTokens = "gitopsctl token list";

// Returns the command that tells whether a service account has a key.
std::string look_at_key(const std::string& account, const std::string& key) {
  return "gitopsctl service-account revoke-key " + account + " " + key +
         ", which only tells whether it is there when --yes is not given";
}

// Makes a key at a path, and shows it once. `look` is the command that shows whether it is there.
Task<Result<int>> create_key(Call& call, std::string path, std::string name,
                             const Settings& settings, std::string look) {
  Json body{{"name", name}, {"scopes", settings.scopes}};
  if (!settings.expires.empty()) body["expires"] = settings.expires;
  const auto key = co_await call.server.call_for_text("POST", path, to_text(body));
  if (!key) {
    co_return tell_outcome(call, std::unexpected(key.error()), "", look);
  }
  const auto text = std::string(trimmed(*key));
  const auto dot = text.find('.');
  if (dot == std::string::npos || text.contains(' ')) {
    co_return tell_outcome(call, fail(ErrorCode::protocol, "the answer has no key"), "", look);
  }
  co_return show_once(call,
                      {{"schema", "gitopsctl/key/v1"}, {"name", name}, {"id", text.substr(0, dot)}},
                      "key", text, "key " + name + " is created");
}

Task<Result<int>> revoke_key(Call& call, std::string list, std::string below, std::string name,
                             bool yes, std::string look) {
  const auto key = co_await find_by_name(call.server, std::move(list), "key", std::move(name));
  if (!key) co_return std::unexpected(key.error());
  const auto own = text_at(*key, {"name"});
  if (!yes) co_return needs_yes("this revokes key " + own);
  const auto answer = co_await call.server.call("DELETE", path_of(below, id_of(*key)));
  co_return tell_outcome(call, answer, "key " + own + " is revoked", look);
}

cli::Command create_token() {
  return change_command({.name = "token create",
                         .summary = "Create an API key of yours",
                         .example = "laptop --scope read",
                         .operands = {{"NAME", "Name of the new key"}},
                         .bind = bind_key,
                         .has_form = true,
                         .about = "Prints the key once, alone on standard output.",
                         .change = [](Call& call, const Settings& settings) {
                           return create_key(call, "/api/auth/key", settings.name, settings,
                                             kLookAtTokens);
                         }});
}

cli::Command revoke_token() {
  return change_command({.name = "token revoke",
                         .summary = "Revoke an API key of yours",
                         .example = "laptop",
                         .operands = {{"TOKEN", "Name or id"}},
                         .needs_yes = true,
                         .change = [](Call& call, const Settings& settings) {
                           return revoke_key(call, "/api/auth/keys", "/api/auth/key/",
                                             settings.name, settings.yes, kLookAtTokens);
                         }});
}

// Service accounts.

constexpr const char* kServiceKeys = "/api/auth/key/service-user/";

cli::Command create_service_account() {
  return change_command(
      {.name = "service-account create",
       .summary = "Create a service account (administrators)",
       .example = "ci --team payments",
       .operands = {{"NAME", "Name of the new service account"}},
       .bind =
           [](ConfigReader& reader, Settings& settings) {
             reader.add({.flag = "team", .help = "Its teams, by name or id"}, settings.teams);
             reader.add({.flag = "admin", .help = "Make it an administrator"}, settings.admin);
           },
       .about = "Give it a key with gitopsctl service-account create-key.",
       .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
         Json teams = Json::array();
         for (const auto& name : settings.teams) {
           const auto team = co_await find_team(call.server, name);
           if (!team) co_return std::unexpected(team.error());
           teams.push_back(id_of(*team));
         }
         const auto answer =
             co_await call.server.call("POST", "/api/service-users",
                                       to_text(Json{{"userName", settings.name},
                                                    {"teamIds", std::move(teams)},
                                                    {"assignAdminRole", settings.admin}}));
         co_return tell_outcome(call, answer, "service account " + settings.name + " is created",
                                "gitopsctl service-account list");
       }});
}

cli::Command change_service_account(std::string word, std::string summary, std::string method,
                                    Json body, std::string done) {
  const bool is_deletion = method == "DELETE";
  return change_command(
      {.name = "service-account " + word,
       .summary = std::move(summary),
       .example = "ci",
       .operands = {{"SERVICE-ACCOUNT", "Name or id"}},
       .needs_yes = is_deletion,
       .change = [=](Call& call, const Settings& settings) -> Task<Result<int>> {
         const auto found = co_await find_service_account(call.server, settings.name);
         if (!found) co_return std::unexpected(found.error());
         const auto name = text_at(*found, {"userName"});
         if (is_deletion && !settings.yes) {
           co_return needs_yes("this deletes service account " + name + " with its keys");
         }
         const auto answer =
             co_await call.server.call(method, path_of("/api/service-users/", id_of(*found)),
                                       body.is_null() ? std::string() : to_text(body));
         co_return tell_outcome(call, answer, "service account " + name + " " + done,
                                "gitopsctl service-account list");
       }});
}

cli::Command create_service_key() {
  return change_command(
      {.name = "service-account create-key",
       .summary = "Create an API key of a service account (administrators)",
       .example = "ci pipeline --expires 2027-01-01T00:00:00Z",
       .operands = {{"SERVICE-ACCOUNT", "Name or id"}, {"NAME", "Name of the new key"}},
       .bind = bind_key,
       .has_form = true,
       .about = "Prints the key once, alone on standard output.",
       .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
         const auto found = co_await find_service_account(call.server, settings.name);
         if (!found) co_return std::unexpected(found.error());
         co_return co_await create_key(call, path_of(kServiceKeys, id_of(*found)), settings.member,
                                       settings, look_at_key(settings.name, settings.member));
       }});
}

cli::Command revoke_service_key() {
  return change_command(
      {.name = "service-account revoke-key",
       .summary = "Revoke an API key of a service account (administrators)",
       .example = "ci pipeline",
       .operands = {{"SERVICE-ACCOUNT", "Name or id"}, {"KEY", "Name or id of the key"}},
       .needs_yes = true,
       .change = [](Call& call, const Settings& settings) -> Task<Result<int>> {
         const auto found = co_await find_service_account(call.server, settings.name);
         if (!found) co_return std::unexpected(found.error());
         const auto path = path_of(kServiceKeys, id_of(*found));
         co_return co_await revoke_key(call, path, path + "/", settings.member, settings.yes,
                                       look_at_key(settings.name, settings.member));
       }});
}

}  // namespace

Task<Result<std::string>> account_id(Server& server) {
  const auto data = co_await server.ask(kMe.text, Json::object());
  if (!data) co_return std::unexpected(data.error());
  auto id = string_at(*data, {"me", "activeAccount", "id"});
  if (id.empty()) co_return fail(ErrorCode::protocol, "the answer names no account");
  co_return id;
}

Task<Result<Json>> find_by_name(Server& server, std::string path, std::string kind,
                                std::string name) {
  const auto list = co_await server.call("GET", path);
  if (!list) co_return std::unexpected(list.error());
  const auto items = whole_list(*list, 0);
  if (!items) co_return std::unexpected(items.error());
  std::vector<Json> found;
  for (const Json& item : items->all) {
    for (const char* member : {"_id", "name", "userName", "email"}) {
      if (name.empty() || string_at(item, {member}) != name) continue;
      // Ids are unique, and names of others may be made to look like one.
      if (std::string_view(member) == "_id") co_return Json(item);
      found.push_back(item);
      break;
    }
  }
  if (found.empty()) co_return not_found(kind, name);
  if (found.size() == 1) co_return std::move(found[0]);
  std::vector<std::string> ids;
  for (const Json& item : found) ids.push_back(text_at(item, {"_id"}));
  co_return usage_error("several have the name " + name + "; use an id: " + join(ids, ", "));
}

std::vector<cli::Command> people_change_commands() {
  const auto admin = [](const char* method) {
    return [method](Server& server, User user) -> Task<Result<Json>> {
      co_return co_await server.call(method, user.path + "/admin");
    };
  };
  return {
      add_user(),
      change_user("remove", "Remove a user, or withdraw its invitation (administrators)",
                  "is removed", true,
                  [](Server& server, User user) -> Task<Result<Json>> {
                    co_return co_await server.call("DELETE", user.path);
                  }),
      change_user(
          "disable", "Let a user log in no more (administrators)", "is disabled", false,
          [](Server& server, User user) { return set_disabled(server, std::move(user), true); }),
      change_user(
          "enable", "Let a disabled user log in again (administrators)", "is enabled", false,
          [](Server& server, User user) { return set_disabled(server, std::move(user), false); }),
      change_user("grant-admin", "Make a user an administrator (administrators)",
                  "is an administrator", false, admin("POST")),
      change_user("revoke-admin", "Make an administrator a user again (administrators)",
                  "is no administrator any more", false, admin("DELETE")),
      reset_password(),
      create_team(),
      delete_team(),
      rename_team(),
      change_members("add-member", "Put a user into a team (administrators)", "/assignUserToTeam",
                     " is in team "),
      change_members("remove-member", "Take a user out of a team (administrators)",
                     "/deleteUserFromTeam", " is no longer in team "),
      create_token(),
      revoke_token(),
      create_service_account(),
      change_service_account("delete", "Delete a service account, with its keys (administrators)",
                             "DELETE", Json(), "is deleted"),
      change_service_account("disable", "Let a service account do nothing (administrators)",
                             "PATCH", Json{{"enabled", false}}, "is disabled"),
      change_service_account("enable", "Let a disabled service account work (administrators)",
                             "PATCH", Json{{"enabled", true}}, "is enabled"),
      create_service_key(),
      revoke_service_key()};
}

}  // namespace gitops::ctl
