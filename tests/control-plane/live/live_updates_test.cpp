// Feed, reading and streams on SQLite in test time, with scripted rows of the outbox. Replicas on PostgreSQL are in
// replicas_test.cpp.
#include "control-plane/live/live_updates.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/identification.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/views/seed.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

struct LiveFixture {
  explicit LiveFixture(AccountsFixture& on)
      : accounts(on),
        updates(on.executor, on.database, on.metrics, {.feed = {.instance = "own"}},
                [this](const std::string& subject) {
                  revoked.push_back(subject);
                  updates.check(subject);
                }) {
    updates.start();
  }
  Task<LiveUpdates::Subscription> subscribe(const Secret& token, const std::string& topics,
                                            const std::string& cursor = {}) {
    auto who = co_await accounts.write(
        [token](store::Connection& db) { return identify(db, token, micros_at(wall_now())); });
    auto read = must(read_topics(topics));
    co_return must(co_await updates.subscribe(must(std::move(who)).caller, std::move(read), cursor,
                                              AccountsFixture::soon()));
  }
  // Stores an event as another process does, which tells nobody.
  Task<> store(const std::string& body, std::int64_t account = 0) {
    if (account == 0) account = accounts.sample.acme.number;
    auto stored = co_await accounts.database.with_writer(
        AccountsFixture::soon(), [this, body, account](store::Connection& db) -> Result<void> {
          seeder.store(db, account, body);
          return {};
        });
    must(std::move(stored));
  }
  Task<> script(std::string sql) {
    must(co_await accounts.write(
        [sql = std::move(sql)](store::Connection& db) { return db.run_script(sql); }));
  }
  // Waits until the subscriber has heard of this, and returns everything that it heard of before: types, and names of rows.
  Task<std::vector<std::string>> hear(const LiveUpdates::Subscription& from,
                                      const std::string& wanted) {
    std::vector<std::string> heard;
    while (std::ranges::find(heard, wanted) == heard.end()) {
      co_await from.wait(AccountsFixture::soon());
      if (!from.subscriber().has_news()) {
        heard.push_back("nothing");
        break;
      }
      for (const auto& event : updates.hub().take(from.subscriber())) {
        if (event.event != "patch") heard.push_back(event.event);
        last_id = event.id;
        const auto data = nlohmann::json::parse(event.data);
        for (const auto& row : data.value("rows", nlohmann::json::array())) {
          heard.push_back(row["name"]);
        }
      }
    }
    co_return heard;
  }

  AccountsFixture& accounts;
  Seeder seeder{store::Engine::sqlite};
  LiveUpdates updates;
  std::vector<std::string> revoked;
  std::string last_id;
};

void with_live(const std::function<Task<>(LiveFixture&)>& body) {
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    LiveFixture fixture(accounts);
    EXPECT_TRUE(co_await test::eventually([&] { return fixture.updates.feed().has_begun(); },
                                          "the first read"));
    co_await body(fixture);
    co_await fixture.updates.stop();
  });
}

TEST(LiveUpdates, ARowHasTheLabelsAndTheRepositoryOfAnApplication) {
  auto application = application_of("shop");
  application["metadata"]["labels"] = {{"team", "pay"}, {"tier", "web"}};
  const SeenObject seen(app_event(application));
  const auto row = live_row(1, ObjectRow{.state = seen.event.state, .body = seen.texts});
  const auto members = nlohmann::json::parse("{" + row.members + "}");
  EXPECT_EQ(members["labels"], (nlohmann::json{"team=pay", "tier=web"}));
  EXPECT_EQ(members["repo"], "https://git.example/acme/apps.git");

  const SeenObject workload(
      app_event(object_of("apps/v1", "Deployment", "shop", "web"), managed_by("shop")));
  const auto of_workload =
      live_row(1, ObjectRow{.state = workload.event.state, .body = workload.texts});
  const auto others = nlohmann::json::parse("{" + of_workload.members + "}");
  EXPECT_TRUE(others["labels"].is_null());
  EXPECT_TRUE(others["repo"].is_null());
}

TEST(LiveUpdates, AChangeOfAnyProcessIsHeardOfWithinASecond) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
    EXPECT_THAT(co_await live.hear(stream, "reset"), ElementsAre("reset"));
    const auto began = Clock::now();
    co_await live.store(app_event(application_of("shop")));
    EXPECT_THAT(co_await live.hear(stream, "shop"), ElementsAre("shop"));
    EXPECT_LE(Clock::now() - began, std::chrono::milliseconds(1'300));
  });
}

TEST(LiveUpdates, ACommitOfThisProcessIsHeardOfAtOnce) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
    co_await live.hear(stream, "reset");
    const auto began = Clock::now();
    co_await live.store(app_event(application_of("shop")));
    live.updates.committed(1);
    co_await live.hear(stream, "shop");
    EXPECT_LE(Clock::now() - began, std::chrono::milliseconds(200));
  });
}

TEST(LiveUpdates, AnObjectIsReadFourTimesASecondAtMost) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
    co_await live.hear(stream, "reset");
    const auto began = Clock::now();
    int rows = 0;
    for (int i = 0; i < 40; ++i) {
      auto application = application_of("shop");
      application["status"]["health"]["status"] = i % 2 == 0 ? "Degraded" : "Healthy";
      co_await live.store(app_event(application));
      live.updates.committed(1);
      co_await sleep_for(std::chrono::milliseconds(25));
      for (const auto& event : live.updates.hub().take(stream.subscriber())) {
        if (event.event == "patch") ++rows;
      }
    }
    EXPECT_GE(rows, 2);
    EXPECT_LE(rows, 1 + (Clock::now() - began) / std::chrono::milliseconds(250));
  });
}

