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

// Decides which addresses may be connected to; empty: all of them. It is asked about the addresses
// themselves, so that a name cannot resolve differently between the check and the connection
// (AC-02).
using AddressFilter = std::function<bool(const asio::ip::address&)>;

// Resolves the host and connects to that of its allowed addresses that accepts first, as RFC 8305
// says: one that leads nowhere costs 250 ms, and none for the next minute. When none accepts, the
// next call asks the name servers again. Errors: not_found (no such host), forbidden (no address is
// allowed), timeout, unavailable.
Task<Result<std::unique_ptr<Channel>>> connect_host(Resolver& resolver, const std::string& host,
                                                    std::uint16_t port,
                                                    const AddressFilter& allowed, Deadline deadline,
                                                    LookupClient client = {});

// Has the SOCKS 5 proxy at the other end of `channel` connect to the destination. On success the
// channel carries the destination's bytes, none of which have been read. The channel's deadline
// covers the handshake, and `channel` outlives it. Errors: those of Socks5Handshake, timeout,
// unavailable; they name neither the proxy nor the destination.
Task<Result<void>> connect_through_socks5(Channel& channel, Socks5Request request);

}  // namespace gitops::net
