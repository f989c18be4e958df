#include "event-reporter/report/resync.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/backoff.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(500);
constexpr auto kPostTimeout = std::chrono::seconds(30);
constexpr auto kFlushTimeout = std::chrono::seconds(10);
constexpr Backoff::Options kPauses{.initial = std::chrono::seconds(1),
                                   .max = std::chrono::seconds(30)};
// Shortest pause after a refusal, which most likely comes again.
constexpr auto kRefusedPause = std::chrono::minutes(5);
// Time without an acknowledgement after which the control plane is asked where its database is: an object's sign of
// life comes before (ReportQueue).
constexpr auto kSilence = std::chrono::minutes(10);
// Time for which objects without an event are waited for that cannot be read, as those of a managed cluster that does
// not answer. It may be away for days.
constexpr auto kAwayTimeLimit = std::chrono::minutes(2);
// Bytes of identities in one request. An Application with more has a request of its own.
constexpr std::size_t kMaxIdentities = 4UL * 1024 * 1024;

// Returns whether the control plane does not ask for this inventory any more. Another answer may be that of an
// intermediary, and the token is that of one resync: once it is given up, nobody asks again.
bool is_final(const Error& error) {
  return error.http_status == 409;
}

// Returns the shortest pause after a failure.
std::chrono::milliseconds pause_after(const Error& error) {
  const auto verdict = verdict_of(error.http_status);
  const bool is_refused = verdict == Verdict::refused || verdict == Verdict::too_large;
  return is_refused ? std::max<std::chrono::milliseconds>(kRefusedPause, error.retry_after)
                    : error.retry_after;
}

}  // namespace

Resync::Resync(ChangeTracker& changes, Ledger& ledger, Delivery& delivery,
               control_plane::Client& platform, Options options, Metrics& metrics)
    : changes_(changes),
      ledger_(ledger),
      delivery_(delivery),
      platform_(platform),
      options_(std::move(options)),
      resyncs_(metrics.counter("gitops_event_reporter_resyncs_total",
                               "Reports of everything after the control plane's database went "
                               "back in time")) {}

Task<> Resync::run() {
  while (true) {
    const auto token = co_await delivery_.history().next_resync();
    co_await serve(token);
    last_error_.clear();
    delivery_.history().end_resync(token);
  }
}

Task<> Resync::ask_while_silent() {
  auto asked = Clock::now();
  const auto next = [&] { return std::max(asked, delivery_.last_acknowledgement()) + kSilence; };
  while (true) {
    while (Clock::now() < next()) co_await sleep_until(next());
    asked = Clock::now();
    auto& history = delivery_.history();
    if (history.position().empty() || delivery_.breaker().state() != Breaker::State::closed) {
      continue;
    }
    const auto answer = co_await platform_.post_position(
        {.id = {}, .reporter = history.reporter(), .seen = history.position()},
        deadline_after(kPostTimeout));
    if (answer) {
      history.acknowledged(answer->position, answer->resync);
    } else {
      log_.debug("the control plane does not tell where its database is",
                 {{"error", answer.error().message}});
    }
  }
}

Task<> Resync::serve(const std::string& token) {
  log_.warning("the control plane's database went back in time: everything is reported again",
               {{"objects", changes_.owned()}});
  const auto sequence = changes_.present_sequence();
  co_await changes_.report_all_again();
  const auto time_limit = deadline_after(kAwayTimeLimit);
  Backoff pauses(kPauses, random_seed());
  while (true) {
    // The next process has to know that everything is due before the control plane may forget it.
    auto told = co_await ledger_.flush(deadline_after(kFlushTimeout));
    if (told) told = co_await tell(token, sequence, time_limit);
    if (told) break;
    last_error_ = told.error().message;
    if (repeats_.check(last_error_, Clock::now()).pass) {
      log_.warning("the inventory was not told", {{"error", last_error_}});
    }
    if (is_final(told.error())) co_return;
    co_await sleep_for(pauses.next(pause_after(told.error())));
  }
  resyncs_.Increment();
  log_.info("the control plane knows which objects exist");
}

Task<Result<void>> Resync::tell(const std::string& token, Sequence sequence, Deadline time_limit) {
  auto inventory = co_await until_known(token, sequence, time_limit);
  if (auto added = co_await add_objects(inventory); !added) co_return added;
  const auto again = co_await post(inventory);
  if (!again) co_return std::unexpected(again.error());
  if (again->empty()) co_return Result<void>{};
  co_return co_await tell_resources(std::move(inventory), *again);
}

