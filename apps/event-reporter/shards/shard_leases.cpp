#include "event-reporter/shards/shard_leases.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/core/backoff.hpp"
#include "common/core/encoding.hpp"
#include "common/core/log.hpp"

namespace gitops::reporter {
namespace {

using k8s::resources::kLeases;

const Log kLog("shards");

// Maximum number of replicas that one process watches; it takes over for only one of them.
constexpr std::uint32_t kMaxNeighbours = 63;

// Returns a text that another client wrote into a Lease in a form that is safe for a page of text.
std::string printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 128;
  std::string out(text.substr(0, kMaxLength));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

// Returns the holder of the layout's Lease.
std::string layout_holder(std::uint32_t replicas) {
  return std::to_string(replicas) + (replicas == 1 ? " replica" : " replicas");
}

// Returns the upper half of a Term.
Term which(std::string_view identity) {
  return static_cast<Term>(fnv1a_32(identity) & 0x7fff'ffffU) << 32;
}

}  // namespace

ShardLeases::ShardLeases(k8s::Client& client, Options options, ShardObserver& observer)
    : client_(client),
      options_(std::move(options)),
      observer_(observer),
      layout_({options_.ns, options_.name + "-layout"}, labels()) {
  make_elections();
}

void ShardLeases::make_elections() {
  if (alone()) return;
  const Shard& own = options_.own;
  // The earlier renewals are used, so that a Lease that was put back meanwhile does not lower the
  // floors.
  const auto newest_renewal = [this](std::uint32_t shard) {
    return others_ ? lease_of(shard).newest_renewal() : WallTime{};
  };
  std::vector<FailoverOptions::Lease> leases;
  for (std::uint32_t i = 0; i < std::min(own.replicas - 1, kMaxNeighbours); ++i) {
    leases.push_back({lease_name(neighbour(i)), newest_renewal(neighbour(i))});
  }
  own_.emplace(client_,
               k8s::LeaseOptions{.key = {options_.ns, lease_name(own.ordinal)},
                                 .identity = options_.identity,
                                 .labels = labels(),
                                 .lease_duration = options_.lease_duration,
                                 .renew_deadline = options_.renew_deadline,
                                 .retry_period = options_.retry_period,
                                 .clock = [this] { return now(); },
                                 .newest_renewal = newest_renewal(own.ordinal)},
               [this](bool held) { notify(options_.own.ordinal, own_->lease(), held); });
  others_.emplace(client_,
                  FailoverOptions{.ns = options_.ns,
                                  .leases = std::move(leases),
                                  .identity = options_.identity,
                                  .labels = labels(),
                                  .lease_duration = options_.lease_duration,
                                  .renew_deadline = options_.renew_deadline,
                                  .retry_period = options_.retry_period,
                                  .rank_delay = options_.rank_delay,
                                  .handover_grace = options_.handover_grace},
                  static_cast<Failover::Observer&>(*this));
}

void ShardLeases::on_change(std::size_t index, bool held) {
  notify(neighbour(index), others_->lease(index), held);
}

bool ShardLeases::busy(std::size_t index) const {
  return observer_.busy(neighbour(index));
}

WallTime ShardLeases::now() const {
  return std::max(std::min(wall_now(), latest_of_layout().value_or(wall_now())), layout_begin_);
}

void ShardLeases::start(TaskGroup& group) {
  group.spawn("shards", [this] { return run(); });
}

Task<> ShardLeases::run() {
  const auto executor = co_await asio::this_coro::executor;
  while (true) {
    co_await join_layout();
    joined_ = true;
    std::string failure;
    TaskGroup tasks(executor, [&failure, &tasks](const std::string& task, const std::string& what) {
      failure = task + ": " + what;
      tasks.cancel();
    });
    tasks.spawn("layout", [this, &tasks]() -> Task<> {
      co_await stay_in_layout();
      tasks.cancel();
    });
    if (alone()) {
      tasks.spawn("all shards", [this] { return hold_alone(); });
    } else {
      make_elections();
      own_->start(tasks);
      others_->start(tasks);
    }
    co_await tasks.join();
    if (!failure.empty()) throw std::runtime_error(failure);
  }
}

bool ShardLeases::holds(std::uint32_t shard) const {
  if (alone()) return holds_all_ && shard == 0;
  if (shard == options_.own.ordinal) return own_->leading();
  const auto other = others_->held();
  return other && neighbour(*other) == shard;
}

std::vector<std::uint32_t> ShardLeases::held() const {
  std::vector<std::uint32_t> shards;
  if (holds(options_.own.ordinal)) shards.push_back(options_.own.ordinal);
  if (others_) {
    if (const auto other = others_->held()) shards.push_back(neighbour(*other));
  }
  return shards;
}

std::string ShardLeases::last_error() const {
  if (holds(options_.own.ordinal)) return {};
  if (layout_.known() && !is_our_layout()) {
    return "the Lease of the layout is that of " + printable(layout_.record().holder);
  }
  return "the Lease of our shard is not ours yet";
}

StatusReport ShardLeases::status() const {
  if (alone()) {
    return {{.name = "shards",
             .state = holds_all_ ? StatusState::ok : StatusState::pending,
             .message = holds_all_ ? "all, no leases" : "none yet"}};
  }
  StatusReport report{entry_of(options_.own.ordinal, own_->lease())};
  for (std::uint32_t i = 0; i < std::min(options_.own.replicas - 1, kMaxNeighbours); ++i) {
    report.push_back(entry_of(neighbour(i), others_->lease(i)));
  }
  return report;
}

StatusEntry ShardLeases::entry_of(std::uint32_t shard, const k8s::LeaseView& lease) const {
  const bool own = shard == options_.own.ordinal;
  StatusEntry entry{.name = "shard " + std::to_string(shard) + (own ? " (own)" : ""),
                    .state = StatusState::pending,
                    .message = "not seen yet"};
  if (!lease.since()) return entry;
  const auto& record = lease.record();
  if (record.holder.empty()) {
    entry.message = lease.known() ? "free" : "no lease";
    return entry;
  }
  entry.message = "held by " + printable(record.holder);
  if (const auto acquired = parse_rfc3339(record.acquired)) entry.since = *acquired;
  if (holds(shard)) {
    entry.state = StatusState::ok;
    entry.add_text("role", own ? "this process" : "this process as a stand-in", "");
  } else if (record.holder == options_.identity) {
    entry.state = StatusState::failed;
    entry.add_text("lease", "not renewed", "");
  } else {
    entry.state = StatusState::standby;
  }
  if (const auto owner = wanted_by(lease); !owner.empty()) {
    entry.add_text("asked_back_by", printable(owner));
  }
  return entry;
}

std::string ShardLeases::lease_name(std::uint32_t shard) const {
  return options_.name + "-" + std::to_string(shard);
}

k8s::Labels ShardLeases::labels() const {
  return {{"gitops-runtime.io/leases-of", options_.name}};
}

// Returns the shard of another replica, in the order in which this process takes them over.
std::uint32_t ShardLeases::neighbour(std::size_t index) const {
  return static_cast<std::uint32_t>((std::uint64_t{options_.own.ordinal} + 1 + index) %
                                    options_.own.replicas);
}

Term ShardLeases::term(const k8s::LeaseView& lease) const {
  const auto upper = which(lease.uid() + "/" + layout_id_);
  const auto lower =
      std::clamp<Term>(lease.record().transitions, 0, std::numeric_limits<std::int32_t>::max());
  return upper | lower;
}

// Returns the floor of a Lease that this process holds; its renewTime is later than that of the
// previous holder.
Sequence ShardLeases::floor(const k8s::LeaseView& lease) const {
  const auto renewed = parse_rfc3339(lease.record().renewed);
  return renewed ? sequence_of(*renewed + options_.lease_duration) : 0;
}

const k8s::LeaseView& ShardLeases::lease_of(std::uint32_t shard) const {
  const auto& own = options_.own;
  if (shard == own.ordinal) return own_->lease();
  return others_->lease((shard + own.replicas - own.ordinal - 1) % own.replicas);
}

// Returns the latest time for sequences. Half of the duration leaves room for sequences that run
// ahead: those of a burst of events, and of a ledger that lost some.
std::optional<WallTime> ShardLeases::latest(std::uint32_t shard) const {
  const auto latest = latest_of_layout();
  if (alone() || !latest) return latest;
  const auto renewed = parse_rfc3339(lease_of(shard).record().renewed);
  return renewed ? std::min(*latest, *renewed + options_.lease_duration / 2) : latest;
}

std::optional<WallTime> ShardLeases::latest_of_layout() const {
  if (layout_id_.empty()) return std::nullopt;
  return layout_time_ + options_.layout_duration / 2;
}

void ShardLeases::notify(std::uint32_t shard, const k8s::LeaseView& lease, bool held) {
  if (held) {
    observer_.claimed(shard, term(lease), floor(lease));
  } else {
    observer_.released(shard);
  }
}

bool ShardLeases::is_our_layout() const {
  return layout_.record().holder == layout_holder(std::max(options_.own.replicas, 1U));
}

// Returns whether replicas with another number, from before the last change, have stopped.
bool ShardLeases::others_have_stopped() const {
  const auto& record = layout_.record();
  return record.transitions == 0 || record.renewed != record.acquired ||
         Clock::now() - layout_.since().value() >= options_.lease_duration;
}

// Waits until shards may be held.
Task<> ShardLeases::join_layout() {
  RepeatFilter failures(std::chrono::minutes(1));
  Backoff pauses({.max = options_.retry_period}, random_seed());
  while (true) {
    const auto seen = co_await see_layout(deadline_after(options_.renew_deadline));
    if (seen && is_our_layout() && others_have_stopped()) co_return;
    if (seen) {
      pauses.reset();
      co_await sleep_for(options_.retry_period);
      continue;
    }
    const auto code = seen.error().code;
    if (code != ErrorCode::conflict && code != ErrorCode::not_found &&
        failures.check(to_string(code), Clock::now()).pass) {
      kLog.warning("the number of replicas could not be recorded",
                   {{"error", seen.error().message}});
    }
    if (alone() && (code == ErrorCode::not_found || code == ErrorCode::forbidden)) {
      layout_.see_none(Clock::now());
      layout_id_.clear();
      co_return;
    }
    co_await sleep_for(pauses.next(seen.error().retry_after));
  }
}

// Returns when no shard may be held any more: there are replicas with another number, or this process
// cannot know.
Task<> ShardLeases::stay_in_layout() {
  const auto id = layout_id_;
  const auto may_stay = [&] {
    if (layout_id_ != id) return false;
    if (id.empty()) return !layout_.known() || is_our_layout();
    return is_our_layout() && Clock::now() < in_layout_until_;
  };
  while (may_stay()) {
    auto next = deadline_after(options_.retry_period);
    if (!id.empty()) next = std::min(next, in_layout_until_);
    co_await sleep_until(next);
    std::ignore = co_await see_layout(id.empty() ? deadline_after(options_.renew_deadline)
                                                 : in_layout_until_);
  }
  kLog.info("the layout is not ours any more",
            {{"lease", layout_.key().to_string()}, {"holder", printable(layout_.record().holder)}});
}

// Reads the layout's Lease and writes it when that is due.
Task<Result<void>> ShardLeases::see_layout(Deadline deadline) {
  const auto& key = layout_.key();
  const auto begin = Clock::now();
  auto lease = co_await client_.get(kLeases, key, deadline);
  if (lease) {
    layout_.see(*lease, Clock::now());
    if (!layout_.known()) {
      co_return fail(ErrorCode::invalid_data, key.to_string() + " is not a Lease");
    }
    if (seen_layout_id() == layout_id_) in_layout_until_ = begin + options_.renew_deadline;
  } else if (alone() || lease.error().code != ErrorCode::not_found) {
    co_return fail("Lease " + key.to_string(), std::move(lease.error()));
  } else {
    layout_.see_none(Clock::now());
  }
  if (const auto time = next_layout_time()) {
    auto object = layout_.taken(layout_holder(std::max(options_.own.replicas, 1U)),
                                options_.layout_duration, *time, Clock::now());
    lease = layout_.known() ? co_await client_.update(kLeases, key, std::move(object), deadline)
                            : co_await client_.create(kLeases, key.ns, std::move(object), deadline);
    if (!lease) co_return fail("Lease " + key.to_string(), std::move(lease.error()));
    layout_.see(*lease, Clock::now());
  }
  if (!is_our_layout()) co_return Result<void>();
  adopt_layout();
  in_layout_until_ = begin + options_.renew_deadline;
  co_return Result<void>();
}

// Returns the renewTime to write now; absent when no write is due.
std::optional<WallTime> ShardLeases::next_layout_time() const {
  const auto now = wall_now();
  const auto& record = layout_.record();
  const auto renewed = parse_rfc3339(record.renewed);
  if (layout_.known() && is_our_layout()) {
    if (!renewed) return now;
    if (!others_have_stopped()) return std::nullopt;
    // The time also advances when it is ahead of the clock, at half the speed, and after it was put
    // back.
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                           layout_.since().value());
    const auto next = std::max({now, *renewed + age / 2, layout_time_});
    const bool first = record.transitions != 0 && record.renewed == record.acquired;
    return first || next - *renewed >= options_.layout_duration / 4 ? std::optional(next)
                                                                    : std::nullopt;
  }
  // Replicas with another number exist: a rollout replaces this one soon.
  if (layout_.known() && joined_) return std::nullopt;
  auto next = now;
  if (renewed) next = std::max(next, *renewed + options_.layout_duration);
  // The Lease was deleted.
  if (!layout_id_.empty()) next = std::max(next, layout_time_ + options_.layout_duration);
  return next;
}

std::string ShardLeases::seen_layout_id() const {
  return layout_.uid() + "/" + std::to_string(layout_.record().transitions);
}

void ShardLeases::adopt_layout() {
  const auto renewed = parse_rfc3339(layout_.record().renewed);
  if (renewed) layout_time_ = std::max(layout_time_, *renewed);
  if (seen_layout_id() == layout_id_) return;
  layout_id_ = seen_layout_id();
  if (renewed) layout_begin_ = std::max(layout_begin_, *renewed);
}

Task<> ShardLeases::hold_alone() {
  holds_all_ = true;
  observer_.claimed(0, layout_id_.empty() ? 0 : which(layout_id_), sequence_of(layout_begin_));
  try {
    co_await sleep_until(kNever);
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  holds_all_ = false;
  observer_.released(0);
}

}  // namespace gitops::reporter
