#include "control-plane/intake/storage_watch.hpp"

#include <gmock/gmock.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/views/seed.hpp"
#include "support/tiny_disk.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Engine;
using testing::HasSubstr;

constexpr store::Statement kCountHistory{.name = "test.count_history",
                                         .sql = "SELECT count(*) FROM timeline"};

struct StorageWatchContract : testing::TestWithParam<Engine> {
  static Task<> fill(AccountsFixture& accounts, int events) {
    must(co_await accounts.database.with_writer(
        AccountsFixture::soon(),
        [number = accounts.sample.acme.number, events](store::Connection& db) -> Result<void> {
          Seeder seeder(db.engine());
          for (int i = 0; i < events; ++i) {
            seeder.store(db, number, app_event(application_of("n" + std::to_string(i))));
          }
          return {};
        }));
  }
  static Task<std::int64_t> read(AccountsFixture& accounts, bool size) {
    co_return must(co_await accounts.database.read(
        AccountsFixture::soon(), [size](store::Connection& db) -> Result<std::int64_t> {
          if (size) return database_size(db);
          const auto rows = db.run(kCountHistory);
          if (!rows) return std::unexpected(rows.error());
          return rows->number(0, 0);
        }));
  }
  static bool shows(AccountsFixture& accounts, const std::string& metric, std::int64_t value) {
    return accounts.counts("gitops_control_plane_storage_" + metric + " " + std::to_string(value));
  }
};

TEST_P(StorageWatchContract, FromNinetyPercentOnTheOldestHistoryIsCut) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        co_await fill(accounts, 20);
        const auto size = co_await read(accounts, true);
        StorageWatch watch(accounts.database, accounts.metrics, {.limit = size * 100 / 92});
        co_await watch.check();
        EXPECT_EQ(watch.state(), SizeState::trimming);
        EXPECT_EQ(co_await read(accounts, false), 0) << "all of it is little beside the rest";
        EXPECT_TRUE(shows(accounts, "cut_rows_total", 20));
        EXPECT_TRUE(shows(accounts, "state", 2));
        EXPECT_THAT(accounts.log.text(), HasSubstr("the oldest history is cut"));
      },
      GetParam());
}

TEST_P(StorageWatchContract, ARestartCutsNothingThatWasCutBefore) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        co_await fill(accounts, 3);
        const auto size = co_await read(accounts, true);
        // The files keep their size after the cut.
        must(co_await accounts.write([size](store::Connection& db) {
          return db.run_script("INSERT INTO storage_room (one, bytes, freed) VALUES (1, " +
                               std::to_string(size) + ", " + std::to_string(size / 4) + ")");
        }));
        StorageWatch watch(accounts.database, accounts.metrics, {.limit = size * 100 / 98});
        co_await watch.check();
        EXPECT_EQ(watch.state(), SizeState::normal) << "98 % less a quarter";
        EXPECT_EQ(co_await read(accounts, false), 3) << "no history is cut again";
      },
      GetParam());
}

TEST_P(StorageWatchContract, AtEightyPercentPeopleAreTold) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        co_await fill(accounts, 3);
        const auto size = co_await read(accounts, true);
        StorageWatch watch(accounts.database, accounts.metrics, {.limit = size * 100 / 82});
        co_await watch.check();
        EXPECT_EQ(watch.state(), SizeState::warning);
        EXPECT_FALSE(watch.is_full());
        EXPECT_EQ(co_await read(accounts, false), 3) << "no history is cut yet";
        EXPECT_TRUE(shows(accounts, "state", 1));
        EXPECT_THAT(accounts.log.text(), HasSubstr("almost reached its limit"));
        EXPECT_EQ(watch.status().state, StatusState::degraded);
      },
      GetParam());
}

TEST_P(StorageWatchContract, AnUnknownSizeChangesNothing) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        StorageWatch watch(accounts.database, accounts.metrics, {.limit = 1'000});
        co_await watch.check();
        EXPECT_TRUE(watch.is_full());
        accounts.database.close(std::chrono::seconds(2));
        co_await watch.check();
        EXPECT_TRUE(watch.is_full());
        EXPECT_THAT(accounts.log.text(), HasSubstr("size of the database is not known"));
      },
      GetParam());
}

TEST(StorageWatch, WithoutALimitNothingIsMeasured) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    StorageWatch watch(accounts.database, accounts.metrics, {});
    co_await watch.run();
    EXPECT_EQ(watch.state(), SizeState::normal);
    EXPECT_TRUE(accounts.counts("gitops_control_plane_storage_bytes 0"));
  });
}

TEST(StorageWatch, AFullVolumeRefusesEventsUntilThereIsRoom) {
  test::TinyDisk disk(64UL * 1024);
  if (!disk.is_file_system()) GTEST_SKIP() << "mounting is not allowed";
  with_accounts([&](AccountsFixture& accounts) -> Task<> {
    const auto file = disk.path() / "control-plane.db";
    test::write_file(file, "x");
    StorageWatch watch(accounts.database, accounts.metrics, {.file = file.string()});
    co_await watch.check();
    EXPECT_FALSE(watch.is_full());
    disk.fill_up_to(6'000);  // of 64 MiB
    co_await watch.check();
    EXPECT_TRUE(watch.is_full());
    EXPECT_EQ(watch.status().state, StatusState::failed);
    EXPECT_THAT(accounts.log.text(), HasSubstr("volume of the database is almost full"));
    EXPECT_FALSE(accounts.counts("gitops_control_plane_volume_free_bytes 0"));
    disk.clear();
    co_await watch.check();
    EXPECT_FALSE(watch.is_full());
    EXPECT_EQ(watch.status().state, StatusState::ok);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, StorageWatchContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
