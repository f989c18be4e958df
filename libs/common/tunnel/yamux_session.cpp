#include "common/tunnel/yamux_session.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace gitops::tunnel::yamux {
namespace {

using Event = Session::Step::Event;

// Maximum number of opened streams without an ACK, as in Go's implementation.
constexpr std::size_t kMaxWaitingForAck = 256;
// Maximum number of consecutive first turns, so that other streams are not starved.
constexpr int kMaxFirstTurns = 4;
// Maximum number of queued responses to pings. Go's implementation has one ping in flight.
constexpr std::size_t kMaxPongs = 16;
constexpr std::size_t kMaxResets = 1024;
// Precision of the streams' deadlines.
constexpr auto kCheckInterval = std::chrono::seconds(1);

}  // namespace

Session::Session(SessionOptions options, Clock::time_point now)
    : options_(options),
      next_stream_(options.role == Role::client ? 1 : 2),
      heard_(now),
      next_check_(now) {
  if (options_.first_stream != kNoStream) next_stream_ = options_.first_stream;
  options_.receive_window = std::max(options_.receive_window, kInitialWindow);
}

void Session::fail_session(ErrorCode code, std::string message) {
  if (failure_) return;
  failure_ = Error{.code = code, .message = std::move(message)};
  const bool by_protocol = code == ErrorCode::protocol;
  append_head(
      {.type = FrameType::go_away, .length = by_protocol ? kProtocolError : kInternalError});
  streams_.clear();
  first_turns_.clear();
  turns_.clear();
}

// -- the table of streams --

Session::Stream* Session::find(StreamId stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : &found->second;
}

// Adds a stream. `flag`: SYN for one opened here, ACK for one of the peer's.
Session::Stream& Session::add(StreamId id, std::uint16_t flag, Clock::time_point now) {
  auto& stream = streams_[id];
  stream.receive_window = options_.receive_window;
  stream.credit = options_.receive_window - kInitialWindow;
  stream.flags = flag;
  stream.since = now;
  ask_for_turn(id, stream);
  return stream;
}

void Session::acknowledged(Stream& stream) {
  if (std::exchange(stream.waits_for_ack, false)) --waiting_for_ack_;
}

void Session::forget(StreamId id) {
  auto& stream = streams_.at(id);
  acknowledged(stream);
  if (stream.closed) --closing_;
  if (stream.has_turn) {
    std::erase(first_turns_, id);
    std::erase(turns_, id);
  }
  streams_.erase(id);
}

void Session::forget_if_over(StreamId id, const Stream& stream) {
  const bool over = stream.reset || (stream.peer_ended && stream.end == Stream::End::sent);
  if (stream.closed && over) forget(id);
}

void Session::queue_reset(StreamId stream) {
  if (resets_.size() == kMaxResets) {
    return fail_session(ErrorCode::protocol, "the peer opens streams and takes no answer");
  }
  resets_.push_back(stream);
}

// -- receiving --

Session::Step Session::receive(std::string_view& input, Clock::time_point now) {
  if (!input.empty()) {
    heard_ = now;
    pinged_.reset();
    unanswered_ = false;
    unanswered_at_.reset();
  }
  while (!failure_) {
    std::optional<Step> step;
    switch (phase_) {
      case Phase::head:
        step = take_head(input);
        break;
      case Phase::begin:
        step = begin_frame();
        break;
      case Phase::payload:
        step = take_payload(input);
        break;
      case Phase::end:
        step = end_frame();
        break;
    }
    if (step) return *step;
  }
  input = {};
  return {};
}

std::optional<Session::Step> Session::take_head(std::string_view& input) {
  const auto part = input.substr(0, FrameHead::kSize - head_bytes_.size());
  head_bytes_ += part;
  input.remove_prefix(part.size());
  if (head_bytes_.size() < FrameHead::kSize) return Step{};
  const auto head = read_frame_head(std::span<const char, FrameHead::kSize>(head_bytes_));
  head_bytes_.clear();
  if (!head) {
    fail_session(head.error().code, head.error().message);
    return std::nullopt;
  }
  frame_ = *head;
  if (frame_.type == FrameType::ping) {
    take_ping();
  } else if (frame_.type == FrameType::go_away) {
    return take_go_away();
  } else if (frame_.stream == kNoStream) {
    fail_session(ErrorCode::protocol, "a yamux frame names no stream");
  } else {
    phase_ = Phase::begin;
  }
  return std::nullopt;
}

