#include "common/http/head.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "common/core/encoding.hpp"
#include "common/http/message.hpp"
#include "common/http/wire_text.hpp"

namespace gitops::http {
namespace {

struct KnownField {
  std::string_view name;  // lower case
  FieldId id;
};

constexpr std::array kKnownFields{
    KnownField{"accept", FieldId::accept},
    KnownField{"accept-encoding", FieldId::accept_encoding},
    KnownField{"authorization", FieldId::authorization},
    KnownField{"connection", FieldId::connection},
    KnownField{"content-encoding", FieldId::content_encoding},
    KnownField{"content-length", FieldId::content_length},
    KnownField{"content-type", FieldId::content_type},
    KnownField{"cookie", FieldId::cookie},
    KnownField{"etag", FieldId::etag},
    KnownField{"expect", FieldId::expect},
    KnownField{"forwarded", FieldId::forwarded},
    KnownField{"host", FieldId::host},
    KnownField{"http2-settings", FieldId::http2_settings},
    KnownField{"keep-alive", FieldId::keep_alive},
    KnownField{"location", FieldId::location},
    KnownField{"origin", FieldId::origin},
    KnownField{"proxy-authenticate", FieldId::proxy_authenticate},
    KnownField{"proxy-authorization", FieldId::proxy_authorization},
    KnownField{"proxy-connection", FieldId::proxy_connection},
    KnownField{"te", FieldId::te},
    KnownField{"traceparent", FieldId::traceparent},
    KnownField{"trailer", FieldId::trailer},
    KnownField{"transfer-encoding", FieldId::transfer_encoding},
    KnownField{"upgrade", FieldId::upgrade},
    KnownField{"vary", FieldId::vary},
    KnownField{"x-real-ip", FieldId::x_real_ip},
    KnownField{"x-request-id", FieldId::x_request_id},
};
constexpr std::string_view kForwardedPrefix = "x-forwarded-";
constexpr std::size_t kMaxKnownLength = 19;

// Bit n: a known name of length n begins with this letter.
constexpr auto kLengthsByLetter = [] {
  std::array<std::uint32_t, 256> lengths{};
  for (const auto& known : kKnownFields) {
    const auto bit = std::uint32_t{1} << known.name.size();
    lengths[static_cast<unsigned char>(known.name[0])] |= bit;
    lengths[static_cast<unsigned char>(known.name[0] - 'a' + 'A')] |= bit;
  }
  return lengths;
}();

constexpr auto kTokenCharacters = [] {
  std::array<bool, 256> is{};
  for (int c = '0'; c <= '9'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) is[static_cast<unsigned char>(c)] = true;
  return is;
}();

constexpr auto kHostCharacters = [] {
  std::array<bool, 256> is{};
  for (int c = '0'; c <= '9'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) is[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("-._~!$&'()*+;=%:[]"))
    is[static_cast<unsigned char>(c)] = true;
  return is;
}();

bool all_of(std::string_view text, const std::array<bool, 256>& is) {
  bool all = !text.empty();
  for (const char c : text) all = all && is[static_cast<unsigned char>(c)];
  return all;
}

// Branch-free, so that the compiler vectorizes it.
bool has_control(std::string_view text) {
  unsigned bad = 0;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    bad |= static_cast<unsigned>(u < 0x20) & static_cast<unsigned>(u != '\t');
    bad |= static_cast<unsigned>(u == 0x7f);
  }
  return bad != 0;
}

// Returns whether all characters are allowed in a target: visible ASCII (RFC 9112), and UTF-8,
// which some clients do not encode. A fragment is never sent.
bool is_request_target(std::string_view text) {
  unsigned bad = text.empty() ? 1 : 0;
  unsigned beyond_ascii = 0;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    bad |= static_cast<unsigned>(u <= 0x20) | static_cast<unsigned>(u == 0x7f) |
           static_cast<unsigned>(u == '#');
    beyond_ascii |= u;
  }
  return bad == 0 && (beyond_ascii < 0x80 || is_utf8(text));
}

