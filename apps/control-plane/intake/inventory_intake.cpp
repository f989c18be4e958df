#include "control-plane/intake/inventory_intake.hpp"

#include <iterator>
#include <utility>

#include <prometheus/counter.h>

#include "control-plane/accounts/account_store.hpp"
#include "control-plane/projection/inventory_verdict.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::int64_t kPage = 2'000;  // rows that are read at a time

}  // namespace

InventoryIntake::InventoryIntake(EventWriter& writer, store::Database& database, Metrics& metrics)
    : writer_(writer),
      database_(database),
      ended_(metrics.counter("gitops_control_plane_inventory_deletions_total",
                             "Objects that an inventory showed to be gone, after the database went "
                             "back in time")),
      resyncs_(metrics.counter("gitops_control_plane_resyncs_total",
                               "Reporters that have reported everything again, after the database "
                               "went back in time")) {}

Task<Result<std::vector<std::string>>> InventoryIntake::take(ReporterName reporter,
                                                             control_plane::Inventory inventory,
                                                             Deadline deadline) {
  const auto asked = co_await database_.read(
      deadline, [reporter](store::Connection& db) { return resync_token(db, reporter); });
  if (!asked) co_return std::unexpected(asked.error());
  if (asked->empty() || *asked != inventory.token) {
    co_return fail(ErrorCode::conflict, "the reporter is not asked for this inventory");
  }
  std::vector<std::string> again;
  if (inventory.is_complete) {
    auto compared = co_await compare_objects(reporter, inventory, deadline);
    if (!compared) co_return std::unexpected(std::move(compared.error()));
    again = std::move(*compared);
  } else if (auto compared = co_await compare_resources(reporter, inventory, deadline); !compared) {
    co_return std::unexpected(std::move(compared.error()));
  }
  const bool is_through = inventory.is_complete ? again.empty() : inventory.is_last;
  if (!is_through) co_return again;
  auto ended = co_await database_.write(deadline,
                                        [reporter, token = inventory.token](store::Connection& db) {
                                          return end_resync(db, reporter, token);
                                        });
  if (!ended) co_return std::unexpected(std::move(ended.error()));
  resyncs_.Increment();
  log_.info("a reporter has reported everything again, after the database went back in time",
            {{"runtime", reporter.runtime}, {"reporter", reporter.name}});
  co_return again;
}

Task<Result<std::vector<std::string>>> InventoryIntake::compare_objects(
    const ReporterName& reporter, const control_plane::Inventory& inventory, Deadline deadline) {
  InventoryVerdict verdict(inventory);
  ObjectKey after{.runtime = reporter.runtime,
                  .origin = inventory.is_of_applications ? Origin::application : Origin::resource};
  while (true) {
    auto page = co_await database_.read(deadline,
                                        [account = reporter.account, after](store::Connection& db) {
                                          return inventory_rows(db, account, after, kPage);
                                        });
    if (!page) co_return std::unexpected(std::move(page.error()));
    const bool is_last = std::ssize(*page) < kPage;
    if (!page->empty()) after = page->back().key;
    for (auto& row : *page) verdict.add(std::move(row));
    if (is_last) verdict.finish();
    if (auto ended = co_await end_gone(reporter, inventory, verdict.take_gone(), deadline);
        !ended) {
      co_return std::unexpected(std::move(ended.error()));
    }
    if (is_last) co_return verdict.again();
  }
}

Task<Result<void>> InventoryIntake::compare_resources(const ReporterName& reporter,
                                                      const control_plane::Inventory& inventory,
                                                      Deadline deadline) {
  InventoryVerdict verdict(inventory);
  for (const auto& [uid, identities] : inventory.resources) {
    auto rows = co_await database_.read(deadline, [reporter, uid](store::Connection& db) {
      return inventory_rows_of(db, reporter.account, reporter.runtime, uid);
    });
    if (!rows) co_return std::unexpected(std::move(rows.error()));
    for (auto& row : *rows) verdict.add(std::move(row));
  }
  verdict.finish();
  co_return co_await end_gone(reporter, inventory, verdict.take_gone(), deadline);
}

Task<Result<void>> InventoryIntake::end_gone(const ReporterName& reporter,
                                             const control_plane::Inventory& inventory,
                                             std::vector<InventoryRow> gone, Deadline deadline) {
  const auto now = micros_at(wall_now());
  std::vector<Incoming> events;
  events.reserve(gone.size());
  for (auto& row : gone) {
    events.push_back({.account = reporter.account,
                      .reporter = reporter.name,
                      .event = deletion_of(std::move(row), inventory, now)});
  }
  const auto count = events.size();
  auto stored = co_await writer_.store_all(std::move(events), deadline);
  if (stored) ended_.Increment(static_cast<double>(count));
  co_return stored;
}

}  // namespace gitops::control_plane_server
