#include "event-reporter/report/watch_lag.hpp"

#include <algorithm>
#include <utility>

#include "common/core/backoff.hpp"
#include "k8s-client/reflector.hpp"

namespace gitops::reporter {
namespace {

constexpr Backoff::Options kPauses{.initial = std::chrono::milliseconds(200),
                                   .max = std::chrono::seconds(5)};

}  // namespace

WatchLag::WatchLag(const Executor& executor, Newest newest)
    : newest_(std::move(newest)), unknown_changed_(executor) {}

void WatchLag::taken_over(std::uint32_t shard) {
  since_[shard].clear();
  unknown_.insert(shard);
  unknown_changed_.notify_all();
}

void WatchLag::restored() {
  for (const auto& [shard, version] : std::exchange(since_, {})) taken_over(shard);
}

bool WatchLag::may_be_outdated(std::uint32_t shard, std::string_view version) const {
  const auto since = since_.find(shard);
  if (since == since_.end()) return false;
  return since->second.empty() || version == since->second ||
         k8s::is_older_version(version, since->second);
}

std::size_t WatchLag::unknown() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(since_, [](const auto& shard) { return shard.second.empty(); }));
}

StatusReport status_of_take_overs(std::size_t shards) {
  if (shards == 0) return {};
  StatusEntry entry{.name = "taken over", .state = StatusState::pending};
  entry.add_count("shards", shards, "shards, whose objects are read until the watch has caught up");
  return {std::move(entry)};
}

Task<> WatchLag::run() {
  Backoff backoff(kPauses, random_seed());
  while (true) {
    while (unknown_.empty()) co_await unknown_changed_.wait();
    // A shard that is taken over during the request needs another one.
    auto shards = std::exchange(unknown_, {});
    const auto version = co_await newest_();
    if (!version) {
      unknown_.merge(shards);
      co_await sleep_for(backoff.next());
      continue;
    }
    backoff.reset();
    for (const auto shard : shards) {
      if (!unknown_.contains(shard)) since_[shard] = *version;
    }
  }
}

}  // namespace gitops::reporter