TEST(LiveUpdates, WhatWasRemovedBeforeItWasReadIsAReset) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
    co_await live.hear(stream, "reset");
    co_await live.script(
        "INSERT INTO change (instance, no, account, kind, object, at) VALUES ('late', 7, 1, "
        "'Application', 1, 0)");
    EXPECT_THAT(co_await live.hear(stream, "reset"), ElementsAre("reset"));
  });
}

TEST(LiveUpdates, ManyChangesAreAReset) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
    co_await live.hear(stream, "reset");
    co_await live.script(
        "WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < 20001) "
        "INSERT INTO change (instance, no, account, kind, object, at) "
        "SELECT 'busy', no, 1, 'Application', no, 0 FROM n");
    EXPECT_THAT(co_await live.hear(stream, "reset"), ElementsAre("reset"));
    co_await live.store(app_event(application_of("shop")));
    EXPECT_THAT(co_await live.hear(stream, "shop"), ElementsAre("shop"));
  });
}

TEST(LiveUpdates, AStreamGoesOnFromItsCursor) {
  with_live([](LiveFixture& live) -> Task<> {
    {
      const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
      co_await live.hear(stream, "reset");
      co_await live.store(app_event(application_of("before")));
      co_await live.hear(stream, "before");
    }
    const auto cursor = live.last_id;
    co_await live.store(app_event(application_of("between")));
    const auto next = co_await live.subscribe(live.accounts.sample.ann_key, "index", cursor);
    EXPECT_THAT(co_await live.hear(next, "between"), ElementsAre("between"));
    co_await live.script("DELETE FROM change");
    const auto late = co_await live.subscribe(live.accounts.sample.ann_key, "index", cursor);
    EXPECT_THAT(co_await live.hear(late, "reset"), ElementsAre("reset"));
    const auto strange = co_await live.subscribe(live.accounts.sample.ann_key, "index", "x:1");
    EXPECT_THAT(co_await live.hear(strange, "reset"), ElementsAre("reset"));
  });
}

TEST(LiveUpdates, ObjectsOfOtherAccountsAreNotRead) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.eve_key, "index");
    co_await live.hear(stream, "reset");
    co_await live.store(app_event(application_of("secret")));
    co_await live.store(app_event(application_of("own")), live.accounts.sample.other.number);
    EXPECT_THAT(co_await live.hear(stream, "own"), ElementsAre("own"));
    EXPECT_TRUE(live.accounts.counts("gitops_control_plane_live_rows_total 1"));
  });
}

TEST(LiveUpdates, ARuntimeIsHeardOfAndItsEnd) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "runtimes");
    co_await live.hear(stream, "prod");
    co_await live.script("DELETE FROM runtime WHERE name = 'prod'");
    EXPECT_THAT(co_await live.hear(stream, "gone"), ElementsAre("gone"));
  });
}

TEST(LiveUpdates, RevocationsInTheDatabaseAreTold) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.bob_key, "index");
    co_await live.hear(stream, "reset");
    const auto bob = live.accounts.sample.bob.id;
    must(co_await live.accounts.write(
        [account = live.accounts.sample.acme.number, bob](store::Connection& db) {
          return add_revocation(db, {.account = account, .subject = bob, .runtime = {}},
                                micros_at(wall_now()));
        }));
    EXPECT_TRUE(co_await test::eventually([&] { return stream.subscriber().needs_check(); },
                                          "the check of bob's stream"));
    EXPECT_THAT(live.revoked, ElementsAre(bob));
    co_await sleep_for(std::chrono::seconds(5));
    EXPECT_THAT(live.revoked, ElementsAre(bob)) << "each once";
  });
}

TEST(LiveUpdates, ARuleHidesApplicationsAndTheirResources) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto& sample = live.accounts.sample;
    const auto stream = co_await live.subscribe(sample.bob_key, "index,app:uid-shop");
    co_await live.hear(stream, "reset");
    must(co_await live.accounts.write([account = sample.acme.number](store::Connection& db) {
      return create_rule(db, account,
                         {.id = {},
                          .entity_type = "gitopsApplications",
                          .teams = {"none"},
                          .tags = {},
                          .actions = {"VIEW"},
                          .attributes = {}},
                         micros_at(wall_now()));
    }));
    auto& subscriber = stream.subscriber();
    must(co_await live.updates.authorise(subscriber, subscriber.permissions().caller,
                                         AccountsFixture::soon()));
    EXPECT_THAT(co_await live.hear(stream, "reset"), ElementsAre("reset"));
    const auto admin = co_await live.subscribe(sample.ann_key, "index,app:uid-shop");
    co_await live.hear(admin, "reset");
    co_await live.store(app_event(application_of("shop")));
    co_await live.store(
        app_event(object_of("apps/v1", "Deployment", "shop", "api"), managed_by("shop")));
    auto heard = co_await live.hear(admin, "api");
    EXPECT_THAT(heard, Contains("shop"));
    EXPECT_THAT(live.updates.hub().take(subscriber), IsEmpty());
  });
}

TEST(LiveUpdates, AnOutageIsToldAndEnds) {
  with_live([](LiveFixture& live) -> Task<> {
    const auto stream = co_await live.subscribe(live.accounts.sample.ann_key, "index");
    co_await live.hear(stream, "reset");
    co_await live.script("ALTER TABLE change RENAME TO away");
    EXPECT_THAT(co_await live.hear(stream, "stale"), ElementsAre("stale"));
    co_await live.script("ALTER TABLE away RENAME TO change");
    co_await live.store(app_event(application_of("shop")));
    const auto heard = co_await live.hear(stream, "shop");
    EXPECT_THAT(heard, Contains("fresh"));
    EXPECT_THAT(heard, Not(Contains("reset")));
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