void Session::take_ping() {
  if ((frame_.flags & kSyn) == 0) return;  // a response; its arrival has been recorded
  if (pongs_.size() == kMaxPongs) {
    return fail_session(ErrorCode::protocol, "the peer sends pings and takes no answer");
  }
  pongs_.push_back(frame_.length);
}

std::optional<Session::Step> Session::take_go_away() {
  if (frame_.length != kNormal) {
    fail_session(ErrorCode::unavailable,
                 "the peer ended the session with error code " + std::to_string(frame_.length));
    return std::nullopt;
  }
  if (std::exchange(peer_is_draining_, true)) return std::nullopt;
  return Step{.event = Event::draining};
}

// Processes the flags that open a stream, and the windows of the frame head.
std::optional<Session::Step> Session::begin_frame() {
  phase_ = Phase::payload;
  payload_left_ = frame_.type == FrameType::data ? frame_.length : 0;
  std::optional<Step> step;
  if ((frame_.flags & kSyn) != 0) step = accept();
  auto* stream = find(frame_.stream);
  if (failure_ || stream == nullptr) return step;
  if ((frame_.flags & kAck) != 0) acknowledged(*stream);
  if (frame_.type == FrameType::window_update) {
    if (frame_.length > std::numeric_limits<std::uint32_t>::max() - stream->send_window) {
      fail_session(ErrorCode::protocol, "the window of a stream overflows");
      return std::nullopt;
    }
    stream->send_window += frame_.length;
    ask_for_turn(frame_.stream, *stream);
  } else if (!stream->peer_ended) {
    if (frame_.length > stream->receive_window) {
      fail_session(ErrorCode::protocol, "the peer sends more than the window of a stream");
      return std::nullopt;
    }
    stream->receive_window -= frame_.length;
  }
  return step;
}

std::optional<Session::Step> Session::accept() {
  const bool opened_by_client = frame_.stream % 2 == 1;
  if (opened_by_client == (options_.role == Role::client)) {
    fail_session(ErrorCode::protocol, "the peer opens a stream with an id of this side");
    return std::nullopt;
  }
  if (find(frame_.stream) != nullptr) {
    fail_session(ErrorCode::protocol, "the peer opens a stream that is open");
    return std::nullopt;
  }
  if (draining_ || streams_.size() >= options_.max_streams) {
    queue_reset(frame_.stream);
    return std::nullopt;
  }
  add(frame_.stream, kAck, heard_);
  return Step{.event = Event::opened, .stream = frame_.stream};
}

std::optional<Session::Step> Session::take_payload(std::string_view& input) {
  if (payload_left_ == 0) {
    phase_ = Phase::end;
    return std::nullopt;
  }
  if (input.empty()) return Step{};
  const auto part = input.substr(0, payload_left_);
  input.remove_prefix(part.size());
  payload_left_ -= static_cast<std::uint32_t>(part.size());
  const auto* stream = find(frame_.stream);
  // Skips data after a FIN, which Go's programs may send when one thread closes while another
  // writes.
  if (stream == nullptr || stream->peer_ended) return std::nullopt;
  if (stream->closed) {
    abort(frame_.stream);
    return std::nullopt;
  }
  return Step{.event = Event::data, .stream = frame_.stream, .data = part};
}

// Processes the flags that end a stream.
std::optional<Session::Step> Session::end_frame() {
  phase_ = Phase::head;
  auto* stream = find(frame_.stream);
  if (stream == nullptr || stream->reset) return std::nullopt;
  const bool closed = stream->closed;
  Step step{.stream = frame_.stream};
  if ((frame_.flags & kRst) != 0) {
    step.event = Event::reset;
    stream->reset = stream->peer_ended = true;
    stream->end = Stream::End::sent;
    stream->queue = {};
    stream->flags = 0;
    stream->credit = 0;
    acknowledged(*stream);
  } else if ((frame_.flags & kFin) != 0 && !stream->peer_ended) {
    step.event = Event::ended;
    stream->peer_ended = true;
  } else {
    return std::nullopt;
  }
  forget_if_over(frame_.stream, *stream);
  if (closed) return std::nullopt;
  return step;
}

