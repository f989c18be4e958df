#include "control-plane/runtimes/runtime_store.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/page_tokens.hpp"
#include "control-plane/runtimes/secrets.hpp"
#include "control-plane/storage/report_request_store.hpp"
#include "control-plane/storage/source_report_store.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using store::Statement;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Statement kTestAddObject{
    .name = "test.add_object",
    .sql =
        "INSERT INTO object (id, account, runtime, origin, owner_uid, cluster, api_group, kind, "
        "namespace, name, version, uid, sequence, event_id, manager_name, manager_namespace, "
        "manager_uid, destination, revision, sync, health, health_message, phase, history_id, "
        "created_at, changed_at, seen_at, presence, entity, labels_digest, body_digest) VALUES "
        "($1, $2, $3, 0, '', '', 'argoproj.io', 'Application', 'gitops', $4, 'v1alpha1', 'u', 1, "
        "'', '', '', '', '', '', 1, 1, '', 0, 0, 1, 1, 1, $6, $5, $7, $7)"};
constexpr Statement kTestAddLabel{
    .name = "test.add_label",
    .sql =
        "INSERT INTO label (account, key, value, object) VALUES ($1, 'codefresh.io/entity', $2, "
        "$3)"};
constexpr Statement kTestAddBody{
    .name = "test.add_body",
    .sql = "INSERT INTO body (object, codec, size, packed) VALUES ($1, 1, 1, $2)"};
constexpr Statement kTestCountBodies{.name = "test.count_bodies",
                                     .sql = "SELECT COUNT(*) FROM body"};
constexpr Statement kTestCountLabels{.name = "test.count_labels",
                                     .sql = "SELECT COUNT(*) FROM label"};
constexpr Statement kTestPermissions{
    .name = "test.permissions",
    .sql = "SELECT permissions FROM git_source_permission WHERE account = $1 AND name = $2"};

