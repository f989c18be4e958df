#include "common/http/websocket_session.hpp"

#include <utility>

namespace gitops::http::websocket {

Session::Session(SessionOptions options, std::function<MaskKey()> draw_key, Clock::time_point now)
    : options_(options),
      draw_key_(std::move(draw_key)),
      decoder_({.role = options.role, .max_message = options.max_message}),
      heard_(now) {}

void Session::append(Opcode opcode, std::string_view payload) {
  append_frame(output_, opcode, payload,
               options_.role == Role::client ? std::optional(draw_key_()) : std::nullopt);
}

void Session::end(std::uint16_t code, std::string_view reason) {
  if (!ending_) ending_ = Ending{.code = code, .reason = std::string(reason)};
}

std::size_t Session::receive(std::span<char> bytes, Clock::time_point now,
                             std::deque<Message>& messages) {
  if (!bytes.empty()) excuse(now);
  std::size_t consumed = 0;
  while (!ending_) {
    const auto step = decoder_.next(bytes.subspan(consumed));
    if (!step) {
      const std::uint16_t code = close_code_of(step.error());
      close(code, step.error().message, now);
      end(code, step.error().message);
      break;
    }
    consumed += step->consumed;
    switch (step->event) {
      case DecodeStep::Event::more:
        return consumed;
      case DecodeStep::Event::data:
        message_.append(step->payload);
        if (step->end_of_message) {
          messages.push_back({.is_text = step->is_text, .data = std::exchange(message_, {})});
        }
        break;
      case DecodeStep::Event::ping:
        send(Opcode::pong, step->payload);
        break;
      case DecodeStep::Event::pong:
        break;
      case DecodeStep::Event::close: {
        const std::string reason(step->payload);
        close(step->close_code, {}, now);
        end(step->close_code, reason);
        break;
      }
    }
  }
  return bytes.size();
}

void Session::excuse(Clock::time_point now) {
  heard_ = now;
  pinged_.reset();
}

void Session::sent(Clock::time_point now) {
  if (pinged_) pinged_ = now;
  if (close_sent_at_) close_sent_at_ = now;
}

void Session::lose(std::string_view why) {
  output_.clear();
  end(kCloseAbnormal, why);
}

void Session::send(Opcode opcode, std::string_view payload) {
  if (is_open()) append(opcode, payload);
}

void Session::close(std::uint16_t code, std::string_view reason, Clock::time_point now) {
  if (!is_open()) return;
  append(Opcode::close, close_payload(code, reason));
  close_sent_at_ = now;
}

void Session::tick(Clock::time_point now) {
  if (ending_ || now < due()) return;
  if (close_sent_at_) return lose("the peer did not answer a close frame");
  if (pinged_) return lose("the peer did not answer a ping");
  append(Opcode::ping, {});
  pinged_ = now;
}

Clock::time_point Session::due() const {
  if (close_sent_at_) return *close_sent_at_ + options_.close_timeout;
  return pinged_ ? *pinged_ + options_.ping_timeout : heard_ + options_.ping_interval;
}

}  // namespace gitops::http::websocket
