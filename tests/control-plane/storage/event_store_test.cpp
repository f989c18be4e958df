#include "control-plane/storage/event_store.hpp"

#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/databases.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/storage/body_codec.hpp"
#include "control-plane/storage/body_row.hpp"
#include "control-plane/storage/event_dump.hpp"
#include "control-plane/storage/inventory_store.hpp"
#include "control-plane/storage/postgres_event_store.hpp"
#include "control-plane/storage/schema.hpp"
#include "control-plane/storage/sqlite_event_store.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using store::Statement;
using testing::ElementsAre;

constexpr Statement kBody{.name = "test.body",
                          .sql = "SELECT codec, size, packed FROM body WHERE object = $1"};

Incoming event_of(const std::string& name, std::int64_t sequence, const std::string& body = "v1",
                  const std::string& kind = "Application") {
  Incoming incoming{.account = 1, .reporter = "application", .event = {}};
  auto& state = incoming.event.state;
  state.key = {.runtime = "prod",
               .group = "argoproj.io",
               .kind = kind,
               .object_namespace = "argocd",
               .name = name};
  state.version = "v1alpha1";
  state.uid = "u-" + name;
  state.sequence = sequence;
  state.event_id = "e" + std::to_string(sequence);
  state.changed_at = state.seen_at = 1'000'000 + sequence;
  state.sync = SyncStatus::synced;
  state.revision = "r" + body;
  state.labels_digest = "labels " + body;
  state.body_digest = "body " + body;
  incoming.event.labels = {{"team", "a"}, {"version", body}};
  incoming.event.body.live = body;
  return incoming;
}

// A store on an empty database.
struct Fixture {
  explicit Fixture(Engine engine)
      : database(engine),
        connection(engine == Engine::sqlite
                       ? std::move(store::open_sqlite(database.location().path,
                                                      store::Access::read_write, 8 << 20))
                             .value()
                       : std::move(store::open_postgres(database.location(), "test")).value()),
        events(make_event_store(engine, "test")) {
    if (const auto done = store::migrate(*connection, migrations()); !done) {
      throw std::runtime_error(done.error().message);
    }
  }
  BatchOutcome store(const std::vector<Incoming>& batch) {
    auto outcome = events->store(*connection, batch);
    if (!outcome) throw std::runtime_error(outcome.error().message);
    return std::move(*outcome);
  }
  std::string body_of(std::int64_t object) {
    const auto rows = connection->run(kBody, {object});
    if (!rows || rows->empty()) return "none";
    const auto body = unpack_body(static_cast<BodyCodec>(rows->number(0, 0)), rows->text(0, 2),
                                  static_cast<std::size_t>(rows->number(0, 1)));
    return body ? body->live : body.error().message;
  }
  test::TestDatabase database;
  std::unique_ptr<store::Connection> connection;
  std::unique_ptr<EventStore> events;
};

struct EventStoreContract : testing::TestWithParam<Engine>, Fixture {
  EventStoreContract() : Fixture(GetParam()) {}
};

std::vector<Outcome> outcomes(const BatchOutcome& batch) {
  std::vector<Outcome> found;
  for (const auto& item : batch.items) found.push_back(item.outcome);
  return found;
}

TEST_P(EventStoreContract, ABatchMayHaveAnObjectMoreThanOnce) {
  const auto batch = store({event_of("shop", 5), event_of("cart", 5), event_of("shop", 7, "v2"),
                            event_of("shop", 6, "old"), event_of("shop", 7, "v2")});
  EXPECT_THAT(outcomes(batch), ElementsAre(Outcome::stored, Outcome::stored, Outcome::stored,
                                           Outcome::stale, Outcome::duplicate));
  EXPECT_EQ(batch.items[0].object, batch.items[2].object);
  EXPECT_NE(batch.items[0].object, batch.items[1].object);
  EXPECT_EQ(body_of(batch.items[0].object), "v2");
  EXPECT_EQ(batch.last_change, 2);
}