// -- sending --

bool Session::has_something_to_send(const Stream& stream) const {
  if (stream.flags != 0) return true;
  if (!stream.peer_ended && stream.credit >= options_.receive_window / 2) return true;
  if (!stream.queue.empty()) return stream.send_window > 0;
  return stream.end == Stream::End::wanted;
}

void Session::ask_for_turn(StreamId id, Stream& stream) {
  if (stream.has_turn || !has_something_to_send(stream)) return;
  stream.has_turn = true;
  first_turns_.push_back(id);
}

bool Session::is_first_turn_due() {
  const bool is_due = !first_turns_.empty() && (turns_.empty() || first_in_row_ < kMaxFirstTurns);
  first_in_row_ = is_due ? first_in_row_ + 1 : 0;
  return is_due;
}

// Appends the data of the next stream's turn.
void Session::take_turn(std::size_t most) {
  const bool is_first = is_first_turn_due();
  auto& turns = is_first ? first_turns_ : turns_;
  const auto id = turns.front();
  turns.pop_front();
  auto& stream = streams_.at(id);
  if (stream.flags != 0 || (!stream.peer_ended && stream.credit >= options_.receive_window / 2)) {
    append_head({.type = FrameType::window_update,
                 .flags = std::exchange(stream.flags, std::uint16_t{0}),
                 .stream = id,
                 .length = std::exchange(stream.credit, 0U)});
  }
  const auto size =
      std::min({stream.queue.size(), kMaxPayload, most, std::size_t{stream.send_window}});
  if (size > 0) {
    append_head(
        {.type = FrameType::data, .stream = id, .length = static_cast<std::uint32_t>(size)});
    output_.append(stream.queue, 0, size);
    stream.send_window -= static_cast<std::uint32_t>(size);
    unanswered_ = true;
    if (size == stream.queue.size()) {
      stream.queue = {};
    } else {
      stream.queue.erase(0, size);
    }
    if (std::exchange(stream.blocked, false)) writable_.push_back(id);
  }
  if (stream.queue.empty() && stream.end == Stream::End::wanted) {
    append_head({.type = FrameType::window_update, .flags = kFin, .stream = id});
    stream.end = Stream::End::sent;
  }
  // Keeps the turn even without data, so that a stream that sends little at a time is not first
  // each time.
  stream.has_turn = is_first || has_something_to_send(stream);
  if (stream.has_turn) turns_.push_back(id);
  forget_if_over(id, stream);
}

void Session::fill(std::size_t most) {
  while (!failure_ && output_.size() - sent_ < most) {
    if (!pongs_.empty()) {
      append_head({.type = FrameType::ping, .flags = kAck, .length = pongs_.front()});
      pongs_.pop_front();
    } else if (!resets_.empty()) {
      append_head({.type = FrameType::window_update, .flags = kRst, .stream = resets_.front()});
      resets_.pop_front();
    } else if (!first_turns_.empty() || !turns_.empty()) {
      take_turn(most);
    } else {
      return;
    }
  }
}

std::string_view Session::output(std::size_t most) {
  // Erases rarely, so that each byte is moved at most once.
  if (sent_ > output_.size() / 2) output_.erase(0, std::exchange(sent_, 0));
  fill(most);
  return std::string_view(output_).substr(sent_);
}

void Session::sent(std::size_t size) {
  sent_ += size;
  if (sent_ < output_.size()) return;
  output_.clear();
  sent_ = 0;
}

// -- streams, as their users see them --

std::optional<StreamId> Session::open(Clock::time_point now) {
  constexpr StreamId kLast = std::numeric_limits<StreamId>::max() - 2;
  if (failure_ || peer_is_draining_ || streams_.size() >= options_.max_streams ||
      waiting_for_ack_ >= kMaxWaitingForAck || next_stream_ > kLast) {
    return std::nullopt;
  }
  const auto id = std::exchange(next_stream_, next_stream_ + 2);
  add(id, kSyn, now).waits_for_ack = true;
  ++waiting_for_ack_;
  return id;
}

