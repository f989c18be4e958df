#include "common/http/parser.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "common/core/encoding.hpp"
#include "common/http/body_reader.hpp"
#include "common/http/wire_text.hpp"

namespace gitops::http {
namespace {

namespace beast_http = boost::beast::http;
using boost::beast::string_view;
using BeastError = boost::beast::error_code;

// Maximum digits of a Content-Length, as in the proxy core: readers with 64 bits agree on its
// value.
constexpr std::size_t kMaxDigits = 18;

std::string_view view(string_view text) {
  return {text.data(), text.size()};
}

// Returns whether the text has only the characters of a host and port (RFC 3986), without other
// delimiters.
bool is_host_field(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~!$&'()*+;=%:[]").contains(c);
  });
}

// Returns whether the text is visible ASCII, or UTF-8, which some clients do not encode.
bool is_origin_target(std::string_view text) {
  return text.starts_with('/') && is_utf8(text) && std::ranges::all_of(text, [](char c) {
           return static_cast<unsigned char>(c) > 0x20 && c != 0x7f && c != '#';
         });
}

// Stores the results of Beast's parser and refuses input that Beast accepts too loosely.
template <bool is_request>
class Sink final : public beast_http::basic_parser<is_request> {
 public:
  using Head = std::conditional_t<is_request, Request, Response>;

  explicit Sink(Head& head) : head_(head) {}

  [[nodiscard]] bool is_1_1() const { return version_ == 11; }
  // This class's reason for refusing the message; empty if Beast refused it.
  [[nodiscard]] std::string_view reason() const { return reason_; }
  [[nodiscard]] int status() const { return status_; }

 private:
  void refuse(BeastError& ec, std::string_view reason, int status = 400) {
    reason_ = reason;
    status_ = status;
    ec = beast_http::error::bad_value;
  }

  void on_request_impl(beast_http::verb, string_view method, string_view target, int version,
                       BeastError& ec) override {
    if constexpr (is_request) {
      version_ = version;
      if (view(method) == "CONNECT") return refuse(ec, "CONNECT is not supported", 501);
      if (!is_origin_target(view(target))) return refuse(ec, "the target must be a path");
      head_.method = view(method);
      head_.target.clear();
      append_target(head_.target, view(target));
    }
  }

  void on_response_impl(int status, string_view, int version, BeastError& ec) override {
    if constexpr (!is_request) {
      version_ = version;
      if (status < 100) return refuse(ec, "the status is below 100");
      head_.status = status;
    }
  }

  void on_field_impl(beast_http::field field, string_view name, string_view value,
                     BeastError& ec) override {
    switch (field) {
      case beast_http::field::content_length:
        if (is_request && ++lengths_ > 1) return refuse(ec, "Content-Length is repeated");
        if (is_request && value.find(',') != string_view::npos) {
          return refuse(ec, "Content-Length is a list");
        }
        if (value.size() > kMaxDigits) return refuse(ec, "Content-Length is too long");
        break;
      case beast_http::field::transfer_encoding:
        if (!equal_ignoring_case(view(value), "chunked")) {
          return refuse(ec, "the transfer coding is not supported", 501);
        }
        if (!is_1_1()) return refuse(ec, "HTTP/1.0 has no transfer codings");
        break;
      case beast_http::field::host:
        if (!is_request) break;
        if (++hosts_ > 1) return refuse(ec, "Host is repeated");
        if (!is_host_field(view(value))) return refuse(ec, "Host is malformed");
        break;
      default:
        break;
    }
    head_.headers.add(std::string(view(name)), std::string(view(value)));
  }

  void on_header_impl(BeastError& ec) override {
    if (is_request && is_1_1() && hosts_ == 0) refuse(ec, "Host is missing");
  }

  // Beast parses the head only.
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(string_view, BeastError&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, string_view, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, BeastError&) override { return 0; }
  void on_finish_impl(BeastError&) override {}

  Head& head_;
  int version_ = 11;
  int lengths_ = 0;
  int hosts_ = 0;
  std::string_view reason_;
  int status_ = 400;
};

// Common part of both parsers: finds the end of the head and validates its lines, lets Beast parse
// it, and continues with the body.
template <bool is_request>
class Machine {
 public:
  explicit Machine(std::size_t max_head) : max_head_(max_head), body_(max_head) { reset(false); }

  void reset(bool no_body) {
    head_.headers.clear();
    head_.body.clear();
    sink_.emplace(head_);
    sink_->header_limit(static_cast<std::uint32_t>(max_head_));
    sink_->body_limit(boost::none);
    if (no_body) sink_->skip(true);  // otherwise Beast waits for the end of the connection
    body_ = BodyReader(max_head_);
    no_body_ = no_body;
    head_done_ = false;
    scanned_ = 0;
  }

