#pragma once

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/net/listener.hpp"
#include "common/net/memory_channel.hpp"
#include "common/net/socket_channel.hpp"
#include "common/net/tls_channel.hpp"
#include "common/net/tls_context.hpp"
#include "support/run_coro.hpp"
#include "support/test_certs.hpp"

namespace gitops::net {

// Two ends of one connection.
struct ChannelPair {
  std::unique_ptr<Channel> left;
  std::unique_ptr<Channel> right;
};

inline ChannelPair memory_pair(const Executor& executor, std::size_t capacity = 64 * 1024) {
  auto [left, right] = MemoryChannel::pair(executor, capacity);
  return {std::move(left), std::move(right)};
}

// A TCP connection within this machine; the left end has connected, the right one was accepted.
inline Task<ChannelPair> socket_pair() {
  const auto executor = co_await asio::this_coro::executor;
  Listener listener(executor);
  const auto port = listener.listen({.address = "127.0.0.1"});
  if (!port) throw std::runtime_error(port.error().message);
  ChannelPair pair;
  TaskGroup tasks(executor);
  tasks.spawn("accept", [&] {
    return listener.run([&](std::unique_ptr<Channel> channel, const asio::ip::address&) {
      pair.right = std::move(channel);
      listener.close();
    });
  });
  const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), *port);
  auto connected = co_await SocketChannel::connect(std::span(&endpoint, 1), kNever);
  if (connected) pair.left = std::move(*connected);
  co_await tasks.join();
  if (!pair.left || !pair.right) throw std::runtime_error("no connection within this machine");
  co_return pair;
}

// The contexts of a server named "localhost" and of a client that trusts it.
inline std::shared_ptr<asio::ssl::context> tls_context(TlsContext::Role role) {
  static test::CertificateAuthority authority;
  static const test::Certificate server =
      authority.issue({.common_name = "server", .organization = {}, .alt_names = {"localhost"}});
  TlsContext context(
      role, role == TlsContext::Role::client
                ? TlsOptions{.ca_file = authority.ca_file()}
                : TlsOptions{.certificate_file = server.cert_file, .key_file = server.key_file});
  auto made = context.get(Clock::now());
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}

// TLS over both ends, the left one being the client, without the handshake.
struct TlsEnds {
  explicit TlsEnds(ChannelPair below)
      : left(std::make_unique<TlsChannel>(std::move(below.left),
                                          tls_context(TlsContext::Role::client))),
        right(std::make_unique<TlsChannel>(std::move(below.right),
                                           tls_context(TlsContext::Role::server))) {}
  std::unique_ptr<TlsChannel> left;
  std::unique_ptr<TlsChannel> right;
};

inline Task<ChannelPair> secured(ChannelPair below) {
  TlsEnds ends(std::move(below));
  TaskGroup tasks(co_await asio::this_coro::executor);
  Result<void> accepted;
  tasks.spawn("server", [&]() -> Task<> { accepted = co_await ends.right->handshake_server(); });
  const auto connected = co_await ends.left->handshake_client("localhost");
  // The server is done when it has sent its tickets, for which there may be little room.
  std::array<char, 1> none;
  while (tasks.size() > 0) {
    if (connected) ends.left->read_now(none);
    co_await asio::post(co_await asio::this_coro::executor, use_task);
  }
  if (!connected) throw std::runtime_error(connected.error().message);
  if (!accepted) throw std::runtime_error(accepted.error().message);
  co_return ChannelPair{std::move(ends.left), std::move(ends.right)};
}

// What comes next, at most 64 KiB; "(end)", or "(code: message)" of an error.
inline Task<std::string> read(Channel& channel) {
  std::string room(64 * 1024, '\0');
  const auto size = co_await channel.read_some(room);
  if (!size) {
    co_return "(" + std::string(to_string(size.error().code)) + ": " + size.error().message + ")";
  }
  if (*size == 0) co_return "(end)";
  room.resize(*size);
  co_return room;
}

// Everything up to the end or an error, which stands last.
inline Task<std::string> read_all(Channel& channel) {
  std::string all;
  while (true) {
    const auto more = co_await read(channel);
    all += more;
    if (more.starts_with('(')) co_return all;
  }
}

inline Task<std::string> read_exactly(Channel& channel, std::size_t size) {
  std::string all(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const auto more = co_await channel.read_some(std::span(all).subspan(have));
    if (!more || *more == 0) break;
    have += *more;
  }
  all.resize(have);
  co_return all;
}

// Writes until nothing more is taken; returns how much that was.
inline std::size_t fill(Channel& channel) {
  const std::string block(16 * 1024, 'x');
  const asio::const_buffer buffer(block.data(), block.size());
  std::size_t written = 0;
  while (true) {
    const auto more = channel.write_now(std::span(&buffer, 1));
    if (more.what != Transfer::data) return written;
    written += more.size;
  }
}

// Text of that many bytes that does not repeat itself; no brackets.
inline std::string long_text(std::size_t size) {
  std::string text;
  text.reserve(size + 100);
  for (std::size_t i = 0; text.size() < size; ++i) {
    text.append(std::to_string(i)).append(",abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,");
  }
  text.resize(size);
  return text;
}

}  // namespace gitops::net
