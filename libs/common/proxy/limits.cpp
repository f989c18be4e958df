#include "common/proxy/limits.hpp"

#include <algorithm>
#include <utility>

#include "common/core/wakeup.hpp"
#include "common/net/address_list.hpp"

namespace gitops::proxy {
namespace {

namespace ip = boost::asio::ip;

// Adds to a counter unless the sum exceeds the limit. Returns whether it was added.
bool add(std::atomic<std::size_t>& counter, std::size_t more, std::size_t limit) {
  if (more > limit) return false;
  if (counter.fetch_add(more) + more <= limit) return true;
  counter -= more;
  return false;
}

// Charges as Totals::hold(). Called with the mutex locked: an attempt that fails raises the
// counters for a moment, and another one must not fail because of that.
bool take_room(Totals& totals, PeerUse& peer, std::size_t bytes) {
  if (!add(peer.held, bytes, totals.limits.max_held_per_peer)) return false;
  if (add(totals.held, bytes, totals.limits.max_held)) return true;
  peer.held -= bytes;
  return false;
}

}  // namespace

std::shared_ptr<PeerUse> Totals::of(const ip::address& address) {
  const auto peer = net::client_network(address);
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

// Request that waits for room, in the frame of await_hold(). `granted` is guarded by
// waiting_mutex_.
struct Totals::Waiting {
  Waiting(Totals& t, std::shared_ptr<PeerUse> p, std::size_t b, const Executor& executor)
      : totals(t), peer(std::move(p)), bytes(b), wakeup(std::make_shared<Wakeup>(executor)) {
    const std::lock_guard lock(totals.waiting_mutex_);
    ++totals.waiting_count_;  // before the attempt, so that a later release sees it
    place = totals.waiting_.insert(totals.waiting_.end(), this);
    if (take_room(totals, *peer, bytes)) grant();
  }
  ~Waiting() {
    const std::lock_guard lock(totals.waiting_mutex_);
    if (!granted) leave();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Grants the room. Called with the mutex locked, as take().
  void grant() {
    granted = true;
    leave();
    wakeup->ring();
  }
  void leave() {
    totals.waiting_.erase(place);
    --totals.waiting_count_;
  }
  // Returns whether the room belongs to the caller from now on.
  bool take() {
    const std::lock_guard lock(totals.waiting_mutex_);
    return granted;
  }

  Totals& totals;
  std::shared_ptr<PeerUse> peer;
  std::size_t bytes;
  std::shared_ptr<Wakeup> wakeup;
  std::list<Waiting*>::iterator place;
  bool granted = false;
};

bool Totals::hold(PeerUse& peer, std::size_t bytes) {
  const std::lock_guard lock(waiting_mutex_);
  return take_room(*this, peer, bytes);
}

void Totals::release(PeerUse& peer, std::size_t bytes) {
  peer.held -= bytes;
  held -= bytes;
  if (waiting_count_ == 0) return;
  const std::lock_guard lock(waiting_mutex_);
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    auto* waiting = *next++;
    if (take_room(*this, *waiting->peer, waiting->bytes)) waiting->grant();
  }
}

Task<bool> Totals::await_hold(std::shared_ptr<PeerUse> peer, std::size_t bytes, Deadline deadline) {
  if (bytes > std::min(limits.max_held, limits.max_held_per_peer)) co_return false;
  Waiting waiting(*this, std::move(peer), bytes, co_await asio::this_coro::executor);
  try {
    co_await waiting.wakeup->wait(deadline);
  } catch (...) {
    if (waiting.take()) release(*waiting.peer, bytes);
    throw;
  }
  co_return waiting.take();
}

bool Held::charge(const std::shared_ptr<PeerUse>& peer, std::size_t bytes) {
  if (!peer_) peer_ = peer;
  if (!totals_.hold(*peer_, bytes)) return false;
  bytes_ += bytes;
  return true;
}

Task<bool> Held::await_charge(std::shared_ptr<PeerUse> peer, std::size_t bytes, Deadline deadline) {
  if (!peer_) peer_ = peer;
  const bool charged = co_await totals_.await_hold(peer_, bytes, deadline);
  if (charged) bytes_ += bytes;
  co_return charged;
}

void Held::release() {
  if (!peer_) return;
  totals_.release(*peer_, std::exchange(bytes_, 0));
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

}  // namespace gitops::proxy
