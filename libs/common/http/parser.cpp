#include "common/http/parser.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "common/http/body_reader.hpp"
#include "common/http/head.hpp"
#include "common/http/wire_text.hpp"

namespace gitops::http {
namespace {

// Copies a request's head. Handlers get paths only.
Result<void> copy_head(const RequestHead& head, Request& to) {
  if (head.form == TargetForm::authority)
    return malformed<RequestHead>(501, "CONNECT is not supported");
  if (head.form != TargetForm::origin)
    return malformed<RequestHead>(400, "the target must be a path");
  to.method = head.method;
  to.target.clear();
  append_target(to.target, head.target);
  return {};
}

Result<void> copy_head(const ResponseHead& head, Response& to) {
  to.status = head.status;
  return {};
}

// Common part of both parsers: waits for the end of the head, copies it, and continues with the
// body.
template <class Head>
class Machine {
 public:
  static constexpr bool kIsRequest = std::is_same_v<Head, RequestHead>;
  using Message = std::conditional_t<kIsRequest, Request, Response>;

  explicit Machine(std::size_t max_head)
      : max_head_(max_head),
        head_({.max_line = max_head,
               .max_head = max_head,
               .max_fields = std::numeric_limits<std::size_t>::max(),
               .allow_repeated_length = true}),
        body_(max_head) {}

  void reset(bool no_body) {
    message_.headers.clear();
    message_.body.clear();
    head_.reset();
    body_ = BodyReader(max_head_);
    no_body_ = no_body;
    head_done_ = false;
    scanned_ = 0;
  }

  Result<ParseStep> next(std::string_view input) {
    if (!head_done_) return next_head(input.substr(0, max_head_));
    const auto piece = body_.next(input);
    if (piece.refused()) return malformed<Head>(piece.status, piece.refusal);
    ParseStep step{.event = Event::more, .consumed = piece.consumed, .body = piece.data};
    if (!step.body.empty()) {
      step.event = Event::body;
    } else if (body_.done()) {
      step.event = Event::end;
    }
    return step;
  }

  Result<void> next_eof() {
    if (!head_done_) return malformed<Head>(400, "the connection was closed inside of the head");
    if (body_.until_eof()) body_.start_none();
    if (!body_.done()) return malformed<Head>(400, "the connection was closed inside of the body");
    return {};
  }

  [[nodiscard]] bool complete() const { return head_done_ && body_.done(); }
  // Whether the sender allows another message. A body that ends with the connection is the last.
  [[nodiscard]] bool keep_alive() const { return is_kept_; }
  // The parsed head; its slices are dangling.
  [[nodiscard]] const Head& head() const { return head_.head(); }
  Message& message() { return message_; }

 private:
  using Event = ParseStep::Event;

  // Stops at the limit, so that the outcome does not depend on how the bytes arrive. The head is
  // parsed when it is complete, since the bytes may have moved between two calls.
  Result<ParseStep> next_head(std::string_view input) {
    if (!could_start(input))
      return malformed<Head>(400, "it does not start with a method or version");
    while (true) {
      const auto line_end = input.find('\n', scanned_);
      if (line_end == std::string_view::npos) {
        if (input.size() >= max_head_) return malformed<Head>(431, "the head is too large");
        return ParseStep{};
      }
      if (line_end == 0 || input[line_end - 1] != '\r')
        return malformed<Head>(400, "a line ends without CR");
      const auto line = input.substr(scanned_, line_end - 1 - scanned_);
      scanned_ = line_end + 1;
      if (line.empty()) break;
      if (line.front() == ' ' || line.front() == '\t')
        return malformed<Head>(400, "a header line is folded");
    }
    const auto size = head_.next(input.substr(0, scanned_));
    if (!size) return std::unexpected(size.error());
    if (auto copied = copy_head(head_.head(), message_); !copied) {
      return std::unexpected(std::move(copied.error()));
    }
    for (const auto& field : head_.head().fields) {
      message_.headers.add(std::string(field.name), std::string(field.value));
    }
    head_done_ = true;
    start_body();
    is_kept_ = head_.head().keep_alive() && !body_.until_eof();
    return ParseStep{.event = Event::head, .consumed = *size, .body = {}};
  }

  // Detects other protocols by their first bytes instead of waiting for a line end.
  static bool could_start(std::string_view input) {
    if (input.empty()) return true;
    if (kIsRequest) return is_token(input.substr(0, 1));
    constexpr std::string_view kVersion = "HTTP/";
    const auto size = std::min(input.size(), kVersion.size());
    return input.substr(0, size) == kVersion.substr(0, size);
  }

  void start_body() {
    const Head& head = head_.head();
    bool none = no_body_;
    if constexpr (!kIsRequest)
      none = none || head.status < 200 || head.status == 204 || head.status == 304;
    if (none) return body_.start_none();
    if (head.chunked) return body_.start_chunks();
    if (head.content_length) return body_.start_length(*head.content_length);
    if (kIsRequest) return body_.start_none();
    body_.start_until_eof();
  }

  std::size_t max_head_;
  Message message_;
  HeadParser<Head> head_;
  BodyReader body_;
  bool no_body_ = false;
  bool head_done_ = false;
  bool is_kept_ = false;
  std::size_t scanned_ = 0;  // start of the first line without an end so far
};

}  // namespace

struct RequestParser::State : Machine<RequestHead> {
  using Machine::Machine;
};

RequestParser::RequestParser(std::size_t max_head) : state_(std::make_unique<State>(max_head)) {}
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;
RequestParser::~RequestParser() = default;

Result<ParseStep> RequestParser::next(std::string_view input) {
  return state_->next(input);
}
void RequestParser::reset() {
  state_->reset(false);
}
Request& RequestParser::head() {
  return state_->message();
}
bool RequestParser::is_http_1_1() const {
  return state_->head().http_1_1;
}
bool RequestParser::keep_alive() const {
  return state_->keep_alive();
}
bool RequestParser::expects_continue() const {
  return state_->head().expects_continue;
}
std::optional<std::uint64_t> RequestParser::content_length() const {
  // A request without a length and without chunks has no body.
  const RequestHead& head = state_->head();
  return head.chunked ? std::nullopt : std::optional(head.content_length.value_or(0));
}

struct ResponseParser::State : Machine<ResponseHead> {
  using Machine::Machine;
};

ResponseParser::ResponseParser(std::size_t max_head) : state_(std::make_unique<State>(max_head)) {}
ResponseParser::ResponseParser(ResponseParser&&) noexcept = default;
ResponseParser& ResponseParser::operator=(ResponseParser&&) noexcept = default;
ResponseParser::~ResponseParser() = default;

Result<ParseStep> ResponseParser::next(std::string_view input) {
  return state_->next(input);
}
Result<void> ResponseParser::next_eof() {
  return state_->next_eof();
}
void ResponseParser::reset(bool no_body) {
  state_->reset(no_body);
}
Response& ResponseParser::head() {
  return state_->message();
}
bool ResponseParser::complete() const {
  return state_->complete();
}
bool ResponseParser::keep_alive() const {
  return state_->keep_alive();
}
std::optional<std::uint64_t> ResponseParser::content_length() const {
  return state_->head().content_length;
}

}  // namespace gitops::http
