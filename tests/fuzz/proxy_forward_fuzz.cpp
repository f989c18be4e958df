// The heads that the proxy sends on for heads from anywhere. They must be heads by our own strict
// rules, with one Host, one framing, and nothing that the peer had no right to say.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/http/message.hpp"
#include "common/proxy/forward.hpp"

namespace {

using namespace gitops::http;
using namespace gitops::proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr HeadLimits kLarge{.max_line = 128 * 1024, .max_head = 512 * 1024, .max_fields = 1000};

void forward_request(const std::string& text, bool trusted) {
  RequestHeadParser parser({});
  const auto end = parser.next(text);
  if (!end || *end == 0 || parser.head().form == TargetForm::authority) return;
  const auto framing = request_framing(parser.head());
  RequestEdits edits;
  edits.target = "/target";
  edits.host = "upstream";
  edits.client = "10.0.0.1";
  edits.scheme = "http";
  edits.request_id = "id";
  edits.trusted_peer = trusted;
  edits.websocket = parser.head().wants_websocket();
  std::string out;
  append_forwarded_request(out, parser.head(), edits, framing);
  RequestHeadParser again(kLarge);
  const auto read = again.next(out);
  require(read && *read == out.size());
  const auto& head = again.head();
  require(head.target == "/target" && head.host == "upstream" && head.http_1_1);
  require(head.chunked == parser.head().chunked);
  require(head.content_length == parser.head().content_length);
  require(!head.connection_lists_fields && head.connection_upgrade == edits.websocket);
  require(head.find(FieldId::x_request_id) == "id");
  std::string_view addresses;
  for (const auto& field : head.fields) {
    if (equal_ignoring_case(field.name, "X-Forwarded-For")) addresses = field.value;
    require(!field.name.contains('_') || field.id == FieldId::other);
    require(field.id != FieldId::proxy_authorization && field.id != FieldId::te &&
            field.id != FieldId::expect);
    if (!trusted) require(field.id != FieldId::forwarded && field.id != FieldId::x_real_ip);
  }
  require(trusted ? addresses.ends_with("10.0.0.1") : addresses == "10.0.0.1");
}

void forward_answer(const std::string& text) {
  ResponseHeadParser parser({});
  const auto end = parser.next(text);
  if (!end || *end == 0) return;
  const auto body = answer_body(parser.head(), "GET", true, false);
  AnswerEdits edits;
  edits.request_id = "id";
  edits.own_origin = "http://upstream";
  edits.location_prefix = "/prefix";
  std::string out;
  append_forwarded_answer(out, parser.head(), edits, body.out);
  ResponseHeadParser again(kLarge);
  const auto read = again.next(out);
  require(read && *read == out.size());
  require(again.head().status == parser.head().status);
  require(again.head().chunked == (body.out.kind == BodyFraming::Kind::chunked));
  if (body.out.kind == BodyFraming::Kind::length) {
    require(again.head().content_length == body.out.length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  forward_request(text, false);
  forward_request(text, true);
  forward_answer(text);
  (void)forwarded_trailers(text);
  return 0;
}
