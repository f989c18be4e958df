#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <boost/asio/ip/address.hpp>

#include "common/core/async.hpp"
#include "common/core/time.hpp"

// Limits of clients, and the accounts of their use. A peer address has its own limits below those
// of all peers together, so that one peer cannot use up everything.
namespace gitops::proxy {

// Limits of every request of a route. 0 bytes: no limit.
struct RouteLimits {
  std::uint64_t max_body = 0;
  std::uint64_t min_body_rate = 1024;                // of a request's body, bytes per second
  std::chrono::milliseconds body_grace{10'000};      // before min_body_rate applies
  std::chrono::milliseconds body_deadline{900'000};  // for the whole body of a request
  std::chrono::milliseconds held_deadline{60'000};   // for a body that is held in memory
  std::chrono::milliseconds room_timeout{30'000};    // for room for a body to hold
  std::chrono::milliseconds answer_timeout{60'000};  // request sent -> head of the response
  std::chrono::milliseconds body_timeout{60'000};    // each read or write of a body
  // Silence of a WebSocket in both directions, and of a response without a length, such as events
  // and followed logs.
  std::chrono::milliseconds stream_timeout{3'600'000};
  bool websocket = false;
  bool gzip = false;
};

// Limits of all servers that share an account.
struct SharedLimits {
  std::size_t max_connections = 20'000;
  std::size_t max_connections_per_peer = 15'000;
  // Limit of bytes of bodies that are collected before they are forwarded.
  std::size_t max_held = 64 * 1024 * 1024;
  std::size_t max_held_per_peer = 32 * 1024 * 1024;
  std::size_t max_deflaters = 1'024;  // of about 70 KiB; further responses are not compressed
};

// Current use of one peer address. Any thread.
struct PeerUse {
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::size_t> held = 0;
};

// Account shared by the servers of several loops. Any thread.
class Totals {
 public:
  explicit Totals(SharedLimits l = {}) : limits(l) {}

  // Returns the account of an address; the same object while it is in use. The addresses of one
  // IPv6 network of 64 bits are one peer.
  std::shared_ptr<PeerUse> of(const boost::asio::ip::address& address);

  // Charges held bytes to a peer and to all peers together. Returns false at a limit; nothing is
  // charged then.
  bool hold(PeerUse& peer, std::size_t bytes);
  // Charges as hold() does, but waits for room until the deadline. Released room goes to the
  // longest waiting requests, as far as it suffices and their peer is below its limit. Returns
  // false immediately for more than the limits ever allow.
  Task<bool> await_hold(std::shared_ptr<PeerUse> peer, std::size_t bytes, Deadline deadline);
  void release(PeerUse& peer, std::size_t bytes);
  // Returns whether a request waits for room.
  [[nodiscard]] bool is_short_of_room() const { return waiting_count_ > 0; }

  const SharedLimits limits;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::size_t> held = 0;  // bytes
  std::atomic<std::size_t> deflaters = 0;

 private:
  struct Waiting;

  std::mutex waiting_mutex_;
  std::list<Waiting*> waiting_;  // oldest first
  std::atomic<std::size_t> waiting_count_ = 0;
  std::mutex mutex_;
  std::unordered_map<boost::asio::ip::address, std::weak_ptr<PeerUse>> peers_;
  std::size_t tidy_at_ = 1'000;
};

// Bytes held by one request, charged to its peer and to all peers together. Loop thread only.
class Held {
 public:
  explicit Held(Totals& totals) : totals_(totals) {}
  ~Held() { release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // Charges bytes. Returns false at a limit; nothing is charged then. All charges until release()
  // are to the same peer.
  bool charge(const std::shared_ptr<PeerUse>& peer, std::size_t bytes);
  // See Totals::await_hold.
  Task<bool> await_charge(std::shared_ptr<PeerUse> peer, std::size_t bytes, Deadline deadline);
  void release();

 private:
  Totals& totals_;
  std::shared_ptr<PeerUse> peer_;
  std::size_t bytes_ = 0;
};

// Permit for one of the deflaters that may exist at a time. Loop thread only.
class DeflaterPlace {
 public:
  explicit DeflaterPlace(Totals& totals) : totals_(totals) {}
  ~DeflaterPlace() { release(); }
  DeflaterPlace(const DeflaterPlace&) = delete;
  DeflaterPlace& operator=(const DeflaterPlace&) = delete;

  // Takes the permit. Returns false if all are taken.
  bool take();
  void release();

 private:
  Totals& totals_;
  bool taken_ = false;
};

}  // namespace gitops::proxy
