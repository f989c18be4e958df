// The same bytes to both readers of heads, http/parser (for handlers and clients) and proxy/head
// (for the proxy core). When both accept a head they must mean the same by it, and neither may
// accept what the other refuses: a request that two parts of a suite read differently is how
// requests get smuggled (AC-04).
//
// Known and intended differences:
// - The proxy core takes absolute, authority and asterisk targets; a handler gets paths only.
// - The proxy core refuses an Expect that it cannot meet (417) while it reads the head; for
//   handlers the server does so when it has the head.
// - A client takes a response that repeats its Content-Length with the same value, as RFC 9112
//   section 6.3 allows; the proxy core does not pass such a response on.
// - For handlers and clients a Connection field that is no list of tokens is an error; for the
//   proxy core it names nothing, and no Connection field is passed on.
// - The proxy core passes on a response whose status line ends with the status, without the space
//   that RFC 9112 wants there; a client refuses it.
// - Either may see that a head is malformed before it is complete, when the other still waits.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/http/message.hpp"
#include "common/http/parser.hpp"
#include "common/http/wire_text.hpp"
#include "common/proxy/head.hpp"

namespace {

using namespace gitops;

constexpr std::size_t kMaxHead = 64 * 1024;  // the limits are not what is compared here

void require(bool holds) {
  if (!holds) std::abort();
}

enum class Verdict { more, refused, accepted };

struct Reading {
  Verdict verdict = Verdict::more;
  int refusal = 0;  // the status that a client is told
  std::size_t size = 0;
  std::string first_line = {};  // method and target, or status
  bool is_http_1_1 = false;
  bool keep_alive = false;
  std::optional<std::uint64_t> length = {};
  std::vector<std::pair<std::string, std::string>> fields = {};
};

Reading read_by_parser(http::RequestParser& parser, std::string_view text) {
  const auto step = parser.next(text);
  if (!step) return {.verdict = Verdict::refused, .refusal = step.error().http_status};
  if (step->event != http::ParseStep::Event::head) return {};
  const http::Request& head = parser.head();
  return {.verdict = Verdict::accepted,
          .size = step->consumed,
          .first_line = head.method + " " + head.target,
          .is_http_1_1 = parser.is_http_1_1(),
          .keep_alive = parser.keep_alive(),
          .length = parser.content_length(),
          .fields = {head.headers.begin(), head.headers.end()}};
}

Reading read_by_parser(http::ResponseParser& parser, std::string_view text) {
  const auto step = parser.next(text);
  if (!step) return {.verdict = Verdict::refused};
  if (step->event != http::ParseStep::Event::head) return {};
  const http::Response& head = parser.head();
  return {.verdict = Verdict::accepted,
          .size = step->consumed,
          .first_line = std::to_string(head.status),
          .keep_alive = parser.keep_alive(),
          .length = parser.content_length(),
          .fields = {head.headers.begin(), head.headers.end()}};
}

template <class Parser>
Reading read_by_head(Parser& parser, std::string_view text) {
  const auto size = parser.next(text);
  if (!size) return {.verdict = Verdict::refused, .refusal = size.error().http_status};
  if (*size == 0) return {};
  const auto& head = parser.head();
  Reading reading{.verdict = Verdict::accepted,
                  .size = *size,
                  .is_http_1_1 = head.http_1_1,
                  .keep_alive = head.keep_alive(),
                  .length = head.content_length};
  for (const auto& field : head.fields) reading.fields.emplace_back(field.name, field.value);
  return reading;
}

// A Connection field, or its old twin, that is no list of tokens.
bool has_odd_connection(const Reading& reading) {
  bool odd = false;
  for (const auto& [name, value] : reading.fields) {
    if (!http::equal_ignoring_case(name, "Connection") &&
        !http::equal_ignoring_case(name, "Proxy-Connection")) {
      continue;
    }
    proxy::for_each_element(value,
                            [&odd](std::string_view option) { odd |= !http::is_token(option); });
  }
  return odd;
}

void check_requests(std::string_view text) {
  http::RequestParser parser(kMaxHead);
  proxy::RequestHeadParser head(
      {.max_line = kMaxHead, .max_head = kMaxHead, .max_fields = kMaxHead});
  const Reading a = read_by_parser(parser, text);
  const Reading b = read_by_head(head, text);
  if (b.verdict == Verdict::refused && b.refusal == 417) return;
  if (b.verdict == Verdict::accepted && head.head().form != proxy::TargetForm::origin) {
    require(a.verdict == Verdict::refused);
    return;
  }
  if (a.verdict != Verdict::accepted && b.verdict != Verdict::accepted) return;
  if (has_odd_connection(b)) {
    require(a.verdict == Verdict::refused);
    return;
  }
  require(a.verdict == b.verdict);
  // What goes on from the proxy core is what handlers see.
  std::string first_line(head.head().method);
  http::append_target(first_line += ' ', head.head().target);
  require(a.first_line == first_line);
  require(a.size == b.size && a.is_http_1_1 == b.is_http_1_1 && a.fields == b.fields);
  require(a.keep_alive == b.keep_alive);
  require(!a.length == head.head().chunked);
  if (a.length) require(*a.length == b.length.value_or(0));
}

// A response that repeats its Content-Length, on several lines or in a list.
bool repeats_length(const Reading& reading) {
  int lengths = 0;
  for (const auto& [name, value] : reading.fields) {
    if (!http::equal_ignoring_case(name, "Content-Length")) continue;
    lengths += 1 + static_cast<int>(std::ranges::count(value, ','));
  }
  return lengths > 1;
}

void check_responses(std::string_view text) {
  http::ResponseParser parser(kMaxHead);
  proxy::ResponseHeadParser head(
      {.max_line = kMaxHead, .max_head = kMaxHead, .max_fields = kMaxHead});
  const Reading a = read_by_parser(parser, text);
  const Reading b = read_by_head(head, text);
  if (a.verdict != Verdict::accepted && b.verdict != Verdict::accepted) return;
  if (b.verdict == Verdict::accepted &&
      text.find("\r\n") == std::string_view("HTTP/1.1 200").size()) {
    require(a.verdict == Verdict::refused);
    return;
  }
  if (a.verdict == Verdict::accepted && repeats_length(a)) {
    require(b.verdict == Verdict::refused);
    return;
  }
  if (has_odd_connection(b)) {
    require(a.verdict == Verdict::refused);
    return;
  }
  require(a.verdict == b.verdict);
  require(a.first_line == std::to_string(head.head().status));
  require(a.size == b.size && a.fields == b.fields && a.length == b.length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), std::min(size, kMaxHead - 1));
  if (text.starts_with("HTTP/")) {
    check_responses(text);
  } else {
    check_requests(text);
  }
  return 0;
}
