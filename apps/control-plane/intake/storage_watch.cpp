#include "control-plane/intake/storage_watch.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace gitops::control_plane_server {
namespace {

constexpr auto kLimitOfCall = std::chrono::seconds(10);
constexpr std::int64_t kRowsOfCut = 1'000;  // of one transaction, between which events are stored
constexpr int kCutsOfCheck = 20;
constexpr auto kVolumePeriod = std::chrono::seconds(1);
// Room that is kept on the volume: these bytes, or a tenth of a small one.
constexpr std::uintmax_t kReserve = 256UL * 1024 * 1024;
constexpr std::uintmax_t kReserveOfSmall = 10;  // divides the capacity

}  // namespace

StorageWatch::StorageWatch(store::Database& database, Metrics& metrics, Options options)
    : database_(database),
      options_(std::move(options)),
      bound_(options_.limit),
      bytes_(metrics.gauge("gitops_control_plane_storage_bytes",
                           "Size of the database; 0 without a limit")),
      limit_(metrics.gauge("gitops_control_plane_storage_limit_bytes",
                           "Limit of the size of the database; 0 without a limit")),
      state_(metrics.gauge("gitops_control_plane_storage_state",
                           "0 normal, 1 above 80 % of the limit, 2 history is cut, 3 events are "
                           "refused")),
      cut_rows_(metrics.counter("gitops_control_plane_storage_cut_rows_total",
                                "Rows of the history that were cut for the limit")) {
  if (!options_.file.empty()) {
    volume_free_ = &metrics.gauge("gitops_control_plane_volume_free_bytes",
                                  "Free space on the volume of SQLite's file");
  }
  limit_.Set(static_cast<double>(options_.limit));
}

Task<> StorageWatch::run() {
  auto size_is_due = Clock::now();
  while (options_.limit > 0 || volume_free_ != nullptr) {
    check_volume();
    if (Clock::now() >= size_is_due) {
      co_await check_size();
      size_is_due = Clock::now() + options_.period;
    }
    co_await sleep_for(std::min<Clock::duration>(kVolumePeriod, options_.period));
  }
}

Task<> StorageWatch::check() {
  check_volume();
  co_await check_size();
}

void StorageWatch::check_volume() {
  if (volume_free_ == nullptr) return;
  std::error_code error;
  const auto space = std::filesystem::space(options_.file, error);
  if (error) return;  // the free space is not known
  volume_free_->Set(static_cast<double>(space.available));
  const bool is_full = space.available < std::min(kReserve, space.capacity / kReserveOfSmall);
  if (is_full == is_volume_full_) return;
  is_volume_full_ = is_full;
  const Field free("free_bytes", static_cast<std::int64_t>(space.available));
  if (is_full) {
    log_.error("events are refused, since the volume of the database is almost full", {free});
  } else {
    log_.info("the volume of the database has room again", {free});
  }
}

Task<> StorageWatch::check_size() {
  if (options_.limit <= 0) co_return;
  const auto before = bound_.state();
  if (!co_await measure()) co_return;
  report(before);
  co_await cut_history();
}

StatusEntry StorageWatch::status() const {
  StatusEntry entry{.name = "storage", .message = std::string(to_string(state()))};
  if (state() != SizeState::normal) entry.state = StatusState::degraded;
  if (is_volume_full_) entry.message = "the volume is almost full";
  if (is_full()) entry.state = StatusState::failed;
  if (options_.limit > 0) {
    entry.add_count("percent", static_cast<std::uint64_t>(bound_.percent()), "% of the limit");
  }
  return entry;
}

Task<bool> StorageWatch::measure() {
  using Measured = std::pair<std::int64_t, StorageRoom>;
  const auto measured = co_await database_.read(
      deadline_after(kLimitOfCall), [](store::Connection& connection) -> Result<Measured> {
        const auto bytes = database_size(connection);
        if (!bytes) return std::unexpected(bytes.error());
        const auto room = storage_room(connection);
        if (!room) return std::unexpected(room.error());
        return Measured(*bytes, *room);
      });
  if (!measured) {
    if (repeated_.check("size", Clock::now()).pass) {
      log_.warning("the size of the database is not known", {{"error", measured.error().message}});
    }
    co_return false;
  }
  const auto [bytes, known] = *measured;
  bound_.resume(known);
  bound_.update(bytes);
  if (bound_.room() != known) co_await keep(bytes);
  bytes_.Set(static_cast<double>(bytes));
  state_.Set(static_cast<double>(std::to_underlying(bound_.state())));
  co_return true;
}

// Stores the size for other processes and the next start. On a full volume that fails; then the
// next measurement tries again.
Task<> StorageWatch::keep(std::int64_t bytes) {
  const auto kept = co_await database_.write(
      deadline_after(kLimitOfCall),
      [bytes](store::Connection& connection) { return keep_size(connection, bytes); });
  if (!kept && repeated_.check("keep", Clock::now()).pass) {
    log_.warning("the size of the database was not stored", {{"error", kept.error().message}});
  }
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
