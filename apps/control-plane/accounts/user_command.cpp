#include "control-plane/accounts/user_command.hpp"

#include <memory>
#include <utility>

#include "common/cli/loop_runner.hpp"
#include "common/cli/table.hpp"
#include "common/core/crypto.hpp"
#include "common/core/metrics.hpp"
#include "common/store/database.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/passwords.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/scopes.hpp"
#include "control-plane/accounts/service_accounts.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/audit/audit_store.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;

constexpr std::chrono::hours kMaxKeyLife{24 * 3650};

struct Settings {
  store::Location location;
  cli::LoopOptions loop{.timeout = std::chrono::seconds(30)};
  std::string name;
  std::string email;
  std::string public_url;
  std::string account = "default";
  std::string user;
  std::string id;
  std::vector<std::string> scopes;
  bool is_admin = false;
  bool is_system_admin = false;
  Secret password;
  std::chrono::milliseconds expires_in{0};
};
using SettingsPtr = std::shared_ptr<Settings>;
using Bind = std::function<void(ConfigReader&, const SettingsPtr&)>;
// A function that runs as one transaction and returns the text to print.
using Work = std::function<Result<std::string>(Connection&, const Settings&)>;

AuditEntry entry_of(const std::string& action, const Settings& settings) {
  AuditEntry entry{.at = micros_at(wall_now()), .caller = "command line", .action = action};
  for (const auto& [name, value] :
       {std::pair("name", &settings.name), std::pair("user", &settings.user),
        std::pair("id", &settings.id), std::pair("email", &settings.email)}) {
    if (value->empty()) continue;
    if (!entry.target.empty()) entry.target += ' ';
    entry.target += std::string(name) + "=" + *value;
  }
  return entry;
}

// `action` is the command in the audit log; empty: it changes nothing.
int run_in_database(const AccountCommandOptions& options, const Settings& settings,
                    cli::Console& console, const Work& work, const std::string& action) {
  const auto failed = [&console](const Error& error) {
    console.err << "control-plane: " << cli::printable(error.message) << '\n';
    return cli::kFailed;
  };
  Metrics metrics;
  store::Database database(
      {.location = settings.location, .name = "control-plane-command", .readers = 1}, metrics);
  if (auto opened = database.open(options.migrations); !opened) {
    auto error = std::move(opened.error());
    const bool is_locked =
        settings.location.engine == store::Engine::sqlite && error.code == ErrorCode::conflict;
    if (is_locked) {
      error.message +=
          ": stop control-plane first, since a file of SQLite belongs to one process at a time";
    }
    return failed(error);
  }
  return cli::run_on_loop(
      settings.loop, console, [&](const cli::LoopContext& context) -> Task<int> {
        const auto text = co_await database.write(
            context.deadline,
            [work, settings, action](Connection& connection) -> Result<std::string> {
              auto done = work(connection, settings);
              if (!done || action.empty()) return done;
              if (auto added = append_audit(connection, {entry_of(action, settings)}); !added) {
                return std::unexpected(std::move(added.error()));
              }
              return done;
            });
        if (!text) co_return failed(text.error());
        console.out << *text;
        co_return cli::kDone;
      });
}

// `name` is the whole command: "user add".
cli::Command command(const AccountCommandOptions& options, const std::string& name,
                     std::string summary, Bind bind, Work work, std::string description = {}) {
  auto word = name.substr(name.find(' ') + 1);
  const auto action = word == "list" ? std::string() : "control-plane " + name;
  const auto settings = std::make_shared<Settings>();
  return {.name = std::move(word),
          .summary = std::move(summary),
          .description = std::move(description),
          .bind =
              [settings, bind = std::move(bind),
               add_location = options.add_location](ConfigReader& reader) {
                bind(reader, settings);
                add_location(reader, settings->location);
                settings->loop.add_to(reader);
              },
          .run =
              [settings, options, work = std::move(work), action](const cli::Environment&,
                                                                  cli::Console& console) {
                return run_in_database(options, *settings, console, work, action);
              }};
}

void add_required(ConfigReader& reader, std::string_view flag, std::string_view help,
                  std::string& target) {
  reader.add({.flag = flag, .help = help}, target);
  reader.check({std::string(flag)}, [&target, flag = std::string(flag)] {
    return target.empty() ? "--" + flag + " is required" : std::string();
  });
}

void add_account(ConfigReader& reader, const SettingsPtr& settings) {
  reader.add({.flag = "account", .help = "Name of the account"}, settings->account);
}

void add_password(ConfigReader& reader, const SettingsPtr& settings) {
  reader.add_secret({.flag = "password",
                     .env = {"PASSWORD"},
                     .help = "Password of the user; without it one is generated and printed"},
                    settings->password);
}

