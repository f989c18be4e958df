#include "daemons/control_plane_bed.hpp"

#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "common/core/crypto.hpp"
#include "common/store/migration.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/runtimes/runtime_store.hpp"
#include "control-plane/storage/schema.hpp"
#include "support/postgres_server.hpp"

namespace gitops::test {
namespace {

namespace server = control_plane_server;
using Json = nlohmann::json;
using store::Statement;

constexpr std::int64_t kCacheBytes = 1024 * 1024;

// The program makes ids and secrets by chance, and these are constants.
constexpr Statement kSetAccountId{.name = "test.set_account_id",
                                  .sql = "UPDATE account SET id = $2 WHERE number = $1"};
constexpr Statement kAddUser{
    .name = "test.add_user",
    .sql =
        "INSERT INTO users (id, name, email, active_account, created_at) VALUES ($1, $2, $3, $4, "
        "$5)"};
constexpr Statement kAddKey{
    .name = "test.add_key",
    .sql =
        "INSERT INTO api_key (id, account, user_id, runtime, name, hash, prefix, created_at) "
        "VALUES ($1, $2, $3, $4, 'test', $5, '', $6)"};
constexpr Statement kAddTeam{.name = "test.add_team",
                             .sql = "INSERT INTO team (account, id, name) VALUES ($1, $2, $2)"};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::unique_ptr<store::Connection> open(const ControlPlaneProcess& program, store::Engine engine) {
  if (engine == store::Engine::postgres) {
    return must(store::open_postgres(
        {.engine = engine, .path = {}, .dsn = program.database_url(), .password_file = {}},
        "test"));
  }
  write_file(program.database_path(), "");
  return must(store::open_sqlite(program.database_path(), store::Access::read_write, kCacheBytes));
}

// Adds rows to a database that has its tables and nothing else.
class Seed {
 public:
  explicit Seed(store::Connection& db) : db_(db) {}

  std::int64_t account(const char* id, const char* name) {
    const auto number = must(server::create_account(db_, name, now_)).number;
    must(db_.run(kSetAccountId, {number, id}));
    return number;
  }
  void user(std::int64_t account, const std::string& id, const std::string& name,
            const std::string& email, bool is_admin, const std::string& key_text) {
    must(db_.run(kAddUser, {id, name, email, account, now_}));
    must(server::put_member(db_, account, id, is_admin));
    key(account, id, "", key_text);
  }
  void runtime(std::int64_t account, const std::string& name, const std::string& token) {
    must(server::create_runtime(db_, account,
                                {.name = name,
                                 .runtime_namespace = "runtime",
                                 .cluster = "https://kubernetes.default.svc",
                                 .arguments = R"({"runtimeVersion":"0.1.72"})"},
                                now_));
    must(server::revoke_runtime_tokens(db_, account, name));
    key(account, "", name, token);
  }
  void team(std::int64_t account, const ControlPlaneBed::Team& team) {
    must(db_.run(kAddTeam, {account, team.name}));
    for (const auto& user : team.users) must(server::add_to_team(db_, account, team.name, user));
  }
  void leave_teams(std::int64_t account) {
    for (const auto& member : must(server::list_members(db_, account))) {
      must(server::leave_all_teams(db_, account, member.user.id));
    }
  }

 private:
  void key(std::int64_t account, std::string_view user, std::string_view runtime,
           const std::string& text) {
    const auto parsed = server::parse_api_key(text);
    if (!parsed) throw std::logic_error("no key has the form of " + text);
    const auto hash = sha256(parsed->secret.reveal());
    must(db_.run(kAddKey,
                 {parsed->id, account, user, runtime, store::Param::bytes(bytes_of(hash)), now_}));
  }

  store::Connection& db_;
  const server::Micros now_ = server::micros_at(wall_now());
};

}  // namespace

ControlPlaneBed::ControlPlaneBed(Options options)
    : program_(options.engine == store::Engine::postgres ? PostgresServer::shared().new_database()
                                                         : std::string(),
               with_master_key(std::move(options.flags))) {
  seed(options);
  program_.use_tls(authority_);
  program_.start();
}

std::vector<std::string> ControlPlaneBed::with_master_key(std::vector<std::string> flags) const {
  write_file(folder_ / "master-key", random_hex(64));
  flags.push_back("--master-key-file=" + (folder_ / "master-key").string());
  return flags;
}

void ControlPlaneBed::seed(const Options& options) {
  const auto db = open(program_, options.engine);
  must(store::migrate(*db, server::migrations()));
  must(db->transact([&]() -> Result<void> {
    Seed seed(*db);
    const auto acme = seed.account(kAccountId, "acme");
    const auto other = seed.account(kOtherAccountId, "other");
    seed.user(acme, kAnnId, "Ann", "ann@example.test", true, kAnnKey);
    seed.user(acme, kBobId, "Bob", "", false, kBobKey);
    seed.user(other, kEveId, "Eve", "", true, kEveKey);
    for (const auto& member : options.members) {
      seed.user(acme, member.id, member.id, "", false, member.key);
    }
    seed.runtime(acme, "prod", kProdToken);
    seed.leave_teams(acme);
    for (const auto& team : options.teams) seed.team(acme, team);
    return {};
  }));
}

Json ControlPlaneBed::ask(const std::string& query, const Json& variables,
                          const std::string& token) const {
  const auto reply = program_.graphql(token, query, variables.dump());
  const auto json = Json::parse(reply.body, nullptr, false);
  const bool has_data = json.is_object() && json.value("data", Json()).is_object();
  if (!reply.ok() || !has_data || json.contains("errors") || json["data"].empty()) {
    throw std::runtime_error(query + ": " + reply.body);
  }
  return json["data"].begin().value();
}

std::string ControlPlaneBed::runtime_of(const std::string& token) const {
  const auto reply = program_.graphql(token, "{me{runtimeName}}");
  if (reply.status == 401) return {};
  const auto name = Json::parse(reply.body).at(Json::json_pointer("/data/me/runtimeName"));
  return name.is_string() ? name.get<std::string>() : std::string();
}

void ControlPlaneBed::set_git(const std::string& provider, const std::string& api_url,
                              const std::string& repository) const {
  ask("mutation Settings($gitProvider: GitProviders!, $gitApiUrl: String!, $sharedConfigRepo: "
      "String!){updateCsdpSettings(gitProvider: $gitProvider, gitApiUrl: $gitApiUrl, "
      "sharedConfigRepo: $sharedConfigRepo)}",
      {{"gitProvider", provider}, {"gitApiUrl", api_url}, {"sharedConfigRepo", repository}});
}

void ControlPlaneBed::add_rules(const Json& rules) const {
  for (const Json& rule : rules) {
    Json input = Json::object();
    for (const char* member : {"entityType", "teams", "actions", "attributes"}) {
      if (rule.contains(member)) input[member] = rule[member];
    }
    ask("mutation CreateAbacRule($rule: CreateAbacRuleInput!){createAbacRule(accountId: \"\", "
        "createAbacRuleInput: $rule){id}}",
        {{"rule", std::move(input)}});
  }
}

void ControlPlaneBed::remove_rules() const {
  for (const Json& rule : ask("{abacRules(accountId: \"\"){id}}")) {
    ask("mutation Remove($id: ID!){removeAbacRule(accountId: \"\", id: $id){id}}",
        {{"id", rule["id"]}});
  }
}

}  // namespace gitops::test