TEST_P(EventStoreContract, StatesAreFoundAgain) {
  store({event_of("shop", 5)});
  EXPECT_THAT(outcomes(store({event_of("shop", 5)})), ElementsAre(Outcome::duplicate));
  EXPECT_THAT(outcomes(store({event_of("shop", 4)})), ElementsAre(Outcome::stale));
  EXPECT_THAT(outcomes(store({event_of("shop", 6, "v2")})), ElementsAre(Outcome::stored));
}

// The mark of the first event.
IntakeMark mark_of(const BatchOutcome& batch) {
  return batch.items.front().mark.value_or(IntakeMark{"none", ""});
}

Incoming seen_event(std::int64_t seconds, const std::string& position) {
  auto incoming = event_of("shop", seconds * 1'000'000);
  incoming.seen = read_position(position);
  return incoming;
}

TEST_P(EventStoreContract, TheFirstBatchOfASecondTellsThePosition) {
  const auto first = mark_of(store({event_of("shop", 5), event_of("cart", 5)}));
  const auto position = read_position(first.position);
  ASSERT_TRUE(position) << first.position;
  EXPECT_EQ(position->number, 1);
  EXPECT_EQ(first.resync, "");
  EXPECT_EQ(mark_of(store({event_of("shop", 6)})).position, "none") << "within the second";
  EXPECT_EQ(mark_of(store({seen_event(2, first.position)})).position,
            to_string(IntakePosition{position->epoch, 2}));
  auto other = event_of("shop", 3'000'000);
  other.reporter = "resource";
  EXPECT_EQ(mark_of(store({other})).position, first.position) << "it has a row of its own";
}

TEST_P(EventStoreContract, AReporterThatSawMoreIsAskedForAResyncUntilItHasEnded) {
  const auto first = mark_of(store({event_of("shop", 5)}));
  const auto epoch = read_position(first.position)->epoch;
  const auto asked = mark_of(store({seen_event(2, epoch + ":70")}));
  EXPECT_EQ(asked, (IntakeMark{epoch + ":71", epoch + "-71"}));
  EXPECT_EQ(mark_of(store({seen_event(4, asked.position)})).resync, asked.resync);
  const ReporterName reporter{.account = 1, .runtime = "prod", .name = "application"};
  ASSERT_TRUE(end_resync(*connection, reporter, "another"));
  EXPECT_EQ(*resync_token(*connection, reporter), asked.resync);
  ASSERT_TRUE(end_resync(*connection, reporter, asked.resync));
  EXPECT_EQ(mark_of(store({seen_event(6, epoch + ":72")})).resync, "");
}

TEST_P(EventStoreContract, ARestoreIsAnotherEpoch) {
  constexpr Statement kInstance{
      .name = "test.instance",
      .sql = "INSERT INTO instance (one, id, restores, created_at) VALUES (1, 'i', 0, 1)"};
  ASSERT_TRUE(connection->execute(kInstance));
  const auto before = mark_of(store({event_of("shop", 5)}));
  ASSERT_TRUE(connection->run_script("UPDATE instance SET restores = restores + 1"));
  const auto after = mark_of(store({seen_event(2, before.position)}));
  EXPECT_NE(read_position(after.position)->epoch, read_position(before.position)->epoch);
  EXPECT_NE(after.resync, "");
}

// Otherwise this process told another epoch than the others until its end, and each reporter that hears both reports
// everything again and again.
TEST(PostgresEventStore, ASlowFirstQuestionDoesNotChangeTheEpoch) {
  Fixture fixture(Engine::postgres);
  auto& connection = *fixture.connection;
  // A function of this name that is found first takes longer than a statement may.
  ASSERT_TRUE(connection.run_script(
      "CREATE SCHEMA slow; CREATE FUNCTION slow.pg_control_system(OUT system_identifier bigint) "
      "LANGUAGE sql AS 'SELECT 1::bigint FROM pg_sleep(30)'; "
      "SET search_path = slow, public, pg_catalog; SET statement_timeout = '50ms'"));
  PostgresEventStore other("other");
  const std::vector<Incoming> first{event_of("shop", 5)};
  const auto failed = other.store(connection, first);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::timeout) << failed.error().message;
  ASSERT_TRUE(
      connection.run_script("SET search_path = public; SET statement_timeout = '10s'; "
                            "DROP SCHEMA slow CASCADE"));
  const auto epoch = read_position(mark_of(fixture.store(first)).position)->epoch;
  const std::vector<Incoming> second{seen_event(2, epoch + ":1")};
  const auto stored = other.store(connection, second);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(read_position(mark_of(*stored).position)->epoch, epoch);
  EXPECT_EQ(mark_of(*stored).resync, "");
}