  Result<ParseStep> next(std::string_view input) {
    if (!head_done_) return next_head(input.substr(0, max_head_));
    const auto piece = body_.next(input);
    if (piece.refused()) return refuse(piece.status, piece.refusal);
    ParseStep step{.event = Event::more, .consumed = piece.consumed, .body = piece.data};
    if (!step.body.empty()) {
      step.event = Event::body;
    } else if (body_.done()) {
      step.event = Event::end;
    }
    return step;
  }

  Result<void> next_eof() {
    if (!head_done_) return refuse(400, "the connection was closed inside of the head");
    if (body_.until_eof()) body_.start_none();
    if (!body_.done()) return refuse(400, "the connection was closed inside of the body");
    return {};
  }

  [[nodiscard]] bool complete() const { return head_done_ && body_.done(); }
  auto& head() { return head_; }
  Sink<is_request>& sink() { return *sink_; }

 private:
  using Event = ParseStep::Event;

  static std::unexpected<Error> refuse(int status, std::string_view reason) {
    Error error{.code = ErrorCode::protocol,
                .message = (is_request ? "malformed request: " : "malformed response: ") +
                           std::string(reason)};
    if (is_request) {
      error.code = status == 400 ? ErrorCode::invalid_data : ErrorCode::unsupported;
      error.http_status = status;
    }
    if (status == 431) error.code = ErrorCode::too_large;
    return std::unexpected(std::move(error));
  }

  std::unexpected<Error> refuse(const BeastError& ec) const {
    if (ec == beast_http::error::bad_version) return refuse(505, "unknown HTTP version");
    if (!sink_->reason().empty()) return refuse(sink_->status(), sink_->reason());
    return refuse(400, ec.message());
  }

  // Stops at the limit, so that the outcome does not depend on how the bytes arrive.
  Result<ParseStep> next_head(std::string_view input) {
    if (!could_start(input)) return refuse(400, "it does not start with a method or version");
    while (true) {
      const auto line_end = input.find('\n', scanned_);
      if (line_end == std::string_view::npos) {
        if (input.size() >= max_head_) return refuse(431, "the head is too large");
        return ParseStep{};
      }
      if (line_end == 0 || input[line_end - 1] != '\r')
        return refuse(400, "a line ends without CR");
      const auto line = input.substr(scanned_, line_end - 1 - scanned_);
      scanned_ = line_end + 1;
      if (line.empty()) break;
      if (line.front() == ' ' || line.front() == '\t')
        return refuse(400, "a header line is folded");
    }
    BeastError ec;
    const auto consumed = sink_->put({input.data(), scanned_}, ec);
    if (ec) return refuse(ec);
    head_done_ = true;
    start_body();
    return ParseStep{.event = Event::head, .consumed = consumed, .body = {}};
  }

  // Detects other protocols by their first bytes instead of waiting for a line end.
  static bool could_start(std::string_view input) {
    if (input.empty()) return true;
    if (is_request) return is_token(input.substr(0, 1));
    constexpr std::string_view kVersion = "HTTP/";
    const auto size = std::min(input.size(), kVersion.size());
    return input.substr(0, size) == kVersion.substr(0, size);
  }

  void start_body() {
    bool none = no_body_;
    if constexpr (!is_request)
      none = none || head_.status < 200 || head_.status == 204 || head_.status == 304;
    if (none) return body_.start_none();
    if (sink_->chunked()) return body_.start_chunks();
    if (const auto length = sink_->content_length()) return body_.start_length(*length);
    if (is_request) return body_.start_none();
    body_.start_until_eof();
  }

  std::size_t max_head_;
  typename Sink<is_request>::Head head_;
  std::optional<Sink<is_request>> sink_;
  BodyReader body_;
  bool no_body_ = false;
  bool head_done_ = false;
  std::size_t scanned_ = 0;  // start of the first line without an end so far
};

template <class Parser>
std::optional<std::uint64_t> length_of(Parser& parser) {
  const auto length = parser.content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

}  // namespace

struct RequestParser::State : Machine<true> {
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
  return state_->head();
}
bool RequestParser::is_http_1_1() const {
  return state_->sink().is_1_1();
}
bool RequestParser::keep_alive() const {
  return state_->sink().keep_alive();
}
std::optional<std::uint64_t> RequestParser::content_length() const {
  // A request without a length and without chunks has no body.
  if (state_->sink().chunked()) return std::nullopt;
  return length_of(state_->sink()).value_or(0);
}

struct ResponseParser::State : Machine<false> {
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
  return state_->head();
}
bool ResponseParser::complete() const {
  return state_->complete();
}
bool ResponseParser::keep_alive() const {
  return state_->sink().keep_alive();
}
std::optional<std::uint64_t> ResponseParser::content_length() const {
  return length_of(state_->sink());
}

}  // namespace gitops::http
