// The cases of the double for the program itself.
#include <map>
#include <memory>
#include <ostream>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/store/databases.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "contract/control_plane_contract.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/teams.hpp"
#include "daemons/control_plane_process.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

namespace server = control_plane_server;
using Json = nlohmann::json;
using store::Engine;

constexpr std::size_t kGitSources = 70;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// A control plane of either engine as the cases want it.
class ContractBed {
 public:
  explicit ContractBed(Engine engine)
      : program_(engine == Engine::postgres ? PostgresServer::shared().new_database()
                                            : std::string()) {
    peer_.account = program_.add_account("acme");
    program_.add_account("other");
    peer_.admin = program_.add_user("ann", "acme", {"--admin", "--email=ann@example.test"});
    peer_.user = program_.add_user("bob", "acme");
    program_.add_user("eve", "other");
    peer_.admin_token = program_.create_key("ann", "acme");
    peer_.user_token = program_.create_key("bob", "acme");
    peer_.stranger_token = program_.create_key("eve", "other");
    make_team(engine);
    program_.start();
    peer_.url = must(http::parse_url(program_.url()));
    peer_.runtime = "prod";
    peer_.runtime_token = program_.register_runtime(peer_.admin_token, peer_.runtime);
    set_up_account();
    add_git_sources();
  }
  [[nodiscard]] const ControlPlanePeer& peer() const { return peer_; }

 private:
  // The contract has an administrator in no team and a user in one, while this server puts members into built-in teams.
  void make_team(Engine engine) {
    const store::Location location{.engine = engine,
                                   .path = program_.database_path(),
                                   .dsn = program_.database_url(),
                                   .password_file = {}};
    std::unique_ptr<store::Connection> db;
    if (engine == Engine::sqlite) {
      db = must(store::open_sqlite(location.path, store::Access::read_write, 1024 * 1024));
    } else {
      db = must(store::open_postgres(location, "test"));
    }
    const auto account = must(server::account_of_id(*db, peer_.account)).number;
    for (const auto& user : {peer_.admin, peer_.user}) {
      must(server::leave_all_teams(*db, account, user));
    }
    peer_.team = must(server::create_team(*db, account, "a-team"));
    must(server::add_to_team(*db, account, peer_.team, peer_.user));
  }

  void ask(const std::string& query, const Json& variables) {
    const auto reply = program_.graphql(peer_.admin_token, query, variables.dump());
    if (!reply.ok() || reply.body.contains("\"errors\"")) throw std::runtime_error(reply.body);
  }

  void set_up_account() {
    ask("mutation Settings($gitProvider: GitProviders!, $gitApiUrl: String!, "
        "$sharedConfigRepo: String!){updateCsdpSettings(gitProvider: $gitProvider, gitApiUrl: "
        "$gitApiUrl, sharedConfigRepo: $sharedConfigRepo)}",
        {{"gitProvider", "GITHUB"},
         {"gitApiUrl", "https://api.github.example.test"},
         {"sharedConfigRepo", "https://github.example.test/acme/config.git"}});
    ask("mutation CreateAbacRule($accountId: String!, $createAbacRuleInput: CreateAbacRuleInput!){"
        "createAbacRule(accountId: $accountId, createAbacRuleInput: $createAbacRuleInput){id}}",
        {{"accountId", ""},
         {"createAbacRuleInput",
          {{"entityType", "gitopsApplications"},
           {"teams", {peer_.team}},
           {"actions", {"SYNC"}},
           {"attributes", Json::array({{{"name", "LABEL"}, {"key", "team"}, {"value", "a"}},
                                       {{"name", "CLUSTER"}, {"value", "c1"}}})}}}});
  }

  void add_git_sources() {
    for (std::size_t i = 0; i < kGitSources; ++i) {
      const auto name = "source-" + std::to_string(i);
      const Json application{
          {"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata",
           {{"name", name},
            {"namespace", "gitops"},
            {"uid", "uid-" + name},
            {"labels", {{"codefresh.io/entity", "git-source"}}}}},
          {"spec",
           {{"destination", {{"server", "https://kubernetes.default.svc"}}},
            {"source",
             {{"repoURL", "https://git.example.test/acme/" + name + ".git"}, {"path", "apps"}}}}},
          {"status", {{"sync", {{"status", "Synced"}}}, {"health", {{"status", "Healthy"}}}}}};
      const auto reply = program_.post_application(peer_.runtime_token, application.dump(),
                                                   static_cast<std::int64_t>(i) + 1);
      if (!reply.ok()) throw std::runtime_error(reply.body);
    }
    peer_.git_sources = kGitSources;
  }

  ControlPlaneProcess program_;
  ControlPlanePeer peer_;
};

struct ControlPlaneProcessContract : testing::TestWithParam<std::tuple<Engine, ControlPlaneCase>> {
  static const ControlPlanePeer& peer(Engine engine) {
    auto& bed = beds[engine];
    if (!bed) bed = std::make_unique<ContractBed>(engine);
    return bed->peer();
  }
  static void TearDownTestSuite() { beds.clear(); }

  static inline std::map<Engine, std::unique_ptr<ContractBed>> beds;
};

TEST_P(ControlPlaneProcessContract, Holds) {
  const auto& peer = ControlPlaneProcessContract::peer(std::get<0>(GetParam()));
  const auto run = std::get<1>(GetParam()).run;
  run_coro([&]() -> Task<> { co_await run(peer); }, std::chrono::seconds(30));
}

INSTANTIATE_TEST_SUITE_P(ControlPlane, ControlPlaneProcessContract,
                         testing::Combine(testing::Values(Engine::sqlite, Engine::postgres),
                                          testing::ValuesIn(control_plane_cases())),
                         [](const auto& info) {
                           return engine_name(std::get<0>(info.param)) +
                                  std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace gitops::test
