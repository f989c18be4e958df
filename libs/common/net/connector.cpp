#include "common/net/connector.hpp"

#include "common/net/socket_channel.hpp"

namespace gitops::net {

Task<Result<std::unique_ptr<Channel>>> connect_host(Resolver& resolver, const std::string& host,
                                                    std::uint16_t port,
                                                    const AddressFilter& allowed,
                                                    Deadline deadline) {
  auto endpoints = co_await resolver.resolve(host, port, deadline);
  if (!endpoints) co_return std::unexpected(endpoints.error());
  if (allowed) {
    std::erase_if(*endpoints, [&](const auto& endpoint) { return !allowed(endpoint.address()); });
    if (endpoints->empty()) {
      co_return fail(ErrorCode::forbidden, host + " has no address that may be connected to");
    }
  }
  auto channel = co_await SocketChannel::connect(*endpoints, deadline);
  if (!channel) resolver.forget(host);
  co_return channel;
}

}  // namespace gitops::net
