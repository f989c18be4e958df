#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/proxy/head.hpp"

// The heads that a proxy sends on, made from the heads that it read. Pure.
namespace gitops::proxy {

// How the end of a body is indicated.
struct BodyFraming {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
};

// What the head of a forwarded request contains in addition to the client's fields.
struct RequestEdits {
  std::string_view target = {};      // origin form
  std::string_view host = {};        // Host for the upstream
  std::string_view client = {};      // address of the peer, for X-Forwarded-For
  std::string_view scheme = {};      // "http" or "https": how the peer reached us
  std::string_view request_id = {};  // sent as X-Request-Id
  // The peer may speak for others: its X-Forwarded-* and Forwarded are kept and X-Forwarded-For is
  // appended to. Otherwise they are replaced by what we know ourselves.
  bool trusted_peer = false;
  bool websocket = false;  // asks the upstream to switch
};

// Appends the head of the request for the upstream. Removed: hop-by-hop fields (including those
// named by Connection), Expect, upgrades other than to WebSocket, and forwarding fields of a peer
// that is not trusted. A Connection field cannot remove the fields that say who the client is or
// where the message ends (AC-05).
void append_forwarded_request(std::string& out, const RequestHead& head, const RequestEdits& edits,
                              const BodyFraming& framing);

// What the head of a forwarded answer contains in addition to the upstream's fields.
struct AnswerEdits {
  bool client_http_1_1 = true;
  bool keep_alive = true;
  bool websocket = false;            // the answer is a 101 that was asked for
  bool gzip = false;                 // the body is compressed on its way
  bool gzip_varies = false;          // it would be compressed for another client
  std::string_view request_id = {};  // sent as X-Request-Id; empty: as the upstream answered
  // A Location on this origin ("http://host:port", as the upstream may know itself) is made
  // relative, behind `location_prefix`, so that the client keeps its own scheme and host. A
  // Location that is a path gets the prefix when it lacks it.
  std::string_view own_origin = {};
  std::string_view location_prefix = {};
};

void append_forwarded_answer(std::string& out, const ResponseHead& head, const AnswerEdits& edits,
                             const BodyFraming& framing);

// The fields of a trailer section (lines with their ends) that may be passed on: none that is
// hop-by-hop, tells who somebody is, or how to read the message.
std::string forwarded_trailers(std::string_view lines);

// How the body of a request ends, which is also how it is passed on.
BodyFraming request_framing(const RequestHead& head);

// How the upstream's answer ends, and how it is passed on.
struct AnswerBody {
  BodyFraming in;
  BodyFraming out;
};
AnswerBody answer_body(const ResponseHead& head, std::string_view method, bool client_http_1_1,
                       bool gzip);

}  // namespace gitops::proxy
