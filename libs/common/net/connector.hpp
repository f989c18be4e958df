#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/ip/address.hpp>

#include "common/net/channel.hpp"
#include "common/net/resolve.hpp"

namespace gitops::net {

// Which addresses a name may resolve to; empty: every one. Asked for each address that is connected
// to, so that a name cannot change its mind between the check and its use (AC-02).
using AddressFilter = std::function<bool(const asio::ip::address&)>;

// Looks the host up and connects to the first of its allowed addresses that accepts. Errors:
// not_found (no such host), forbidden (no address is allowed), timeout, unavailable.
Task<Result<std::unique_ptr<Channel>>> connect_host(Resolver& resolver, const std::string& host,
                                                    std::uint16_t port,
                                                    const AddressFilter& allowed,
                                                    Deadline deadline);

}  // namespace gitops::net
