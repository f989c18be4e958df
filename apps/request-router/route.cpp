#include "request-router/route.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/core/encoding.hpp"

namespace gitops::router {
namespace {

// Decodes the escape at `at`; returns nothing if it is malformed.
std::optional<unsigned char> escaped(std::string_view text, std::size_t at) {
  if (at + 2 >= text.size()) return std::nullopt;
  const int high = hex_value(text[at + 1]);
  const int low = hex_value(text[at + 2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

// Returns whether the character is unreserved (RFC 3986 section 2.3): its escape is equivalent to
// itself.
bool is_unreserved(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// Returns the path with the escapes of unreserved characters decoded; nothing if an escape is
// malformed or is a control character.
std::optional<std::string> normalised(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      out += path[i];
      continue;
    }
    const auto byte = escaped(path, i);
    if (!byte || *byte < 0x20 || *byte == 0x7f) return std::nullopt;
    if (is_unreserved(*byte)) {
      out += static_cast<char>(*byte);
    } else {
      out.append(path.substr(i, 3));
    }
    i += 2;
  }
  return out;
}

// Takes the next segment off `rest`, which begins with a slash.
std::string_view take_segment(std::string_view& rest) {
  rest.remove_prefix(1);
  const auto end = std::min(rest.find('/'), rest.size());
  const auto segment = rest.substr(0, end);
  rest.remove_prefix(end);
  return segment;
}

bool is_dots(std::string_view text) {
  return text == "." || text == "..";
}

bool has_dot_segment(std::string_view path) {
  for (auto rest = path; !rest.empty();) {
    if (is_dots(take_segment(rest))) return true;
  }
  return false;
}

// Returns whether a server that decodes more than the router, or drops parameters, would see a dot
// segment.
bool hides_dot_segment(std::string_view segment) {
  if (is_dots(segment)) return false;  // a plain one
  std::string plain;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const auto byte = segment[i] == '%' ? escaped(segment, i) : std::nullopt;
    char c = segment[i];
    if (byte) {
      c = static_cast<char>(*byte);
      i += 2;
    }
    if (c != '/' && c != '\\') {
      plain += c;
      continue;
    }
    if (is_dots(plain.substr(0, plain.find(';')))) return true;
    plain.clear();
  }
  return is_dots(plain.substr(0, plain.find(';')));
}

bool hides_dot_segments(std::string_view path) {
  if (path.find_first_of("%;") == std::string_view::npos) return false;
  for (auto rest = path; !rest.empty();) {
    if (hides_dot_segment(take_segment(rest))) return true;
  }
  return false;
}

// Resolves plain dot segments. Returns nothing if they leave the path's root.
std::optional<std::string> without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  for (auto rest = path; !rest.empty();) {
    const auto segment = take_segment(rest);
    if (!is_dots(segment)) {
      kept.push_back(segment);
      continue;
    }
    if (segment == "..") {
      if (kept.empty()) return std::nullopt;
      kept.pop_back();
    }
    if (rest.empty()) kept.emplace_back();  // the path is that of a folder
  }
  std::string out;
  for (const auto segment : kept) out.append("/").append(segment);
  return out;
}

RouteMatch refused(int status, std::string_view reason) {
  RouteMatch match;
  match.status = status;
  match.reason = reason;
  return match;
}

RouteMatch refused_path() {
  return refused(400, "the path is ambiguous or malformed");
}

// Forwards `path`, which is a part of the received target unless it was `changed`.
void set_target(RouteMatch& match, const http::RequestHead& head, std::string_view path,
                bool changed) {
  if (!changed && head.form == http::TargetForm::origin) {
    const auto offset = static_cast<std::size_t>(path.data() - head.target.data());
    match.target = head.target.substr(offset);
    return;
  }
  match.rewritten = path;
  if (head.has_query) match.rewritten.append("?").append(head.query);
}

RouteMatch match_webhook(const http::RequestHead& head, std::string_view path, bool changed) {
  if (has_dot_segment(head.path)) return refused_path();
  // Reads the labels from the received path.
  auto raw = head.path;
  take_segment(raw);
  RouteMatch match;
  match.reason = "no such webhook";
  if (raw.empty()) return match;
  match.ns = take_segment(raw);
  if (raw.empty() || !is_dns_label(match.ns)) return match;
  match.event_source = take_segment(raw);
  if (!is_dns_label(match.event_source)) return match;
  if (!normalised(head.path) || hides_dot_segments(raw)) return refused_path();
  match.kind = RouteKind::webhook;
  set_target(match, head, path, changed);
  return match;
}

RouteMatch match_workflows(const http::RequestHead& head, std::string_view path, bool changed) {
  RouteMatch match;
  constexpr std::string_view kPrefix = "/workflows";
  if (path == kPrefix) {
    match.kind = RouteKind::workflows_redirect;
    match.rewritten = "/workflows/";
    if (head.has_query) match.rewritten.append("?").append(head.query);
    return match;
  }
  match.kind = RouteKind::workflows;
  auto inner = path.substr(kPrefix.size());
  if (!has_dot_segment(inner)) {
    set_target(match, head, inner, changed);
    return match;
  }
  const auto resolved = without_dots(inner);
  if (!resolved) return refused_path();
  set_target(match, head, *resolved, true);
  return match;
}

}  // namespace

bool is_dns_label(std::string_view text) {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'; });
}

RouteMatch match_route(const http::RequestHead& head) {
  if (head.method == "TRACE" || head.method == "CONNECT") {
    return refused(405, "the method is not allowed");
  }
  if (head.form == http::TargetForm::asterisk) return refused(400, "the target must be a path");
  if (head.path.contains('\\')) return refused_path();

  // Matches webhooks by their received labels before decoding the rest.
  std::string decoded;
  auto path = head.path;
  bool changed = false;
  bool malformed = false;
  if (path.contains('%')) {
    if (auto clean = normalised(path)) {
      decoded = std::move(*clean);
      changed = decoded != path;
      if (changed) path = decoded;
    } else {
      malformed = true;
    }
  }
  auto rest = path;
  const auto first = take_segment(rest);
  if (first == "webhooks") return match_webhook(head, path, changed);
  if (malformed || hides_dot_segments(head.path)) return refused_path();
  if (first == "workflows") return match_workflows(head, path, changed);
  if (has_dot_segment(path)) return refused_path();

  RouteMatch match;
  if (first == "app-proxy") {
    match.kind = RouteKind::app_proxy;
    set_target(match, head, path, changed);
  } else if (path == "/healthz" || path == "/readyz") {
    match.kind = path == "/healthz" ? RouteKind::health : RouteKind::ready;
    if (head.method != "GET" && head.method != "HEAD") {
      match.status = 405;
      match.reason = "only GET and HEAD are allowed";
    }
  } else {
    match.reason = "no such route";
  }
  return match;
}

}  // namespace gitops::router
