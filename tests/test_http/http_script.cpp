#include "test_http/http_script.hpp"

#include <array>
#include <stdexcept>

#include <boost/asio/ip/address.hpp>

#include "common/net/socket_channel.hpp"
#include "common/net/tls_channel.hpp"

namespace gitops::test {

Task<bool> RawConnection::fill() {
  if (ended_ || was_reset_) co_return false;
  std::array<char, 16384> buffer;
  const auto size = co_await channel_->read_some(buffer);
  ended_ = size && *size == 0;
  was_reset_ = !size;
  if (!size || *size == 0) co_return false;
  received_.append(buffer.data(), *size);
  co_return true;
}

Task<std::string> RawConnection::read_until(std::string_view mark) {
  std::size_t end = std::string::npos;
  while ((end = received_.find(mark, taken_)) == std::string::npos) {
    if (!co_await fill()) break;
  }
  const std::size_t from = taken_;
  taken_ = end == std::string::npos ? received_.size() : end + mark.size();
  co_return received_.substr(from, taken_ - from);
}

Task<std::string> RawConnection::read_exactly(std::size_t size) {
  while (received_.size() - taken_ < size) {
    if (!co_await fill()) break;
  }
  std::string out = received_.substr(taken_, size);
  taken_ += out.size();
  co_return out;
}

Task<std::string> RawConnection::read_to_end() {
  while (co_await fill()) {
  }
  std::string out = received_.substr(taken_);
  taken_ = received_.size();
  co_return out;
}

Task<std::string> RawConnection::read_some() {
  if (taken_ == received_.size()) co_await fill();
  std::string out = received_.substr(taken_);
  taken_ = received_.size();
  co_return out;
}

Task<bool> RawConnection::send(std::string_view bytes) {
  const auto sent = co_await channel_->write(bytes);
  co_return sent.has_value();
}

Task<bool> RawConnection::send_in_pieces(std::string_view bytes, std::size_t size) {
  while (!bytes.empty()) {
    if (!co_await send(bytes.substr(0, size))) co_return false;
    bytes.remove_prefix(std::min(size, bytes.size()));
    // Two turns of the loop: the peer's socket becomes readable, then the peer reads.
    for (int turn = 0; turn < 2; ++turn)
      co_await asio::post(co_await asio::this_coro::executor, use_task);
  }
  co_return true;
}

Task<> join(RawConnection& left, RawConnection right) {
  const auto executor = co_await asio::this_coro::executor;
  const auto pump = [](RawConnection& from, RawConnection& to) -> Task<> {
    while (true) {
      const auto bytes = co_await from.read_some();
      if (bytes.empty() || !co_await to.send(bytes)) break;
    }
    from.close();
    to.close();
  };
  TaskGroup tasks(executor);
  tasks.spawn("right to left", [&] { return pump(right, left); });
  tasks.spawn("left to right", [&] { return pump(left, right); });
  co_await tasks.join();
}

Task<RawConnection> raw_connect(std::uint16_t port) {
  const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  auto channel = co_await net::SocketChannel::connect(std::span(&endpoint, 1),
                                                      deadline_after(std::chrono::seconds(5)));
  if (!channel) throw std::runtime_error("cannot connect: " + channel.error().message);
  co_return RawConnection(std::move(*channel));
}

Task<std::string> raw_exchange(std::uint16_t port, std::string bytes) {
  RawConnection connection = co_await raw_connect(port);
  co_await connection.send(bytes);
  co_return co_await connection.read_to_end();
}

HttpScript::HttpScript(const Executor& executor, std::vector<Script> scripts,
                       std::optional<net::TlsOptions> tls)
    : listener_(executor), scripts_(std::move(scripts)), tasks_(executor) {
  if (tls) tls_.emplace(net::TlsContext::Role::server, std::move(*tls));
  const auto port = listener_.listen({.address = "127.0.0.1"});
  if (!port) throw std::runtime_error(port.error().message);
  port_ = *port;
  tasks_.spawn("accept", [this] {
    return listener_.run([this](std::unique_ptr<net::Channel> channel, const asio::ip::address&) {
      accepted(std::move(channel));
    });
  });
}

Task<> HttpScript::stop() {
  listener_.close();
  tasks_.cancel();
  co_await tasks_.join();
}

http::Url HttpScript::url() const {
  http::Url url;
  url.scheme = tls_ ? "https" : "http";
  url.host = "127.0.0.1";
  url.port = port_;
  return url;
}

std::vector<std::string> HttpScript::received() const {
  std::vector<std::string> out;
  for (const RawConnection& connection : live_) out.push_back(connection.received());
  return out;
}

HttpScript::Script HttpScript::answer(std::string bytes) {
  return answer_each(std::move(bytes), 1);
}

HttpScript::Script HttpScript::answer_each(std::string bytes, int requests) {
  return [bytes, requests](RawConnection& connection) -> Task<> {
    for (int i = 0; i < requests; ++i) {
      co_await connection.read_head();
      co_await connection.send(bytes);
    }
  };
}

void HttpScript::accepted(std::unique_ptr<net::Channel> channel) {
  const std::size_t index = accepted_++;
  if (index >= scripts_.size()) return;
  // A std::function must be copyable.
  auto shared = std::make_shared<std::unique_ptr<net::Channel>>(std::move(channel));
  tasks_.spawn("script", [this, shared, index] { return run(std::move(*shared), index); });
}

Task<> HttpScript::run(std::unique_ptr<net::Channel> channel, std::size_t index) {
  if (tls_) {
    auto context = tls_->get(Clock::now());
    if (!context) throw std::runtime_error(context.error().message);
    auto tls = std::make_unique<net::TlsChannel>(std::move(channel), *context);
    if (!co_await tls->handshake_server()) co_return;
    channel = std::move(tls);
  }
  RawConnection& connection = live_.emplace_back(std::move(channel));
  co_await scripts_[index](connection);
  connection.close();
}

}  // namespace gitops::test
