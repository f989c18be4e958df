#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/core/async.hpp"
#include "common/net/channel.hpp"
#include "common/tunnel/yamux_session.hpp"

namespace gitops::tunnel {

class StreamChannel;

// Has the system hold little of what a link writes to this socket, on its own or below TLS: what it has
// taken over is sent in that order, and a small request would wait behind up to a megabyte of others.
void hold_little(net::Channel& connection);

// A connection between the two sides of a tunnel, and the driver of the yamux session on it. Its
// streams are channels. Link, streams and their users live on one loop: docs/adr/0012-tunnel-links.md.
//
//   Link link(std::move(channel), {.role = yamux::Role::client}, {});
//   tasks.spawn("link", [&]() -> Task<> { log(co_await link.run()); });
//   auto stream = link.open();
class Link {
 public:
  // Called by run() for each stream that the peer opens; must not wait. Without it they are reset.
  using OnStream = std::function<void(std::unique_ptr<net::Channel>)>;

  // `channel` is connected, and whatever lies below yamux is done.
  Link(std::unique_ptr<net::Channel> channel, yamux::SessionOptions options, OnStream on_stream);
  // Its streams are lost.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Moves bytes until the link is over, and returns why; all streams are then lost. Once.
  Task<Error> run();

  // Opens a stream. Unavailable when the link is over or the peer accepts no further streams;
  // too_many_requests when there are too many.
  Result<std::unique_ptr<net::Channel>> open();
  // Called by run() when the peer accepts no further streams.
  void on_draining(std::function<void()> on_draining) { on_draining_ = std::move(on_draining); }
  // Sends what the connection takes at once, then ends the link.
  void close();
  // Accepts no further streams of the peer and tells it so; those that are open go on. frp's programs
  // do not react to it.
  void drain();

  // The peer accepts no further streams. run() goes on for those that are open.
  [[nodiscard]] bool peer_is_draining() const { return peer_is_draining_; }
  [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }
  // See yamux::Session::is_worn_out().
  [[nodiscard]] bool is_worn_out() const { return session_.is_worn_out(); }

  // Asks the peer for a sign of life now, unless it was asked already. Without one within the
  // session's ping_timeout the link is over.
  void probe();
  // When the peer's last bytes came, and since when it owes a sign of life.
  [[nodiscard]] Clock::time_point heard() const { return session_.heard(); }
  [[nodiscard]] std::optional<Clock::time_point> probed() const { return session_.pinged(); }
  // Called by run() when the peer gives the sign that it owed.
  void on_heard(std::function<void()> on_heard) { on_heard_ = std::move(on_heard); }

  // What the peer may do from now on: streams at a time of both sides, and bytes that it has sent since
  // the link began. More streams are reset; more bytes end the link. A server holds an unauthenticated client to
  // little and lifts the limits after its login.
  void limit(std::size_t max_streams, std::uint64_t max_received = kUnlimited);
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

 private:
  friend class StreamChannel;
  struct Ended;

  // Resumes run(), because there may be something to send.
  void wake_up();
  void forget(yamux::StreamId stream) { streams_.erase(stream); }
  std::unique_ptr<net::Channel> add(yamux::StreamId stream);
  std::size_t read_some();
  void take(const yamux::Session::Step& step);
  std::size_t write_some();
  void lose(Error error);
  void end();

  std::unique_ptr<net::Channel> channel_;
  yamux::Session session_;
  OnStream on_stream_;
  std::function<void()> on_draining_;
  std::function<void()> on_heard_;
  std::unordered_map<yamux::StreamId, StreamChannel*> streams_;
  net::Buffer received_;
  net::Waker waker_;  // of run()
  net::WheelTimer timer_;
  std::optional<Error> ending_;
  std::uint64_t received_size_ = 0;  // since the link began
  std::uint64_t max_received_ = kUnlimited;
  bool has_output_ = false;  // as of the last attempt to write
  bool is_held_up_ = false;  // the connection took less than there was
  bool peer_is_draining_ = false;
};

}  // namespace gitops::tunnel
