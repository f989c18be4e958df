#include "control-plane/live/change_store.hpp"

#include <deque>

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using testing::ElementsAre;
using testing::IsEmpty;

std::string row(const std::string& instance, int no, int object = 1) {
  return "INSERT INTO change (instance, no, account, kind, object, at) VALUES ('" + instance +
         "', " + std::to_string(no) + ", 1, 'Application', " + std::to_string(object) + ", 0);";
}

struct ChangeStoreContract : testing::TestWithParam<Engine> {
  ChangeStoreContract() : bed(GetParam()) {}
  store::Connection& db() { return bed.connection(); }
  std::vector<std::string> heads() {
    std::vector<std::string> found;
    for (const auto& head : must(outbox_heads(db()))) {
      found.push_back(head.instance + " " + std::to_string(head.first) + "-" +
                      std::to_string(head.last));
    }
    return found;
  }
  StoreBed bed;
};

TEST_P(ChangeStoreContract, TheHeadsAreThoseOfAllProcesses) {
  EXPECT_THAT(heads(), IsEmpty());
  must(db().run_script(row("b", 3) + row("b", 4) + row("a", 1) + row("c", 2)));
  EXPECT_THAT(heads(), ElementsAre("a 1-1", "b 3-4", "c 2-2"));
}

TEST_P(ChangeStoreContract, ChangesComeInPages) {
  std::string script;
  for (int no = 1; no <= 5; ++no) script += row("a", no, no) + row("b", no, no);
  must(db().run_script(script));
  const auto page = must(changes_after(db(), "a", 2, 2));
  ASSERT_EQ(page.changes.size(), 2U);
  EXPECT_EQ(page.changes[0].object, 3);
  EXPECT_EQ(page.last, 4);
  EXPECT_THAT(must(changes_after(db(), "a", 5, 2)).changes, IsEmpty());

  ChangeCursor cursor{.numbers = {{"a", 3}}};
  const auto plan = plan_reading(cursor, must(outbox_heads(db())), Vanished::are_known);
  EXPECT_EQ(must(read_changes(db(), plan, 4, cursor)).size(), 4U);
  EXPECT_EQ(to_string(cursor), "a:5,b:2") << "the rest is read by the next call";
}

TEST_P(ChangeStoreContract, AChangeNamesItsObjectAndItsOwner) {
  Seeder seeder(GetParam());
  seeder.store(db(), 1, app_event(application_of("shop")));
  seeder.store(db(), 1,
               app_event(object_of("apps/v1", "Deployment", "shop", "api"), managed_by("shop")));
  const auto head = must(outbox_heads(db())).at(0);
  const auto changes = must(changes_after(db(), head.instance, 0, 10)).changes;
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].uid, "uid-shop");
  EXPECT_EQ(changes[1].kind, "Deployment");
  EXPECT_EQ(changes[1].owner_uid, "uid-shop");
  must(db().run_script("DELETE FROM object"));
  EXPECT_EQ(must(changes_after(db(), head.instance, 0, 1)).changes.at(0).uid, "");
}

TEST_P(ChangeStoreContract, RuntimesAreThoseOfTheAccount) {
  const auto sample = make_sample(db());
  const auto runtimes = must(live_runtimes(db(), sample.acme.number));
  ASSERT_EQ(runtimes.size(), 1U);
  EXPECT_EQ(runtimes[0].name, "prod");
  EXPECT_EQ(runtimes[0].created_at, kNow);
  EXPECT_THAT(must(live_runtimes(db(), sample.other.number)), IsEmpty());
}

TEST_P(ChangeStoreContract, AnAccountsChangeNamesTheAccount) {
  const auto sample = make_sample(db());
  must(add_account_change(db(), sample.acme.number, kNow));
  const auto found = must(revocations_since(db(), kNow));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].subject, sample.acme.id);
}

TEST_P(ChangeStoreContract, EveryStatementCanBePrepared) {
  std::deque<std::string> texts;  // a connection knows a statement by the address of its name
  for (const auto& statement : change_statements()) {
    const std::string sql(statement.text(GetParam()));
    if (GetParam() == Engine::postgres) {
      EXPECT_TRUE(db().run_script("PREPARE t AS " + sql + "; DEALLOCATE t")) << statement.name;
      continue;
    }
    const auto& text = texts.emplace_back("EXPLAIN " + sql);
    EXPECT_TRUE(db().run({.name = text, .sql = text})) << statement.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ChangeStoreContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
