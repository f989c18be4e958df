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

// Outcome of an attempt to read or write without waiting.
struct Transfer {
  enum What {
    data,     // `size` bytes were moved, at least one
    nothing,  // the attempt would block
    end,      // read only: the peer has ended its sending side
    timeout,  // the deadline of this direction has passed
    lost,     // the connection is broken or closed; Channel::failure() has the reason
  };
  What what = lost;
  std::size_t size = 0;
};

// Connection: bytes in both directions over a socket, over TLS or WebSocket on top of another
// channel, or over a pair in memory for tests. This class tracks when an attempt to read or write
// can succeed, keeps one deadline per direction, and waits; subclasses move bytes and end the
// connection.
//
// After its deadline has passed, a direction fails with `timeout` until a new deadline is set. An
// expiry is noticed up to 100 ms late. At most one coroutine reads and one writes at a time, and
// the channel must outlive their awaits. Loop thread only.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // -- without waiting --
  // Reads available bytes into `room`, which must not be empty. After `nothing`, await readable().
  Transfer read_now(std::span<char> room);
  // Reads available bytes into the free part of a buffer, which takes a block only if there may be
  // data.
  Transfer read_now(Buffer& in);
  // Writes as much as is accepted at once; small parts are sent together.
  Transfer write_now(std::span<const asio::const_buffer> buffers);

  // -- with waiting --
  // Await the result immediately. They suspend until the state may have changed; then try again.
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
  // Writes all bytes. After an error, an unknown part has been written.
  Task<Result<void>> write(std::span<const asio::const_buffer> buffers);
  Task<Result<void>> write(std::string_view bytes);

  // Set the deadline of a direction; kNever: none. A new deadline clears an expired one.
  void set_read_deadline(Deadline deadline) { reading_.set(deadline); }
  void set_write_deadline(Deadline deadline) { writing_.set(deadline); }
  void set_deadline(Deadline deadline) {
    set_read_deadline(deadline);
    set_write_deadline(deadline);
  }

  // Returns false if there may be data or the end to read, as far as the loop knows.
  [[nodiscard]] bool is_quiet() const { return !readiness_.read.ready && !buffered_; }
  // Returns whether the peer closed the connection or sent unexpected data, even if the loop has
  // not noticed. Tries to read one byte, so a stale channel must not be used further.
  [[nodiscard]] bool is_stale();
  // Returns whether the peer ended its sending side or the connection broke, as far as the loop
  // knows.
  [[nodiscard]] bool peer_closed() const { return !is_open() || readiness_.hung_up; }
  [[nodiscard]] virtual bool is_open() const = 0;
  // Error of an operation that was `lost`.
  [[nodiscard]] Error failure() const;

  // Ends the sending side after the written bytes.
  virtual void shutdown_send() = 0;
  // Closes both sides. Pending operations fail.
  virtual void close() = 0;
  // Resets the connection (TCP reset), so that the peer does not accept a truncated message.
  virtual void abort() = 0;
  // Ends the sending side, then reads and drops further data, up to 16 MiB and for two seconds, and
  // closes. A plain close() with unread input becomes a reset, which can destroy sent data.
  Task<> close_gracefully();

  // -- for channels over this one, and for drivers that wait for several channels --
  // Make one attempt without checking deadlines. They set `ready` of the direction to false if
  // another attempt cannot succeed before the next event.
  virtual Transfer try_read(std::span<char> room) = 0;
  virtual Transfer try_write(std::span<const asio::const_buffer> buffers) = 0;
  // Returns whether more can be read without a further event, even if `readiness().read.ready` is
  // false.
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

  bool buffered_ = false;  // this channel or one below it holds unread bytes

 private:
  // Deadline of one direction.
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
  std::size_t moved_ = 0;  // bytes since the loop last ran other tasks
};

// Waits for the next event on any of several channels. No other task may wait on them meanwhile,
// and they must outlive this object.
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