// Waits until a shard is held, and every object was listed and has an entry in the ledger, for some only until
// `time_limit`. An inventory of no shard would end the resync, and the deletions that the control plane lost with it.
Task<control_plane::Inventory> Resync::until_known(const std::string& token, Sequence sequence,
                                                   Deadline time_limit) {
  while (true) {
    auto listed = options_.listed();
    auto shards = changes_.held_shards();
    const auto given_up =
        Clock::now() < time_limit ? std::size_t{0} : changes_.unannounced_away().size();
    if (listed && !shards.empty() && changes_.unannounced() == given_up) {
      co_return control_plane::Inventory{.token = token,
                                         .is_of_applications = options_.is_of_applications,
                                         .shards = std::move(shards),
                                         .replicas = options_.replicas,
                                         .sequence = static_cast<std::int64_t>(sequence),
                                         .listed = std::move(*listed)};
    }
    co_await sleep_for(kPoll);
  }
}

Task<Result<void>> Resync::add_objects(control_plane::Inventory& inventory) {
  std::vector<std::pair<std::string, std::string>> objects;  // uid and key
  for (const auto& [key, head] : ledger_.known()) {
    const auto shard = changes_.shard_of_key(key);
    if (std::ranges::binary_search(inventory.shards, shard)) objects.emplace_back(head.uid, key);
  }
  // An object that cannot be read may have a row of the peer inventory alone.
  for (const auto& [row, head] : ledger_.inventory()) {
    const auto shard = changes_.shard_of_key(key_of_row(row));
    if (std::ranges::binary_search(inventory.shards, shard)) objects.emplace_back(head.uid, row);
  }
  for (const auto& [uid, key] : objects) {
    const auto [at, is_new] = inventory.objects.try_emplace(uid);
    if (!is_new) continue;
    auto& digest = at->second;
    if (!options_.is_of_applications) continue;
    auto resources = co_await resources_of(key);
    if (!resources) co_return std::unexpected(std::move(resources.error()));
    digest = control_plane::resources_digest(std::move(*resources));
  }
  co_return Result<void>{};
}

Task<Result<void>> Resync::tell_resources(control_plane::Inventory inventory,
                                          std::vector<std::string> uids) {
  inventory.is_complete = false;
  inventory.objects.clear();
  std::unordered_map<std::string, std::string> keys;  // by uid
  for (const auto& [key, head] : ledger_.known()) keys.emplace(head.uid, key);
  for (const auto& [row, head] : ledger_.inventory()) keys.emplace(head.uid, row);
  std::size_t bytes = 0;
  for (const auto& uid : uids) {
    const auto key = keys.find(uid);
    if (key == keys.end()) continue;  // its deletion was acknowledged meanwhile
    auto resources = co_await resources_of(key->second);
    if (!resources) co_return std::unexpected(std::move(resources.error()));
    for (const auto& identity : *resources) bytes += identity.size();
    if (bytes > kMaxIdentities && !inventory.resources.empty()) {
      if (auto told = co_await post(inventory); !told) co_return std::unexpected(told.error());
      inventory.resources.clear();
      bytes = 0;
    }
    inventory.resources[uid] = std::move(*resources);
  }
  inventory.is_last = true;
  if (auto told = co_await post(inventory); !told) co_return std::unexpected(told.error());
  co_return Result<void>{};
}

Task<Result<std::vector<std::string>>> Resync::post(const control_plane::Inventory& inventory) {
  while (delivery_.breaker().state() != Breaker::State::closed) co_await sleep_for(kPoll);
  co_return co_await platform_.post_inventory(inventory, delivery_.history().reporter(),
                                              deadline_after(kPostTimeout));
}

// Returns the identities of the object's resources that may have been reported.
Task<Result<std::vector<std::string>>> Resync::resources_of(const std::string& key) {
  auto entry = co_await ledger_.load(key);
  if (!entry) co_return std::unexpected(std::move(entry.error()));
  std::vector<std::string> identities;
  identities.reserve(entry->resources.size());
  for (const auto& [identity, resource] : entry->resources) identities.push_back(identity);
  co_return identities;
}

StatusReport Resync::status() const {
  if (delivery_.history().resync().empty()) return {};
  StatusEntry entry{
      .name = "resync",
      .state = StatusState::pending,
      .message = "the control plane's database went back in time: everything is reported again"};
  entry.add_count("unannounced", changes_.unannounced(), "objects without an event yet");
  if (!last_error_.empty()) entry.add_text("error", last_error_);
  return {std::move(entry)};
}

}  // namespace gitops::reporter
