#include "common/tunnel/link.hpp"

#include <array>
#include <utility>

#include "common/net/socket_channel.hpp"
#include "common/net/tls_channel.hpp"
#include "common/tunnel/stream_channel.hpp"

namespace gitops::tunnel {
namespace {

using net::Transfer;
using Event = yamux::Session::Step::Event;

// Maximum number of unsent bytes in the system's buffer. The system asks for more when half of them
// are sent.
constexpr int kUnsent = 16 * 1024;
// Number of bytes moved without waiting before other tasks of the loop get a turn.
constexpr std::size_t kMuch = 256 * 1024;
// Number of bytes prepared for a slow connection, which took only a part of the output, and the
// number that it must take at once to end this limit.
constexpr std::size_t kHeldUpOutput = 8 * 1024;
constexpr std::size_t kFreePath = 64 * 1024;
// Time limit for a peer that does not read.
constexpr auto kWriteTimeout = std::chrono::seconds(30);

}  // namespace

void hold_little(net::Channel& connection) {
  auto* channel = &connection;
  while (auto* tls = dynamic_cast<net::TlsChannel*>(channel)) channel = &tls->below();
  if (auto* socket = dynamic_cast<net::SocketChannel*>(channel)) socket->limit_unsent(kUnsent);
}

Link::Link(std::unique_ptr<net::Channel> channel, yamux::SessionOptions options, OnStream on_stream)
    : channel_(std::move(channel)),
      session_(options, Clock::now()),
      on_stream_(std::move(on_stream)),
      received_(channel_->reactor().blocks),
      timer_(channel_->reactor().wheel, [this] { wake_up(); }) {}

Link::~Link() {
  end();
}

void Link::wake_up() {
  waker_.post(channel_->reactor().executor);
}

void Link::lose(Error error) {
  if (!ending_) ending_ = std::move(error);
}

void Link::close() {
  write_some();
  lose({.code = ErrorCode::unavailable, .message = "the link was closed here"});
  wake_up();
}

void Link::probe() {
  if (ending_ || session_.pinged()) return;
  session_.ping(Clock::now());
  wake_up();
}

void Link::drain() {
  session_.drain();
  wake_up();
}

// Closes the connection and ends the streams.
void Link::end() {
  lose({.code = ErrorCode::unavailable, .message = "the link was given up here"});
  channel_->readiness().read.waker = channel_->readiness().write.waker = nullptr;
  timer_.expires_at(kNever);
  // Resets after a timeout: the peer acknowledges nothing, perhaps because packets are lost. A
  // graceful end would wait behind unacknowledged data, but a reset arrives.
  if (ending_->code == ErrorCode::timeout) {
    channel_->abort();
  } else {
    channel_->close();
  }
  const auto streams = std::exchange(streams_, {});
  for (const auto& [id, stream] : streams) stream->lose(*ending_);
}

void Link::limit(std::size_t max_streams, std::uint64_t max_received) {
  session_.limit_streams(max_streams);
  max_received_ = max_received;
}

// Ends the link on every exit of run().
struct Link::Ended {
  Link& link;
  ~Ended() { link.end(); }
};

Task<Error> Link::run() {
  const Ended ended{*this};
  const auto& executor = channel_->reactor().executor;
  channel_->set_deadline(kNever);
  channel_->readiness().read.waker = channel_->readiness().write.waker = &waker_;
  std::size_t moved = 0;
  while (!ending_) {
    const auto read = read_some();
    if (const auto now = Clock::now(); now >= session_.due()) session_.tick(now);
    if (const auto& failure = session_.failure()) lose(*failure);
    const auto written = write_some();
    if (ending_) break;
    moved += read + written;
    if (read + written == 0) {
      moved = 0;
      timer_.expires_at(session_.due());
      co_await waker_.wait(executor);
    } else if (moved >= kMuch) {
      moved = 0;
      co_await asio::post(executor, use_task);
    }
  }
  co_return *ending_;
}

std::size_t Link::read_some() {
  const auto read = channel_->read_now(received_);
  switch (read.what) {
    case Transfer::data:
      break;
    case Transfer::nothing:
      return 0;
    case Transfer::end:
      lose({.code = ErrorCode::unavailable, .message = "the peer closed the connection"});
      return 0;
    case Transfer::timeout:
    case Transfer::lost:
      lose(channel_->failure());
      return 0;
  }
  received_size_ += read.size;
  if (received_size_ > max_received_) {
    lose({.code = ErrorCode::too_large, .message = "the peer sends too much before its login"});
    return 0;
  }
  auto input = received_.bytes();
  const bool was_owed = session_.pinged().has_value();
  while (true) {
    const auto step = session_.receive(input, Clock::now());
    if (step.event == Event::more) break;
    take(step);
  }
  received_.consume(read.size);
  received_.release();
  if (was_owed && on_heard_) on_heard_();
  return read.size;
}

void Link::take(const yamux::Session::Step& step) {
  if (step.event == Event::draining) {
    peer_is_draining_ = true;
    if (on_draining_) on_draining_();
    return;
  }
  if (step.event == Event::opened) {
    if (on_stream_) {
      on_stream_(add(step.stream));
    } else {
      session_.abort(step.stream);
    }
    return;
  }
  const auto found = streams_.find(step.stream);
  if (found == streams_.end()) return;
  auto* stream = found->second;
  if (step.event == Event::data) {
    stream->take(step.data);
  } else if (step.event == Event::ended) {
    stream->peer_ended();
  } else {
    streams_.erase(found);
    session_.close(step.stream, Clock::now());
    stream->lose({.code = ErrorCode::unavailable, .message = "the stream was reset by the peer"});
  }
}

std::size_t Link::write_some() {
  std::size_t sent = 0;
  while (true) {
    if (sent >= kFreePath) is_held_up_ = false;
    const auto output = session_.output(is_held_up_ ? kHeldUpOutput : yamux::Session::kOutput);
    if (output.empty() != !has_output_) {
      has_output_ = !output.empty();
      channel_->set_write_deadline(has_output_ ? deadline_after(kWriteTimeout) : kNever);
    }
    if (output.empty()) break;
    const asio::const_buffer buffer(output.data(), output.size());
    const auto written = channel_->write_now(std::span(&buffer, 1));
    if (written.what == Transfer::data) {
      session_.sent(written.size);
      sent += written.size;
      channel_->set_write_deadline(deadline_after(kWriteTimeout));
    } else if (written.what == Transfer::timeout) {
      lose({.code = ErrorCode::timeout, .message = "the peer takes no bytes"});
      break;
    } else if (written.what == Transfer::nothing) {
      is_held_up_ = true;
      break;
    } else {
      lose(channel_->failure());
      break;
    }
  }
  for (const auto id : session_.take_writable()) {
    const auto found = streams_.find(id);
    if (found != streams_.end()) found->second->has_room();
  }
  return sent;
}

std::unique_ptr<net::Channel> Link::add(yamux::StreamId id) {
  std::unique_ptr<StreamChannel> stream(new StreamChannel(*this, id));
  streams_[id] = stream.get();
  return stream;
}

Result<std::unique_ptr<net::Channel>> Link::open() {
  if (ending_) return std::unexpected(*ending_);
  if (peer_is_draining_) {
    return fail(ErrorCode::unavailable, "the peer accepts no further streams");
  }
  const auto id = session_.open(Clock::now());
  if (!id) return fail(ErrorCode::too_many_requests, "too many streams of one link");
  wake_up();
  return add(*id);
}

}  // namespace gitops::tunnel
