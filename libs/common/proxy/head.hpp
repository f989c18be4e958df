#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

// Heads of HTTP/1.x messages as a proxy reads them: in place, once, as slices of the bytes that
// were received. What handlers use (message.hpp, parser.hpp) makes strings instead.
namespace gitops::proxy {

// The fields that a proxy treats specially.
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
  trailer,
  transfer_encoding,
  upgrade,
  vary,
  x_forwarded,  // every X-Forwarded-* field
  x_real_ip,
  x_request_id,
};

// The id of a field name, without case. Names that only differ from one of the forwarding fields by
// '_' for '-' get that field's id, since a CGI-like upstream could not tell them apart (AC-05).
FieldId field_id(std::string_view name);

struct FieldSlice {
  std::string_view name;
  std::string_view value;  // without white space around it
  FieldId id = FieldId::other;
};

struct HeadLimits {
  std::size_t max_line = 8 * 1024;  // request or status line: 414; a field: 431
  std::size_t max_head = 32 * 1024;
  std::size_t max_fields = 100;
};

// What both kinds of heads have. Slices are valid as long as the bytes stay where they are.
struct MessageHead {
  bool http_1_1 = true;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  bool connection_close = false;
  bool connection_keep_alive = false;
  bool connection_upgrade = false;
  bool connection_lists_fields = false;  // names fields other than those of the protocol itself
  std::vector<FieldSlice> fields;

  [[nodiscard]] std::optional<std::string_view> find(FieldId id) const;
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // True when a Connection field names this field.
  [[nodiscard]] bool connection_lists(std::string_view name) const;
  // Whether the sender would use the connection for another message.
  [[nodiscard]] bool keep_alive() const {
    return http_1_1 ? !connection_close : connection_keep_alive && !connection_close;
  }
};

// RFC 9112 section 3.2.
enum class TargetForm { origin, absolute, authority, asterisk };

struct RequestHead : MessageHead {
  std::string_view method;
  std::string_view target;  // as it was sent: visible ASCII and UTF-8
  TargetForm form = TargetForm::origin;
  std::string_view path;   // of origin and absolute form; "/" when there was none
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

// Reads the head that a connection's bytes begin with, line by line as they come. As strict as
// parser.hpp: Content-Length together with Transfer-Encoding, repeated lengths, codings other than
// one "chunked", folded lines, line ends other than CRLF, control characters, white space before a
// colon, a missing, repeated or malformed Host, unknown versions and forms of the target that do
// not go with the method are refused (AC-04).
//
// An error of a request tells by http_status what to answer: 400, 414, 417, 431, 501 or 505. After
// an error or a complete head, reset() begins the next one.
template <class Head>
class HeadParser {
 public:
  explicit HeadParser(HeadLimits limits) : limits_(limits) {}

  // `input` begins with the head and holds everything received of it so far, in the same place of
  // memory as before. The head's length, or 0 when more is needed.
  Result<std::size_t> next(std::string_view input);
  void reset();
  [[nodiscard]] const Head& head() const { return head_; }
  // A part of a head was received.
  [[nodiscard]] bool begun() const { return scanned_ > 0 || first_line_done_; }

 private:
  HeadLimits limits_;
  Head head_;
  std::size_t scanned_ = 0;  // where the first line begins that was not read yet
  bool first_line_done_ = false;
  bool transfer_encoding_ = false;
  int hosts_ = 0;
};

using RequestHeadParser = HeadParser<RequestHead>;
using ResponseHeadParser = HeadParser<ResponseHead>;
extern template class HeadParser<RequestHead>;
extern template class HeadParser<ResponseHead>;

// Calls `use` with each element of a comma-separated list, without the white space around it.
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

}  // namespace gitops::proxy
