#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

// The opening handshake of WebSocket (RFC 6455 section 4), both sides, as messages. No extension is
// ever offered or accepted: frp's peers refuse every answer that names one.
namespace gitops::http::websocket {

// The value of Sec-WebSocket-Accept that answers a Sec-WebSocket-Key.
std::string accept_value(std::string_view key);

// What a client that asks for a WebSocket sent.
struct Offer {
  std::string key;
  std::vector<std::string> protocols;  // in the client's order of preference
};

// True when the request asks to switch to WebSocket, well-formed or not.
bool is_upgrade(const Request& request);

// Checks a request to switch. An error's http_status is what to answer: 400, 405 for a method other
// than GET, or 426 for another version, which accepted_versions() then goes with.
Result<Offer> read_offer(const Request& request);

// The first protocol of the client's that is in `supported`; empty when there is none.
std::string choose_protocol(const Offer& offer, std::span<const std::string_view> supported);

// The 101 that accepts an offer. `protocol` may be empty.
Response acceptance(const Offer& offer, std::string_view protocol);
// The answer to a request that read_offer() refused.
Response refusal(const Error& error);

// A new Sec-WebSocket-Key from 16 random bytes.
std::string make_key(std::span<const char, 16> random);

// The request that asks for a WebSocket. The caller sets target, Origin and credentials; Host is
// the client's to add.
Request upgrade_request(std::string_view key, std::span<const std::string_view> protocols);

// Checks a server's 101 against the request. The protocol it chose; empty when none. Errors:
// protocol.
Result<std::string> read_acceptance(const Response& response, std::string_view key,
                                    std::span<const std::string_view> protocols);

}  // namespace gitops::http::websocket
