#include "control-plane/audit/audit_store.hpp"

#include <atomic>
#include <future>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/audit/audit_command.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using testing::ElementsAre;
using testing::HasSubstr;

AuditEntry entry_of(std::int64_t account, Micros at, const std::string& action) {
  return {.account = account, .at = at, .caller = "ann", .caller_id = "u1", .action = action};
}

std::vector<std::string> actions(const std::vector<AuditEntry>& entries) {
  std::vector<std::string> out;
  for (const auto& entry : entries) out.push_back(std::to_string(entry.no) + " " + entry.action);
  return out;
}

struct AuditContract : testing::TestWithParam<Engine> {
  StoreBed bed{GetParam()};
  store::Connection& db() { return bed.connection(); }
  void append(std::vector<AuditEntry> entries) {
    must(db().transact([&] { return append_audit(db(), std::move(entries)); }));
  }
  std::string broken(std::int64_t account = 1) { return must(verify_audit(db(), account)).broken; }
};

TEST_P(AuditContract, EntriesAreNumberedInTheOrderOfEachAccount) {
  append({entry_of(1, 500, "a"), entry_of(2, 100, "x"), entry_of(1, 600, "b")});
  // The clock of another process is behind.
  append({entry_of(1, 400, "c")});
  const auto entries = must(list_audit(db(), {.account = 1}, 10));
  EXPECT_THAT(actions(entries), ElementsAre("3 c", "2 b", "1 a"));
  EXPECT_EQ(entries[0].at, 600);
  EXPECT_THAT(actions(must(list_audit(db(), {.account = 2}, 10))), ElementsAre("1 x"));
}

TEST_P(AuditContract, AListIsFiltered) {
  auto refused = entry_of(1, 700, "c");
  refused.caller_id = "u2";
  refused.result = AuditResult::refused;
  append({entry_of(1, 500, "a"), entry_of(1, 600, "b"), refused});
  const auto listed = [&](AuditFilter filter, std::int64_t limit = 10) {
    filter.account = 1;
    return actions(must(list_audit(db(), filter, limit)));
  };
  EXPECT_THAT(listed({.before_no = 3}), ElementsAre("2 b", "1 a"));
  EXPECT_THAT(listed({.from = 600}), ElementsAre("3 c", "2 b"));
  EXPECT_THAT(listed({.until = 600}), ElementsAre("1 a"));
  EXPECT_THAT(listed({.caller_id = "u2"}), ElementsAre("3 c"));
  EXPECT_THAT(listed({.action = "b"}), ElementsAre("2 b"));
  EXPECT_THAT(listed({.result = AuditResult::refused}), ElementsAre("3 c"));
  EXPECT_THAT(listed({}, 2), ElementsAre("3 c", "2 b"));
}