// Removes blanks only: a CR here is refused with the other control characters.
std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Reason for refusing a head, and the status for the client.
struct HeadRefusal {
  std::string_view reason;  // empty: none
  int status = 400;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads a Content-Length of at most 18 digits, on whose value all readers with 64 bits agree.
HeadRefusal set_length(MessageHead& head, std::string_view value, bool allow_repeated) {
  if (allow_repeated && value.contains(',')) {
    HeadRefusal refusal;
    for_each_element(value, [&](std::string_view element) {
      if (refusal.reason.empty()) refusal = set_length(head, element, true);
    });
    return refusal;
  }
  if (value.empty() || value.size() > 18) return {"Content-Length is malformed"};
  std::uint64_t length = 0;
  for (const char c : value) {
    if (!is_digit(c)) return {"Content-Length is malformed"};
    length = length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (head.content_length && !(allow_repeated && head.content_length == length)) {
    return {"Content-Length is repeated"};
  }
  head.content_length = length;
  return {};
}

void set_connection(MessageHead& head, std::string_view value) {
  for_each_element(value, [&head](std::string_view option) {
    if (equal_ignoring_case(option, "close")) {
      head.connection_close = true;
    } else if (equal_ignoring_case(option, "keep-alive")) {
      head.connection_keep_alive = true;
    } else if (equal_ignoring_case(option, "upgrade")) {
      head.connection_upgrade = true;
    } else {
      head.connection_lists_fields = true;
    }
  });
}

bool starts_without_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

HeadRefusal set_target(RequestHead& head) {
  auto rest = head.target;
  if (head.method == "CONNECT") {
    head.form = TargetForm::authority;
    head.host = head.target;
    return all_of(head.target, kHostCharacters) ? HeadRefusal{}
                                                : HeadRefusal{"the target is malformed"};
  }
  if (rest == "*") {
    head.form = TargetForm::asterisk;
    return head.method == "OPTIONS" ? HeadRefusal{} : HeadRefusal{"the target must be a path"};
  }
  if (!rest.starts_with('/')) {
    const bool plain = starts_without_case(rest, "http://");
    if (!plain && !starts_without_case(rest, "https://")) return {"the target must be a path"};
    rest.remove_prefix(plain ? 7 : 8);
    head.form = TargetForm::absolute;
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    head.host = rest.substr(0, end);
    rest.remove_prefix(end);
    if (!all_of(head.host, kHostCharacters)) return {"the target's host is malformed"};
  }
  const auto question = rest.find('?');
  head.path = rest.substr(0, question);
  if (head.path.empty()) head.path = "/";
  head.has_query = question != std::string_view::npos;
  if (head.has_query) head.query = rest.substr(question + 1);
  return {};
}

HeadRefusal set_version(MessageHead& head, std::string_view text) {
  // RFC 9112 2.3: one digit, a dot, one digit. Only a version of this form can be an unknown one.
  if (text.size() != 8 || !text.starts_with("HTTP/") || !is_digit(text[5]) || text[6] != '.' ||
      !is_digit(text[7])) {
    return {"the version is malformed"};
  }
  if (text != "HTTP/1.0" && text != "HTTP/1.1") return {"unknown HTTP version", 505};
  head.http_1_1 = text == "HTTP/1.1";
  return {};
}

HeadRefusal read_first_line(RequestHead& head, std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return {"the request line is malformed"};
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  if (!all_of(head.method, kTokenCharacters)) return {"the method is malformed"};
  if (!is_request_target(head.target)) return {"the target is malformed"};
  if (const auto refusal = set_version(head, line.substr(last + 1)); !refusal.reason.empty()) {
    return refusal;
  }
  return set_target(head);
}

HeadRefusal read_first_line(ResponseHead& head, std::string_view line) {
  if (line.size() < 12 || line[8] != ' ') return {"the status line is malformed"};
  if (const auto refusal = set_version(head, line.substr(0, 8)); !refusal.reason.empty()) {
    return refusal;
  }
  for (const char c : line.substr(9, 3)) {
    if (!is_digit(c)) return {"the status is malformed"};
    head.status = head.status * 10 + (c - '0');
  }
  if (head.status < 100) return {"the status is malformed"};
  if (line.size() > 12 && line[12] != ' ') return {"the status line is malformed"};
  head.reason = line.size() > 13 ? line.substr(13) : std::string_view{};
  if (has_control(head.reason)) return {"the status line holds a control character"};
  return {};
}

template <class Head>
constexpr bool is_request = std::is_same_v<Head, RequestHead>;

HeadRefusal set_coding(MessageHead& head, std::string_view value, bool& has_coding) {
  if (has_coding) return {"Transfer-Encoding is repeated"};
  has_coding = true;
  if (!equal_ignoring_case(value, "chunked")) {
    return {"the transfer coding is not supported", 501};
  }
  if (!head.http_1_1) return {"HTTP/1.0 has no transfer codings"};
  head.chunked = true;
  return {};
}

HeadRefusal set_host(RequestHead& head, std::string_view value, int& hosts) {
  if (++hosts > 1) return {"Host is repeated"};
  if (!all_of(value, kHostCharacters)) return {"Host is malformed"};
  if (head.host.empty()) head.host = value;
  return {};
}

HeadRefusal set_expectation(RequestHead& head, std::string_view value) {
  if (!equal_ignoring_case(value, "100-continue")) {
    return {"only Expect: 100-continue is supported", 417};
  }
  head.expects_continue = head.http_1_1;
  return {};
}

// Notes a field that decides about the message. `has_coding` and `hosts` count the fields of one head.
template <class Head>
HeadRefusal set_known(Head& head, const FieldSlice& field, const HeadLimits& limits,
                      bool& has_coding, int& hosts) {
  switch (field.id) {
    case FieldId::content_length:
      return set_length(head, field.value, !is_request<Head> && limits.allow_repeated_length);
    case FieldId::transfer_encoding:
      return set_coding(head, field.value, has_coding);
    case FieldId::connection:
      set_connection(head, field.value);
      return {};
    default:
      break;
  }
  if constexpr (is_request<Head>) {
    if (field.id == FieldId::host) return set_host(head, field.value, hosts);
    if (field.id == FieldId::expect) return set_expectation(head, field.value);
  }
  return {};
}

template <class Head>
std::unexpected<Error> refuse(const HeadRefusal& refusal) {
  return malformed<Head>(refusal.status, refusal.reason);
}

}  // namespace

template <class Head>
std::unexpected<Error> malformed(int status, std::string_view reason) {
  Error error{.code = ErrorCode::protocol,
              .message = (is_request<Head> ? "malformed request: " : "malformed response: ") +
                         std::string(reason)};
  if (is_request<Head>) {
    error.code = status == 400 ? ErrorCode::invalid_data : ErrorCode::unsupported;
    error.http_status = status;
  }
  if (status == 414 || status == 431) error.code = ErrorCode::too_large;
  return std::unexpected(std::move(error));
}
template std::unexpected<Error> malformed<RequestHead>(int, std::string_view);
template std::unexpected<Error> malformed<ResponseHead>(int, std::string_view);

FieldId field_id(std::string_view name) {
  if (name.empty()) return FieldId::other;
  if (name.size() > kForwardedPrefix.size() && lower(name[0]) == 'x') {
    bool same = true;
    for (std::size_t i = 0; i < kForwardedPrefix.size(); ++i) {
      const char c = name[i] == '_' ? '-' : lower(name[i]);
      same = same && c == kForwardedPrefix[i];
    }
    if (same) return FieldId::x_forwarded;
  }
  if (name.size() > kMaxKnownLength) return FieldId::other;
  const auto lengths = kLengthsByLetter[static_cast<unsigned char>(name[0])];
  if ((lengths >> name.size() & 1U) == 0) return FieldId::other;
  for (const auto& known : kKnownFields) {
    if (known.name.size() != name.size() || known.name[0] != lower(name[0])) continue;
    const bool own = known.id == FieldId::x_real_ip || known.id == FieldId::x_request_id;
    bool same = true;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const char c = own && name[i] == '_' ? '-' : lower(name[i]);
      same = same && c == known.name[i];
    }
    if (same) return known.id;
  }
  return FieldId::other;
}

