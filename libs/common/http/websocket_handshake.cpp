#include "common/http/websocket_handshake.hpp"

#include <algorithm>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"

namespace gitops::http::websocket {
namespace {

constexpr std::string_view kVersion = "13";

std::unexpected<Error> refuse(int status, const char* what) {
  return std::unexpected(Error{.code = ErrorCode::invalid_argument,
                               .message = std::string("not a WebSocket request: ") + what,
                               .http_status = status});
}

// Returns the elements of a list field over all its lines.
std::vector<std::string> list_of(const Headers& headers, std::string_view name) {
  std::vector<std::string> elements;
  for (const auto& [field, value] : headers) {
    if (!equal_ignoring_case(field, name)) continue;
    std::string_view rest = value;
    while (true) {
      const auto comma = rest.find(',');
      if (const auto element = trimmed(rest.substr(0, comma)); !element.empty()) {
        elements.emplace_back(element);
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return elements;
}

std::size_t count(const Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers,
      [name](const Headers::Field& field) { return equal_ignoring_case(field.first, name); }));
}

std::string joined(std::span<const std::string_view> protocols) {
  std::string list;
  for (const auto protocol : protocols) list.append(list.empty() ? "" : ", ").append(protocol);
  return list;
}

}  // namespace

std::string accept_value(std::string_view key) {
  std::string text(key);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 section 1.3
  return base64_encode(bytes_of(sha1(text)));
}

bool is_upgrade(const Request& request) {
  return request.headers.has_token("Upgrade", "websocket") &&
         request.headers.has_token("Connection", "upgrade");
}

Result<Offer> read_offer(const Request& request) {
  const Headers& headers = request.headers;
  if (request.method != "GET") return refuse(405, "the method is not GET");
  if (!is_upgrade(request)) return refuse(400, "it does not ask for an upgrade to websocket");
  if (headers.find("Sec-WebSocket-Version") != kVersion) {
    return refuse(426, "its version is not 13");
  }
  Offer offer;
  offer.key = headers.find("Sec-WebSocket-Key").value_or("");
  const auto nonce = base64_decode(offer.key);
  if (count(headers, "Sec-WebSocket-Key") != 1 || !nonce || nonce->size() != 16) {
    return refuse(400, "Sec-WebSocket-Key must be 16 bytes in base64");
  }
  offer.protocols = list_of(headers, "Sec-WebSocket-Protocol");
  for (const auto& protocol : offer.protocols) {
    if (!is_token(protocol)) return refuse(400, "a subprotocol is malformed");
  }
  return offer;
}

std::string choose_protocol(const Offer& offer, std::span<const std::string_view> supported) {
  for (const auto& protocol : offer.protocols) {
    if (std::ranges::find(supported, protocol) != supported.end()) return protocol;
  }
  return {};
}

Response acceptance(const Offer& offer, std::string_view protocol) {
  Response response{.status = 101,
                    .headers = {{"Upgrade", "websocket"},
                                {"Connection", "Upgrade"},
                                {"Sec-WebSocket-Accept", accept_value(offer.key)}}};
  if (!protocol.empty()) response.headers.add("Sec-WebSocket-Protocol", std::string(protocol));
  return response;
}

Response refusal(const Error& error) {
  Response response{.status = error.http_status == 0 ? 400 : error.http_status,
                    .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                    .body = error.message + "\n"};
  if (response.status == 405) response.headers.add("Allow", "GET");
  if (response.status == 426) {
    response.headers.add("Upgrade", "websocket");
    response.headers.add("Sec-WebSocket-Version", std::string(kVersion));
  }
  return response;
}

std::string make_key(std::span<const char, 16> random) {
  return base64_encode({random.data(), random.size()});
}

Request upgrade_request(std::string_view key, std::span<const std::string_view> protocols) {
  Request request{.headers = {{"Upgrade", "websocket"},
                              {"Connection", "Upgrade"},
                              {"Sec-WebSocket-Key", std::string(key)},
                              {"Sec-WebSocket-Version", std::string(kVersion)}}};
  if (!protocols.empty()) request.headers.add("Sec-WebSocket-Protocol", joined(protocols));
  return request;
}

Result<std::string> read_acceptance(const Response& response, std::string_view key,
                                    std::span<const std::string_view> protocols) {
  const auto broken = [](const char* what) {
    return fail(ErrorCode::protocol,
                std::string("the server did not switch to WebSocket: ") + what);
  };
  const Headers& headers = response.headers;
  if (response.status != 101) return broken("its status is not 101");
  if (!equal_ignoring_case(headers.find("Upgrade").value_or(""), "websocket") ||
      !headers.has_token("Connection", "upgrade")) {
    return broken("it upgraded to something else");
  }
  if (count(headers, "Sec-WebSocket-Accept") != 1 ||
      headers.find("Sec-WebSocket-Accept") != accept_value(key)) {
    return broken("Sec-WebSocket-Accept does not match the key");
  }
  if (headers.find("Sec-WebSocket-Extensions")) {
    return broken("it uses an extension that was not offered");
  }
  if (count(headers, "Sec-WebSocket-Protocol") > 1) return broken("it chose several subprotocols");
  const std::string chosen(headers.find("Sec-WebSocket-Protocol").value_or(""));
  if (!chosen.empty() && std::ranges::find(protocols, chosen) == protocols.end()) {
    return broken("it chose a subprotocol that was not offered");
  }
  return chosen;
}

}  // namespace gitops::http::websocket
