#include "tunnel-client/http_activity_tracker.hpp"

#include <algorithm>

#include "common/proxy/forward.hpp"

namespace gitops::tunnel_client {
namespace {

// Maximum number of pipelined requests: those sent before the responses to earlier ones.
constexpr std::size_t kMaxPipeline = 100;

void start(http::BodyReader& body, const proxy::BodyFraming& framing) {
  using Kind = proxy::BodyFraming::Kind;
  switch (framing.kind) {
    case Kind::none:
      return body.start_none();
    case Kind::length:
      return body.start_length(framing.length);
    case Kind::chunked:
      return body.start_chunks();
    case Kind::until_close:
      return body.start_until_eof();
  }
}

}  // namespace

bool HttpActivityTracker::is_idle() const {
  return !is_opaque_ && requests_ > 0 && methods_.empty() && request_.is_between_messages() &&
         answer_.is_between_messages();
}

void HttpActivityTracker::from_user(std::string_view bytes) {
  follow(request_, bytes, [this] { request_begins(); });
}

void HttpActivityTracker::from_upstream(std::string_view bytes) {
  follow(answer_, bytes, [this] { answer_begins(); });
}

void HttpActivityTracker::give_up() {
  is_opaque_ = true;
  requests_ = std::max<std::uint64_t>(requests_, 1);
  request_.head = {};
  answer_.head = {};
}

template <class Parser, class Begin>
void HttpActivityTracker::follow(Side<Parser>& side, std::string_view bytes, Begin begin) {
  while (!is_opaque_ && !bytes.empty()) {
    if (!side.body.done()) {
      const auto piece = side.body.next(bytes);
      if (piece.refused()) return give_up();
      bytes.remove_prefix(piece.consumed);
      continue;
    }
    // Parses a complete head in place. The parser restarts when the buffer has been reallocated,
    // which is rare.
    const auto held = side.head.size();
    const auto* place = side.head.data();
    if (held > 0) side.head += bytes;
    if (held == 0 || side.head.data() != place) side.parser.reset();
    const auto size = side.parser.next(held > 0 ? std::string_view(side.head) : bytes);
    if (!size) return give_up();
    if (*size == 0) {
      if (held > 0) return;
      side.head = bytes;
      side.parser.reset();
      return;
    }
    begin();
    bytes.remove_prefix(*size - held);
    side.head = {};
  }
}

void HttpActivityTracker::request_begins() {
  const auto& head = request_.parser.head();
  if (methods_.size() >= kMaxPipeline) return give_up();
  ++requests_;
  methods_.emplace_back(head.method);
  start(request_.body, proxy::request_framing(head));
}

void HttpActivityTracker::answer_begins() {
  const auto& head = answer_.parser.head();
  const bool interim = head.status >= 100 && head.status < 200;
  if (interim && head.status != 101) return;
  if (methods_.empty() || head.status == 101) return give_up();
  const auto method = std::move(methods_.front());
  methods_.pop_front();
  if (method == "CONNECT" && head.status < 300) return give_up();
  start(answer_.body, proxy::answer_body(head, method, true, false).in);
}

}  // namespace gitops::tunnel_client