TEST_P(EventStoreContract, AccountsAreApart) {
  auto other = event_of("shop", 3, "theirs");
  other.account = 2;
  const auto ours = store({event_of("shop", 5)});
  const auto theirs = store({other});
  EXPECT_THAT(outcomes(theirs), ElementsAre(Outcome::stored));
  EXPECT_NE(ours.items[0].object, theirs.items[0].object);
}

TEST_P(EventStoreContract, TheSameBatchAgainChangesNothing) {
  const std::vector<Incoming> batch{event_of("shop", 5), event_of("cart", 5)};
  store(batch);
  const auto before = dump(*connection);
  EXPECT_THAT(outcomes(store(batch)), ElementsAre(Outcome::duplicate, Outcome::duplicate));
  EXPECT_EQ(dump(*connection), before);
}

TEST_P(EventStoreContract, AFailedBatchLeavesNothingBehind) {
  auto bad = event_of("cart", 5);
  // An invalid UTF-8 byte, which PostgreSQL refuses. read_event() would refuse it earlier.
  bad.event.state.key.name = "\xff";
  if (GetParam() == Engine::sqlite) GTEST_SKIP() << "SQLite takes any bytes";
  const std::vector<Incoming> batch{event_of("shop", 5), bad};
  const auto failed = events->store(*connection, batch);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::invalid_data);
  EXPECT_THAT(outcomes(store({event_of("shop", 5)})), ElementsAre(Outcome::stored));
}

// Commits, and then reports a lost connection.
class LosingConnection final : public store::PostgresConnection {
 public:
  explicit LosingConnection(store::Connection& inner) : inner_(inner) {}
  [[nodiscard]] Engine engine() const override { return inner_.engine(); }
  Result<store::Rows> run(const Statement& statement, const store::Params& params) override {
    return inner_.run(statement, params);
  }
  Result<void> run_script(std::string_view sql) override {
    auto done = inner_.run_script(sql);
    if (sql == "COMMIT") return fail(ErrorCode::unavailable, "lost");
    return done;
  }
  Result<std::vector<store::Rows>> run_pipeline(std::span<const Step> steps) override {
    auto done = dynamic_cast<PostgresConnection&>(inner_).run_pipeline(steps);
    if (steps.back().statement->sql == "COMMIT") return fail(ErrorCode::unavailable, "lost");
    return done;
  }
  Result<std::vector<std::string>> wait_for_notifications(int) override { return {}; }
  void interrupt() override {}
  [[nodiscard]] bool is_usable() const override { return true; }

 protected:
  Result<void> begin() override { return {}; }
  Result<void> commit() override { return {}; }
  void roll_back() override {}

 private:
  store::Connection& inner_;
};

// Otherwise no batch could be stored any more until the next start.
TEST_P(EventStoreContract, ACommitWithoutAnAnswerUsesItsNumbersOfTheOutbox) {
  store({event_of("shop", 5)});
  LosingConnection losing(*connection);
  const auto lost = events->store(losing, std::vector{event_of("cart", 5), event_of("shop", 6)});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unavailable);
  const auto next = store({event_of("cart", 5), event_of("mail", 5)});
  EXPECT_THAT(outcomes(next), ElementsAre(Outcome::duplicate, Outcome::stored));
  EXPECT_EQ(next.last_change, 3);
}

