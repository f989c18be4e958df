#include "event-reporter/shards/shard_leases.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "common/core/backoff.hpp"
#include "common/core/encoding.hpp"
#include "common/core/log.hpp"

namespace gitops::reporter {
namespace {

using k8s::resources::kLeases;

const Log kLog("shards");

// Replicas that one process watches; it can stand in for only one of them.
constexpr std::uint32_t kMostNeighbours = 63;

// A text that another client wrote into a Lease, safe for a page of text.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  std::string out(text.substr(0, kLongest));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

// The number in the holder of the layout's Lease, "3 replicas"; 0 when there is none.
std::uint32_t replicas_of(std::string_view holder) {
  std::uint32_t replicas = 0;
  std::from_chars(holder.data(), holder.data() + holder.size(), replicas);
  return replicas;
}

// The upper half of a Term.
Term which(std::string_view identity) {
  return static_cast<Term>(fnv1a_32(identity) & 0x7fff'ffffU) << 32;
}

}  // namespace

ShardLeases::ShardLeases(k8s::Client& client, Options options, Callbacks callbacks)
    : client_(client), options_(std::move(options)), callbacks_(std::move(callbacks)) {
  if (alone()) return;
  const Shard& own = options_.own;
  own_.emplace(client,
               k8s::LeaseOptions{.key = {options_.ns, lease_name(own.ordinal)},
                                 .identity = options_.identity,
                                 .labels = labels(),
                                 .lease_duration = options_.lease_duration,
                                 .renew_deadline = options_.renew_deadline,
                                 .retry_period = options_.retry_period,
                                 .role = k8s::LeaseOptions::Role::owner},
               [this](bool held) { tell(options_.own.ordinal, own_->lease(), held); });
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < std::min(own.replicas - 1, kMostNeighbours); ++i) {
    names.push_back(lease_name(neighbour(i)));
  }
  others_.emplace(
      client,
      StandInOptions{.ns = options_.ns,
                     .leases = std::move(names),
                     .identity = options_.identity,
                     .labels = labels(),
                     .lease_duration = options_.lease_duration,
                     .renew_deadline = options_.renew_deadline,
                     .retry_period = options_.retry_period,
                     .patience = options_.patience,
                     .farewell = options_.farewell},
      StandIn::Callbacks{
          .on_change = [this](std::size_t index,
                              bool held) { tell(neighbour(index), others_->lease(index), held); },
          .busy = [this](std::size_t index) { return callbacks_.busy(neighbour(index)); }});
}

void ShardLeases::start(TaskGroup& group) {
  group.spawn("shards", [this, &group] { return run(group); });
}

Task<> ShardLeases::run(TaskGroup& group) {
  co_await record_layout();
  if (alone()) co_return co_await hold_alone();
  own_->start(group);
  others_->start(group);
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

std::string ShardLeases::status() const {
  if (alone()) return holds_all_ ? "shards: all, no leases\n" : "shards: none yet\n";
  std::string out = line(options_.own.ordinal, own_->lease());
  for (std::uint32_t i = 0; i < std::min(options_.own.replicas - 1, kMostNeighbours); ++i) {
    out += line(neighbour(i), others_->lease(i));
  }
  return out;
}

std::string ShardLeases::line(std::uint32_t shard, const k8s::LeaseView& lease) const {
  const bool own = shard == options_.own.ordinal;
  std::string out = "shard " + std::to_string(shard) + (own ? " (own): " : ": ");
  if (!lease.since()) return out + "not seen yet\n";
  const auto& record = lease.record();
  if (record.holder.empty()) return out + (lease.known() ? "free\n" : "no lease\n");
  out += "held by " + printable(record.holder) + " since " + printable(record.acquired);
  if (holds(shard)) {
    out += own ? ", this process" : ", this process as a stand-in";
  } else if (record.holder == options_.identity) {
    out += ", not renewed";
  }
  if (!lease.wanted_by().empty()) out += ", asked back by " + printable(lease.wanted_by());
  return out + "\n";
}

std::string ShardLeases::lease_name(std::uint32_t shard) const {
  return options_.name + "-" + std::to_string(shard);
}

k8s::Labels ShardLeases::labels() const {
  return {{"gitops-runtime.io/leases-of", options_.name}};
}

// The shards of other replicas, the first to stand in for first.
std::uint32_t ShardLeases::neighbour(std::size_t index) const {
  return static_cast<std::uint32_t>((std::uint64_t{options_.own.ordinal} + 1 + index) %
                                    options_.own.replicas);
}

Term ShardLeases::term(const k8s::LeaseView& lease) const {
  const auto upper = which(lease.uid() + "/" + layout_);
  const auto lower =
      std::clamp<Term>(lease.record().transitions, 0, std::numeric_limits<std::int32_t>::max());
  return upper | lower;
}

// The Lease is held by this process, whose renewTime is later than that of the previous holder.
Sequence ShardLeases::floor(const k8s::LeaseView& lease) const {
  const auto renewed = parse_rfc3339(lease.record().renewed);
  return std::max(layout_floor_, renewed ? sequence_of(*renewed + options_.lease_duration) : 0);
}

void ShardLeases::tell(std::uint32_t shard, const k8s::LeaseView& lease, bool held) {
  if (held) {
    callbacks_.claimed(shard, term(lease), floor(lease));
  } else {
    callbacks_.released(shard);
  }
}

Task<> ShardLeases::record_layout() {
  RepeatFilter failures(std::chrono::minutes(1));
  Backoff pauses({.max = options_.retry_period}, random_seed());
  while (true) {
    auto layout = co_await write_layout(deadline_after(options_.renew_deadline));
    if (layout) {
      layout_ = std::move(*layout);
      co_return;
    }
    const auto& error = layout.error();
    if (alone() && error.code == ErrorCode::not_found) co_return;
    if (error.code != ErrorCode::conflict &&
        failures.check(to_string(error.code), Clock::now()).pass) {
      kLog.warning("the number of replicas could not be recorded", {{"error", error.message}});
    }
    if (alone() && error.code == ErrorCode::forbidden) co_return;
    co_await sleep_for(pauses.next(error.retry_after));
  }
}

// The uid and the transitions of the layout's Lease, which identify the layout.
Task<Result<std::string>> ShardLeases::write_layout(Deadline deadline) {
  const auto replicas = std::max(options_.own.replicas, 1U);
  const auto holder = std::to_string(replicas) + (alone() ? " replica" : " replicas");
  const k8s::ObjectKey key{.ns = options_.ns, .name = options_.name + "-layout"};
  k8s::LeaseView view(key, labels());
  auto lease = co_await client_.get(kLeases, key, deadline);
  if (lease) {
    view.see(*lease, Clock::now());
    if (!view.known()) co_return fail(ErrorCode::invalid_data, key.to_string() + " is not a Lease");
  } else if (alone() || lease.error().code != ErrorCode::not_found) {
    co_return fail("Lease " + key.to_string(), std::move(lease.error()));
  }
  if (view.record().holder != holder) {
    // Objects move between shards, so the sequences of all shards count for each of them.
    const auto floor = co_await end_of_terms(replicas_of(view.record().holder), deadline);
    if (!floor) co_return std::unexpected(floor.error());
    auto object = view.taken(holder, options_.lease_duration, std::max(wall_now(), *floor));
    lease = view.known() ? co_await client_.update(kLeases, key, std::move(object), deadline)
                         : co_await client_.create(kLeases, key.ns, std::move(object), deadline);
    if (!lease) co_return fail("Lease " + key.to_string(), std::move(lease.error()));
    view.see(*lease, Clock::now());
  }
  const auto renewed = parse_rfc3339(view.record().renewed);
  layout_floor_ = renewed ? sequence_of(*renewed) : 0;
  co_return view.uid() + "/" + std::to_string(view.record().transitions);
}

// A time above every sequence that the holders of the shards may have used, when there were as many
// replicas.
Task<Result<WallTime>> ShardLeases::end_of_terms(std::uint32_t replicas, Deadline deadline) {
  WallTime end{};
  for (std::uint32_t shard = 0; shard < std::max(replicas, options_.own.replicas); ++shard) {
    if (shard > kMostNeighbours) break;
    const k8s::ObjectKey key{.ns = options_.ns, .name = lease_name(shard)};
    const auto lease = co_await client_.get(kLeases, key, deadline);
    if (!lease && lease.error().code == ErrorCode::not_found) continue;
    if (!lease) co_return fail("Lease " + key.to_string(), lease.error());
    k8s::LeaseView view(key);
    view.see(*lease, Clock::now());
    const auto renewed = parse_rfc3339(view.record().renewed);
    // A holder's sequences begin at its first renewTime plus the duration, see floor().
    if (renewed) end = std::max(end, *renewed + options_.lease_duration + std::chrono::seconds(1));
  }
  co_return end;
}

Task<> ShardLeases::hold_alone() {
  holds_all_ = true;
  callbacks_.claimed(0, layout_.empty() ? 0 : which(layout_), layout_floor_);
  try {
    co_await sleep_until(kNever);
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  holds_all_ = false;
  callbacks_.released(0);
}

}  // namespace gitops::reporter
