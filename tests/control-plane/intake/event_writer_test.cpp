// The writer of events on both engines: what a batch does when one of its events cannot be stored. Time is the test's,
// the databases are real.
#include "control-plane/intake/event_writer.hpp"

#include <gmock/gmock.h>

#include "control-plane/intake/intake_fixture.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using testing::HasSubstr;

constexpr int kMaxTries = EventFailures::kMaxTries;

// A writer that has not begun, so that the events of a test are one batch.
struct WriterFixture {
  explicit WriterFixture(AccountsFixture& on)
      : accounts(on),
        writer(on.executor, on.database, on.metrics, {.instance = "test"}, [](std::int64_t) {}),
        tasks(on.executor) {}

  Incoming event(const std::string& name) {
    ++sequence;
    return {.account = accounts.sample.acme.number,
            .reporter = "application",
            .event = event_of_body(app_event(application_of(name)), sequence)};
  }
  // Queues events, starts the writer if it does not run, and returns their outcomes: "ok", or the code of the error
  // with its subcode.
  Task<std::vector<std::string>> store(std::vector<Incoming> events) {
    std::vector<std::string> outcomes(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      tasks.spawn("store", [&, i]() -> Task<> {
        const auto outcome =
            co_await writer.store(std::move(events[i]), 100, AccountsFixture::soon());
        outcomes[i] = outcome ? "ok"
                              : std::string(to_string(outcome.error().code)) +
                                    std::string(outcome.error().subcode);
      });
    }
    if (!has_begun) {
      EXPECT_TRUE(co_await test::eventually([&] { return writer.queue().size() == events.size(); },
                                            "the events are queued"));
      writer.start();
      has_begun = true;
    }
    co_await tasks.join();
    co_return outcomes;
  }
  Task<std::string> store_one(Incoming event) {
    std::vector<Incoming> events;
    events.push_back(std::move(event));
    co_return (co_await store(std::move(events))).front();
  }
  Task<> stop() { co_await writer.stop(AccountsFixture::soon()); }

  AccountsFixture& accounts;
  EventWriter writer;
  TaskGroup tasks;
  bool has_begun = false;
  std::int64_t sequence = 0;
};

struct EventWriterContract : testing::TestWithParam<Engine> {
  void with_writer(const std::function<Task<>(WriterFixture&)>& body) {
    with_accounts(
        [&](AccountsFixture& accounts) -> Task<> {
          must(co_await accounts.write(
              [](store::Connection& db) { return db.run_script(poison_script(db.engine())); }));
          WriterFixture fixture(accounts);
          co_await body(fixture);
          co_await fixture.stop();
        },
        GetParam());
  }
};

TEST_P(EventWriterContract, TheNeighboursOfABadEventAreStored) {
  with_writer([](WriterFixture& fixture) -> Task<> {
    std::vector<Incoming> events;
    for (const auto* name : {"shop", "poison", "cart"}) events.push_back(fixture.event(name));
    const auto outcomes = co_await fixture.store(std::move(events));
    EXPECT_THAT(outcomes, testing::ElementsAre("ok", "internal", "ok"));
    EXPECT_EQ(fixture.writer.last_error(), "") << "the database is well";
  });
}

TEST_P(EventWriterContract, AnEventThatCannotBeStoredIsGivenUpAfterSomeTries) {
  with_writer([](WriterFixture& fixture) -> Task<> {
    const auto bad = fixture.event("poison");
    for (int tries = 1; tries < kMaxTries; ++tries) {
      EXPECT_EQ(co_await fixture.store_one(bad), "internal") << tries;
      EXPECT_EQ(co_await fixture.store_one(fixture.event("shop")), "ok");
      EXPECT_EQ(fixture.writer.last_error(), "");
    }
    EXPECT_EQ(co_await fixture.store_one(bad), "internal" + std::string(kEventCannotBeStored));
    EXPECT_EQ(fixture.writer.last_error(), "")
        << "one event does not take the program off the line";
  });
}

TEST_P(EventWriterContract, WhileNothingElseIsStoredNoEventIsGivenUp) {
  with_writer([](WriterFixture& fixture) -> Task<> {
    EXPECT_EQ(co_await fixture.store_one(fixture.event("shop")), "ok");
    const auto bad = fixture.event("poison");
    for (int tries = 0; tries < 3 * kMaxTries; ++tries) {
      EXPECT_EQ(co_await fixture.store_one(bad), "internal");
    }
    EXPECT_THAT(fixture.writer.last_error(), testing::Not(testing::IsEmpty()));
  });
}

TEST_P(EventWriterContract, AnOutageGivesNoEventUp) {
  with_writer([](WriterFixture& fixture) -> Task<> {
    const auto event = fixture.event("shop");
    EXPECT_EQ(co_await fixture.store_one(fixture.event("cart")), "ok");
    fixture.accounts.database.close(std::chrono::seconds(2));
    for (int tries = 0; tries < 3 * kMaxTries; ++tries) {
      EXPECT_EQ(co_await fixture.store_one(event), "unavailable");
    }
  });
}

// A row that the program cannot read, which would be a bug, ends neither the writer nor the other events. SQLite does not
// let a test make such a row.
TEST(EventWriter, AnExceptionIsAFailureOfItsEvent) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        WriterFixture fixture(accounts);
        must(co_await accounts.write([](store::Connection& db) {
          return db.run_script("ALTER TABLE object ALTER COLUMN sequence TYPE TEXT");
        }));
        EXPECT_EQ(co_await fixture.store_one(fixture.event("odd")), "ok");
        EXPECT_EQ(co_await fixture.store_one(fixture.event("odd")), "internal");
        EXPECT_EQ(co_await fixture.store_one(fixture.event("shop")), "ok");
        co_await fixture.stop();
      },
      Engine::postgres);
}

INSTANTIATE_TEST_SUITE_P(Engines, EventWriterContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
