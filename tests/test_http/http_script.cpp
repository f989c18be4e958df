#include "test_http/http_script.hpp"

#include <array>
#include <stdexcept>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/redirect_error.hpp>

namespace gitops::test {

Task<bool> RawConnection::fill() {
  if (ended_ || was_reset_) co_return false;
  std::array<char, 16384> buffer;
  const auto size = co_await stream_.read_some(buffer);
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
  const auto sent = co_await stream_.write(bytes);
  co_return sent.has_value();
}

Task<bool> RawConnection::send_in_pieces(std::string_view bytes, std::size_t size) {
  while (!bytes.empty()) {
    if (!co_await send(bytes.substr(0, size))) co_return false;
    bytes.remove_prefix(std::min(size, bytes.size()));
    // Two turns of the loop: the readiness of the other side's socket, then its read.
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
  auto socket =
      co_await net::connect_any(std::span(&endpoint, 1), deadline_after(std::chrono::seconds(5)));
  if (!socket) throw std::runtime_error("cannot connect: " + socket.error().message);
  co_return RawConnection(net::Stream(std::move(*socket)));
}

Task<std::string> raw_exchange(std::uint16_t port, std::string bytes) {
  RawConnection connection = co_await raw_connect(port);
  co_await connection.send(bytes);
  co_return co_await connection.read_to_end();
}

HttpScript::HttpScript(const Executor& executor, std::vector<Script> scripts,
                       std::optional<net::TlsOptions> tls)
    : executor_(executor),
      acceptor_(executor, {asio::ip::address_v4::loopback(), 0}),
      scripts_(std::move(scripts)),
      port_(acceptor_.local_endpoint().port()),
      tasks_(executor) {
  if (tls) tls_.emplace(net::TlsContext::Role::server, std::move(*tls));
  tasks_.spawn("accept", [this] { return accept_loop(); });
}

Task<> HttpScript::stop() {
  boost::system::error_code ec;
  acceptor_.close(ec);
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

Task<> HttpScript::accept_loop() {
  while (acceptor_.is_open()) {
    auto socket = std::make_shared<net::Socket>(executor_);
    boost::system::error_code ec;
    co_await acceptor_.async_accept(*socket, asio::redirect_error(use_task, ec));
    if (ec) co_return;
    const std::size_t index = accepted_++;
    if (index < scripts_.size()) {
      tasks_.spawn("script", [this, socket, index] { return run(socket, index); });
    }
  }
}

Task<> HttpScript::run(std::shared_ptr<net::Socket> socket, std::size_t index) {
  std::shared_ptr<asio::ssl::context> context;
  if (tls_) {
    auto loaded = tls_->get(Clock::now());
    if (!loaded) throw std::runtime_error(loaded.error().message);
    context = *loaded;
  }
  boost::system::error_code ec;
  socket->set_option(asio::ip::tcp::no_delay(true), ec);
  net::Stream stream(std::move(*socket), context);
  if (context && !co_await stream.handshake_server()) co_return;
  RawConnection& connection = live_.emplace_back(std::move(stream));
  co_await scripts_[index](connection);
  connection.close();
}

}  // namespace gitops::test