// The hash of the given password or of a generated one, and the text to print about it.
struct ChosenPassword {
  std::string hash;
  std::string text;
};
Result<ChosenPassword> choose_password(const Settings& settings) {
  const bool is_given = !settings.password.empty();
  const Secret password = is_given ? settings.password : generated_password();
  if (auto mistake = password_mistake(password); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  ChosenPassword chosen{.hash = hash_password(password, random_bytes(kSaltBytes)), .text = {}};
  if (!is_given) chosen.text = "password (shown once): " + std::string(password.reveal()) + "\n";
  return chosen;
}

Result<std::string> add_user(Connection& connection, const Settings& settings) {
  const auto account = account_of_name(connection, settings.account);
  if (!account) return std::unexpected(account.error());
  const auto password = choose_password(settings);
  if (!password) return std::unexpected(password.error());
  const auto user = create_user(connection, account->number,
                                {.name = settings.name,
                                 .email = settings.email,
                                 .password = password->hash,
                                 .is_system_admin = settings.is_system_admin,
                                 .is_admin = settings.is_admin},
                                micros_at(wall_now()));
  if (!user) return std::unexpected(user.error());
  return "user " + user->name + " was created with the id " + user->id + "\n" + password->text;
}

Result<std::string> invite_user(Connection& connection, const Settings& settings) {
  const auto account = account_of_name(connection, settings.account);
  if (!account) return std::unexpected(account.error());
  const auto issued =
      invite(connection, account->number,
             {.email = settings.email, .name = settings.name, .is_admin = settings.is_admin},
             micros_at(wall_now()));
  if (!issued) return std::unexpected(issued.error());
  return "user " + issued->invitation.email + " is invited to the account " + account->name +
         " until " +
         format_rfc3339(
             WallTime(std::chrono::milliseconds(issued->invitation.expires_at / 1'000))) +
         "\nlink (shown once): " + invitation_link(settings.public_url, issued->token) + "\n";
}

std::string yes(bool is_set) {
  return is_set ? "yes" : "-";
}

std::string day(Micros at) {
  if (at == 0) return "-";
  return format_rfc3339(WallTime(std::chrono::milliseconds(at / 1'000)));
}

Result<std::string> show_users(Connection& connection, const Settings&) {
  const auto users = list_users(connection);
  if (!users) return std::unexpected(users.error());
  cli::Table table;
  table.add({{"NAME"}, {"ID"}, {"SYSTEM ADMIN"}, {"DISABLED"}, {"LAST LOGIN"}, {"ACCOUNTS"}});
  for (const auto& user : *users) {
    const auto accounts = accounts_of_user(connection, user.id);
    if (!accounts) return std::unexpected(accounts.error());
    std::string names;
    for (const auto& account : *accounts) {
      if (!names.empty()) names += ", ";
      names += account.name;
    }
    table.add({{cli::printable(user.name)},
               {user.id},
               {yes(user.is_system_admin)},
               {yes(user.is_disabled)},
               {day(user.seen_at)},
               {cli::printable(names)}});
  }
  return table.text(0, false);
}

// Lets a running daemon evict the user's credentials from its cache.
Result<void> add_revoked_user(Connection& connection, const User& user) {
  return add_revocation(connection,
                        {.account = user.active_account, .subject = user.id, .runtime = {}},
                        micros_at(wall_now()));
}

Result<std::string> change_password(Connection& connection, const Settings& settings) {
  const auto user = user_of_name(connection, settings.name);
  if (!user) return std::unexpected(user.error());
  const auto password = choose_password(settings);
  if (!password) return std::unexpected(password.error());
  if (auto set = set_password(connection, user->id, password->hash); !set) {
    return std::unexpected(std::move(set.error()));
  }
  if (auto ended = end_sessions_of(connection, user->id); !ended) {
    return std::unexpected(std::move(ended.error()));
  }
  if (auto added = add_revoked_user(connection, *user); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return "the password of user " + user->name + " was changed and its sessions have ended\n" +
         password->text;
}

Work disabling(bool is_disabled) {
  return [is_disabled](Connection& connection, const Settings& settings) -> Result<std::string> {
    const auto user = user_of_name(connection, settings.name);
    if (!user) return std::unexpected(user.error());
    if (auto set = set_disabled(connection, user->id, is_disabled); !set) {
      return std::unexpected(std::move(set.error()));
    }
    if (auto added = add_revoked_user(connection, *user); !added) {
      return std::unexpected(std::move(added.error()));
    }
    return "user " + user->name + " is " + (is_disabled ? "disabled" : "enabled") + "\n";
  };
}

Result<std::string> add_key(Connection& connection, const Settings& settings) {
  const auto account = account_of_name(connection, settings.account);
  if (!account) return std::unexpected(account.error());
  const auto user = user_of_name(connection, settings.user);
  if (!user) return std::unexpected(user.error());
  const auto member = find_member(connection, account->number, user->id);
  if (!member) return std::unexpected(member.error());
  if (!*member) {
    return fail(ErrorCode::not_found,
                "user " + user->name + " is no member of the account " + account->name);
  }
  const auto now = micros_at(wall_now());
  const auto issued = create_user_key(
      connection, account->number, user->id,
      {.name = settings.name,
       .scopes = settings.scopes,
       .expires_at = settings.expires_in.count() == 0
                         ? 0
                         : now + std::chrono::microseconds(settings.expires_in).count()},
      now);
  if (!issued) return std::unexpected(issued.error());
  return std::string(issued->text.reveal()) + "\n";
}

// Returns the owner of a key as people call it: "user ann", "runtime prod".
Result<std::string> owner_of(Connection& connection, const ApiKey& key) {
  if (!key.runtime.empty()) return "runtime " + key.runtime;
  if (key.is_of_service_account) {
    const auto owner = service_account_of_id(connection, key.account, key.user_id);
    if (!owner) return std::unexpected(owner.error());
    return "service account " + owner->name + (owner->is_disabled ? " (disabled)" : "");
  }
  const auto user = user_of_id(connection, key.user_id);
  if (user) return "user " + user->name + (user->is_disabled ? " (disabled)" : "");
  if (user.error().code != ErrorCode::not_found) return std::unexpected(user.error());
  return "user " + key.user_id;
}

std::string comma_list(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

Result<std::string> show_keys(Connection& connection, const Settings& settings) {
  const auto account = account_of_name(connection, settings.account);
  if (!account) return std::unexpected(account.error());
  const auto keys = list_keys(connection, account->number, {});
  if (!keys) return std::unexpected(keys.error());
  cli::Table table;
  const auto now = micros_at(wall_now());
  table.add({{"ID"},
             {"NAME"},
             {"SECRET"},
             {"OWNER"},
             {"SCOPES"},
             {"CREATED"},
             {"EXPIRES"},
             {"LAST USED"}});
  for (const auto& key : *keys) {
    const auto owner = owner_of(connection, key);
    if (!owner) return std::unexpected(owner.error());
    const bool is_expired = key.expires_at != 0 && key.expires_at <= now;
    table.add({{key.id},
               {cli::printable(key.name)},
               {key.prefix + "…"},
               {cli::printable(*owner)},
               {key.scopes.empty() ? "all" : cli::printable(comma_list(key.scopes))},
               {day(key.created_at)},
               {day(key.expires_at) + (is_expired ? " (expired)" : "")},
               {day(key.used_at)}});
  }
  return table.text(0, false);
}

Result<std::string> revoke_one_key(Connection& connection, const Settings& settings) {
  const auto account = account_of_name(connection, settings.account);
  if (!account) return std::unexpected(account.error());
  const auto key = key_of_account(connection, account->number, settings.id);
  if (!key) return std::unexpected(key.error());
  if (auto revoked = revoke_key(connection, account->number, settings.id); !revoked) {
    return std::unexpected(std::move(revoked.error()));
  }
  const Revocation revocation{
      .account = account->number, .subject = settings.id, .runtime = key->runtime};
  if (auto added = add_revocation(connection, revocation, micros_at(wall_now())); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return "key " + settings.id + " is revoked\n" +
         (key->runtime.empty() ? std::string()
                               : "control-plane disconnects the tunnel of runtime " + key->runtime +
                                     " if tunnel.api-urls is set\n");
}

Result<std::string> add_one_account(Connection& connection, const Settings& settings) {
  const auto account = create_account(connection, settings.name, micros_at(wall_now()));
  if (!account) return std::unexpected(account.error());
  return "account " + account->name + " was created with the id " + account->id + "\n";
}

Result<std::string> show_accounts(Connection& connection, const Settings&) {
  const auto accounts = list_accounts(connection);
  if (!accounts) return std::unexpected(accounts.error());
  cli::Table table;
  table.add({{"NAME"}, {"ID"}, {"ADMINISTRATORS"}, {"SHARED CONFIGURATION REPOSITORY"}});
  for (const auto& account : *accounts) {
    table.add(
        {{cli::printable(account.name)},
         {account.id},
         {std::to_string(account.admins.size())},
         {account.shared_config_repo.empty() ? "-" : cli::printable(account.shared_config_repo)}});
  }
  return table.text(0, false);
}

void bind_user_name(ConfigReader& reader, const SettingsPtr& settings) {
  reader.group("User");
  add_required(reader, "name", "Name of the user", settings->name);
}

void bind_new_user(ConfigReader& reader, const SettingsPtr& settings) {
  bind_user_name(reader, settings);
  reader.add({.flag = "email", .help = "Mail address of the user"}, settings->email);
  add_account(reader, settings);
  reader.add({.flag = "admin", .help = "The user administers the account"}, settings->is_admin);
  reader.add({.flag = "system-admin", .help = "The user administers this installation"},
             settings->is_system_admin);
  add_password(reader, settings);
}

void bind_invitation(ConfigReader& reader, const SettingsPtr& settings) {
  reader.group("User");
  add_required(reader, "email", "Mail address of the user; nothing is sent to it", settings->email);
  reader.add({.flag = "name", .help = "Proposed name of the user"}, settings->name);
  add_account(reader, settings);
  reader.add({.flag = "admin", .help = "The user will administer the account"}, settings->is_admin);
  reader.add({.flag = "public-url",
              .env = {"PUBLIC_URL"},
              .help = "URL by which browsers reach the server, for the link"},
             settings->public_url);
}

void bind_new_password(ConfigReader& reader, const SettingsPtr& settings) {
  bind_user_name(reader, settings);
  add_password(reader, settings);
}

void bind_new_key(ConfigReader& reader, const SettingsPtr& settings) {
  reader.group("Key");
  add_required(reader, "user", "Name of the user whom the key belongs to", settings->user);
  add_required(reader, "name", "Name of the key", settings->name);
  add_account(reader, settings);
  reader.add(
      {.flag = "scopes",
       .help = "Scopes of the key: read, write, runtimes, images, app-proxy; empty: all that "
               "the user may do"},
      settings->scopes);
  reader.check({"scopes"}, [settings] { return scopes_mistake(settings->scopes); });
  reader.add({.flag = "expires-in", .help = "Time after which the key expires; 0: never"},
             settings->expires_in, std::chrono::milliseconds(0), kMaxKeyLife);
}

void bind_key_list(ConfigReader& reader, const SettingsPtr& settings) {
  reader.group("Key");
  add_account(reader, settings);
}

void bind_key_id(ConfigReader& reader, const SettingsPtr& settings) {
  reader.group("Key");
  add_required(reader, "id", "Id of the key: the part before the dot", settings->id);
  add_account(reader, settings);
}

void bind_account_name(ConfigReader& reader, const SettingsPtr& settings) {
  reader.group("Account");
  add_required(reader, "name", "Name of the account", settings->name);
}

void bind_nothing(ConfigReader&, const SettingsPtr&) {}

}  // namespace

std::vector<cli::Program> account_programs(const AccountCommandOptions& options) {
  return {
      {.name = "control-plane user",
       .summary = "users of this installation",
       .commands = {command(options, "user add", "Create a user as a member of an account",
                            bind_new_user, add_user),
                    command(options, "user invite",
                            "Invite a person to an account by a link that is printed",
                            bind_invitation, invite_user,
                            "The link is shown once and is valid for 7 days. A new invitation of "
                            "the same address makes the older link invalid.\n"),
                    command(options, "user list", "List all users", bind_nothing, show_users),
                    command(options, "user password",
                            "Change a user's password and end its sessions", bind_new_password,
                            change_password),
                    command(options, "user disable",
                            "Refuse a user's password, sessions and keys from now on",
                            bind_user_name, disabling(true)),
                    command(options, "user enable", "Allow a disabled user again", bind_user_name,
                            disabling(false))}},
      {.name = "control-plane key",
       .summary = "API keys of users and tokens of runtimes",
       .commands = {command(options, "key create", "Create an API key and print it", bind_new_key,
                            add_key, "The key is shown once: it is not stored.\n"),
                    command(options, "key list", "List the keys of an account", bind_key_list,
                            show_keys),
                    command(options, "key revoke", "Revoke a key", bind_key_id, revoke_one_key)}},
      {.name = "control-plane account",
       .summary = "accounts of this installation",
       .commands = {
           command(options, "account add", "Create an account", bind_account_name, add_one_account),
           command(options, "account list", "List all accounts", bind_nothing, show_accounts)}}};
}

std::optional<int> run_account_command(const AccountCommandOptions& options,
                                       const std::vector<std::string>& arguments,
                                       const cli::Environment& environment, cli::Console& console) {
  if (arguments.empty()) return {};
  for (const auto& program : account_programs(options)) {
    if (program.name != "control-plane " + arguments.front()) continue;
    return cli::run(program, {arguments.begin() + 1, arguments.end()}, environment, console);
  }
  return {};
}

}  // namespace gitops::control_plane_server
