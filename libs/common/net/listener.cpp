#include "common/net/listener.hpp"

#include <cerrno>
#include <cstring>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/net/socket_channel.hpp"

namespace gitops::net {
namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;

const Log kLog("listener");

constexpr int kBacklog = 4096;
constexpr int kMaxAccepts = 64;  // before the accepted connections run

using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

error_code open(Acceptor& acceptor, const ip::tcp::endpoint& endpoint, bool shares_port) {
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(Acceptor::reuse_address(true), ec);
  const int on = 1;
  if (!ec && shares_port &&
      ::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) {
    ec.assign(errno, boost::system::generic_category());
  }
  if (!ec && endpoint.address().is_v6()) acceptor.set_option(ip::v6_only(false), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  // Accepted sockets inherit these options.
  if (!ec) acceptor.set_option(ip::tcp::no_delay(true), ec);
  if (!ec) acceptor.set_option(asio::socket_base::keep_alive(true), ec);
  const int idle = 30;
  const int interval = 10;
  const int count = 3;
  ::setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  ::setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  ::setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
  if (!ec) acceptor.listen(kBacklog, ec);
  if (ec) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return ec;
}

}  // namespace

Result<std::uint16_t> Listener::listen(const ListenOptions& options) {
  error_code ec;
  const auto address = ip::make_address(options.address, ec);
  if (ec) {
    return fail(ErrorCode::invalid_argument, options.address + ": not an IP address to listen on");
  }
  ec = open(acceptor_, {address, options.port}, options.shares_port);
  const bool no_ipv6 = ec == asio::error::address_family_not_supported ||
                       ec == boost::system::errc::address_not_available;
  if (no_ipv6 && address.is_v6() && address.is_unspecified()) {
    ec = open(acceptor_, {ip::address_v4::any(), options.port}, options.shares_port);
  }
  if (ec) {
    return fail(ErrorCode::unavailable, "cannot listen on " + options.address + ":" +
                                            std::to_string(options.port) + ": " + ec.message());
  }
  acceptor_.native_non_blocking(true);
  return acceptor_.local_endpoint().port();
}

Listener::Outcome Listener::accept_one(const Accepted& accepted) {
  ip::tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  const int descriptor =
      ::accept4(acceptor_.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) {
    peer.resize(size);
    auto& reactor = Reactor::of(acceptor_.get_executor());
    accepted(std::make_unique<SocketChannel>(reactor, descriptor), peer.address());
    return Outcome::accepted;
  }
  const int number = errno;
  if (number == EAGAIN || number == EWOULDBLOCK) return Outcome::none;
  if (number == ECONNABORTED || number == EINTR) return Outcome::accepted;
  if (const auto verdict = repeated_.check("accept", Clock::now()); verdict.pass) {
    kLog.error("cannot accept connections",
               {{"error", ::strerrordesc_np(number)}, {"suppressed", verdict.suppressed}});
  }
  return Outcome::failed;
}

// Accepts pending connections, a limited number at once, so that accepted ones run in between.
Task<> Listener::run(Accepted accepted) {
  while (acceptor_.is_open()) {
    error_code ec;
    co_await acceptor_.async_wait(Acceptor::wait_read, asio::redirect_error(use_task, ec));
    auto outcome = Outcome::accepted;
    for (int i = 0; i < kMaxAccepts && acceptor_.is_open() && outcome == Outcome::accepted; ++i) {
      outcome = accept_one(accepted);
    }
    if (outcome == Outcome::failed) co_await sleep_for(std::chrono::milliseconds(100));
  }
}

void Listener::accept_waiting(const Accepted& accepted) {
  for (int i = 0; i < kBacklog && acceptor_.is_open(); ++i) {
    if (accept_one(accepted) != Outcome::accepted) return;
  }
}

void Listener::close() {
  error_code ec;
  acceptor_.close(ec);
}

}  // namespace gitops::net