std::vector<Statement> all_statements() {
  std::vector<Statement> all;
  for (const auto& part : {runtime_statements(), secret_statements()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(RuntimeStatements, EachHasANameAndATextOfItsOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> texts;
  for (const auto& statement : all_statements()) {
    EXPECT_TRUE(names.insert(statement.name).second) << statement.name;
    EXPECT_TRUE(texts.insert(statement.sql).second) << statement.name;
  }
}

TEST(RuntimeStatements, AllOfThemNameTheAccount) {
  for (const auto& statement : all_statements()) {
    if (statement.sql.starts_with("INSERT")) continue;
    EXPECT_TRUE(statement.sql.contains("account = $1")) << statement.name;
  }
}

TEST(RuntimeNames, AreDnsLabels) {
  for (const auto* name : {"prod", "a", "prod-1", "0"}) {
    EXPECT_EQ(runtime_name_mistake(name), "") << name;
  }
  for (const auto& name :
       {std::string(), std::string("-a"), std::string("a-"), std::string("Prod"),
        std::string("a.b"), std::string("a b"), std::string("a\0b", 3), std::string(64, 'a')}) {
    EXPECT_NE(runtime_name_mistake(name), "") << name;
  }
}

struct RuntimeContract : testing::TestWithParam<Engine> {
  StoreBed bed{GetParam()};
  store::Connection& db = bed.connection();
  SampleAccounts sample = make_sample(db);
  std::int64_t acme = sample.acme.number;
  std::int64_t other = sample.other.number;

  IssuedKey create(const std::string& name, std::int64_t account, Micros now = kNow) {
    return must(create_runtime(db, account,
                               {.name = name,
                                .runtime_namespace = "gitops",
                                .cluster = "https://k",
                                .arguments = R"({"runtimeName":"x"})"},
                               now));
  }
  bool is_refused(const Secret& token) { return must(identify(db, token, kNow)).caller == nullptr; }
  void add_application(std::int64_t id, std::int64_t account, const char* runtime, const char* name,
                       const char* entity, int presence = 0) {
    must(db.run(kTestAddObject,
                {id, account, runtime, name, entity, presence, store::Param::bytes("")}));
    must(db.run(kTestAddLabel, {account, entity, id}));
  }
  static ClusterRow cluster(const std::string& name, const std::string& server,
                            ClusterConnection connection = ClusterConnection::unknown) {
    return {
        .runtime = "prod", .server = server, .name = name, .info = "{}", .connection = connection};
  }
  std::vector<std::string> cluster_names(std::int64_t account, const ClusterQuery& query) {
    std::vector<std::string> names;
    for (const auto& row : must(list_clusters(db, account, query))) names.push_back(row.name);
    return names;
  }
};

TEST_P(RuntimeContract, EveryStatementIsPrepared) {
  for (const auto& statement : all_statements()) {
    const auto text = std::string(statement.text(GetParam()));
    const auto prepared = db.run_script(
        GetParam() == Engine::sqlite ? "EXPLAIN " + text
                                     : "PREPARE check_it AS " + text + "; DEALLOCATE check_it");
    EXPECT_TRUE(prepared) << statement.name << ": " << prepared.error().message;
  }
}

TEST_P(RuntimeContract, ARuntimeGetsATokenThatIsItsOwn) {
  const auto issued = create("stage", acme);
  const auto caller = must(identify(db, issued.text, kNow)).caller;
  ASSERT_NE(caller, nullptr);
  EXPECT_EQ(caller->runtime, "stage");
  EXPECT_EQ(caller->account->number, acme);
  const auto row = must(find_runtime(db, acme, "stage"));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->runtime_namespace, "gitops");
  EXPECT_EQ(row->cluster, "https://k");
  EXPECT_EQ(row->created_at, kNow);
  EXPECT_EQ(row->seen_at, 0);
  EXPECT_FALSE(must(find_runtime(db, other, "stage"))) << "another account's";
}

TEST_P(RuntimeContract, AnExistingNameGetsANewTokenAndTheOldOneEnds) {
  const auto first = create("stage", acme);
  must(set_runtime_errors(db, acme, "stage", R"([{"level":"ERROR","message":"m"}])"));
  const auto second = create("stage", acme, kNow + kSecond);
  EXPECT_THAT(second.revoked, ElementsAre(first.key.id));
  EXPECT_TRUE(is_refused(first.text));
  EXPECT_FALSE(is_refused(second.text));
  const auto row = must(find_runtime(db, acme, "stage"));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->created_at, kNow) << "the same runtime";
  EXPECT_NE(row->errors, "[]");
}

TEST_P(RuntimeContract, TheFirstRuntimeOfAnAccountIsItsConfigurationRuntime) {
  create("first", other);
  create("second", other, kNow + 1);
  create("third", other, kNow + 2);
  const auto has_flag = [this](const char* name) {
    return must(find_runtime(db, other, name))->is_configuration_runtime;
  };
  EXPECT_TRUE(has_flag("first"));
  EXPECT_FALSE(has_flag("second"));
  create("first", other, kNow + 3);
  EXPECT_TRUE(has_flag("first")) << "registered again";
  must(delete_runtime(db, other, "first"));
  EXPECT_TRUE(has_flag("second")) << "the oldest of those that are left";
  EXPECT_FALSE(has_flag("third"));
}

TEST_P(RuntimeContract, ADeletedRuntimeLeavesNothing) {
  const auto token = create("stage", acme);
  must(apply_cluster_report(
      db, acme, "stage",
      {.present = {{.runtime = "stage", .server = "https://a", .name = "a", .info = "{}"}}}, kNow));
  add_application(1, acme, "stage", "source", "git-source");
  must(db.run(kTestAddBody, {1, store::Param::bytes("x")}));
  add_application(2, acme, "prod", "source", "git-source");
  must(set_git_source_permissions(db, acme, "stage", "gitops", "source", "[]", kNow));
  EXPECT_THAT(must(delete_runtime(db, acme, "stage")), ElementsAre(token.key.id));
  EXPECT_TRUE(is_refused(token.text));
  EXPECT_FALSE(must(find_runtime(db, acme, "stage")));
  ClusterQuery query;
  query.limit = 10;
  EXPECT_THAT(cluster_names(acme, query), IsEmpty());
  EXPECT_TRUE(must(db.run(kTestPermissions, {acme, "source"})).empty());
  EXPECT_EQ(must(remove_objects_of_runtime(db, acme, "stage", 10)), 1);
  EXPECT_EQ(must(remove_objects_of_runtime(db, acme, "stage", 10)), 0);
  EXPECT_EQ(must(db.run(kTestCountBodies)).number(0, 0), 0);
  EXPECT_EQ(must(db.run(kTestCountLabels)).number(0, 0), 1) << "that of the other runtime";
  EXPECT_FALSE(is_refused(sample.prod_token));
  const auto again = delete_runtime(db, acme, "stage");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::not_found);
  EXPECT_THAT(again.error().message, testing::HasSubstr("does not exist"));
}

