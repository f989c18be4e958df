#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/tunnel/yamux_session.hpp"

namespace gitops::tunnel::yamux {

// Watches what one end of a session sends and receives, and throws when it sends something for which
// Go's implementation ends the session, or grants more than its window.
class Referee {
 public:
  explicit Referee(const SessionOptions& options) : options_(options) {}

  // The next bytes that this end sent.
  void sent(std::string_view bytes) {
    feed(sending_, bytes, [this](const FrameHead& head) { check(head); });
  }
  // The next bytes that this end received.
  void received(std::string_view bytes) {
    feed(receiving_, bytes, [this](const FrameHead& head) { note(head); });
  }
  [[nodiscard]] bool sent_an_error() const { return sent_an_error_; }

 private:
  struct Stream {
    bool open_sent = false;
    bool open_received = false;
    bool accepted = false;
    bool end_sent = false;
    bool reset_sent = false;
    bool opened_again = false;  // by the peer: two streams of that id, which are not told apart
    std::int64_t may_send = kInitialWindow;  // as far as this end was told
    std::int64_t sent = 0;
    std::int64_t granted = kInitialWindow;  // to the peer
    std::int64_t received = 0;
  };
  struct Parser {
    std::string head;
    std::uint32_t skip = 0;
  };

  template <class Take>
  static void feed(Parser& parser, std::string_view bytes, const Take& take) {
    while (!bytes.empty()) {
      if (parser.skip > 0) {
        const auto part = bytes.substr(0, parser.skip);
        parser.skip -= static_cast<std::uint32_t>(part.size());
        bytes.remove_prefix(part.size());
        continue;
      }
      const auto part = bytes.substr(0, FrameHead::kSize - parser.head.size());
      parser.head += part;
      bytes.remove_prefix(part.size());
      if (parser.head.size() < FrameHead::kSize) return;
      const auto head = read_frame_head(std::span<const char, FrameHead::kSize>(parser.head));
      parser.head.clear();
      if (!head) throw std::logic_error(head.error().message);
      if (head->type == FrameType::data) parser.skip = head->length;
      take(*head);
    }
  }

  static void require(bool holds, const char* rule, const FrameHead& head) {
    if (!holds)
      throw std::logic_error(std::string(rule) + ", stream " + std::to_string(head.stream));
  }

  void check(const FrameHead& head) {
    if (head.type == FrameType::ping) return;
    if (head.type == FrameType::go_away) {
      sent_an_error_ = sent_an_error_ || head.length != kNormal;
      return;
    }
    require(head.stream != kNoStream, "a frame without a stream", head);
    auto& stream = streams_[head.stream];
    if (stream.opened_again) return;
    require(!stream.reset_sent, "a frame behind a reset", head);
    if ((head.flags & kSyn) != 0) {
      require(!stream.open_sent && !stream.open_received, "a stream is opened twice", head);
      require((head.stream % 2 == 1) == (options_.role == Role::client), "an id of the peer", head);
      stream.open_sent = true;
      require(++waiting_for_ack_ <= 256, "too many streams wait for an ACK", head);
    } else {
      require(stream.open_sent || stream.open_received, "a stream that nobody opened", head);
    }
    if ((head.flags & kAck) != 0) {
      require(stream.open_received && !stream.accepted, "an ACK that nobody waits for", head);
      stream.accepted = true;
    }
    if (head.type == FrameType::data) {
      stream.sent += head.length;
      require(!stream.end_sent, "data behind a FIN", head);
      require(stream.sent <= stream.may_send, "more data than the window", head);
      require(head.length <= kMaxPayload, "a long frame", head);
    } else {
      stream.granted += head.length;
      require(stream.granted - stream.received <= options_.receive_window, "a window grows", head);
    }
    if ((head.flags & kFin) != 0) {
      require(!stream.end_sent, "a second FIN", head);
      stream.end_sent = true;
    }
    if ((head.flags & kRst) != 0) stream.reset_sent = true;
  }

  void note(const FrameHead& head) {
    if (head.type == FrameType::ping || head.type == FrameType::go_away) return;
    auto& stream = streams_[head.stream];
    if ((head.flags & kSyn) != 0) {
      stream.opened_again = stream.open_received;
      stream.open_received = true;
    }
    const bool answers = (head.flags & (kAck | kRst)) != 0;
    if (answers && stream.open_sent && !stream.accepted) {
      stream.accepted = true;
      --waiting_for_ack_;
    }
    if (head.type == FrameType::data) {
      stream.received += head.length;
    } else {
      stream.may_send += head.length;
    }
  }

  SessionOptions options_;
  std::map<StreamId, Stream> streams_;
  Parser sending_;
  Parser receiving_;
  int waiting_for_ack_ = 0;
  bool sent_an_error_ = false;
};

}  // namespace gitops::tunnel::yamux
