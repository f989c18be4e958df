#include "event-reporter/shard_leases.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "common/core/encoding.hpp"

namespace gitops::reporter {
namespace {

// Replicas that one process cares for; it can stand in for one of them anyway.
constexpr std::uint32_t kMostNeighbours = 63;

// What others wrote on a Lease, for a page of text.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  std::string out(text.substr(0, kLongest));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

}  // namespace

ShardLeases::ShardLeases(k8s::Client& client, Options options, Callbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)) {
  const Shard& own = options_.own;
  if (own.replicas <= 1) return;
  own_.emplace(client,
               k8s::LeaseOptions{.key = {options_.ns, lease_name(own.ordinal)},
                                 .identity = options_.identity,
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
      k8s::StandInOptions{.ns = options_.ns,
                          .leases = std::move(names),
                          .identity = options_.identity,
                          .lease_duration = options_.lease_duration,
                          .renew_deadline = options_.renew_deadline,
                          .retry_period = options_.retry_period,
                          .patience = options_.patience,
                          .farewell = options_.farewell},
      k8s::StandIn::Callbacks{
          .on_change = [this](std::size_t index,
                              bool held) { tell(neighbour(index), others_->lease(index), held); },
          .busy = [this](std::size_t index) { return callbacks_.busy(neighbour(index)); }});
}

void ShardLeases::start(TaskGroup& group) {
  if (own_) {
    own_->start(group);
    others_->start(group);
  } else {
    group.spawn("hold all shards", [this] { return hold_alone(); });
  }
}

bool ShardLeases::holds(std::uint32_t shard) const {
  if (!own_) return alone_ && shard == 0;
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
  if (!own_) return "shards: all, no leases\n";
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

// The shards of others, in the order in which we care for them.
std::uint32_t ShardLeases::neighbour(std::size_t index) const {
  return static_cast<std::uint32_t>((std::uint64_t{options_.own.ordinal} + 1 + index) %
                                    options_.own.replicas);
}

Term ShardLeases::term(const k8s::LeaseView& lease) const {
  const std::string which = lease.uid() + "/" + std::to_string(options_.own.replicas);
  const auto upper = static_cast<Term>(fnv1a_32(which) & 0x7fff'ffffU);
  const auto lower =
      std::clamp<Term>(lease.record().transitions, 0, std::numeric_limits<std::int32_t>::max());
  return (upper << 32) | lower;
}

void ShardLeases::tell(std::uint32_t shard, const k8s::LeaseView& lease, bool held) {
  if (held) {
    callbacks_.claimed(shard, term(lease));
  } else {
    callbacks_.released(shard);
  }
}

Task<> ShardLeases::hold_alone() {
  alone_ = true;
  callbacks_.claimed(0, 0);
  try {
    co_await sleep_until(kNever);
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  alone_ = false;
  callbacks_.released(0);
}

}  // namespace gitops::reporter
