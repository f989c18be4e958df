#include "support/tcp_relay.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

namespace gitops::test {

using boost::system::error_code;

namespace {

// A program that the test starts must not inherit the socket: that would keep it open after the
// relay has closed it.
void keep_to_ourselves(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

// Whether the text has a head and the body that it announces.
bool is_whole_request(std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  if (end == text.npos) return false;
  std::string head(text.substr(0, end));
  std::ranges::transform(head, head.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  const auto body = text.substr(end + 4);
  if (head.contains("\r\ntransfer-encoding: chunked")) return body.ends_with("0\r\n\r\n");
  constexpr std::string_view kLength = "\r\ncontent-length:";
  const auto length = head.find(kLength);
  return length == head.npos ||
         body.size() >= std::strtoull(head.c_str() + length + kLength.size(), nullptr, 10);
}

}  // namespace

void TcpRelay::Link::close() {
  error_code ignored;
  client.close(ignored);
  server.close(ignored);
}

TcpRelay::TcpRelay(const Executor& executor, const std::string& address, std::uint16_t port)
    : executor_(executor),
      target_(asio::ip::make_address(address), port),
      acceptor_(executor, {asio::ip::address_v4::loopback(), 0}),
      port_(acceptor_.local_endpoint().port()),
      released_(executor),
      tasks_(executor) {
  tasks_.spawn("relay", [this] { return accept(); });
}

void TcpRelay::cut() {
  for (const auto& link : links_) link->close();
  released_.notify_all();  // held bytes are dropped with their connection
}

void TcpRelay::release() {
  held_ = false;
  released_.notify_all();
}

void TcpRelay::open() {
  closed_ = false;
  delay_ = {};
  answer_.clear();
}

void TcpRelay::answer_with(std::string message) {
  answer_ = std::move(message);
  cut();
}

void TcpRelay::close() {
  closed_ = true;
  cut();
}

// No cancellation is needed: each task ends when its sockets are closed.
Task<> TcpRelay::stop() {
  error_code ignored;
  acceptor_.close(ignored);
  close();
  co_await tasks_.join();
}

Task<> TcpRelay::accept() {
  for (;;) {
    error_code failed;
    auto client = co_await acceptor_.async_accept(asio::redirect_error(use_task, failed));
    if (failed) co_return;
    if (closed_) {
      ++refused_;
      continue;
    }
    keep_to_ourselves(client.native_handle());
    auto link = std::make_shared<Link>(std::move(client), Socket(executor_));
    tasks_.spawn("relay connection", [this, link] { return serve(link); });
  }
}

Task<> TcpRelay::serve(std::shared_ptr<Link> link) {
  links_.push_back(link);
  error_code failed;
  if (!answer_.empty()) {
    co_await answer(*link);
    link->close();
    links_.remove(link);
    co_return;
  }
  link->server.open(asio::ip::tcp::v4(), failed);
  if (!failed) keep_to_ourselves(link->server.native_handle());
  co_await link->server.async_connect(target_, asio::redirect_error(use_task, failed));
  if (!failed) {
    tasks_.spawn("relay answers", [this, link] { return pump(*link, link->server, link->client); });
    co_await pump(*link, link->client, link->server);
  }
  link->close();
  links_.remove(link);
}

// Reads a request up to the end of its body first: a client that still writes would not see the answer.
Task<> TcpRelay::answer(Link& link) {
  const auto message = answer_;
  std::string request;
  std::array<char, 16 * 1024> buffer{};
  error_code failed;
  while (!failed && !is_whole_request(request)) {
    const auto size = co_await link.client.async_read_some(asio::buffer(buffer),
                                                           asio::redirect_error(use_task, failed));
    request.append(buffer.data(), size);
  }
  if (failed) co_return;
  co_await asio::async_write(link.client, asio::buffer(message),
                             asio::redirect_error(use_task, failed));
}

// Forwards bytes until one side ends, then closes both sides.
Task<> TcpRelay::pump(Link& link, Socket& from, Socket& to) {
  std::array<char, 16 * 1024> buffer{};
  error_code failed;
  while (!failed) {
    const auto size =
        co_await from.async_read_some(asio::buffer(buffer), asio::redirect_error(use_task, failed));
    if (failed) break;
    if (delay_ > Clock::duration::zero()) co_await sleep_for(delay_);
    while (held_ && from.is_open()) co_await released_.wait();
    co_await asio::async_write(to, asio::buffer(buffer.data(), size),
                               asio::redirect_error(use_task, failed));
    if (!close_after_ || &from != &link.client) continue;
    *close_after_ -= std::min(*close_after_, size);
    if (*close_after_ == 0) {
      close_after_.reset();
      close();
    }
  }
  link.close();
}

}  // namespace gitops::test
