#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "common/tunnel/yamux_session.hpp"
#include "support/script.hpp"

namespace gitops::tunnel::yamux {

inline constexpr std::pair<std::uint16_t, std::string_view> kFlags[] = {
    {kSyn, "syn"}, {kAck, "ack"}, {kFin, "fin"}, {kRst, "rst"}};

inline std::string parse_frame(test::Directive& directive) {
  FrameHead head;
  for (const auto& [flag, name] : kFlags) {
    if (directive.flag(name)) head.flags |= flag;
  }
  std::string payload;
  const auto type = directive.word();
  if (type == "data" || type == "update") {
    head.type = type == "data" ? FrameType::data : FrameType::window_update;
    head.stream = static_cast<StreamId>(directive.number());
  } else if (type == "ping" || type == "go-away") {
    head.type = type == "ping" ? FrameType::ping : FrameType::go_away;
  } else {
    throw std::invalid_argument("no frame: " + type);
  }
  if (type == "data") {
    payload = directive.word();
    head.length = static_cast<std::uint32_t>(payload.size());
  } else {
    head.length = static_cast<std::uint32_t>(directive.number());
  }
  std::string bytes;
  append_frame_head(bytes, head);
  return bytes + payload;
}

inline std::string render_sent(const FrameHead& head, std::string_view payload) {
  std::string text;
  switch (head.type) {
    case FrameType::data:
      text = test::concat("> data ", head.stream, " ", test::in_quotes(payload));
      break;
    case FrameType::window_update:
      text = test::concat("> update ", head.stream, " ", head.length);
      break;
    case FrameType::ping:
      text = test::concat("> ping ", head.length);
      break;
    case FrameType::go_away:
      text = test::concat("> go-away ", head.length);
      break;
  }
  for (const auto& [flag, name] : kFlags) {
    if ((head.flags & flag) != 0) text.append(" ").append(name);
  }
  return text;
}

// A session at a time that a script moves: its frames, and the events of its streams.
class YamuxScript {
 public:
  test::Lines run(test::Directive& directive) {
    lines_.clear();
    if (directive.name() == "new") {
      start(directive);
    } else if (!use_connection(directive) && !use_stream(directive)) {
      directive.unknown();
    }
    if (!blocked_) pass(std::string::npos);
    if (session_.failure() && !std::exchange(failed_, true)) {
      lines_.push_back(test::concat("failed: ", to_string(session_.failure()->code), ": ",
                                    session_.failure()->message));
    }
    return lines_;
  }

 private:
  void start(test::Directive& directive) {
    SessionOptions options;
    if (directive.flag("server")) options.role = Role::server;
    options.max_streams = directive.number_option("max-streams", options.max_streams);
    options.receive_window = static_cast<std::uint32_t>(
        directive.number_option("receive-window", options.receive_window));
    options.answer_timeout = directive.duration_option("answer-timeout", options.answer_timeout);
    session_ = Session(options, now_);
    blocked_ = failed_ = false;
    sent_.clear();
  }

  bool use_connection(test::Directive& directive) {
    const auto& name = directive.name();
    if (name == "<") {
      receive(parse_frame(directive));
    } else if (name == "connection") {
      blocked_ = directive.flag("blocked");
      if (!blocked_ && !directive.flag("free")) throw std::invalid_argument("blocked or free?");
    } else if (name == "pass") {
      pass(directive.number());
    } else if (name == "sleep") {
      now_ += directive.duration();
      session_.tick(now_);
    } else if (name == "ping") {
      session_.ping(now_);
    } else if (name == "drain") {
      session_.drain();
    } else {
      return false;
    }
    return true;
  }

  bool use_stream(test::Directive& directive) {
    const auto& name = directive.name();
    const auto stream = [&] { return static_cast<StreamId>(directive.number()); };
    if (name == "open") {
      const auto id = session_.open(now_);
      lines_.push_back(id ? test::concat("stream ", *id) : "no stream");
    } else if (name == "write") {
      const auto id = stream();
      const auto text = directive.word();
      lines_.push_back(
          test::concat("queued ", session_.write(id, text), " of ", text.size(), " bytes"));
    } else if (name == "writable") {
      for (const auto id : session_.take_writable())
        lines_.push_back(test::concat("writable ", id));
    } else if (name == "release") {
      const auto id = stream();
      session_.release(id, directive.number());
    } else if (name == "end") {
      session_.end(stream());
    } else if (name == "close") {
      session_.close(stream(), now_);
    } else if (name == "abort") {
      session_.abort(stream());
    } else {
      return false;
    }
    return true;
  }

  void receive(std::string_view bytes) {
    using Event = Session::Step::Event;
    while (true) {
      const auto step = session_.receive(bytes, now_);
      switch (step.event) {
        case Event::more:
          EXPECT_TRUE(bytes.empty());
          return;
        case Event::opened:
          lines_.push_back(test::concat("opened ", step.stream));
          break;
        case Event::data:
          lines_.push_back(test::concat("received ", step.stream, " ", test::in_quotes(step.data)));
          break;
        case Event::ended:
          lines_.push_back(test::concat("ended ", step.stream));
          break;
        case Event::reset:
          lines_.push_back(test::concat("reset ", step.stream));
          break;
        case Event::draining:
          lines_.emplace_back("the peer drains");
          break;
      }
    }
  }

  // Sends up to `most` bytes of the output, and prints the frames that became complete.
  void pass(std::size_t most) {
    while (most > 0) {
      const auto output = session_.output(std::min(most, Session::kOutput));
      if (output.empty()) break;
      const auto size = std::min(output.size(), most);
      sent_.append(output.substr(0, size));
      session_.sent(size);
      most -= size;
    }
    while (sent_.size() >= FrameHead::kSize) {
      const auto head =
          read_frame_head(std::span<const char, FrameHead::kSize>(sent_.data(), FrameHead::kSize));
      if (!head) throw std::runtime_error("a malformed frame was sent");
      const auto payload = head->type == FrameType::data ? std::size_t{head->length} : 0;
      if (sent_.size() < FrameHead::kSize + payload) break;
      lines_.push_back(
          render_sent(*head, std::string_view(sent_).substr(FrameHead::kSize, payload)));
      sent_.erase(0, FrameHead::kSize + payload);
    }
  }

  Clock::time_point now_{};
  Session session_{{}, now_};
  bool blocked_ = false;
  bool failed_ = false;
  std::string sent_;  // bytes of a frame that was not sent as a whole yet
  test::Lines lines_;
};

}  // namespace gitops::tunnel::yamux
