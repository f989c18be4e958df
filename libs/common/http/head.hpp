#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

// Heads of HTTP/1.x messages: parsed in place, once, as slices of the received bytes. The proxy core
// uses them as they are; parser.hpp copies them to strings for handlers and clients.
namespace gitops::http {

// Fields with special treatment, most of them in the proxy.
enum class FieldId : std::uint8_t {
  other,
  accept,
  accept_encoding,
  authorization,
  connection,
  content_encoding,
  content_length,
  content_type,
  cookie,
  etag,
  expect,
  forwarded,
  host,
  http2_settings,
  keep_alive,
  location,
  origin,
  proxy_authenticate,
  proxy_authorization,
  proxy_connection,
  te,
  traceparent,
  trailer,
  transfer_encoding,
  upgrade,
  vary,
  x_forwarded,  // every X-Forwarded-* field
  x_real_ip,
  x_request_id,
};

// Returns the id of a field name; case is ignored. A name that differs from a forwarding field only
// by '_' for '-' has that field's id, since a CGI-like upstream could not distinguish them (AC-05).
FieldId field_id(std::string_view name);

struct FieldSlice {
  std::string_view name;
  std::string_view value;  // without surrounding white space
  FieldId id = FieldId::other;
};

struct HeadLimits {
  std::size_t max_line = 8 * 1024;  // request or status line: 414; a field: 431
  std::size_t max_head = 32 * 1024;
  std::size_t max_fields = 100;
  // Whether a response may repeat its Content-Length with the same value, on several lines or in a
  // list, as RFC 9112 section 6.3 allows. A proxy must not pass such a response on.
  bool allow_repeated_length = false;
};

// Common parts of both kinds of heads. Slices are valid while the received bytes stay in place.
struct MessageHead {
  bool http_1_1 = true;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  bool connection_close = false;
  bool connection_keep_alive = false;
  bool connection_upgrade = false;
  bool connection_lists_fields = false;  // lists fields other than the protocol's own
  std::vector<FieldSlice> fields;

  [[nodiscard]] std::optional<std::string_view> find(FieldId id) const;
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // Returns whether a Connection field lists this field.
  [[nodiscard]] bool connection_lists(std::string_view name) const;
  // Returns whether the sender allows another message on the connection.
  [[nodiscard]] bool keep_alive() const {
    return http_1_1 ? !connection_close : connection_keep_alive && !connection_close;
  }
};

// Form of a request's target (RFC 9112 section 3.2).
enum class TargetForm { origin, absolute, authority, asterisk };

struct RequestHead : MessageHead {
  std::string_view method;
  std::string_view target;  // as received: visible ASCII and UTF-8
  TargetForm form = TargetForm::origin;
  std::string_view path;   // of origin and absolute form; "/" if missing
  std::string_view query;  // without '?'
  bool has_query = false;
  std::string_view host;  // of the absolute form, or the Host field; may be empty in HTTP/1.0
  bool expects_continue = false;

  [[nodiscard]] bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  [[nodiscard]] bool wants_websocket() const;
};

struct ResponseHead : MessageHead {
  int status = 0;
  std::string_view reason;
};

// Parses the head at the front of a connection's bytes, line by line as they arrive. Strict, because
// request smuggling exploits readers that disagree about the end of a message (AC-04). It refuses
// Content-Length together with Transfer-Encoding, repeated lengths, codings other than one
// "chunked", folded lines, line ends other than CRLF, control characters, white space before a
// colon, a missing, repeated or malformed Host, unknown versions, and forms of the target that do
// not match the method.
//
// http_status of a request's error is the status to respond with: 400, 414, 417, 431, 501 or 505.
// A response's error is ErrorCode::protocol, or too_large above a limit. After an error or a
// complete head, reset() prepares for the next one.
template <class Head>
class HeadParser {
 public:
  explicit HeadParser(HeadLimits limits) : limits_(limits) {}

  // Parses on. `input` begins with the head and holds all bytes received of it so far, at the same
  // address as before. Returns the head's length, or 0 if more is needed.
  Result<std::size_t> next(std::string_view input);
  void reset();
  [[nodiscard]] const Head& head() const { return head_; }
  // Returns whether a part of a head was received.
  [[nodiscard]] bool begun() const { return scanned_ > 0 || first_line_done_; }

 private:
  HeadLimits limits_;
  Head head_;
  std::size_t scanned_ = 0;  // offset of the first line not parsed yet
  bool first_line_done_ = false;
  bool transfer_encoding_ = false;
  int hosts_ = 0;
};

using RequestHeadParser = HeadParser<RequestHead>;
using ResponseHeadParser = HeadParser<ResponseHead>;
extern template class HeadParser<RequestHead>;
extern template class HeadParser<ResponseHead>;

// Returns the error of a malformed message of this kind; see HeadParser for its code. `status` is the
// one to respond with.
template <class Head>
std::unexpected<Error> malformed(int status, std::string_view reason);

// Calls `use` with each element of a comma-separated list, without surrounding white space.
template <class Use>
void for_each_element(std::string_view list, Use use) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    auto element = list.substr(0, comma);
    while (!element.empty() && (element.front() == ' ' || element.front() == '\t'))
      element.remove_prefix(1);
    while (!element.empty() && (element.back() == ' ' || element.back() == '\t'))
      element.remove_suffix(1);
    if (!element.empty()) use(element);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace gitops::http
