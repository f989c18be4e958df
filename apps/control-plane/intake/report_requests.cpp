#include "control-plane/intake/report_requests.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr auto kReadEvery = std::chrono::seconds(1);
// An event waits this long at most: it is stored, and its reporter will come again.
constexpr auto kLimit = std::chrono::milliseconds(500);
// Reporters that are remembered for one request. The names are those of a runtime's choice.
constexpr std::size_t kMaxReporters = 64;

}  // namespace

ReportArrival report_arrival(const ObjectState& state, std::string reporter) {
  const bool is_reported_alone =
      state.key.origin == Origin::resource || state.key.owner_uid.empty();
  return {.runtime = state.key.runtime,
          .reporter = std::move(reporter),
          .origin = state.key.origin,
          .uid = is_reported_alone ? state.uid : std::string(),
          .sequence = state.sequence};
}

void OpenReportRequests::replace(std::vector<ReportRequestRow> rows) {
  std::vector<Open> open;
  open.reserve(rows.size());
  for (auto& row : rows) {
    const auto before = std::ranges::find_if(open_, [&](const Open& one) {
      return one.row.number == row.number && one.row.uid == row.uid &&
             one.row.runtime == row.runtime;
    });
    open.push_back(
        {.row = std::move(row),
         .told = before == open_.end() ? decltype(Open::told)() : std::move(before->told)});
  }
  open_ = std::move(open);
}

std::optional<ReportRequestRow> OpenReportRequests::close(const ReportArrival& arrival) {
  const auto found = std::ranges::find_if(open_, [&](const Open& one) {
    return one.row.uid == arrival.uid && one.row.runtime == arrival.runtime &&
           one.row.origin() == arrival.origin && arrival.sequence > one.row.sequence &&
           one.told.contains(arrival.reporter);
  });
  if (found == open_.end()) return std::nullopt;
  auto row = std::move(found->row);
  open_.erase(found);
  return row;
}

std::vector<control_plane::ReportRequest> OpenReportRequests::tell(const ReportArrival& arrival) {
  const auto last_round = [&](const Open* one) {
    const auto told = one->told.find(arrival.reporter);
    return told == one->told.end() ? 0 : told->second;
  };
  std::vector<Open*> due;
  for (auto& one : open_) {
    if (one.row.runtime == arrival.runtime && one.row.origin() == arrival.origin) {
      due.push_back(&one);
    }
  }
  const auto most = std::min(due.size(), control_plane::kMaxReportRequests);
  std::ranges::partial_sort(
      due, due.begin() + static_cast<std::ptrdiff_t>(most), [&](const Open* a, const Open* b) {
        return std::pair(last_round(a), a->row.number) < std::pair(last_round(b), b->row.number);
      });
  due.resize(most);
  ++round_;
  std::vector<control_plane::ReportRequest> told;
  for (auto* one : due) {
    told.push_back({.uid = one->row.uid, .number = one->row.number});
    if (one->told.size() < kMaxReporters || one->told.contains(arrival.reporter)) {
      one->told[arrival.reporter] = round_;
    }
  }
  return told;
}

Task<std::string> ReportRequests::head(std::int64_t account, ReportArrival arrival) {
  auto& known = accounts_[account];
  if (!known) known = std::make_shared<Account>();
  const auto requests = known;
  co_await refresh(account, requests);
  if (requests->open.is_empty()) co_return std::string();
  if (auto closed = requests->open.close(arrival)) {
    const auto stored = co_await database_.write(
        deadline_after(kLimit), [account, row = std::move(*closed)](store::Connection& db) {
          return close_report_request(db, account, row);
        });
    // It stays open until it expires; the reporter ignores what it has served.
    if (!stored && repeated_.check("close", Clock::now()).pass) {
      log_.warning("a request for events was not ended", {{"error", stored.error().message}});
    }
  }
  co_return control_plane::to_head(requests->open.tell(arrival));
}

Task<> ReportRequests::refresh(std::int64_t number, std::shared_ptr<Account> account) {
  const auto now = Clock::now();
  if (account->read_at && now - *account->read_at < kReadEvery) co_return;
  account->read_at = now;  // before the read: other events do not read, too
  auto rows = co_await database_.read(deadline_after(kLimit),
                                      [number, at = micros_at(wall_now())](store::Connection& db) {
                                        return open_report_requests(db, number, at);
                                      });
  if (rows) {
    account->open.replace(std::move(*rows));
  } else if (repeated_.check("read", Clock::now()).pass) {
    log_.warning("requests for events cannot be read", {{"error", rows.error().message}});
  }
}

}  // namespace gitops::control_plane_server
