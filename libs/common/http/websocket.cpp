#include "common/http/websocket.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/http/websocket_handshake.hpp"

namespace gitops::http {
namespace {

using websocket::Message;
using websocket::Opcode;

constexpr std::size_t kReadBuffer = 16 * 1024;
constexpr std::size_t kKeepOutput = 64 * 1024;  // capacity that an idle connection may keep
// Size of a part that the peer must take within write_timeout; a message may have many.
constexpr std::size_t kWrittenPart = 64 * 1024;
constexpr std::chrono::milliseconds kEndGrace{500};

websocket::MaskKey random_key() {
  const std::string bytes = random_bytes(4);
  return {bytes[0], bytes[1], bytes[2], bytes[3]};
}

}  // namespace

WebSocket::WebSocket(const Executor& executor, Upgraded connection, std::string protocol,
                     WebSocketOptions options)
    : options_(options),
      channel_(std::move(connection.channel)),
      protocol_(std::move(protocol)),
      session_(options.session, random_key, Clock::now()),
      changed_(executor),
      io_tasks_(executor),
      body_task_(executor, [this](const std::string&, const std::string&) {
        body_failed_ = true;
        body_ended_ = true;
        changed_.notify_all();
      }) {
  const auto room = in_.prepare(std::max(kReadBuffer, connection.received.size()));
  std::ranges::copy(connection.received, room.begin());
  in_.commit(connection.received.size());
}

Task<std::optional<Message>> WebSocket::receive() {
  while (messages_.empty()) {
    if (session_.ending()) co_return std::nullopt;
    co_await changed_.wait();
  }
  Message message = std::move(messages_.front());
  messages_.pop_front();
  changed_.notify_all();
  co_return message;
}

Task<Result<void>> WebSocket::send(std::string_view text) {
  return queue(Opcode::text, text);
}

Task<Result<void>> WebSocket::send_binary(std::string_view bytes) {
  return queue(Opcode::binary, bytes);
}

Task<Result<void>> WebSocket::queue(Opcode opcode, std::string_view payload) {
  while (session_.is_open() && queued() > options_.max_queued) co_await changed_.wait();
  if (!session_.is_open()) co_return fail(ErrorCode::unavailable, "the WebSocket is closed");
  session_.send(opcode, payload);
  changed_.notify_all();
  co_return Result<void>{};
}

void WebSocket::close(std::uint16_t code, std::string_view reason) {
  session_.close(code, reason, Clock::now());
  changed_.notify_all();
}

// Pauses reading while received messages are not taken, and while the peer does not read our
// responses.
bool WebSocket::may_read() const {
  return (messages_.size() < options_.max_received || body_ended_) &&
         queued() <= options_.max_queued;
}

Task<> WebSocket::read_loop() {
  while (true) {
    in_.consume(session_.receive(in_.bytes_in_place(), Clock::now(), messages_));
    if (body_ended_) messages_.clear();
    changed_.notify_all();
    while (!session_.ending() && !may_read()) {
      reading_ = false;
      co_await changed_.wait();
    }
    if (session_.ending()) co_return;
    if (!std::exchange(reading_, true)) session_.excuse(Clock::now());
    in_.release();
    const auto size = co_await channel_->read_some(in_.prepare(kReadBuffer));
    if (!size || *size == 0) {
      session_.lose(size ? "the connection was closed" : size.error().message);
      changed_.notify_all();
      co_return;
    }
    in_.commit(*size);
  }
}

// Writes until all output after the end of the session is sent.
Task<> WebSocket::write_loop() {
  while (true) {
    while (session_.output().empty()) {
      if (session_.ending()) co_return;
      co_await changed_.wait();
    }
    std::swap(writing_, session_.output());
    Result<void> sent;
    for (std::string_view rest = writing_; sent && !rest.empty();) {
      const auto part = rest.substr(0, kWrittenPart);
      rest.remove_prefix(part.size());
      channel_->set_write_deadline(Clock::now() + options_.write_timeout);
      sent = co_await channel_->write(part);
    }
    writing_.clear();
    if (writing_.capacity() > kKeepOutput) std::string().swap(writing_);  // frees the memory
    if (!sent) session_.lose(sent.error().message);
    if (queued() == 0) session_.sent(Clock::now());
    changed_.notify_all();
  }
}

Task<> WebSocket::clock_loop() {
  // Suspends the time limits while reading is paused, since received pongs are not seen, and while
  // frames wait behind others to be sent, for which write_timeout holds.
  const auto is_limited = [this] { return queued() == 0 && (reading_ || !session_.is_open()); };
  while (!session_.ending()) {
    co_await changed_.wait(is_limited() ? session_.due() : kNever);
    if (is_limited() && Clock::now() >= session_.due()) {
      session_.tick(Clock::now());
      changed_.notify_all();
    }
  }
}

Task<> WebSocket::supervise(Body body, std::function<Task<>()> draining) {
  TaskGroup& io = io_tasks_;
  io.spawn("websocket reader", [this] { return read_loop(); });
  io.spawn("websocket clock", [this] { return clock_loop(); });
  writer_ended_ = false;
  io.spawn("websocket writer", [this]() -> Task<> {
    co_await write_loop();
    writer_ended_ = true;
    changed_.notify_all();
  });
  if (draining) {
    io.spawn("websocket drain", [this, draining = std::move(draining)]() -> Task<> {
      co_await draining();
      close(websocket::kCloseGoingAway, "the server is going away");
    });
  }
  body_task_.spawn("websocket", [this, body = std::move(body)]() -> Task<> {
    co_await body(*this);
    body_ended_ = true;
    changed_.notify_all();
  });
  while (!body_ended_ && !session_.ending()) co_await changed_.wait();
  const Deadline until = deadline_after(kEndGrace);
  while (!body_ended_ && Clock::now() < until) co_await changed_.wait(until);
  body_task_.cancel();
  co_await body_task_.join();
  body_ended_ = true;
  messages_.clear();
  close(body_failed_ ? websocket::kCloseInternalError : websocket::kCloseNormal, {});
  while (!session_.ending()) co_await changed_.wait();
  const Deadline flushed = deadline_after(options_.session.close_timeout);
  while (!writer_ended_ && session_.ending()->code != websocket::kCloseAbnormal &&
         Clock::now() < flushed) {
    co_await changed_.wait(flushed);
  }
}

Task<websocket::Ending> WebSocket::run(Upgraded connection, std::string protocol,
                                       WebSocketOptions options, Body body,
                                       std::function<Task<>()> draining) {
  WebSocket socket(co_await asio::this_coro::executor, std::move(connection), std::move(protocol),
                   options);
  std::exception_ptr failure;
  try {
    co_await socket.supervise(std::move(body), std::move(draining));
  } catch (...) {
    failure = std::current_exception();
  }
  // Awaits the tasks even if this coroutine was cancelled.
  co_await asio::this_coro::throw_if_cancelled(false);
  socket.body_task_.cancel();
  co_await socket.body_task_.join();
  const bool whole = socket.writer_ended_ && socket.session_.ending() &&
                     socket.session_.ending()->code != websocket::kCloseAbnormal;
  if (!whole) socket.channel_->abort();
  socket.io_tasks_.cancel();
  co_await socket.io_tasks_.join();
  co_await asio::this_coro::throw_if_cancelled(true);
  if (failure) std::rethrow_exception(failure);
  if (whole) co_await socket.channel_->close_gracefully();
  co_return socket.session_.ending().value_or(websocket::Ending{});
}

Task<> serve_websocket(Exchange& exchange, std::span<const std::string_view> protocols,
                       WebSocketOptions options, WebSocket::Body body) {
  const auto offer = websocket::read_offer(exchange.request());
  if (!offer) {
    std::ignore = co_await exchange.reply(websocket::refusal(offer.error()));
    co_return;
  }
  std::string protocol = websocket::choose_protocol(*offer, protocols);
  auto upgraded = co_await exchange.upgrade(websocket::acceptance(*offer, protocol));
  if (!upgraded) {
    if (upgraded.error().code == ErrorCode::invalid_argument) {
      std::ignore = co_await exchange.reply(websocket::refusal(upgraded.error()));
    }
    co_return;
  }
  options.session.role = websocket::Role::server;
  co_await WebSocket::run(std::move(*upgraded), std::move(protocol), options, std::move(body),
                          [&exchange] { return exchange.draining(); });
}

Task<Result<websocket::Ending>> connect_websocket(Client& client, const Url& url, Request request,
                                                  std::span<const std::string_view> protocols,
                                                  WebSocketOptions options, Deadline deadline,
                                                  WebSocket::Body body) {
  const std::string nonce = random_bytes(16);
  const std::string key = websocket::make_key(std::span(nonce).first<16>());
  const Request asked = websocket::upgrade_request(key, protocols);
  for (const auto& [name, value] : asked.headers) request.headers.set(name, value);
  auto upgraded = co_await client.upgrade(url, std::move(request), deadline);
  if (!upgraded) co_return std::unexpected(upgraded.error());
  auto protocol = websocket::read_acceptance(upgraded->head, key, protocols);
  if (!protocol) {
    upgraded->channel->close();
    co_return std::unexpected(protocol.error());
  }
  options.session.role = websocket::Role::client;
  co_return co_await WebSocket::run(std::move(*upgraded), std::move(*protocol), options,
                                    std::move(body));
}

}  // namespace gitops::http
