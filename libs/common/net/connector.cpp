#include "common/net/connector.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/net/socket_channel.hpp"

namespace gitops::net {

Task<Result<std::unique_ptr<Channel>>> connect_host(Resolver& resolver, const std::string& host,
                                                    std::uint16_t port,
                                                    const AddressFilter& allowed, Deadline deadline,
                                                    LookupClient client) {
  auto endpoints = co_await resolver.resolve(host, port, deadline, std::move(client));
  if (!endpoints) co_return std::unexpected(endpoints.error());
  if (allowed) {
    std::erase_if(*endpoints, [&](const auto& endpoint) { return !allowed(endpoint.address()); });
    if (endpoints->empty()) {
      co_return fail(ErrorCode::forbidden, "no address of " + host + " may be connected to");
    }
  }
  const EndpointObserver observer = [&resolver](const Endpoint& endpoint, bool works) {
    resolver.note(endpoint, works);
  };
  auto channel = co_await SocketChannel::connect(*endpoints, deadline, observer);
  if (!channel) resolver.look_again(host);
  co_return channel;
}

Task<Result<void>> connect_through_socks5(Channel& channel, Socks5Request request) {
  auto handshake = Socks5Handshake::start(request);
  if (!handshake) co_return std::unexpected(std::move(handshake.error()));
  std::array<char, 64> room{};
  while (true) {
    const Secret out = handshake->output();
    if (auto sent = co_await channel.write(out.reveal()); !sent) co_return sent;
    if (handshake->done()) co_return Result<void>{};
    const auto size = co_await channel.read_some(
        std::span(room).first(std::min(room.size(), handshake->expects())));
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) {
      co_return fail(ErrorCode::unavailable, "the SOCKS proxy closed the connection");
    }
    const auto taken = handshake->feed(std::string_view(room.data(), *size));
    if (!taken) co_return std::unexpected(taken.error());
  }
}

}  // namespace gitops::net