// As when memory runs out behind the COMMIT of the batch before: the numbers are taken, and nobody has noted it.
TEST_P(EventStoreContract, ANumberOfTheOutboxThatIsTakenRefusesOneBatchOnly) {
  store({event_of("shop", 5)});
  constexpr Statement kTake{
      .name = "test.take_change",
      .sql =
          "INSERT INTO change (instance, no, account, kind, object, at) SELECT instance, no + 1, "
          "account, kind, object, at FROM change"};
  ASSERT_TRUE(connection->run(kTake));
  ASSERT_FALSE(events->store(*connection, std::vector{event_of("cart", 5)}));
  EXPECT_EQ(store({event_of("cart", 5)}).last_change, 3);
}

TEST_P(EventStoreContract, BodiesOfEveryCodecAreReadAndUnknownOnesNamed) {
  const auto object = store({event_of("shop", 5)}).items.front().object;
  const auto newest = read_body(*connection, 1, object);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->live, "v1");
  const auto rows = connection->run(kBody, {object});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->number(0, 0), static_cast<std::int64_t>(kBodyCodec));
  constexpr Statement kReplace{
      .name = "test.replace_body",
      .sql = "UPDATE body SET codec = $2, size = $3, packed = $4 WHERE object = $1"};
  const auto older = pack_body({.live = "older"}, BodyCodec::zstd);
  ASSERT_TRUE(connection->run(kReplace, {object, static_cast<std::int64_t>(older.codec), older.size,
                                         store::Param::bytes(older.bytes)}));
  const auto old = read_body(*connection, 1, object);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->live, "older");
  ASSERT_TRUE(
      connection->run(kReplace, {object, 77, older.size, store::Param::bytes(older.bytes)}));
  const auto unknown = read_body(*connection, 1, object);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unsupported);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("codec 77"));
}

TEST_P(EventStoreContract, EveryStatementCanBePrepared) {
  const auto statements =
      GetParam() == Engine::sqlite ? sqlite_event_statements() : postgres_event_statements();
  for (const auto& statement : statements) {
    if (GetParam() == Engine::sqlite) continue;
    const auto sql = "PREPARE t AS " + std::string(statement.text(GetParam()));
    if (statement.sql == "BEGIN" || statement.sql == "COMMIT") continue;
    const auto prepared = connection->run_script(sql + "; DEALLOCATE t");
    EXPECT_TRUE(prepared) << statement.name << ": " << prepared.error().message;
  }
  EXPECT_FALSE(statements.empty());
}

