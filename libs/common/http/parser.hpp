#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

namespace gitops::http {

// What the next bytes of a message are. `body` is a slice of the input that was handed in.
struct ParseStep {
  enum class Event {
    more,  // nothing yet: call again with what was not consumed and at least one byte more
    head,  // the head is complete
    body,  // a part of the body
    end,   // the message is complete; what was not consumed belongs to the next one
  };
  Event event = Event::more;
  std::size_t consumed = 0;
  std::string_view body;
};

// Reads one HTTP/1.x request after the other from bytes; no socket, no copy of bodies. Strict,
// because request smuggling works where two readers disagree about the end of a message (AC-04):
// any doubt about framing is an error. It refuses Content-Length together with Transfer-Encoding,
// repeated lengths, codings other than a single "chunked", folded lines, line ends other than CRLF,
// control characters, white space before a colon, versions other than 1.0 and 1.1, a missing or
// repeated Host, and targets that do not start with '/'.
//
// An error's http_status is what the client should be told: 400, 431, 501 or 505. After an error
// the parser is of no use until reset(), and the connection must be closed.
class RequestParser {
 public:
  // `max_head` limits the request line and the fields together, and so the trailer section.
  explicit RequestParser(std::size_t max_head);
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;
  ~RequestParser();

  // Looks at the bytes that follow those consumed so far.
  Result<ParseStep> next(std::string_view input);
  // Starts over with the next message.
  void reset();

  // Valid from the head event until reset(); its body stays empty.
  [[nodiscard]] Request& head();
  // True when the client speaks HTTP/1.1 (chunked coding, interim answers).
  [[nodiscard]] bool is_http_1_1() const;
  // True when the client keeps the connection open after the answer.
  [[nodiscard]] bool keep_alive() const;
  // Nothing when the body is chunked.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same for responses. An interim (1xx) response is a message of its own, without a body. Errors
// are ErrorCode::protocol, or too_large for a head beyond the limit.
class ResponseParser {
 public:
  explicit ResponseParser(std::size_t max_head);
  ResponseParser(ResponseParser&&) noexcept;
  ResponseParser& operator=(ResponseParser&&) noexcept;
  ~ResponseParser();

  Result<ParseStep> next(std::string_view input);
  // The connection ended after the consumed bytes: the end of a message that reaches to the end of
  // the connection, an error for every other.
  Result<void> next_eof();
  // `no_body`: the answer to HEAD or CONNECT, which has none whatever its fields say.
  void reset(bool no_body = false);

  [[nodiscard]] Response& head();
  // True when nothing more of this message follows.
  [[nodiscard]] bool complete() const;
  [[nodiscard]] bool keep_alive() const;
  // Nothing when the body is chunked or reaches to the end of the connection.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gitops::http