std::optional<std::string_view> MessageHead::find(FieldId id) const {
  for (const auto& field : fields) {
    if (field.id == id) return field.value;
  }
  return std::nullopt;
}

std::optional<std::string_view> MessageHead::find(std::string_view name) const {
  for (const auto& field : fields) {
    if (equal_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

bool MessageHead::connection_lists(std::string_view name) const {
  bool listed = false;
  for (const auto& field : fields) {
    if (field.id != FieldId::connection) continue;
    for_each_element(field.value, [&](std::string_view option) {
      listed = listed || equal_ignoring_case(option, name);
    });
  }
  return listed;
}

bool RequestHead::wants_websocket() const {
  if (!http_1_1 || !connection_upgrade || method != "GET" || has_body()) return false;
  const auto upgrade = find(FieldId::upgrade);
  return upgrade && equal_ignoring_case(*upgrade, "websocket");
}

template <class Head>
void HeadParser<Head>::reset() {
  auto fields = std::move(head_.fields);
  fields.clear();
  head_ = Head{};
  head_.fields = std::move(fields);
  scanned_ = 0;
  first_line_done_ = false;
  transfer_encoding_ = false;
  hosts_ = 0;
}

template <class Head>
Result<std::size_t> HeadParser<Head>::next(std::string_view input) {
  input = input.substr(0, limits_.max_head);
  if (scanned_ == 0 && !input.empty()) {
    // Detects other protocols by their first byte instead of waiting for a line end.
    if (is_request<Head> ? !kTokenCharacters[static_cast<unsigned char>(input[0])]
                         : input[0] != 'H') {
      return refuse<Head>({"it does not start with a method or version"});
    }
  }
  while (true) {
    const int too_long = first_line_done_ || !is_request<Head> ? 431 : 414;
    const auto line_end = input.find('\n', scanned_);
    if (line_end == std::string_view::npos) {
      if (input.size() - scanned_ > limits_.max_line)
        return refuse<Head>({"a line is too long", too_long});
      if (input.size() >= limits_.max_head) return refuse<Head>({"the head is too large", 431});
      return std::size_t{0};
    }
    if (line_end - scanned_ > limits_.max_line)
      return refuse<Head>({"a line is too long", too_long});
    if (line_end == scanned_ || input[line_end - 1] != '\r')
      return refuse<Head>({"a line ends without CR"});
    const auto line = input.substr(scanned_, line_end - 1 - scanned_);
    scanned_ = line_end + 1;

    if (!first_line_done_) {
      if (const auto refusal = read_first_line(head_, line); !refusal.reason.empty()) {
        return refuse<Head>(refusal);
      }
      first_line_done_ = true;
      continue;
    }
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t')
      return refuse<Head>({"a header line is folded"});
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return refuse<Head>({"a header line has no colon"});
    FieldSlice field{.name = line.substr(0, colon), .value = trim(line.substr(colon + 1))};
    if (!all_of(field.name, kTokenCharacters)) return refuse<Head>({"a field name is malformed"});
    if (has_control(field.value)) return refuse<Head>({"a field holds a control character"});
    if (head_.fields.size() >= limits_.max_fields)
      return refuse<Head>({"there are too many fields", 431});
    field.id = field_id(field.name);
    head_.fields.push_back(field);
    if (const auto refusal = set_known(head_, field, limits_, transfer_encoding_, hosts_);
        !refusal.reason.empty()) {
      return refuse<Head>(refusal);
    }
  }
  if (head_.chunked && head_.content_length) {
    return refuse<Head>({"Content-Length and Transfer-Encoding are both given"});
  }
  if constexpr (is_request<Head>) {
    if (head_.http_1_1 && hosts_ == 0) return refuse<Head>({"Host is missing"});
    head_.expects_continue = head_.expects_continue && head_.has_body();
  }
  return scanned_;
}

template class HeadParser<RequestHead>;
template class HeadParser<ResponseHead>;

}  // namespace gitops::http
