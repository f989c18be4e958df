#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/message.hpp"

namespace gitops::http {

// Result of parsing the next bytes. `body` is a slice of the input.
struct ParseStep {
  enum class Event {
    more,  // incomplete: call again with the unconsumed bytes and at least one more
    head,  // the head is complete
    body,  // a part of the body
    end,   // the message is complete; unconsumed bytes belong to the next one
  };
  Event event = Event::more;
  std::size_t consumed = 0;
  std::string_view body;
};

// Parses HTTP/1.x requests one after the other from bytes, without a socket and without copies of
// bodies. As strict as HeadParser (head.hpp), on which it stands, and it refuses targets that do not
// start with '/'.
//
// An error's http_status is the status for the client: 400, 417, 431, 501 or 505. After an error
// the parser is unusable until reset(), and the connection must be closed.
class RequestParser {
 public:
  // `max_head` limits the request line and the fields together, and also the trailer section.
  explicit RequestParser(std::size_t max_head);
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;
  ~RequestParser();

  // Parses the bytes that follow those consumed so far.
  Result<ParseStep> next(std::string_view input);
  // Prepares for the next message.
  void reset();

  // The head; valid from the head event until reset(). Its body is empty.
  [[nodiscard]] Request& head();
  // Returns whether the client uses HTTP/1.1 (chunked coding, interim responses).
  [[nodiscard]] bool is_http_1_1() const;
  // Returns whether the client keeps the connection open after the response.
  [[nodiscard]] bool keep_alive() const;
  // Returns whether the client awaits a 100 (Continue) before it sends the body.
  [[nodiscard]] bool expects_continue() const;
  // Length of the body; nothing if it is chunked.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Parses HTTP/1.x responses in the same way. An interim (1xx) response is a message of its own,
// without a body. Errors: ErrorCode::protocol; too_large for a head above the limit.
class ResponseParser {
 public:
  explicit ResponseParser(std::size_t max_head);
  ResponseParser(ResponseParser&&) noexcept;
  ResponseParser& operator=(ResponseParser&&) noexcept;
  ~ResponseParser();

  Result<ParseStep> next(std::string_view input);
  // Handles the end of the connection after the consumed bytes. It ends a message that extends to
  // the end of the connection, and is an error for every other.
  Result<void> next_eof();
  // Prepares for the next response. `no_body`: a response to HEAD or CONNECT, which has no body
  // whatever its fields say.
  void reset(bool no_body = false);

  [[nodiscard]] Response& head();
  // Returns whether the message is complete.
  [[nodiscard]] bool complete() const;
  [[nodiscard]] bool keep_alive() const;
  // Length of the body; nothing if it is chunked or extends to the end of the connection.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gitops::http