TEST_P(RuntimeContract, ANewRuntimeOfADeletedOnesNameHasNoneOfItsReports) {
  create("stage", acme);
  for (const std::string runtime : {"stage", "prod"}) {
    const EventPayload payload{.id = "p", .source = "github", .at = kNow, .data = "{}"};
    must(put_event_payload(db, acme, runtime, payload));
    const SourceError error{.kind = "EventSource", .name = "github", .message = "m"};
    must(put_source_error(db, acme, runtime, error, kNow));
    ObjectState application;
    application.key.runtime = runtime;
    application.uid = "u";
    must(request_report(db, acme, application, kNow));
  }
  const auto session = session_hash(sample.bob_session);
  const auto page = must(create_page_token(db, acme, session, "stage", kNow));
  must(delete_runtime(db, acme, "stage"));
  create("stage", acme);
  EXPECT_THAT(must(list_event_payloads(db, acme, "stage", 10)), IsEmpty());
  EXPECT_THAT(must(list_source_errors(db, acme, "stage", 10)), IsEmpty());
  EXPECT_FALSE(must(find_page_token(db, page)));
  EXPECT_EQ(must(list_event_payloads(db, acme, "prod", 10)).size(), 1U);
  EXPECT_EQ(must(list_source_errors(db, acme, "prod", 10)).size(), 1U);
  const auto open = must(open_report_requests(db, acme, kNow));
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].runtime, "prod");
}

TEST_P(RuntimeContract, AC_34_OtherAccountsRuntimesStayAsTheyAre) {
  create("prod", other);
  EXPECT_FALSE(delete_runtime(db, other, "stage"));
  must(delete_runtime(db, other, "prod"));
  EXPECT_FALSE(is_refused(sample.prod_token));
  EXPECT_TRUE(must(find_runtime(db, acme, "prod")));
  EXPECT_FALSE(set_runtime_status(db, other, "prod", "{}"));
  EXPECT_FALSE(apply_cluster_report(db, other, "prod", {}, kNow));
}

TEST_P(RuntimeContract, StatusAndErrorsAreThoseThatCameLast) {
  must(set_runtime_status(db, acme, "prod", R"({"isc":{"status":"FAILED"}})"));
  must(set_runtime_errors(db, acme, "prod", R"([{"level":"ERROR","message":"m"}])"));
  must(set_runtime_errors(db, acme, "prod", "[]"));
  const auto row = must(find_runtime(db, acme, "prod"));
  EXPECT_EQ(row->status, R"({"isc":{"status":"FAILED"}})");
  EXPECT_EQ(row->errors, "[]");
  EXPECT_FALSE(set_runtime_errors(db, acme, "absent", "[]"));
}

TEST_P(RuntimeContract, ClustersAreAddedReplacedAndRemoved) {
  must(apply_cluster_report(
      db, acme, "prod",
      {.present = {cluster("in-cluster", std::string(kInCluster), ClusterConnection::successful),
                   cluster("b", "https://b"),
                   cluster("a", "https://a", ClusterConnection::failed)}},
      kNow));
  must(apply_cluster_report(
      db, acme, "prod", {.present = {cluster("b2", "https://b", ClusterConnection::successful)}},
      kNow + 1));
  ClusterQuery query;
  query.limit = 10;
  EXPECT_THAT(cluster_names(acme, query), ElementsAre("a", "b2", "in-cluster"));
  EXPECT_THAT(cluster_names(other, query), IsEmpty());
  const auto counts = must(count_clusters(db, acme));
  ASSERT_TRUE(counts.contains("prod"));
  EXPECT_EQ(counts.at("prod").managed, 2);
  EXPECT_EQ(counts.at("prod").connected, 1);
  must(apply_cluster_report(db, acme, "prod", {.removed = {"https://b", "https://absent"}}, kNow));
  EXPECT_THAT(cluster_names(acme, query), ElementsAre("a", "in-cluster"));
}