std::size_t Session::write(StreamId id, std::string_view bytes) {
  auto* stream = find(id);
  if (stream == nullptr || stream->end != Stream::End::no) return 0;
  const auto size = std::min(bytes.size(), kMaxQueue - stream->queue.size());
  stream->queue.append(bytes.substr(0, size));
  stream->blocked = size < bytes.size();
  ask_for_turn(id, *stream);
  return size;
}

std::vector<StreamId> Session::take_writable() {
  return std::exchange(writable_, {});
}

void Session::release(StreamId id, std::size_t size) {
  auto* stream = find(id);
  if (stream == nullptr || stream->reset) return;
  const auto held = options_.receive_window - stream->receive_window;
  const auto released = static_cast<std::uint32_t>(std::min<std::size_t>(size, held));
  stream->receive_window += released;
  stream->credit += released;
  ask_for_turn(id, *stream);
}

void Session::end(StreamId id) {
  auto* stream = find(id);
  if (stream == nullptr || stream->end != Stream::End::no) return;
  stream->end = Stream::End::wanted;
  ask_for_turn(id, *stream);
}

void Session::close(StreamId id, Clock::time_point now) {
  auto* stream = find(id);
  if (stream == nullptr || stream->closed) return;
  end(id);
  stream->closed = true;
  ++closing_;
  if (!stream->waits_for_ack) stream->since = now;
  forget_if_over(id, *stream);
}

void Session::abort(StreamId id) {
  const auto* stream = find(id);
  if (stream == nullptr) return;
  const bool peer_knows_it = (stream->flags & kSyn) == 0;
  const bool is_over = stream->reset || (stream->peer_ended && stream->end == Stream::End::sent);
  forget(id);
  if (peer_knows_it && !is_over) queue_reset(id);
}

void Session::drain() {
  if (failure_ || std::exchange(draining_, true)) return;
  append_head({.type = FrameType::go_away, .length = kNormal});
}

// -- time --

void Session::tick(Clock::time_point now) {
  if (failure_) return;
  if (unanswered_ && !unanswered_at_) unanswered_at_ = now;
  if (pinged_) {
    if (now - *pinged_ >= options_.ping_timeout) {
      return fail_session(ErrorCode::timeout, "the peer does not answer pings");
    }
  } else if (now >= ping_due()) {
    ping(now);
  }
  if (now >= next_check_) check_streams(now);
}

void Session::check_streams(Clock::time_point now) {
  next_check_ = now + kCheckInterval;
  if (waiting_for_ack_ == 0 && closing_ == 0) return;
  std::vector<StreamId> overdue;
  for (const auto& [id, stream] : streams_) {
    const auto age = now - stream.since;
    if (stream.waits_for_ack && age >= options_.ack_timeout) {
      return fail_session(ErrorCode::timeout, "the peer does not accept a stream");
    }
    if (stream.closed && !stream.waits_for_ack && age >= options_.close_timeout) {
      overdue.push_back(id);
    }
  }
  for (const auto id : overdue) abort(id);
}

void Session::ping(Clock::time_point now) {
  if (failure_ || pinged_) return;
  pinged_ = now;
  append_head({.type = FrameType::ping, .flags = kSyn, .length = ++pings_});
}

Clock::time_point Session::ping_due() const {
  const auto due = heard_ + options_.ping_interval;
  const bool is_asked = unanswered_at_ && options_.answer_timeout.count() > 0;
  return is_asked ? std::min(due, *unanswered_at_ + options_.answer_timeout) : due;
}

Clock::time_point Session::due() const {
  if (failure_) return kNever;
  // Due immediately: tick() records the time.
  if (unanswered_ && !unanswered_at_ && options_.answer_timeout.count() > 0) return heard_;
  const auto ping = pinged_ ? *pinged_ + options_.ping_timeout : ping_due();
  return waiting_for_ack_ + closing_ > 0 ? std::min(ping, next_check_) : ping;
}

}  // namespace gitops::tunnel::yamux
