#include "common/graphql/socket_session.hpp"

#include <algorithm>
#include <utility>

#include "common/graphql/print.hpp"

namespace gitops::graphql {
namespace {

// Close codes of graphql-transport-ws; the legacy protocol has none of its own.
constexpr std::uint16_t kInvalid = 4400;
constexpr std::uint16_t kUnauthorized = 4401;
constexpr std::uint16_t kForbidden = 4403;
constexpr std::uint16_t kInitTimeout = 4408;
constexpr std::uint16_t kDuplicate = 4409;
constexpr std::uint16_t kTooMany = 4429;

}  // namespace

std::optional<SocketProtocol> socket_protocol(std::string_view name) {
  if (name == kSocketProtocols[0]) return SocketProtocol::transport;
  if (name == kSocketProtocols[1]) return SocketProtocol::legacy;
  return std::nullopt;
}

SocketSession::SocketSession(SocketProtocol protocol, SocketSessionOptions options,
                             Clock::time_point now)
    : protocol_(protocol), options_(options), due_(now + options.init_timeout) {}

void SocketSession::close(std::uint16_t code, std::string reason) {
  if (!closing_) closing_ = Close{code, std::move(reason)};
}

void SocketSession::invalid(std::string reason) {
  if (protocol_ == SocketProtocol::legacy) {
    send("connection_error", {}, "{\"message\":" + in_quotes(reason) + "}");
  }
  close(kInvalid, std::move(reason));
}

void SocketSession::send(std::string_view type, std::string_view id, std::string_view payload) {
  std::string text = "{\"type\":" + in_quotes(type);
  if (!id.empty()) text += ",\"id\":" + in_quotes(id);
  if (!payload.empty()) (text += ",\"payload\":") += payload;
  output_.push_back(text + "}");
}

void SocketSession::receive_binary() {
  invalid("Only text messages are understood");
}

std::vector<SocketAction> SocketSession::receive(std::string_view text, Clock::time_point now) {
  std::vector<SocketAction> actions;
  if (closing_) return actions;
  const auto parsed = parser_.parse_object(text, "message");
  if (!parsed) {
    invalid("The message is not a JSON object");
    return actions;
  }
  const JsonView root = *parsed;
  if (!root["type"].is_text()) {
    invalid("The message has no type");
    return actions;
  }
  const std::string_view type = root["type"].text();
  std::string payload = root["payload"].to_text();
  const bool is_transport = protocol_ == SocketProtocol::transport;
  const auto with_id = [&](auto use) {
    const std::string_view id = root["id"].text();
    if (id.empty() || id.size() > options_.max_id) {
      return invalid("The message has no id, or a long one");
    }
    use(std::string(id));
  };

  if (type == "connection_init") {
    if (state_ != State::waiting) {
      close(kTooMany, "Too many initialisation requests");
      return actions;
    }
    state_ = State::opening;
    due_ = now + options_.keep_alive;
    actions.push_back({SocketAction::Kind::open, {}, std::move(payload)});
  } else if (type == (is_transport ? "subscribe" : "start")) {
    const bool waits = state_ == State::opening && !is_transport;
    if (state_ != State::open && !waits) {
      close(kUnauthorized, "Unauthorized");
      return actions;
    }
    if (payload.empty()) {
      invalid("The message has no payload");
      return actions;
    }
    if (waits && waiting_bytes() + payload.size() > options_.max_waiting) {
      close(kUnauthorized, "Too much before the connection is acknowledged");
      return actions;
    }
    with_id([&](std::string id) {
      start(std::move(id), std::move(payload), waits ? waiting_ : actions);
    });
  } else if (type == (is_transport ? "complete" : "stop")) {
    with_id([&](const std::string& id) { stop(id, actions); });
  } else if (is_transport && type == "ping") {
    send("pong", {}, payload);
  } else if (is_transport && type == "pong") {
    // An unsolicited pong is allowed.
  } else if (!is_transport && type == "connection_terminate") {
    close(1000, "");
  } else {
    invalid("The message has an unknown type");
  }
  return actions;
}

void SocketSession::start(std::string id, std::string payload, std::vector<SocketAction>& actions) {
  if (operations_.contains(id)) {
    if (protocol_ == SocketProtocol::transport) {
      return close(kDuplicate, "Subscriber for " + id + " already exists");
    }
    stop(id, actions);  // a legacy client replaces its operation
  }
  if (operations_.size() >= options_.max_operations) {
    operations_.insert(id);
    return fail(id, {coded_error("More than " + std::to_string(options_.max_operations) +
                                     " operations at the same time, the limit of this server.",
                                 "TOO_MANY_OPERATIONS", 429)});
  }
  operations_.insert(id);
  actions.push_back({SocketAction::Kind::start, std::move(id), std::move(payload)});
}

void SocketSession::stop(const std::string& id, std::vector<SocketAction>& actions) {
  if (operations_.erase(id) == 0) return;  // has ended since
  if (std::erase_if(waiting_, [&](const SocketAction& one) { return one.id == id; }) == 0) {
    actions.push_back({SocketAction::Kind::stop, id, {}});
  }
  if (protocol_ == SocketProtocol::legacy) send("complete", id);
}

std::size_t SocketSession::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const SocketAction& one : waiting_) bytes += one.payload.size();
  return bytes;
}

std::vector<SocketAction> SocketSession::accept(Clock::time_point now) {
  if (state_ != State::opening) return {};
  state_ = State::open;
  due_ = now + options_.keep_alive;
  send("connection_ack");
  if (protocol_ == SocketProtocol::legacy) send("ka");
  return std::exchange(waiting_, {});
}

void SocketSession::refuse(std::string_view reason) {
  if (protocol_ == SocketProtocol::legacy) {
    send("connection_error", {}, "{\"message\":" + in_quotes(reason) + "}");
  }
  // Limits the reason: a close frame has room for 123 bytes.
  close(kForbidden, reason.size() <= 100 ? std::string(reason) : "Forbidden");
}

void SocketSession::next(const std::string& id, std::string_view answer) {
  if (!operations_.contains(id)) return;
  send(protocol_ == SocketProtocol::transport ? "next" : "data", id, answer);
}

void SocketSession::fail(const std::string& id, const std::vector<ResponseError>& errors) {
  if (operations_.erase(id) == 0) return;
  if (protocol_ == SocketProtocol::transport) return send("error", id, errors_json(errors));
  // The legacy protocol sends a refused document's errors as a response; its error message has room
  // for one.
  send("data", id, errors_body(errors));
  send("complete", id);
}

void SocketSession::complete(const std::string& id) {
  if (operations_.erase(id) != 0) send("complete", id);
}

void SocketSession::tick(Clock::time_point now) {
  if (now < due_ || closing_) return;
  due_ = now + options_.keep_alive;
  if (state_ == State::waiting) return close(kInitTimeout, "Connection initialisation timeout");
  if (state_ == State::open && protocol_ == SocketProtocol::legacy) send("ka");
}

Clock::time_point SocketSession::due() const {
  return closing_ ? Clock::time_point::max() : due_;
}

}  // namespace gitops::graphql
