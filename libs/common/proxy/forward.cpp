#include "common/proxy/forward.hpp"

#include "common/http/message.hpp"
#include "common/http/wire_text.hpp"
#include "common/net/address_list.hpp"

namespace gitops::proxy {
namespace {

// Returns whether a field is hop-by-hop (RFC 9110 section 7.6.1) or rewritten.
bool stays_behind(http::FieldId id) {
  switch (id) {
    case http::FieldId::connection:
    case http::FieldId::keep_alive:
    case http::FieldId::proxy_connection:
    case http::FieldId::te:
    case http::FieldId::trailer:
    case http::FieldId::transfer_encoding:
    case http::FieldId::upgrade:
    case http::FieldId::http2_settings:
    case http::FieldId::content_length:
      return true;
    default:
      return false;
  }
}

// Returns whether a Connection field must not remove this field.
bool is_protected(http::FieldId id) {
  switch (id) {
    case http::FieldId::authorization:
    case http::FieldId::content_encoding:
    case http::FieldId::content_type:
    case http::FieldId::cookie:
    case http::FieldId::forwarded:
    case http::FieldId::host:
    case http::FieldId::origin:
    case http::FieldId::x_forwarded:
    case http::FieldId::x_real_ip:
    case http::FieldId::x_request_id:
      return true;
    default:
      return false;
  }
}

void append_framing(std::string& out, const BodyFraming& framing) {
  if (framing.kind == BodyFraming::Kind::length) {
    http::append_field(out, "Content-Length", framing.length);
  } else if (framing.kind == BodyFraming::Kind::chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
}

bool is_name(const http::FieldSlice& field, std::string_view name) {
  return http::equal_ignoring_case(field.name, name);
}

// The X-Forwarded-* fields of the forwarded request.
struct Forwarding {
  std::string_view addresses;  // the first X-Forwarded-For
  std::string_view scheme;
  std::string_view host;
};

void append_forwarding(std::string& out, const http::RequestHead& head, const RequestEdits& edits) {
  out.append("X-Forwarded-For: ");
  std::string_view scheme;
  std::string_view host;
  if (edits.trusted_peer) {
    for (const auto& field : head.fields) {
      if (field.id != http::FieldId::x_forwarded || field.value.empty()) continue;
      if (is_name(field, "X-Forwarded-For")) {
        out.append(field.value).append(", ");
      } else if (is_name(field, "X-Forwarded-Proto") && scheme.empty()) {
        scheme = field.value;
      } else if (is_name(field, "X-Forwarded-Host") && host.empty()) {
        host = field.value;
      }
    }
  }
  out.append(edits.client).append("\r\n");
  http::append_field(out, "X-Forwarded-Proto", scheme.empty() ? edits.scheme : scheme);
  if (host.empty()) host = head.host;
  if (!host.empty()) http::append_field(out, "X-Forwarded-Host", host);
}

// Returns whether another X-Forwarded-* field of a trusted peer (-Port, -Prefix, …) is forwarded.
bool is_other_forwarding(const http::FieldSlice& field) {
  return !field.name.contains('_') && !is_name(field, "X-Forwarded-For") &&
         !is_name(field, "X-Forwarded-Proto") && !is_name(field, "X-Forwarded-Host");
}

bool goes_on(const http::FieldSlice& field, const http::RequestHead& head,
             const RequestEdits& edits) {
  if (stays_behind(field.id)) return false;
  switch (field.id) {
    case http::FieldId::host:
    case http::FieldId::expect:
    case http::FieldId::proxy_authorization:
    case http::FieldId::x_request_id:
      return false;
    case http::FieldId::traceparent:
      return edits.traceparent.empty();
    case http::FieldId::x_forwarded:
      return edits.trusted_peer && is_other_forwarding(field);
    case http::FieldId::forwarded:
    case http::FieldId::x_real_ip:
      return edits.trusted_peer && !field.name.contains('_');
    default:
      break;
  }
  return !head.connection_lists_fields || is_protected(field.id) ||
         !head.connection_lists(field.name);
}

// Returns whether the value is a path without host that clients would not find below `prefix`.
bool lacks_prefix(std::string_view value, std::string_view prefix) {
  if (prefix.empty() || !value.starts_with('/') || value.starts_with("//")) return false;
  if (!value.starts_with(prefix)) return true;
  const auto rest = value.substr(prefix.size());
  return !rest.empty() && std::string_view("/?#").find(rest.front()) == std::string_view::npos;
}

// Returns whether clients take this reference for another host: "//host". Clients read a backslash
// as a slash and drop tabs.
bool names_host(std::string_view reference) {
  int slashes = 0;
  for (const char c : reference) {
    if (c == '\t') continue;
    if (c != '/' && c != '\\') return false;
    if (++slashes == 2) return true;
  }
  return false;
}

void append_location(std::string& out, const http::FieldSlice& field, const AnswerEdits& edits) {
  auto value = field.value;
  const auto origin = edits.own_origin;
  const bool own =
      !origin.empty() && value.size() >= origin.size() &&
      http::equal_ignoring_case(value.substr(0, origin.size()), origin) &&
      (value.size() == origin.size() || value[origin.size()] == '/' || value[origin.size()] == '?');
  out.append(field.name).append(": ");
  if (own) {
    value.remove_prefix(origin.size());
    out.append(edits.location_prefix);
    if (!value.starts_with('/')) out.append("/");
    // Keeps the path for the client, but without "//" at its begin (RFC 3986 section 4.2).
    if (edits.location_prefix.empty() && names_host(value)) out.append("/.");
  } else if (lacks_prefix(value, edits.location_prefix)) {
    out.append(edits.location_prefix);
  }
  out.append(value).append("\r\n");
}

void append_etag(std::string& out, std::string_view value) {
  if (!value.starts_with("W/"))
    out.append("ETag: W/").append(value).append("\r\n");
  else
    http::append_field(out, "ETag", value);
}

// Handles a field of a response that the proxy compresses. Returns false if it needs no change.
bool append_compressed(std::string& out, const http::FieldSlice& field) {
  if (field.id == http::FieldId::etag) {
    append_etag(out, field.value);
    return true;
  }
  return is_name(field, "Accept-Ranges") || is_name(field, "Content-MD5") ||
         is_name(field, "Digest");
}

}  // namespace

void append_forwarded_request(std::string& out, const http::RequestHead& head,
                              const RequestEdits& edits, const BodyFraming& framing) {
  out.append(head.method).append(" ");
  http::append_target(out, edits.target);
  out.append(" HTTP/1.1\r\n");
  http::append_field(out, "Host", edits.host);
  for (const auto& field : head.fields) {
    if (goes_on(field, head, edits)) http::append_field(out, field.name, field.value);
  }
  append_forwarding(out, head, edits);
  http::append_field(out, "X-Request-Id", edits.request_id);
  if (!edits.traceparent.empty()) http::append_field(out, "traceparent", edits.traceparent);
  append_framing(out, framing);
  if (edits.websocket) out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n");
  out.append("\r\n");
}

std::vector<std::string_view> forwarded_hops(const http::RequestHead& head) {
  std::vector<std::string_view> hops;
  for (const auto& field : head.fields) {
    if (!http::equal_ignoring_case(field.name, "X-Forwarded-For")) continue;
    http::for_each_element(
        field.value, [&hops](std::string_view hop) { hops.push_back(net::hop_address(hop)); });
  }
  return hops;
}

void append_forwarded_answer(std::string& out, const http::ResponseHead& head,
                             const AnswerEdits& edits, const BodyFraming& framing) {
  out.append("HTTP/1.1 ");
  http::append_number(out, static_cast<std::uint64_t>(head.status));
  out.append(" ").append(head.reason).append("\r\n");
  bool length_sent = false;
  for (const auto& field : head.fields) {
    // A response without a body may still state the length that it would have.
    if (field.id == http::FieldId::content_length && framing.kind == BodyFraming::Kind::none &&
        !length_sent && head.status != 204 && head.status >= 200 && !edits.gzip) {
      http::append_field(out, field.name, field.value);
      length_sent = true;
      continue;
    }
    if (stays_behind(field.id)) continue;
    if (field.id == http::FieldId::x_request_id && !edits.request_id.empty()) continue;
    if (head.connection_lists_fields && !is_protected(field.id) &&
        head.connection_lists(field.name)) {
      continue;
    }
    if (field.id == http::FieldId::location) {
      append_location(out, field, edits);
    } else if (!edits.gzip || !append_compressed(out, field)) {
      http::append_field(out, field.name, field.value);
    }
  }
  if (!edits.request_id.empty()) http::append_field(out, "X-Request-Id", edits.request_id);
  if (edits.gzip) out.append("Content-Encoding: gzip\r\n");
  if (edits.gzip_varies) out.append("Vary: Accept-Encoding\r\n");
  append_framing(out, framing);
  if (edits.websocket) {
    out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n");
  } else if (!edits.keep_alive || framing.kind == BodyFraming::Kind::until_close) {
    out.append("Connection: close\r\n");
  } else if (!edits.client_http_1_1) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

std::string forwarded_trailers(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const auto end = lines.find("\r\n");
    const auto line = lines.substr(0, end);
    const auto id = http::field_id(line.substr(0, line.find(':')));
    if (id == http::FieldId::other || id == http::FieldId::etag) out.append(line).append("\r\n");
    if (end == std::string_view::npos) break;
    lines.remove_prefix(end + 2);
  }
  return out;
}

BodyFraming request_framing(const http::RequestHead& head) {
  if (head.chunked) return {.kind = BodyFraming::Kind::chunked};
  if (head.content_length) {
    return {.kind = BodyFraming::Kind::length, .length = *head.content_length};
  }
  return {};
}

AnswerBody answer_body(const http::ResponseHead& head, std::string_view method,
                       bool client_http_1_1, bool gzip) {
  using Kind = BodyFraming::Kind;
  AnswerBody body;
  if (method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304) {
    return body;
  }
  if (head.chunked) {
    body.in.kind = Kind::chunked;
  } else if (head.content_length) {
    body.in = {.kind = Kind::length, .length = *head.content_length};
  } else {
    body.in.kind = Kind::until_close;
  }
  if (body.in.kind == Kind::length && !gzip) {
    body.out = body.in;
  } else {
    body.out.kind = client_http_1_1 ? Kind::chunked : Kind::until_close;
  }
  return body;
}

}  // namespace gitops::proxy
