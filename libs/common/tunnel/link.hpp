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

// Limits the unsent bytes that the system buffers for this socket, on its own or below TLS.
// Buffered bytes keep their order, so a small request would wait for up to a megabyte of earlier
// data.
void hold_little(net::Channel& connection);

// Connection between the two sides of a tunnel, with the yamux session on it. Its streams are
// channels. The link, its streams and their users belong to one loop:
// docs/adr/0012-tunnel-links.md.
//
//   Link link(std::move(channel), {.role = yamux::Role::client}, {});
//   tasks.spawn("link", [&]() -> Task<> { log(co_await link.run()); });
//   auto stream = link.open();
class Link {
 public:
  // Called by run() for each stream that the peer opens; must not block. Without a callback, such
  // streams are reset.
  using OnStream = std::function<void(std::unique_ptr<net::Channel>)>;

  // `channel` is connected, and the layers below yamux have done their handshakes. The link owns
  // it.
  Link(std::unique_ptr<net::Channel> channel, yamux::SessionOptions options, OnStream on_stream);
  // Ends all streams with the error `lost`.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Transfers data until the link is over and returns the reason; all streams then fail. Call it
  // once.
  Task<Error> run();

  // Opens a stream. Errors: unavailable, when the link is over or the peer accepts no further
  // streams; too_many_requests, at the limit of streams.
  Result<std::unique_ptr<net::Channel>> open();
  // Called by run() when the peer accepts no further streams.
  void on_draining(std::function<void()> on_draining) { on_draining_ = std::move(on_draining); }
  // Sends the data that the connection takes immediately, then ends the link.
  void close();
  // Drains: accepts no further streams of the peer and sends GoAway; open streams continue. frp's
  // programs ignore GoAway.
  void drain();

  // Returns whether the peer accepts no further streams. run() continues for the open ones.
  [[nodiscard]] bool peer_is_draining() const { return peer_is_draining_; }
  [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }
  // See yamux::Session::is_worn_out().
  [[nodiscard]] bool is_worn_out() const { return session_.is_worn_out(); }

  // Sends a ping now, unless one is unanswered. The link ends if the peer stays silent for the
  // session's ping_timeout.
  void probe();
  // Time of the peer's last bytes, and the time at which the unanswered ping was sent.
  [[nodiscard]] Clock::time_point heard() const { return session_.heard(); }
  [[nodiscard]] std::optional<Clock::time_point> probed() const { return session_.pinged(); }
  // Called by run() when data arrives after a ping.
  void on_heard(std::function<void()> on_heard) { on_heard_ = std::move(on_heard); }

  // Limits the peer from now on: the number of streams of both sides at a time, and the bytes
  // received since the link began. Streams above the limit are reset; bytes above it end the link.
  // A server sets low limits until a client has logged in.
  void limit(std::size_t max_streams, std::uint64_t max_received = kUnlimited);
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

 private:
  friend class StreamChannel;
  struct Ended;

  // Resumes run() to send data.
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
  bool has_output_ = false;  // after the last attempt to write
  bool is_held_up_ = false;  // the connection took only a part of the output
  bool peer_is_draining_ = false;
};

}  // namespace gitops::tunnel
