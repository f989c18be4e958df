#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

// Opening handshake of WebSocket (RFC 6455 section 4), both sides, as messages. Offers and accepts
// no extensions: frp's peers refuse every response that names one.
namespace gitops::http::websocket {

// Returns the value of Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string accept_value(std::string_view key);

// Data of a client's request for a WebSocket.
struct Offer {
  std::string key;
  std::vector<std::string> protocols;  // in the client's order of preference
};

// Returns whether the request asks to switch to WebSocket, well-formed or not.
bool is_upgrade(const Request& request);

// Validates a request to switch. An error's http_status is the status to respond with: 400, 405 for
// a method other than GET, or 426 for another version; see refusal().
Result<Offer> read_offer(const Request& request);

// Returns the client's first protocol that is in `supported`; empty if there is none.
std::string choose_protocol(const Offer& offer, std::span<const std::string_view> supported);

// Returns the 101 that accepts an offer. `protocol` may be empty.
Response acceptance(const Offer& offer, std::string_view protocol);
// Returns the response to a request that read_offer() refused.
Response refusal(const Error& error);

// Returns a new Sec-WebSocket-Key made from 16 random bytes.
std::string make_key(std::span<const char, 16> random);

// Returns the request for a WebSocket. The caller sets target, Origin and credentials; the client
// adds Host.
Request upgrade_request(std::string_view key, std::span<const std::string_view> protocols);

// Validates a server's 101 for the request. Returns the selected protocol; empty if none. Errors:
// protocol.
Result<std::string> read_acceptance(const Response& response, std::string_view key,
                                    std::span<const std::string_view> protocols);

}  // namespace gitops::http::websocket
