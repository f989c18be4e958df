#include "common/http/websocket_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/net/more_follows.hpp"

namespace gitops::http {
namespace {

using net::Transfer;
using websocket::DecodeStep;
using websocket::Opcode;

// Maximum payload of a sent frame: with its head it fills a TLS record. One byte more would need
// another record and another system call.
constexpr std::size_t kMaxHead = 8;  // of a payload below 64 KiB, with a mask
constexpr std::size_t kMaxFrame = 16 * 1024 - kMaxHead;
// Maximum number of reads below without payload within one read of this channel. More is a flood of
// pings.
constexpr int kMaxEmptyReads = 64;

websocket::DecoderOptions decoder_options(websocket::Role role) {
  return {.role = role, .text_check = websocket::TextCheck::none};
}

}  // namespace

WebSocketChannel::WebSocketChannel(Upgraded connection, Options options)
    : Channel(connection.channel->reactor(), connection.channel->readiness()),
      options_(std::move(options)),
      below_(std::move(connection.channel)),
      decoder_(decoder_options(options_.role)),
      received_(std::move(connection.received)) {
  below_->set_deadline(kNever);  // this channel has its own deadlines
  buffered_ = !received_.empty();
}

WebSocketChannel::~WebSocketChannel() {
  WebSocketChannel::close();
}

std::optional<websocket::MaskKey> WebSocketChannel::key() {
  if (options_.role == websocket::Role::server) return std::nullopt;
  return options_.draw_key();
}

// -- receiving --

Transfer WebSocketChannel::try_read(std::span<char> room) {
  for (int i = 0; i < kMaxEmptyReads; ++i) {
    if (close_received_) return ended();
    // `rest_` and the bytes after it must be decoded as one block. The payload in that block is never
    // longer than the newly read bytes, so it fits into `room` although the block may not.
    std::array<char, 4 * kMaxRest> joined;
    const bool joins = rest_size_ > 0;
    const auto target = joins ? std::span(joined)
                                    .subspan(rest_size_)
                                    .first(std::min(room.size(), joined.size() - rest_size_))
                              : room;
    const auto read = read_below(target);
    if (read.what != Transfer::data) {
      if (read.what != Transfer::end) return read;
      fail_with({.code = ErrorCode::unavailable,
                 .message = "the peer closed the connection inside of WebSocket"});
      return {.what = Transfer::lost};
    }
    auto raw = target.first(read.size);
    if (joins) {
      std::memcpy(joined.data(), rest_.data(), rest_size_);
      raw = std::span(joined).first(rest_size_ + read.size);
      rest_size_ = 0;
    }
    const auto size = decode(raw, room);
    if (!size) return refused(size.error());
    if (!control_.empty()) flush();
    if (*size > 0) return {.what = Transfer::data, .size = *size};
  }
  return refused({.code = ErrorCode::protocol, .message = "too many frames without data"});
}

Transfer WebSocketChannel::read_below(std::span<char> room) {
  if (received_.empty()) {
    const auto read = below_->try_read(room);
    buffered_ = below_->holds_bytes();
    return read;
  }
  const auto size = std::min(room.size(), received_.size());
  std::memcpy(room.data(), received_.data(), size);
  received_.erase(0, size);
  buffered_ = true;
  return {.what = Transfer::data, .size = size};
}

// Decodes `raw` and moves its payload to the start of `room`; `raw` may lie in `room`.
Result<std::size_t> WebSocketChannel::decode(std::span<char> raw, std::span<char> room) {
  std::size_t size = 0;
  while (true) {
    const auto step = decoder_.next(raw);
    if (!step) return std::unexpected(step.error());
    raw = raw.subspan(step->consumed);
    switch (step->event) {
      case DecodeStep::Event::more:
        std::memcpy(rest_.data(), raw.data(), raw.size());
        rest_size_ = raw.size();
        return size;
      case DecodeStep::Event::data:
        std::memmove(room.data() + size, step->payload.data(), step->payload.size());
        size += step->payload.size();
        break;
      case DecodeStep::Event::ping:
        send_control(Opcode::pong, step->payload);
        break;
      case DecodeStep::Event::pong:
        break;
      case DecodeStep::Event::close:
        close_received_ = true;
        close_code_ = step->close_code;
        close_reason_ = step->payload;
        send_close(close_code_);
        // The payload before the close is read first.
        buffered_ = true;
        return size;
    }
  }
}

Transfer WebSocketChannel::ended() {
  using namespace websocket;
  const auto code = close_code_;
  if (code == kCloseNormal || code == kCloseGoingAway || code == kCloseNoCode) {
    return {.what = Transfer::end};
  }
  fail_with(closed_by_peer());
  return {.what = Transfer::lost};
}

Error WebSocketChannel::closed_by_peer() const {
  std::string message = "the peer closed the WebSocket with code " + std::to_string(close_code_);
  if (!close_reason_.empty()) message += " (" + close_reason_ + ")";
  return {.code = ErrorCode::unavailable, .message = std::move(message)};
}

// Handles a protocol violation of the peer.
Transfer WebSocketChannel::refused(const Error& error) {
  send_close(websocket::close_code_of(error));
  fail_with(error);
  below_->close();
  return {.what = Transfer::lost};
}

// -- sending --

// Writes the pending frames. Returns `data` when all are sent.
Transfer::What WebSocketChannel::flush() {
  if (const auto sent = flush(sending_); sent != Transfer::data) return sent;
  while (!control_.empty()) {
    const auto sent = flush(control_);
    control_is_begun_ = sent != Transfer::data;
    if (control_is_begun_) return sent;
    control_ = std::exchange(next_control_, {});
  }
  return Transfer::data;
}

Transfer::What WebSocketChannel::flush(std::string& out) {
  while (!out.empty()) {
    const asio::const_buffer buffer(out.data(), out.size());
    const auto written = below_->try_write(std::span(&buffer, 1));
    if (written.what != Transfer::data) return written.what;
    out.erase(0, written.size);
  }
  return Transfer::data;
}

Transfer WebSocketChannel::try_write(std::span<const asio::const_buffer> buffers) {
  const auto offered = asio::buffer_size(buffers);
  const auto size = std::min(offered, kMaxFrame);
  if (size == 0) return {.what = Transfer::data};
  if (sending_size_ == 0) {
    if (close_sent_) {
      if (close_received_) fail_with(closed_by_peer());
      return {.what = Transfer::lost};
    }
    if (const auto sent = flush(); sent != Transfer::data) return {.what = sent};
    const auto mask = key();
    sending_ = websocket::FrameHead(options_.opcode, true, size, mask).bytes();
    const auto head = sending_.size();
    sending_.resize(head + size);
    const auto payload = std::span(sending_).subspan(head);
    asio::buffer_copy(asio::buffer(payload.data(), payload.size()), buffers);
    if (mask) websocket::apply_mask(payload, *mask);
    sending_size_ = size;
  }
  const net::MoreFollows more(offered > kMaxFrame);
  if (const auto sent = flush(); sent != Transfer::data) return {.what = sent};
  return {.what = Transfer::data, .size = std::exchange(sending_size_, 0)};
}

void WebSocketChannel::send_control(Opcode opcode, std::string_view payload) {
  if (close_sent_) return;
  // Replaces an unsent pong: the latest one suffices (section 5.5.3). A frame that was begun must
  // be completed.
  auto& out = control_is_begun_ ? next_control_ : control_;
  out.clear();
  websocket::append_frame(out, opcode, payload, key());
}

void WebSocketChannel::send_close(std::uint16_t code) {
  if (close_sent_ || !below_->is_open()) return;
  send_control(Opcode::close, websocket::close_payload(code, ""));
  close_sent_ = true;
  flush();
}

void WebSocketChannel::shutdown_send() {
  send_close(websocket::kCloseNormal);
  if (options_.role == websocket::Role::server) below_->shutdown_send();
}

void WebSocketChannel::close() {
  send_close(websocket::kCloseNormal);
  below_->close();
}

void WebSocketChannel::abort() {
  below_->abort();
}

}  // namespace gitops::http
