// Requests and responses from anywhere. The outcome must not depend on how the bytes are split, and
// a request that was accepted must be one that every other reader frames in the same way.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/http/head.hpp"
#include "common/http/parser.hpp"

namespace {

using namespace gitops::http;

constexpr std::size_t kMaxHead = 512;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_head(RequestParser& parser) {
  const Request& head = parser.head();
  require(is_token(head.method) && head.target.starts_with('/'));
  require(head.target.find_first_of(" \t\r\n#") == std::string::npos);
  int lengths = 0;
  int codings = 0;
  for (const auto& [name, value] : head.headers) {
    require(is_token(name) && is_field_value(value));
    lengths += equal_ignoring_case(name, "Content-Length") ? 1 : 0;
    codings += equal_ignoring_case(name, "Transfer-Encoding") ? 1 : 0;
  }
  require(lengths + codings <= 1);
  require((codings == 1) == !parser.content_length());
  require(!parser.is_http_1_1() || head.headers.find("Host"));
}

void check_head(ResponseParser& parser) {
  require(parser.head().status >= 100 && parser.head().status <= 999);
  for (const auto& [name, value] : parser.head().headers)
    require(is_token(name) && is_field_value(value));
}

// Feeds `text` in pieces whose sizes come from `sizes` (at least 1 each; everything at once when
// empty) and describes what came out.
template <class Parser>
std::string transcript(std::string_view text, std::string_view sizes) {
  Parser parser(kMaxHead);
  std::string out;
  std::string body;
  std::string buffer;
  std::size_t turn = 0;
  while (!text.empty()) {
    std::size_t size = text.size();
    if (!sizes.empty())
      size = std::min<std::size_t>(
          size, 1 + static_cast<unsigned char>(sizes[turn++ % sizes.size()]) % 32);
    buffer += text.substr(0, size);
    text.remove_prefix(size);
    while (true) {
      const auto step = parser.next(buffer);
      if (!step)
        return out + body + "!" + std::to_string(step.error().http_status) + step.error().message;
      require(step->consumed <= buffer.size());
      require(step->body.empty() || (step->body.data() >= buffer.data() &&
                                     step->body.end() <= buffer.data() + step->consumed));
      body += step->body;
      buffer.erase(0, step->consumed);
      if (step->event == ParseStep::Event::more) {
        require(buffer.size() < kMaxHead);
        break;
      }
      if (step->event == ParseStep::Event::head) {
        check_head(parser);
        out +=
            "[" + std::to_string(parser.head().headers.size()) + (parser.keep_alive() ? "k" : "c");
      } else if (step->event == ParseStep::Event::end) {
        out += body + "]";
        body.clear();
        parser.reset();
      }
    }
  }
  return out + body + "~" + std::to_string(buffer.size());
}

// What the proxy core's reader says of a head whose bytes arrive in such pieces at one place.
template <class Head>
std::string verdict(std::string_view text, std::string_view sizes) {
  HeadParser<Head> parser({.max_line = kMaxHead / 2, .max_head = kMaxHead, .max_fields = 10});
  std::size_t received = 0;
  for (std::size_t turn = 0; received < text.size(); ++turn) {
    received = sizes.empty() ? text.size()
                             : std::min<std::size_t>(
                                   text.size(),
                                   received + 1 + static_cast<unsigned char>(sizes[turn % 4]) % 32);
    const auto size = parser.next(text.substr(0, received));
    if (!size) return "!" + std::to_string(size.error().http_status) + size.error().message;
    if (*size > 0) return std::to_string(*size) + (parser.head().keep_alive() ? "k" : "c");
  }
  return "~";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 4) return 0;
  const auto sizes = all.substr(0, 4);
  const auto text = all.substr(4);
  require(transcript<RequestParser>(text, {}) == transcript<RequestParser>(text, sizes));
  require(transcript<ResponseParser>(text, {}) == transcript<ResponseParser>(text, sizes));
  require(verdict<RequestHead>(text, {}) == verdict<RequestHead>(text, sizes));
  require(verdict<ResponseHead>(text, {}) == verdict<ResponseHead>(text, sizes));
  return 0;
}
