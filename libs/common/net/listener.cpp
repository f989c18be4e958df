#include "common/net/listener.hpp"

#include <cerrno>

#include <boost/asio/ip/v6_only.hpp>
#include <sys/socket.h>

namespace gitops::net {
namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;

constexpr int kBacklog = 4096;

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
  if (!ec) acceptor.set_option(ip::tcp::no_delay(true), ec);  // accepted sockets inherit it
  if (!ec) acceptor.listen(kBacklog, ec);
  if (ec) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return ec;
}

}  // namespace

Result<std::uint16_t> listen_on(Acceptor& acceptor, const ListenOptions& options) {
  error_code ec;
  const auto address = ip::make_address(options.address, ec);
  if (ec) {
    return fail(ErrorCode::invalid_argument, options.address + ": not an IP address to listen on");
  }
  ec = open(acceptor, {address, options.port}, options.shares_port);
  const bool no_ipv6 = ec == asio::error::address_family_not_supported ||
                       ec == boost::system::errc::address_not_available;
  if (no_ipv6 && address.is_v6() && address.is_unspecified()) {
    ec = open(acceptor, {ip::address_v4::any(), options.port}, options.shares_port);
  }
  if (ec) {
    return fail(ErrorCode::unavailable, "cannot listen on " + options.address + ":" +
                                            std::to_string(options.port) + ": " + ec.message());
  }
  return acceptor.local_endpoint().port();
}

}  // namespace gitops::net