TEST_P(AuditContract, AC_46_AnEntryThatWasTamperedWithIsFound) {
  std::vector<AuditEntry> entries;
  for (int i = 0; i < 2'500; ++i) entries.push_back(entry_of(1, 1'000 + i, "a"));
  append(std::move(entries));
  const auto whole = must(verify_audit(db(), 1));
  EXPECT_EQ(whole.broken, "");
  EXPECT_EQ(whole.entries, 2'500);
  EXPECT_EQ(whole.last_no, 2'500);
  must(db().run_script("UPDATE audit SET caller = 'bob' WHERE no = 2001"));
  EXPECT_EQ(broken(), "entry 2001 was changed");
  must(db().run_script("UPDATE audit SET caller = 'ann' WHERE no = 2001"));
  EXPECT_EQ(broken(), "");
  must(db().run_script("DELETE FROM audit WHERE no = 1500"));
  EXPECT_EQ(broken(), "entry 1500 is missing");
  // What the retention removes is the beginning.
  must(db().run_script("DELETE FROM audit WHERE no < 1500"));
  const auto rest = must(verify_audit(db(), 1));
  EXPECT_EQ(rest.broken, "");
  EXPECT_EQ(rest.first_no, 1'501);
  EXPECT_EQ(rest.digest, whole.digest);
  // The end was cut off and goes on: only the digest that somebody noted shows it.
  must(db().run_script("DELETE FROM audit WHERE no = 2500"));
  append({entry_of(1, 9'000, "b")});
  EXPECT_EQ(broken(), "");
  EXPECT_NE(must(verify_audit(db(), 1)).digest, whole.digest);
}

TEST_P(AuditContract, EveryStatementCanBePrepared) {
  for (const auto& statement : audit_statements()) {
    if (GetParam() == Engine::sqlite) continue;
    const auto sql = "PREPARE t AS " + std::string(statement.text(GetParam()));
    const auto prepared = db().run_script(sql + "; DEALLOCATE t");
    EXPECT_TRUE(prepared) << statement.name << ": " << prepared.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, AuditContract, testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

TEST(AuditLog, AChangeIsStoredWhenItsRequestGoesOn) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    AuditLog log(accounts.executor, accounts.database, accounts.metrics);
    log.start();
    const auto account = accounts.sample.acme.number;
    co_await log.add(entry_of(account, 0, "a"));
    const auto listed = [&]() -> Task<std::vector<std::string>> {
      co_return actions(must(co_await accounts.write(
          [account](store::Connection& db) { return list_audit(db, {.account = account}, 10); })));
    };
    EXPECT_THAT(co_await listed(), ElementsAre("1 a"));
    for (int i = 0; i < 5; ++i) log.add_refusal(entry_of(account, 0, "b"));
    log.add_refusal(entry_of(account, 0, "c"));
    co_await log.stop(AccountsFixture::soon());
    EXPECT_THAT(co_await listed(), ElementsAre("3 c", "2 b", "1 a"));
    EXPECT_TRUE(accounts.counts("gitops_control_plane_audit_entries_total 3"));
  });
}

TEST(AuditLog, DifferentRefusalsOfOneNetworkHaveALimit) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    AuditLog log(accounts.executor, accounts.database, accounts.metrics);
    log.start();
    const auto refuse = [&log](const std::string& peer, const std::string& action) {
      AuditEntry entry{.peer = peer, .action = action};
      entry.result = AuditResult::refused;
      log.add_refusal(std::move(entry));
    };
    for (int i = 0; i < 500; ++i) {
      const auto peer = "2001:db8::" + std::to_string(i % 9 + 1);
      refuse(peer, "GET /api/service-users/" + std::to_string(i));
    }
    refuse("192.0.2.7", "GET /api/service-users");
    co_await log.stop(AccountsFixture::soon());
    const auto entries = must(co_await accounts.write(
        [](store::Connection& db) { return list_audit(db, {.account = 0}, 1'000); }));
    EXPECT_EQ(entries.size(), 101U);
    EXPECT_EQ(entries.front().peer, "192.0.2.7") << "others are not kept out";
    EXPECT_THAT(entries.front().detail, HasSubstr("400 others"));
    EXPECT_EQ(accounts.log.count("left out of the audit log"), 1U);
  });
}

TEST(AuditLog, AnEntryThatTheDatabaseDoesNotTakeIsInTheLog) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    AuditLog log(accounts.executor, accounts.database, accounts.metrics);
    log.start();
    must(co_await accounts.write(
        [](store::Connection& db) { return db.run_script("DROP TABLE audit"); }));
    co_await log.add(entry_of(1, 0, "lost"));
    co_await log.stop(AccountsFixture::soon());
    EXPECT_EQ(accounts.log.count("lost"), 1U) << accounts.log.text();
    EXPECT_TRUE(accounts.counts("gitops_control_plane_audit_entries_not_stored_total 1"));
  });
}

TEST(AuditLog, AnEntryThatIsBeingStoredAtTheEndIsInTheLog) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    AuditLog log(accounts.executor, accounts.database, accounts.metrics);
    log.start();
    std::promise<void> release;
    const auto released = release.get_future().share();
    std::atomic<bool> is_busy = false;
    TaskGroup tasks(accounts.executor);
    tasks.spawn("writer", [&]() -> Task<> {
      std::ignore = co_await accounts.write([&is_busy, released](store::Connection&) {
        is_busy = true;
        released.wait();
        return Result<void>();
      });
    });
    const bool was_busy = co_await test::eventually_while_clock_is_held(
        [&] { return is_busy.load(); }, "a busy writer");
    log.add_refusal(entry_of(1, 0, "late-entry"));
    // The entry is taken from the queue meanwhile.
    int turns = 0;
    std::ignore = co_await test::eventually_while_clock_is_held([&] { return ++turns > 100; },
                                                                "some turns of the loop");
    co_await log.stop(Clock::now());
    release.set_value();
    co_await tasks.join();
    EXPECT_TRUE(was_busy);
    EXPECT_EQ(accounts.log.count("late-entry"), 1U) << accounts.log.text();
    EXPECT_TRUE(accounts.counts("gitops_control_plane_audit_entries_not_stored_total 1"));
  });
}

TEST(AuditCommand, TellsWhichChainIsBroken) {
  const test::TestDatabase files(Engine::sqlite);
  const auto db =
      must(store::open_sqlite(files.location().path, store::Access::read_write, 1024 * 1024));
  must(store::migrate(*db, migrations()));
  const auto sample = make_sample(*db);
  const auto account = sample.acme.number;
  must(db->transact(
      [&] { return append_audit(*db, {entry_of(account, 1, "a"), entry_of(account, 2, "b")}); }));
  std::ostringstream out;
  std::ostringstream err;
  cli::Console console{.out = out, .err = err};
  const auto run = [&](std::vector<std::string> arguments) {
    return run_audit_command(
        [&](ConfigReader&, store::Location& location) { location = files.location(); }, arguments,
        {}, console);
  };
  EXPECT_EQ(run({"audit", "verify"}), cli::kDone) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("acme"));
  EXPECT_THAT(out.str(), HasSubstr("whole"));
  must(db->run_script("UPDATE audit SET action = 'c' WHERE no = 2"));
  EXPECT_EQ(run({"audit", "verify"}), cli::kFailed);
  EXPECT_THAT(out.str(), HasSubstr("entry 2 was changed"));
  EXPECT_EQ(run({"user"}), std::nullopt);
}

}  // namespace
}  // namespace gitops::control_plane_server
