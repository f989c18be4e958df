#include "common/proxy/limits.hpp"

#include <algorithm>
#include <utility>

namespace gitops::proxy {
namespace {

namespace ip = boost::asio::ip;

ip::address peer_of(const ip::address& address) {
  if (address.is_v4()) return address;
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return ip::address_v6(bytes);
}

// Adds to a counter unless that exceeds the limit.
bool add(std::atomic<std::size_t>& counter, std::size_t more, std::size_t limit) {
  if (counter.fetch_add(more) + more <= limit) return true;
  counter -= more;
  return false;
}

}  // namespace

std::shared_ptr<PeerUse> Totals::of(const ip::address& address) {
  const auto peer = peer_of(address);
  const std::lock_guard lock(mutex_);
  auto& known = peers_[peer];
  if (auto use = known.lock()) return use;
  auto use = std::make_shared<PeerUse>();
  known = use;
  if (peers_.size() >= tidy_at_) {
    std::erase_if(peers_, [](const auto& item) { return item.second.expired(); });
    tidy_at_ = std::max<std::size_t>(1'000, 2 * peers_.size());
  }
  return use;
}

bool Held::charge(const std::shared_ptr<PeerUse>& peer, std::size_t bytes) {
  if (!peer_) peer_ = peer;
  if (!add(peer_->held, bytes, totals_.limits.max_held_per_peer)) return false;
  if (!add(totals_.held, bytes, totals_.limits.max_held)) {
    peer_->held -= bytes;
    return false;
  }
  bytes_ += bytes;
  return true;
}

void Held::release() {
  if (!peer_) return;
  peer_->held -= bytes_;
  totals_.held -= std::exchange(bytes_, 0);
  peer_.reset();
}

bool DeflaterPlace::take() {
  taken_ = taken_ || add(totals_.deflaters, 1, totals_.limits.max_deflaters);
  return taken_;
}

void DeflaterPlace::release() {
  if (!taken_) return;
  taken_ = false;
  --totals_.deflaters;
}

void BodyPace::start(const RouteLimits& limits, Clock::time_point now) {
  limits_ = limits;
  left_ = limits.body_grace;
  waits_since_ = now;
  end_ = now + limits.body_deadline;
}

Deadline BodyPace::wait(Clock::time_point now) {
  waits_since_ = now;
  auto until = std::min(end_, now + limits_.body_timeout);
  if (limits_.min_body_rate > 0) until = std::min(until, now + left_);
  return until;
}

void BodyPace::came(std::size_t bytes, Clock::time_point now) {
  if (limits_.min_body_rate == 0) return;
  left_ -= now - std::exchange(waits_since_, now);
  const std::chrono::duration<double> worth(static_cast<double>(bytes) /
                                            static_cast<double>(limits_.min_body_rate));
  left_ += std::chrono::duration_cast<Clock::duration>(worth);
  // What came fast does not allow for any silence.
  left_ = std::min<Clock::duration>(left_, std::max(limits_.body_grace, limits_.body_timeout));
}

}  // namespace gitops::proxy