INSTANTIATE_TEST_SUITE_P(Engines, EventStoreContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

// Returns the next event of a random history: changes, deletions, repeats, late events and releases of a few objects.
Incoming random_event(std::mt19937& random, std::int64_t now) {
  const auto pick = [&random](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  static constexpr std::array<const char*, 3> kKinds{"Application", "Deployment", "Rollout"};
  const auto sequence = pick(10) == 0 ? 0 : now - pick(4) * pick(30);
  auto incoming = event_of("n" + std::to_string(pick(12)), sequence, "v" + std::to_string(pick(5)),
                           kKinds[static_cast<std::size_t>(pick(3))]);
  auto& event = incoming.event;
  auto& state = event.state;
  incoming.account = 1 + pick(2);
  if (pick(3) == 0) incoming.reporter = "resource";
  state.key.runtime = pick(2) == 0 ? "prod" : "stage";
  if (state.key.kind == "Deployment") state.key.owner_uid = "u" + std::to_string(pick(2));
  if (state.key.kind == "Rollout") {
    state.key.origin = Origin::resource;
    state.key.cluster = pick(4) == 0 ? "https://10.0.0.1" : std::string(kInCluster);
  }
  if (pick(3) == 0) state.key.object_namespace = "shöp \"'\\";
  if (pick(8) == 0) state.uid += "'";
  // Often no state changes, so that a batch also has rows of which other columns change alone.
  if (pick(3) == 0) {
    state.health = static_cast<HealthStatus>(pick(8));
    state.phase = static_cast<Phase>(pick(13));
    state.sync = static_cast<SyncStatus>(pick(4));
    state.entity = pick(2) == 0 ? "" : "git-source";
  }
  if (pick(5) == 0) state.manager = {.name = "m" + std::to_string(pick(2)), .uid = "u"};
  state.version = "v" + std::to_string(pick(3));
  state.destination = "d" + std::to_string(pick(3));
  state.health_message = "h" + std::to_string(pick(3));
  state.history_id = pick(4);
  state.created_at = pick(3);
  state.changed_at = state.seen_at = 1'000'000'000 + now * 200'000;
  if (pick(6) == 0) {
    event.is_deletion = true;
    state.presence = Presence::gone;
  }
  if (pick(5) == 0) event.labels.clear();
  state.labels_digest += std::to_string(event.labels.size());
  event.commit_at = pick(2) * now;
  event.author = pick(2) == 0 ? "" : "Dana";
  event.message = std::string(static_cast<std::size_t>(pick(250)), 'm');
  event.has_release = pick(2) == 0;
  event.release = {.history_id = pick(4) + 1,
                   .revision = state.revision,
                   .operation_revision = pick(2) == 0 ? "" : state.revision,
                   .author = pick(2) == 0 ? "" : "Dana",
                   .message = pick(2) == 0 ? "" : "new prices",
                   .commit_at = pick(2) * now,
                   .started_at = pick(2) * 7,
                   .finished_at = pick(2) * 9,
                   .sync = static_cast<SyncStatus>(pick(4)),
                   .health = state.health,
                   .phase = static_cast<Phase>(pick(2) * 3),
                   .initiator = pick(2) == 0 ? "" : "ann",
                   .images = pick(2) == 0 ? "[]" : R"(["a:1"])",
                   .was_degraded = pick(5) == 0};
  return incoming;
}

// Otherwise the object that is stored last takes the row of the other one.
TEST(PostgresEventStore, IdsOfAServerBeforeAFailoverAreNotUsed) {
  Fixture fixture(Engine::postgres);
  const auto open = [&fixture] {
    return std::move(store::open_postgres(fixture.database.location(), "test")).value();
  };
  fixture.store({event_of("lost", 5)});
  // The server that takes over has neither the last events nor their block of ids.
  ASSERT_TRUE(
      fixture.connection->run_script("TRUNCATE object, body, label, timeline, change; "
                                     "ALTER SEQUENCE object_id RESTART"));
  fixture.connection = open();
  fixture.store({event_of("own", 5)});
  const auto other = make_event_store(Engine::postgres, "other");
  const auto connection = open();
  const auto stored =
      other->store(*connection, std::vector{event_of("theirs-1", 5), event_of("theirs-2", 5)});
  ASSERT_TRUE(stored) << stored.error().message;
  constexpr Statement kNames{.name = "test.names", .sql = "SELECT name FROM object ORDER BY name"};
  const auto rows = connection->run(kNames);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ(rows->text(0, 0), "own");
}

TEST(EventStores, BothEnginesHaveTheSameRowsAfterARandomHistory) {
  const std::size_t events = std::getenv("GITOPS_LONG") != nullptr ? 100'000 : 4'000;
  Fixture sqlite(Engine::sqlite);
  Fixture postgres(Engine::postgres);
  std::mt19937 random(std::random_device{}());
  const auto seed = random();
  std::cout << "seed " << seed << "\n";
  SCOPED_TRACE("seed " + std::to_string(seed));
  random.seed(seed);
  std::int64_t now = 1;
  for (std::size_t done = 0; done < events;) {
    std::vector<Incoming> batch;
    const auto size = 1 + random() % 60;
    while (batch.size() < size) batch.push_back(random_event(random, ++now));
    done += size;
    const auto one = sqlite.store(batch);
    const auto two = postgres.store(batch);
    ASSERT_EQ(outcomes(one), outcomes(two)) << "after " << done << " events";
    ASSERT_EQ(one.last_change, two.last_change);
  }
  EXPECT_EQ(dump(*sqlite.connection), dump(*postgres.connection));
}

}  // namespace
}  // namespace gitops::control_plane_server
