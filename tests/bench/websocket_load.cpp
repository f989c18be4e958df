#include "bench/websocket_load.hpp"

#include <array>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/http/upgraded.hpp"
#include "common/http/websocket_codec.hpp"
#include "common/http/websocket_handshake.hpp"
#include "common/net/socket_channel.hpp"

namespace gitops::bench {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds(10);

constexpr std::string_view kRequest =
    "GET /app-proxy/ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

Task<std::unique_ptr<net::Channel>> open(std::uint16_t port) {
  const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  auto connected =
      co_await net::SocketChannel::connect(std::span(&endpoint, 1), deadline_after(kTimeLimit));
  if (!connected) throw std::runtime_error("no connection: " + connected.error().message);
  auto channel = std::move(*connected);
  channel->set_deadline(deadline_after(kTimeLimit));
  const auto sent = co_await channel->write(kRequest);
  if (!sent) throw std::runtime_error("no WebSocket: " + sent.error().message);
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) {
    std::array<char, 4096> room;
    const auto size = co_await channel->read_some(room);
    if (!size || *size == 0) throw std::runtime_error("no WebSocket: " + answer);
    answer.append(room.data(), *size);
  }
  if (!answer.starts_with("HTTP/1.1 101")) throw std::runtime_error("no WebSocket: " + answer);
  co_return channel;
}

// Sends messages to an echo server one after the other, and counts the echoes.
Task<std::uint64_t> send_and_wait(net::Channel& channel, Clock::time_point until) {
  std::string frame;
  http::websocket::append_frame(frame, http::websocket::Opcode::binary,
                                std::string(WebSocketLoad::kMessage, 'm'),
                                http::websocket::MaskKey{1, 2, 3, 4});
  channel.set_deadline(until + kTimeLimit);
  std::uint64_t came_back = 0;
  while (Clock::now() < until) {
    const auto sent = co_await channel.write(frame);
    if (!sent) throw std::runtime_error("a WebSocket broke: " + sent.error().message);
    std::array<char, 4096> room;
    for (std::size_t have = 0; have < frame.size();) {
      const auto size = co_await channel.read_some(room);
      if (!size || *size == 0) throw std::runtime_error("a WebSocket broke");
      have += *size;
    }
    ++came_back;
  }
  co_return came_back;
}

}  // namespace

WebSocketLoad::WebSocketLoad() : upstream_(loop_.get_executor(), {}, &WebSocketLoad::echo) {
  const auto listening = upstream_.listen();
  if (!listening) throw std::runtime_error(listening.error().message);
}

WebSocketLoad::~WebSocketLoad() {
  std::vector<Task<>> end;
  end.push_back(upstream_.stop(deadline_after(kTimeLimit)));
  run(std::move(end));
}

Task<> WebSocketLoad::echo(http::Exchange& exchange) {
  const auto offer = http::websocket::read_offer(exchange.request());
  if (!offer) {
    static_cast<void>(co_await exchange.reply(http::websocket::refusal(offer.error())));
    co_return;
  }
  auto upgraded = co_await exchange.upgrade(http::websocket::acceptance(*offer, ""));
  if (!upgraded) co_return;
  auto& channel = *upgraded->channel;
  std::string bytes = upgraded->received;
  bytes.resize(std::max<std::size_t>(bytes.size(), 4096));
  std::size_t size = upgraded->received.size();
  while (true) {
    if (!co_await channel.write(std::string_view(bytes).substr(0, size))) co_return;
    const auto read = co_await channel.read_some(bytes);
    if (!read || *read == 0) co_return;
    size = *read;
  }
}

void WebSocketLoad::run(std::vector<Task<>> tasks) {
  std::size_t running = tasks.size();
  std::exception_ptr failure;
  for (auto& task : tasks) {
    asio::co_spawn(loop_.get_executor(), std::move(task), [&](const std::exception_ptr& ended) {
      --running;
      if (ended) failure = ended;
    });
  }
  while (running > 0) loop_.run_one();
  if (failure) std::rethrow_exception(failure);
}

WebSocketLoad::Clients WebSocketLoad::connect(std::uint16_t port, int count) {
  Clients clients(static_cast<std::size_t>(count));
  std::vector<Task<>> tasks;
  for (auto& client : clients) {
    tasks.push_back([](std::unique_ptr<net::Channel>& opened, std::uint16_t p) -> Task<> {
      opened = co_await open(p);
    }(client, port));
  }
  run(std::move(tasks));
  return clients;
}

std::uint64_t WebSocketLoad::play(Clients& clients, std::chrono::milliseconds time) {
  std::uint64_t all = 0;
  std::vector<Task<>> tasks;
  const auto until = Clock::now() + time;
  for (auto& client : clients) {
    tasks.push_back([](net::Channel& channel, Clock::time_point end, std::uint64_t& sum) -> Task<> {
      sum += co_await send_and_wait(channel, end);
    }(*client, until, all));
  }
  run(std::move(tasks));
  return all;
}

}  // namespace gitops::bench
