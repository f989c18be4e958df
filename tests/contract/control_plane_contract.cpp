#include "contract/control_plane_contract.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/control_plane/events.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/time.hpp"
#include "common/http/client.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using control_plane::Identity;
using control_plane::SentCredential;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// The calls of one case to the peer, with the runtime's token unless another one is given.
class Session {
 public:
  Session(http::Client& http, const ControlPlanePeer& given)
      : peer(given),
        http_(http),
        client(http, given.url, [this] { return Secret(peer.runtime_token); }),
        events(http, given.url, [this] { return Secret(peer.runtime_token); }) {}

  Task<Result<Identity>> me(std::string header, std::string value) {
    const SentCredential credential{.header = std::move(header), .value = Secret(std::move(value))};
    co_return co_await client.me(credential, soon());
  }
  // A document as another client sends it.
  Task<http::Response> post(const std::string& token, std::string body) {
    http::Request request{.method = "POST", .target = "/2.0/api/graphql"};
    request.headers.add("Authorization", token);
    request.headers.add("Content-Type", "application/json");
    request.body = std::move(body);
    auto response = co_await http_.send(peer.url, std::move(request), soon());
    EXPECT_TRUE(response);
    co_return response ? *response : http::Response{};
  }

  const ControlPlanePeer& peer;

 private:
  http::Client& http_;

 public:
  control_plane::GraphqlClient client;
  control_plane::Client events;
};

// docs/reference/event-guarantees.md, "A database that goes back in time".
Task<> an_inventory_that_is_not_asked_for_is_refused(Session& session) {
  const control_plane::Inventory inventory{.token = "nobody-1", .shards = {0}, .sequence = 1};
  const auto told = co_await session.events.post_inventory(inventory, "app/0/1", soon());
  CO_ASSERT_TRUE(!told.has_value());
  EXPECT_EQ(told.error().http_status, 409);
}

Task<> me_tells_who_a_users_token_belongs_to(Session& session) {
  const auto& peer = session.peer;
  const auto admin = co_await session.me("Authorization", peer.admin_token);
  CO_ASSERT_OK(admin);
  EXPECT_EQ(admin->user_id, peer.admin);
  EXPECT_EQ(admin->account_id, peer.account);
  EXPECT_EQ(admin->runtime_name, "");
  EXPECT_TRUE(admin->is_account_admin);
  EXPECT_FALSE(admin->name.empty());
  const auto user = co_await session.me("Authorization", peer.user_token);
  CO_ASSERT_OK(user);
  EXPECT_EQ(user->user_id, peer.user);
  EXPECT_EQ(user->email, "");
  EXPECT_FALSE(user->is_account_admin);
}

Task<> me_takes_each_form_of_a_credential(Session& session) {
  const auto& peer = session.peer;
  for (const auto& [header, value] : std::vector<std::pair<std::string, std::string>>{
           {"Authorization", peer.user_token},
           {"x-access-token", peer.user_token},
           {"Cookie", "theme=dark; " + peer.cookie + "=" + peer.user_token}}) {
    const auto me = co_await session.me(header, value);
    CO_ASSERT_OK(me);
    EXPECT_EQ(me->user_id, peer.user) << header;
  }
}

Task<> me_tells_which_runtime_a_token_belongs_to(Session& session) {
  const auto own = co_await session.client.own_identity(soon());
  CO_ASSERT_OK(own);
  EXPECT_EQ(own->runtime_name, session.peer.runtime);
  EXPECT_EQ(own->account_id, session.peer.account);
  EXPECT_EQ(own->user_id, "");
  EXPECT_FALSE(own->git_provider.empty());
}

Task<> unknown_credentials_are_unauthenticated(Session& session) {
  for (const char* header : {"Authorization", "x-access-token"}) {
    const auto nobody = co_await session.me(header, "nobody.0000");
    CO_ASSERT_TRUE(!nobody);
    EXPECT_EQ(nobody.error().code, ErrorCode::unauthenticated) << header;
  }
  const auto cookie = co_await session.me("Cookie", session.peer.cookie + "=nobody");
  CO_ASSERT_TRUE(!cookie);
  EXPECT_EQ(cookie.error().code, ErrorCode::unauthenticated);
  const auto none = co_await session.me("Authorization", "");
  CO_ASSERT_TRUE(!none);
  EXPECT_EQ(none.error().code, ErrorCode::unauthenticated);
}

