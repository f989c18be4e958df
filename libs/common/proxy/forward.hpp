#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/head.hpp"

// Heads of forwarded messages, made from the received heads. Pure.
namespace gitops::proxy {

// Framing of a body: how its end is indicated.
struct BodyFraming {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
};

// Changes to the head of a forwarded request.
struct RequestEdits {
  std::string_view target = {};       // origin form
  std::string_view host = {};         // Host for the upstream
  std::string_view client = {};       // address of the peer, for X-Forwarded-For
  std::string_view scheme = {};       // "http" or "https": the peer's connection
  std::string_view request_id = {};   // sent as X-Request-Id
  std::string_view traceparent = {};  // replaces the peer's; empty: the peer's is kept
  // The peer may forward for other clients: its X-Forwarded-* and Forwarded are kept, and
  // X-Forwarded-For is extended. Otherwise they are replaced by our own.
  bool trusted_peer = false;
  bool websocket = false;  // requests the upgrade to WebSocket
};

// Appends the head of the request for the upstream. Removes hop-by-hop fields (including those
// listed by Connection), Expect, upgrades other than to WebSocket, and forwarding fields of a peer
// that is not trusted. A Connection field cannot remove the fields that identify the client or
// delimit the message (AC-05).
void append_forwarded_request(std::string& out, const http::RequestHead& head,
                              const RequestEdits& edits, const BodyFraming& framing);

// Returns the addresses of the head's X-Forwarded-For fields, in their order.
std::vector<std::string_view> forwarded_hops(const http::RequestHead& head);

// Changes to the head of a forwarded response.
struct AnswerEdits {
  bool client_http_1_1 = true;
  bool keep_alive = true;
  bool websocket = false;            // the response is a 101 that was requested
  bool gzip = false;                 // the body is compressed by the proxy
  bool gzip_varies = false;          // it would be compressed for other clients
  std::string_view request_id = {};  // sent as X-Request-Id; empty: the upstream's value
  // Makes a Location on this origin ("http://host:port", the upstream's own address) relative, with
  // `location_prefix` in front, so that the client keeps its own scheme and host. A Location that
  // is a path gets the prefix if it lacks it.
  std::string_view own_origin = {};
  std::string_view location_prefix = {};
};

void append_forwarded_answer(std::string& out, const http::ResponseHead& head,
                             const AnswerEdits& edits, const BodyFraming& framing);

// Returns the fields of a trailer section (lines with their ends) that may be forwarded. Removes
// fields that are hop-by-hop, identify a client, or define how to read the message.
std::string forwarded_trailers(std::string_view lines);

// Returns the framing of a request's body, received and forwarded.
BodyFraming request_framing(const http::RequestHead& head);

// Framing of a response's body as received from the upstream and as forwarded.
struct AnswerBody {
  BodyFraming in;
  BodyFraming out;
};
AnswerBody answer_body(const http::ResponseHead& head, std::string_view method,
                       bool client_http_1_1, bool gzip);

}  // namespace gitops::proxy