TEST_P(RuntimeContract, ClustersComeInPages) {
  must(apply_cluster_report(db, acme, "prod",
                            {.present = {cluster("same", "https://1"), cluster("same", "https://2"),
                                         cluster("same", "https://3"), cluster("z", "https://0")}},
                            kNow));
  ClusterQuery query;
  query.runtime = "prod";
  query.limit = 2;
  std::vector<std::string> servers;
  for (int page = 0; page < 3; ++page) {
    for (const auto& row : must(list_clusters(db, acme, query))) {
      servers.push_back(row.server);
      query.after_name = row.name;
      query.after_runtime = row.runtime;
      query.after_server = row.server;
    }
  }
  EXPECT_THAT(servers, ElementsAre("https://1", "https://2", "https://3", "https://0"));
  query = {};
  query.runtime = "absent";
  query.limit = 10;
  EXPECT_THAT(cluster_names(acme, query), IsEmpty());
}

TEST_P(RuntimeContract, ApplicationsThatSpeakForTheirRuntimeAreFoundByTheirLabel) {
  add_application(1, acme, "prod", "prod", "runtime");
  add_application(2, acme, "prod", "isc", "internal-config");
  add_application(3, acme, "prod", "source", "git-source");
  add_application(4, acme, "prod", "old", "runtime", 1);
  add_application(5, acme, "stage", "stage", "runtime");
  add_application(6, other, "prod", "foreign", "runtime");
  const auto names = [this](const char* runtime) {
    std::vector<std::string> found;
    for (const auto& one : must(list_runtime_applications(db, acme, runtime))) {
      found.push_back(one.runtime + "/" + one.name);
    }
    return found;
  };
  EXPECT_THAT(names(""), ElementsAre("prod/isc", "prod/prod", "stage/stage"));
  EXPECT_THAT(names("prod"), ElementsAre("prod/isc", "prod/prod"));
  const auto usage = must(count_usage(db, acme));
  EXPECT_EQ(usage.applications, 4) << "without the one that is gone";
  EXPECT_EQ(usage.clusters, 0);
}

TEST_P(RuntimeContract, PermissionsAreThoseOfAGitSourceOfTheRuntime) {
  add_application(1, acme, "prod", "source", "git-source");
  add_application(2, acme, "prod", "app", "");
  add_application(3, acme, "prod", "gone", "git-source", 1);
  add_application(4, acme, "stage", "theirs", "git-source");
  must(set_git_source_permissions(db, acme, "prod", "gitops", "source", "[1]", kNow));
  must(set_git_source_permissions(db, acme, "prod", "gitops", "source", "[2]", kNow));
  EXPECT_EQ(must(db.run(kTestPermissions, {acme, "source"})).text(0, 0), "[2]");
  for (const auto* name : {"app", "gone", "theirs", "absent"}) {
    const auto set = set_git_source_permissions(db, acme, "prod", "gitops", name, "[]", kNow);
    ASSERT_FALSE(set) << name;
    EXPECT_EQ(set.error().code, ErrorCode::not_found) << name;
  }
  EXPECT_FALSE(set_git_source_permissions(db, acme, "prod", "elsewhere", "source", "[]", kNow));
}

TEST_P(RuntimeContract, SecretsAreStoredSealed) {
  const auto secrets = must(SecretStore::make(Secret(std::string(64, 'a'))));
  const auto name = sealing_key_name("k1");
  const Secret key{std::string("a private key")};
  must(put_secret(db, acme, name, secrets.seal(acme, name, key), kNow));
  const auto sealed = must(find_secret(db, acme, name));
  ASSERT_TRUE(sealed);
  EXPECT_FALSE(sealed->contains("private"));
  EXPECT_EQ(must(secrets.open(acme, name, *sealed)).reveal(), key.reveal());
  EXPECT_FALSE(must(find_secret(db, other, name)));
}

