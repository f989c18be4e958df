#include "control-plane/intake/storage_watch.hpp"

#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace gitops::control_plane_server {
namespace {

constexpr auto kLimitOfCall = std::chrono::seconds(10);
constexpr std::int64_t kRowsOfCut = 1'000;  // of one transaction, between which events are stored
constexpr int kCutsOfCheck = 20;

}  // namespace

StorageWatch::StorageWatch(store::Database& database, Metrics& metrics, Options options)
    : database_(database),
      options_(options),
      bound_(options.limit),
      bytes_(metrics.gauge("gitops_control_plane_storage_bytes",
                           "Size of the database; 0 without a limit")),
      limit_(metrics.gauge("gitops_control_plane_storage_limit_bytes",
                           "Limit of the size of the database; 0 without a limit")),
      state_(metrics.gauge("gitops_control_plane_storage_state",
                           "0 normal, 1 above 80 % of the limit, 2 history is cut, 3 events are "
                           "refused")),
      cut_rows_(metrics.counter("gitops_control_plane_storage_cut_rows_total",
                                "Rows of the history that were cut for the limit")) {
  limit_.Set(static_cast<double>(options.limit));
}

Task<> StorageWatch::run() {
  if (options_.limit <= 0) co_return;
  while (true) {
    co_await check();
    co_await sleep_for(options_.period);
  }
}

Task<> StorageWatch::check() {
  if (options_.limit <= 0) co_return;
  const auto before = bound_.state();
  if (!co_await measure()) co_return;
  report(before);
  co_await cut_history();
}

StatusEntry StorageWatch::status() const {
  StatusEntry entry{.name = "storage", .message = std::string(to_string(state()))};
  if (state() != SizeState::normal) entry.state = StatusState::degraded;
  if (is_full()) entry.state = StatusState::failed;
  entry.add_count("percent", static_cast<std::uint64_t>(bound_.percent()), "% of the limit");
  return entry;
}

Task<bool> StorageWatch::measure() {
  const auto bytes = co_await database_.read(
      deadline_after(kLimitOfCall),
      [](store::Connection& connection) { return database_size(connection); });
  if (!bytes) {
    if (repeated_.check("size", Clock::now()).pass) {
      log_.warning("the size of the database is not known", {{"error", bytes.error().message}});
    }
    co_return false;
  }
  bound_.update(*bytes);
  bytes_.Set(static_cast<double>(*bytes));
  state_.Set(static_cast<double>(std::to_underlying(bound_.state())));
  co_return true;
}

Task<> StorageWatch::cut_history() {
  for (int part = 0; part < kCutsOfCheck; ++part) {
    const auto rows = bound_.rows_to_cut(kRowsOfCut);
    if (rows == 0) co_return;
    const auto cut = co_await database_.write(
        deadline_after(kLimitOfCall),
        [rows](store::Connection& connection) { return cut_oldest_history(connection, rows); });
    if (!cut) {
      if (repeated_.check("cut", Clock::now()).pass) {
        log_.warning("history was not cut", {{"error", cut.error().message}});
      }
      co_return;
    }
    if (*cut == 0) co_return;  // there is no history any more
    bound_.add_cut(*cut);
    cut_rows_.Increment(static_cast<double>(*cut));
  }
}

void StorageWatch::report(SizeState before) {
  const auto now = bound_.state();
  if (now == before) return;
  const Field percent("percent", bound_.percent());
  switch (now) {
    case SizeState::normal:
      log_.info("the database is below its limit again", {percent});
      break;
    case SizeState::warning:
      log_.warning("the database has almost reached its limit", {percent});
      break;
    case SizeState::trimming:
      log_.warning("the oldest history is cut, since the database has reached its limit",
                   {percent});
      break;
    case SizeState::full:
      log_.error("events are refused, since the database is full", {percent});
      break;
  }
}

}  // namespace gitops::control_plane_server