Task<> runtime_is_there_for_its_account_only(Session& session) {
  const auto runtime = co_await session.client.runtime(session.peer.runtime, soon());
  CO_ASSERT_OK(runtime);
  EXPECT_EQ(runtime->account, session.peer.account);
  EXPECT_FALSE(runtime->runtime_namespace.empty());
  EXPECT_THAT(runtime->installation_status, testing::AnyOf("IN_PROGRESS", "COMPLETED", "FAILED"));
  const auto missing = co_await session.client.runtime("no-such-runtime", soon());
  CO_ASSERT_TRUE(!missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  const Json body{{"query", "query R($name: String!){runtime(name:$name){metadata{name}}}"},
                  {"variables", {{"name", session.peer.runtime}}}};
  const auto other = co_await session.post(session.peer.stranger_token, body.dump());
  EXPECT_EQ(other.status, 200);
  EXPECT_TRUE(Json::parse(other.body)["data"]["runtime"].is_null()) << other.body;
}

// What the public Go SDK asks before it talks to an app-proxy.
Task<> runtime_answers_the_document_of_the_sdk(Session& session) {
  const Json body{
      {"query",
       "\nquery GetRuntime($name: String!) {\n\truntime(name: $name) {\n\t\tmetadata "
       "{\n\t\t\tname\n"
       "\t\t\tnamespace\n\t\t}\n\t\tself "
       "{\n\t\t\tsyncStatus\n\t\t\thealthMessage\n\t\t\thealthStatus\n"
       "\t\t}\n\t\tsyncStatus\n\t\thealthStatus\n\t\thealthMessage\n\t\tcluster\n\t\tmanaged\n"
       "\t\tisRemoteClusterConnected\n\t\tingressHost\n\t\tinternalIngressHost\n\t\tingressClass\n"
       "\t\tingressController\n\t\truntimeVersion\n\t\tinstallationStatus\n\t\tinstallationType\n"
       "\t\trepo\n\t\tmanagedClustersNum\n\t\tgitProvider\n\t\taccessMode\n\t}\n}"},
      {"variables", {{"name", session.peer.runtime}}}};
  const auto answer = co_await session.post(session.peer.user_token, body.dump());
  EXPECT_EQ(answer.status, 200);
  const auto json = Json::parse(answer.body);
  EXPECT_FALSE(json.contains("errors")) << answer.body;
  EXPECT_EQ(json["data"]["runtime"]["metadata"]["name"], session.peer.runtime);
  // Its enums must not be null: the SDK then decodes nothing at all.
  for (const char* member :
       {"syncStatus", "installationType", "installationStatus", "accessMode"}) {
    EXPECT_TRUE(json["data"]["runtime"][member].is_string()) << member;
  }
}

Task<> rules_are_those_of_the_entity_type(Session& session) {
  auto rules =
      co_await session.client.abac_rules(session.peer.account, "gitopsApplications", soon());
  CO_ASSERT_OK(rules);
  // An account may have a rule by which all users see its Applications.
  std::erase_if(*rules,
                [](const auto& rule) { return rule.actions == std::vector<std::string>{"VIEW"}; });
  CO_ASSERT_EQ(rules->size(), 1U);
  const auto& rule = rules->front();
  EXPECT_FALSE(rule.id.empty());
  EXPECT_THAT(rule.teams, ElementsAre(session.peer.team));
  EXPECT_THAT(rule.actions, ElementsAre("SYNC"));
  EXPECT_THAT(rule.attributes,
              UnorderedElementsAre(control_plane::AbacRule::Attribute{"LABEL", "team", "a"},
                                   control_plane::AbacRule::Attribute{"CLUSTER", "", "c1"}));
  for (const char* type : {"workflows", "workflowTemplates", "products", "environments",
                           "promotionFlows", "clusters"}) {
    const auto none = co_await session.client.abac_rules(session.peer.account, type, soon());
    CO_ASSERT_OK(none);
    EXPECT_TRUE(none->empty()) << type;
  }
}

Task<> rules_of_other_accounts_are_refused(Session& session) {
  const auto other = co_await session.client.abac_rules("another", "gitopsApplications", soon());
  EXPECT_FALSE(other);
}

Task<> teams_name_their_users(Session& session) {
  const auto teams = co_await session.client.teams(soon());
  CO_ASSERT_OK(teams);
  CO_ASSERT_TRUE(teams->contains(session.peer.user));
  EXPECT_THAT(teams->at(session.peer.user), ElementsAre(session.peer.team));
  EXPECT_FALSE(teams->contains(session.peer.admin));
}

Task<> git_sources_keep_their_permissions(Session& session) {
  const auto sources = co_await session.client.git_sources(session.peer.runtime, soon());
  CO_ASSERT_OK(sources);
  // More than a page of the client.
  CO_ASSERT_EQ(sources->size(), session.peer.git_sources);
  auto source = sources->back();
  EXPECT_EQ(source.account_id, session.peer.account);
  EXPECT_FALSE(source.name.empty());
  EXPECT_FALSE(source.source_namespace.empty());
  EXPECT_TRUE(source.repository_url.starts_with("https://")) << source.repository_url;
  EXPECT_TRUE(source.permissions.empty());
  source.permissions = {{.user_id = session.peer.admin, .read = true, .write = true},
                        {.user_id = session.peer.user, .read = true, .write = false}};
  CO_ASSERT_OK(co_await session.client.set_permissions(source, soon()));
  const auto after = co_await session.client.git_sources(session.peer.runtime, soon());
  CO_ASSERT_OK(after);
  CO_ASSERT_EQ(after->size(), sources->size());
  CO_ASSERT_EQ(after->back().permissions.size(), 2U);
  EXPECT_TRUE(after->back().permissions[0].write);
  EXPECT_FALSE(after->back().permissions[1].write);
  EXPECT_TRUE(after->front().permissions.empty());
  const auto none = co_await session.client.git_sources("no-such-runtime", soon());
  CO_ASSERT_OK(none);
  EXPECT_TRUE(none->empty());
  source.name = "no-such-source";
  EXPECT_FALSE(co_await session.client.set_permissions(source, soon()));
}

Task<> git_permissions_filter_unless_the_account_says_otherwise(Session& session) {
  const auto filters = co_await session.client.filters_by_git_permissions(soon());
  CO_ASSERT_OK(filters);
  EXPECT_TRUE(*filters);
}

Task<> wrong_documents_are_errors(Session& session) {
  for (const char* document : {"{me{noSuchField}}", "{", "query($n: Int!){me{id}}"}) {
    const auto answer =
        co_await session.post(session.peer.user_token, Json{{"query", document}}.dump());
    const auto json = Json::parse(answer.body, nullptr, false);
    CO_ASSERT_TRUE(json.is_object());
    EXPECT_TRUE(json.contains("errors")) << answer.body;
  }
}

std::function<Task<>(const ControlPlanePeer&)> on(Task<> (*run)(Session&)) {
  return [run](const ControlPlanePeer& peer) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client client(executor, resolver, {.tls = {.ca_file = peer.ca_file}});
    Session session(client, peer);
    co_await run(session);
    client.close_idle();
  };
}

}  // namespace