// Another replica stores an event that came before the deletion.
TEST(RuntimeStore, ADeletionAndABatchOfEventsDoNotWaitForEachOther) {
  const test::TestDatabase files(Engine::postgres);
  const auto open = [&files] { return must(store::open_postgres(files.location(), "test")); };
  const auto deleting = open();
  const auto storing = open();
  const auto watching = open();
  must(store::migrate(*storing, migrations()));
  must(storing->run(kTestAddObject,
                    {1, 7, "stage", "shop", "git-source", 0, store::Param::bytes("")}));
  must(storing->run(kTestAddBody, {1, store::Param::bytes("x")}));
  constexpr Statement kLoad{.name = "test.load",
                            .sql = "SELECT id FROM object WHERE id = 1 FOR UPDATE"};
  constexpr Statement kBody{.name = "test.body",
                            .sql = "UPDATE body SET size = 2 WHERE object = 1"};
  constexpr Statement kWaits{.name = "test.waits",
                             .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
  must(storing->run_script("BEGIN"));
  must(storing->run(kLoad));
  std::atomic<bool> is_over = false;
  Result<void> deleted;
  std::thread thread([&] {
    deleted = deleting->transact([&]() -> Result<void> {
      const auto removed = remove_objects_of_runtime(*deleting, 7, "stage", 10);
      if (!removed) return std::unexpected(removed.error());
      return {};
    });
    is_over = true;
  });
  while (!is_over && must(watching->run(kWaits)).number(0, 0) == 0) std::this_thread::yield();
  const auto stored = storing->run(kBody);
  EXPECT_TRUE(stored) << stored.error().message;
  const auto committed = storing->run_script("COMMIT");
  EXPECT_TRUE(committed) << committed.error().message;
  thread.join();
  EXPECT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(must(watching->run(kTestCountBodies)).number(0, 0), 0);
}

// A batch locks the rows of its reporters first, and that of the runtime at its end.
TEST(RuntimeStore, ADeletionAndTheReportersOfABatchDoNotWaitForEachOther) {
  const test::TestDatabase files(Engine::postgres);
  const auto open = [&files] { return must(store::open_postgres(files.location(), "test")); };
  const auto deleting = open();
  const auto storing = open();
  const auto watching = open();
  must(store::migrate(*storing, migrations()));
  const auto account = make_sample(*storing).acme.number;
  must(storing->run_script("INSERT INTO reporter (account, runtime, name, seen_at) VALUES (" +
                           std::to_string(account) + ", 'prod', 'application', 1)"));
  constexpr Statement kLock{.name = "test.lock_reporter",
                            .sql = "SELECT name FROM reporter WHERE account = $1 FOR UPDATE"};
  constexpr Statement kSeen{.name = "test.runtime_seen",
                            .sql = "UPDATE runtime SET seen_at = 2 WHERE account = $1"};
  constexpr Statement kWaits{.name = "test.waits",
                             .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
  must(storing->run_script("BEGIN"));
  must(storing->run(kLock, {account}));
  std::atomic<bool> is_over = false;
  Result<void> deleted;
  std::thread thread([&] {
    deleted = deleting->transact([&]() -> Result<void> {
      const auto ids = delete_runtime(*deleting, account, "prod");
      if (!ids) return std::unexpected(ids.error());
      return {};
    });
    is_over = true;
  });
  while (!is_over && must(watching->run(kWaits)).number(0, 0) == 0) std::this_thread::yield();
  const auto stored = storing->run(kSeen, {account});
  EXPECT_TRUE(stored) << stored.error().message;
  const auto committed = storing->run_script("COMMIT");
  EXPECT_TRUE(committed) << committed.error().message;
  thread.join();
  EXPECT_TRUE(deleted) << deleted.error().message;
  EXPECT_FALSE(must(find_runtime(*watching, account, "prod")));
}

// A batch locks the rows of several reporters by their names.
TEST(RuntimeStore, ADeletionLocksReportersInTheOrderOfABatch) {
  const test::TestDatabase files(Engine::postgres);
  const auto open = [&files] { return must(store::open_postgres(files.location(), "test")); };
  const auto deleting = open();
  const auto storing = open();
  const auto watching = open();
  must(store::migrate(*storing, migrations()));
  const auto account = make_sample(*storing).acme.number;
  for (const auto* name : {"resource", "application"}) {
    must(storing->run_script("INSERT INTO reporter (account, runtime, name, seen_at) VALUES (" +
                             std::to_string(account) + ", 'prod', '" + name + "', 1)"));
  }
  // As PostgreSQL reads a small table whose size it knows.
  must(deleting->run_script("SET enable_indexscan = off; SET enable_bitmapscan = off"));
  constexpr Statement kLock{
      .name = "test.lock_one_reporter",
      .sql = "SELECT name FROM reporter WHERE account = $1 AND name = $2 FOR UPDATE"};
  constexpr Statement kWaits{.name = "test.waits",
                             .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
  must(storing->run_script("BEGIN"));
  must(storing->run(kLock, {account, "application"}));
  std::atomic<bool> is_over = false;
  Result<void> deleted;
  std::thread thread([&] {
    deleted = deleting->transact([&]() -> Result<void> {
      const auto ids = delete_runtime(*deleting, account, "prod");
      if (!ids) return std::unexpected(ids.error());
      return {};
    });
    is_over = true;
  });
  while (!is_over && must(watching->run(kWaits)).number(0, 0) == 0) std::this_thread::yield();
  const auto locked = storing->run(kLock, {account, "resource"});
  EXPECT_TRUE(locked) << locked.error().message;
  const auto committed = storing->run_script("COMMIT");
  EXPECT_TRUE(committed) << committed.error().message;
  thread.join();
  EXPECT_TRUE(deleted) << deleted.error().message;
}

// A request with a runtime's token tells when both were used last.
TEST(RuntimeStore, ADeletionAndARequestOfTheRuntimeDoNotWaitForEachOther) {
  const test::TestDatabase files(Engine::postgres);
  const auto open = [&files] { return must(store::open_postgres(files.location(), "test")); };
  const auto deleting = open();
  const auto asking = open();
  const auto watching = open();
  must(store::migrate(*deleting, migrations()));
  const auto sample = make_sample(*deleting);
  const auto account = sample.acme.number;
  const auto key = parse_api_key(sample.prod_token.reveal());
  ASSERT_TRUE(key);
  constexpr Statement kWaits{.name = "test.waits",
                             .sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"};
  // In the order of delete_runtime().
  must(deleting->run_script("BEGIN"));
  must(deleting->run(kTestDropRuntime, {account, "prod"}));
  std::atomic<bool> is_over = false;
  Result<void> noted;
  std::thread thread([&] {
    noted = asking->transact([&] {
      const DueTimes due{
          .account = account, .key_id = key->id, .runtime = "prod", .session_hash = {}};
      return write_times(*asking, due, kNow + kHour);
    });
    is_over = true;
  });
  while (!is_over && must(watching->run(kWaits)).number(0, 0) == 0) std::this_thread::yield();
  const auto revoked = revoke_runtime_tokens(*deleting, account, "prod");
  EXPECT_TRUE(revoked) << revoked.error().message;
  const auto committed = deleting->run_script("COMMIT");
  EXPECT_TRUE(committed) << committed.error().message;
  thread.join();
  EXPECT_TRUE(noted) << noted.error().message;
}

INSTANTIATE_TEST_SUITE_P(Engines, RuntimeContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

TEST(SecretStore, AMasterKeyHasThirtyTwoBytes) {
  const std::string bytes(32, '\x01');
  std::string hex;
  for (int i = 0; i < 32; ++i) hex += "01";
  const auto by_bytes = must(SecretStore::make(Secret(std::string(bytes))));
  const auto by_hex = must(SecretStore::make(Secret(std::string(hex))));
  const auto by_base64 = must(SecretStore::make(Secret(test::base64_encode(bytes))));
  const auto sealed = by_bytes.seal(1, "n", Secret(std::string("text")));
  EXPECT_EQ(must(by_hex.open(1, "n", sealed)).reveal(), "text");
  EXPECT_EQ(must(by_base64.open(1, "n", sealed)).reveal(), "text");
  for (const auto* wrong : {"", "short", "zz"}) {
    EXPECT_FALSE(SecretStore::make(Secret(std::string(wrong)))) << wrong;
  }
}

TEST(SecretStore, ASealedTextOpensForItsAccountAndNameAlone) {
  const auto secrets = must(SecretStore::make(Secret(std::string(64, 'a'))));
  const auto others = must(SecretStore::make(Secret(std::string(64, 'b'))));
  auto sealed = secrets.seal(1, "n", Secret(std::string("text")));
  EXPECT_FALSE(secrets.open(2, "n", sealed));
  EXPECT_FALSE(secrets.open(1, "m", sealed));
  EXPECT_FALSE(others.open(1, "n", sealed));
  EXPECT_FALSE(secrets.open(1, "n", sealed.substr(0, 10)));
  EXPECT_NE(sealed, secrets.seal(1, "n", Secret(std::string("text")))) << "another nonce";
  sealed.back() = static_cast<char>(sealed.back() ^ 1);
  EXPECT_FALSE(secrets.open(1, "n", sealed));
}

}  // namespace
}  // namespace gitops::control_plane_server
