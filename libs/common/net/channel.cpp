#include "common/net/channel.hpp"

#include <algorithm>

namespace gitops::net {
namespace {

// Number of bytes moved without waiting before other tasks of the loop run.
constexpr std::size_t kMuch = 256 * 1024;
// More than what a peer that stops at the response may have in transit: its buffer, and ours.
constexpr std::size_t kMaxLinger = 16 * 1024 * 1024;
constexpr auto kLinger = std::chrono::seconds(2);
constexpr std::size_t kBatch = 16;  // buffers in one attempt to write

Error timed_out() {
  return {.code = ErrorCode::timeout, .message = "timed out"};
}

}  // namespace

Error Channel::failure() const {
  if (failure_) return *failure_;
  return {.code = ErrorCode::unavailable, .message = "the connection was closed here"};
}

Transfer Channel::read_now(std::span<char> room) {
  if (reading_.expired()) return {.what = Transfer::timeout};
  if (is_quiet()) return {.what = Transfer::nothing};
  const auto read = try_read(room);
  moved_ += read.size;
  return read;
}

Transfer Channel::read_now(Buffer& in) {
  if (is_quiet() && !reading_.expired()) return {.what = Transfer::nothing};
  const auto read = read_now(in.room());
  in.commit(read.size);
  if (read.size == 0) in.release();
  return read;
}

Transfer Channel::write_now(std::span<const asio::const_buffer> buffers) {
  if (writing_.expired()) return {.what = Transfer::timeout};
  if (!readiness_.write.ready) return {.what = Transfer::nothing};
  const auto written = try_write(buffers);
  moved_ += written.size;
  return written;
}

Task<> Channel::yield_after_much() {
  moved_ = 0;
  co_await asio::post(reactor_.executor, use_task);
}

Task<Result<std::size_t>> Channel::read_some(std::span<char> room) {
  if (moved_ >= kMuch) co_await yield_after_much();
  while (true) {
    const auto read = read_now(room);
    switch (read.what) {
      case Transfer::data:
        co_return read.size;
      case Transfer::end:
        co_return std::size_t{0};
      case Transfer::timeout:
        co_return std::unexpected(timed_out());
      case Transfer::lost:
        co_return std::unexpected(failure());
      case Transfer::nothing:
        break;
    }
    moved_ = 0;
    co_await readable();
  }
}

// Tries to write the bytes after the first `written` ones.
Transfer Channel::write_rest(std::span<const asio::const_buffer> buffers, std::size_t written) {
  std::array<asio::const_buffer, kBatch> batch;
  std::size_t count = 0;
  for (auto buffer : buffers) {
    const auto skipped = std::min(written, buffer.size());
    written -= skipped;
    buffer += skipped;
    if (buffer.size() == 0) continue;
    batch[count++] = buffer;
    if (count == batch.size()) break;
  }
  return write_now(std::span(batch).first(count));
}

Task<Result<void>> Channel::write(std::span<const asio::const_buffer> buffers) {
  const auto size = asio::buffer_size(buffers);
  std::size_t written = 0;
  while (written < size) {
    if (moved_ >= kMuch) co_await yield_after_much();
    const auto more = write_rest(buffers, written);
    written += more.size;
    if (more.what == Transfer::timeout) co_return std::unexpected(timed_out());
    if (more.what == Transfer::nothing) {
      moved_ = 0;
      co_await writable();
    } else if (more.what != Transfer::data) {
      co_return std::unexpected(failure());
    }
  }
  co_return Result<void>{};
}

Task<Result<void>> Channel::write(std::string_view bytes) {
  const asio::const_buffer buffer(bytes.data(), bytes.size());
  co_return co_await write(std::span(&buffer, 1));
}

bool Channel::is_stale() {
  if (peer_closed()) return true;
  char byte = 0;
  return try_read({&byte, 1}).what != Transfer::nothing;
}

void Channel::wake() {
  for (auto* direction : {&readiness_.read, &readiness_.write}) {
    direction->ready = true;
    if (direction->waker != nullptr) direction->waker->post(reactor_.executor);
  }
}

Task<> Channel::close_gracefully() {
  shutdown_send();
  set_read_deadline(deadline_after(kLinger));
  std::array<char, 4096> sink;
  for (std::size_t dropped = 0; dropped < kMaxLinger;) {
    if (moved_ >= kMuch) co_await yield_after_much();
    const auto read = read_now(sink);
    dropped += read.size;
    if (read.what == Transfer::nothing) {
      moved_ = 0;
      co_await readable();
    } else if (read.what != Transfer::data) {
      break;
    }
  }
  close();
}

AnyChannel::AnyChannel(std::initializer_list<Channel*> channels) {
  std::size_t count = 0;
  for (Channel* channel : channels) {
    if (channel == nullptr) continue;
    channel->readiness().read.waker = channel->readiness().write.waker = &waker_;
    channels_[count++] = channel;
  }
}

AnyChannel::~AnyChannel() {
  for (Channel* channel : channels_) {
    if (channel == nullptr) continue;
    channel->readiness().read.waker = channel->readiness().write.waker = nullptr;
  }
}

}  // namespace gitops::net