std::vector<ControlPlaneCase> control_plane_cases() {
  return {
      {"MeTellsWhoAUsersTokenBelongsTo", on(me_tells_who_a_users_token_belongs_to)},
      {"MeTakesEachFormOfACredential", on(me_takes_each_form_of_a_credential)},
      {"MeTellsWhichRuntimeATokenBelongsTo", on(me_tells_which_runtime_a_token_belongs_to)},
      {"UnknownCredentialsAreUnauthenticated", on(unknown_credentials_are_unauthenticated)},
      {"RuntimeIsThereForItsAccountOnly", on(runtime_is_there_for_its_account_only)},
      {"RuntimeAnswersTheDocumentOfTheSdk", on(runtime_answers_the_document_of_the_sdk)},
      {"RulesAreThoseOfTheEntityType", on(rules_are_those_of_the_entity_type)},
      {"RulesOfOtherAccountsAreRefused", on(rules_of_other_accounts_are_refused)},
      {"TeamsNameTheirUsers", on(teams_name_their_users)},
      {"GitSourcesKeepTheirPermissions", on(git_sources_keep_their_permissions)},
      {"GitPermissionsFilterUnlessTheAccountSaysOtherwise",
       on(git_permissions_filter_unless_the_account_says_otherwise)},
      {"WrongDocumentsAreErrors", on(wrong_documents_are_errors)},
      {"AnInventoryThatIsNotAskedForIsRefused", on(an_inventory_that_is_not_asked_for_is_refused)},
  };
}

}  // namespace gitops::test
