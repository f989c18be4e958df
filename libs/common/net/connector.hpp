#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/ip/address.hpp>

#include "common/net/channel.hpp"
#include "common/net/resolve.hpp"
#include "common/net/socks5.hpp"

namespace gitops::net {

// Returns whether an address may be connected to; empty: all addresses. It checks the addresses
// themselves, so that a name cannot resolve differently between the check and the connection
// (AC-02).
using AddressFilter = std::function<bool(const asio::ip::address&)>;

// Resolves the host and connects to the allowed address that accepts first, in the way of RFC 8305.
// An unreachable address delays the connection by 250 ms, and not at all for the next minute. If
// none accepts, the next call queries the name servers again. Errors: not_found (no such host),
// forbidden (no allowed address), timeout, unavailable.
Task<Result<std::unique_ptr<Channel>>> connect_host(Resolver& resolver, const std::string& host,
                                                    std::uint16_t port,
                                                    const AddressFilter& allowed, Deadline deadline,
                                                    LookupClient client = {});

// Requests the SOCKS 5 proxy at the other end of `channel` to connect to the destination. On
// success the channel carries the destination's bytes, none of which have been read. The channel's
// deadline covers the handshake, and `channel` must outlive the call. Errors: those of
// Socks5Handshake, timeout, unavailable. They name neither the proxy nor the destination.
Task<Result<void>> connect_through_socks5(Channel& channel, Socks5Request request);

}  // namespace gitops::net
