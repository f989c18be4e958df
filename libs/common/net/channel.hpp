#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>

#include "common/core/async.hpp"
#include "common/net/reactor.hpp"

namespace gitops::net {

// The outcome of an attempt to read or write without waiting.
struct Transfer {
  enum What {
    data,     // `size` bytes were moved, at least one
    nothing,  // the attempt would block
    end,      // read only: the peer has ended its sending side
    timeout,  // the deadline of this direction has passed
    lost,     // the connection is broken or was closed here; Channel::failure() says why
  };
  What what = lost;
  std::size_t size = 0;
};

// A connection: bytes in both directions over a socket, over TLS or WebSocket on top of another
// channel, or over a pair in memory for tests. This class knows when an attempt to read or write
// can succeed, keeps one deadline per direction, and waits; subclasses move bytes and end the
// connection.
//
// After its deadline has passed, a direction fails with `timeout` until a new deadline is set; the
// end is noticed up to 100 ms late. At most one coroutine reads and one writes at a time, and the
// channel outlives their awaits. Loop thread only.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // -- without waiting --
  // Reads what is there into `room`, which must not be empty. After `nothing`: await readable().
  Transfer read_now(std::span<char> room);
  // The same into the free part of a buffer, which takes memory only when there may be something.
  Transfer read_now(Buffer& in);
  // Writes as much as is accepted at once; small parts go out together.
  Transfer write_now(std::span<const asio::const_buffer> buffers);

  // -- with waiting --
  // Await the result immediately. Suspends until the state may have changed; try again then.
  auto readable() {
    readiness_.read.waker = &reader_;
    return reader_.wait(reactor_.executor);
  }
  auto writable() {
    readiness_.write.waker = &writer_;
    return writer_.wait(reactor_.executor);
  }
  // Reads at least one byte; 0 is the end of the stream. Errors: timeout, unavailable, tls.
  // Messages do not name the peer; callers add its name.
  Task<Result<std::size_t>> read_some(std::span<char> room);
  // Writes all of it. When it fails, an unknown part has been written.
  Task<Result<void>> write(std::span<const asio::const_buffer> buffers);
  Task<Result<void>> write(std::string_view bytes);

  // kNever: no deadline. Setting a deadline clears an earlier one that has passed.
  void set_read_deadline(Deadline deadline) { reading_.set(deadline); }
  void set_write_deadline(Deadline deadline) { writing_.set(deadline); }
  void set_deadline(Deadline deadline) {
    set_read_deadline(deadline);
    set_write_deadline(deadline);
  }

  // False when there may be something to read, or the end, as far as the loop knows.
  [[nodiscard]] bool is_quiet() const { return !readiness_.read.ready && !buffered_; }
  // True when the peer closed, or sent something although nothing was expected, whether or not the
  // loop has noticed. Tries to read one byte, so a channel that is stale is not used any further.
  [[nodiscard]] bool is_stale();
  // True when the peer ended its sending side or the connection broke, as far as the loop knows.
  [[nodiscard]] bool peer_closed() const { return !is_open() || readiness_.hung_up; }
  [[nodiscard]] virtual bool is_open() const = 0;
  // Why an operation was `lost`.
  [[nodiscard]] Error failure() const;

  // Ends the sending side; what was written arrives first.
  virtual void shutdown_send() = 0;
  // Ends both sides. Pending operations fail.
  virtual void close() = 0;
  // Ends both sides so that the peer cannot take what it received for complete (TCP reset).
  virtual void abort() = 0;
  // Ends the sending side, then reads and drops what still comes, up to 1 MiB and for two seconds,
  // and closes. Without it, unread input turns into a reset that can destroy what was sent.
  Task<> close_gracefully();

  // -- for channels over this one, and for drivers that wait for several channels --
  // One attempt each; deadlines are not checked. Sets `ready` of the direction to false when another
  // attempt cannot succeed before the next event.
  virtual Transfer try_read(std::span<char> room) = 0;
  virtual Transfer try_write(std::span<const asio::const_buffer> buffers) = 0;
  // More can be read than `readiness().read.ready` tells, without a further event.
  [[nodiscard]] bool holds_bytes() const { return buffered_; }
  [[nodiscard]] Readiness& readiness() { return readiness_; }
  [[nodiscard]] Reactor& reactor() { return reactor_; }

 protected:
  Channel(Reactor& reactor, Readiness& readiness)
      : reactor_(reactor),
        readiness_(readiness),
        reading_(*this, readiness.read),
        writing_(*this, readiness.write) {}

  void fail_with(Error error) { failure_ = std::make_unique<Error>(std::move(error)); }
  [[nodiscard]] bool read_expired() const { return reading_.expired(); }
  [[nodiscard]] bool write_expired() const { return writing_.expired(); }
  // Resumes all waiters because the state has changed.
  void wake();

  bool buffered_ = false;  // bytes are held inside of this channel or of one below it

 private:
  // The deadline of one direction.
  class Limit {
   public:
    Limit(Channel& channel, Direction& direction)
        : channel_(channel), direction_(direction), timer_(channel.reactor_.wheel, [this] {
            expired_ = true;
            if (direction_.waker != nullptr) direction_.waker->post(channel_.reactor_.executor);
          }) {}
    void set(Deadline deadline) {
      expired_ = false;
      timer_.expires_at(deadline);
    }
    [[nodiscard]] bool expired() const { return expired_; }

   private:
    Channel& channel_;
    Direction& direction_;
    WheelTimer timer_;
    bool expired_ = false;
  };

  Transfer write_rest(std::span<const asio::const_buffer> buffers, std::size_t written);
  Task<> yield_after_much();

  Reactor& reactor_;
  Readiness& readiness_;
  Limit reading_;
  Limit writing_;
  Waker reader_;
  Waker writer_;
  std::unique_ptr<Error> failure_;
  std::size_t moved_ = 0;  // bytes since the loop last had a turn
};

// Waits for the next event on any of several channels. Nothing else may wait on them meanwhile, and
// they outlive this object.
class AnyChannel {
 public:
  explicit AnyChannel(std::initializer_list<Channel*> channels);
  ~AnyChannel();
  AnyChannel(const AnyChannel&) = delete;
  AnyChannel& operator=(const AnyChannel&) = delete;

  // Await the result immediately. Null channels are ignored.
  auto happens(const Executor& executor) { return waker_.wait(executor); }

 private:
  static constexpr std::size_t kMax = 2;
  std::array<Channel*, kMax> channels_{};
  Waker waker_;
};

}  // namespace gitops::net
