#include "common/http/url.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <system_error>
#include <tuple>

#include <boost/asio/ip/address.hpp>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"

namespace gitops::http {
namespace {

std::unexpected<Error> bad(std::string_view why) {
  return fail(ErrorCode::invalid_argument, "invalid URL: " + std::string(why));
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::uint16_t default_port(std::string_view scheme) {
  if (scheme == "socks5" || scheme == "socks5h") return 1080;
  return scheme == "https" || scheme == "wss" ? 443 : 80;
}

// Returns whether the text is four decimal numbers 0..255 without leading zeros.
bool is_ipv4(std::string_view text) {
  int parts = 0;
  while (true) {
    const auto dot = text.find('.');
    const auto part = text.substr(0, dot);
    if (part.empty() || part.size() > 3 || !std::all_of(part.begin(), part.end(), is_digit))
      return false;
    if (part.size() > 1 && part[0] == '0') return false;
    int value = 0;
    std::from_chars(part.data(), part.data() + part.size(), value);
    if (value > 255) return false;
    ++parts;
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  return parts == 4;
}

// Returns whether the text consists of RFC 1123 labels, underscore allowed. A name whose last label
// starts with a digit must be an IPv4 literal: resolvers read "0x7f.1", "127.1" or "2130706433" as
// addresses.
bool is_host_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);  // fully qualified
  if (text.empty() || text.size() > 253) return false;
  std::string_view label;
  std::string_view rest = text;
  while (true) {
    const auto dot = rest.find('.');
    label = rest.substr(0, dot);
    if (label.empty() || label.size() > 63) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    if (!std::all_of(label.begin(), label.end(),
                     [](char c) { return is_alnum(c) || c == '-' || c == '_'; })) {
      return false;
    }
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  const bool numeric = std::all_of(label.begin(), label.end(), is_digit);
  const bool hexadecimal = label.size() >= 2 && label[0] == '0' &&
                           (label[1] == 'x' || label[1] == 'X') &&
                           std::all_of(label.begin() + 2, label.end(), is_hex);
  return !numeric && !hexadecimal;
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.size() > 5 || ec != std::errc{} || end != text.data() + text.size() ||
      value == 0 || value > 65535) {
    return fail(ErrorCode::invalid_argument, "the port must be a number from 1 to 65535");
  }
  return static_cast<std::uint16_t>(value);
}

// Returns the host without brackets, in lower case.
Result<std::string> parse_host(std::string_view text, bool bracketed) {
  if (bracketed) {
    boost::system::error_code ec;
    const auto address = boost::asio::ip::make_address_v6(std::string(text), ec);
    if (ec || text.contains('%')) {
      return fail(ErrorCode::invalid_argument, "the IPv6 address is malformed or has a zone");
    }
    return address.to_string();
  }
  if (text.empty()) return fail(ErrorCode::invalid_argument, "the host is missing");
  if (!is_ipv4(text) && !is_host_name(text)) {
    return fail(ErrorCode::invalid_argument, "the host is not a host name or IP address");
  }
  return to_lower(text);
}

std::string with_brackets(const std::string& host) {
  return host.contains(':') ? "[" + host + "]" : host;
}

// Parses a URL with one of these schemes.
Result<Url> parse(std::string_view text, std::initializer_list<std::string_view> schemes,
                  std::string_view wrong_scheme) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f) {
      return bad("it holds a space, a control character or a character beyond ASCII");
    }
    if (c == '\\') return bad("it holds a backslash");
    if (c == '#') return bad("it holds a fragment");
  }
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return bad("the scheme is missing");
  Url url;
  url.scheme = to_lower(text.substr(0, scheme_end));
  if (std::ranges::find(schemes, url.scheme) == schemes.end()) return bad(wrong_scheme);
  text.remove_prefix(scheme_end + 3);

  const auto authority_end = text.find_first_of("/?");
  auto authority = text.substr(0, authority_end);
  const auto rest =
      authority_end == std::string_view::npos ? std::string_view{} : text.substr(authority_end);
  if (const auto at = authority.find('@'); at != std::string_view::npos) {
    url.userinfo = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    if (url.userinfo.empty()) return bad("the user name is empty");
    if (authority.contains('@')) return bad("it holds more than one '@'");
    if (!percent_decode(url.userinfo)) return bad("the user name or password is badly encoded");
  }
  auto host_port = parse_host_port(authority, default_port(url.scheme));
  if (!host_port) return bad(host_port.error().message);
  std::tie(url.host, url.port) = std::move(*host_port);

  const auto question = rest.find('?');
  url.path = rest.substr(0, question);
  if (question != std::string_view::npos) url.query = rest.substr(question + 1);
  return url;
}

bool is_escape(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && is_hex(text[1]) && is_hex(text[2]);
}

// Returns the user name and password of a proxy, as people write them, with all characters encoded
// that a URL cannot contain.
Result<std::string> encoded_userinfo(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte <= 0x20 || byte == 0x7f) {
      return bad("the user name or password holds a space or a control character");
    }
    const bool stays = is_alnum(text[i]) || text[i] == ':' || is_escape(text.substr(i));
    out += stays ? std::string(1, text[i]) : percent_encode(text.substr(i, 1));
  }
  return out;
}

}  // namespace

std::string Url::host_header() const {
  std::string out = with_brackets(host);
  if (port != default_port(scheme)) out += ":" + std::to_string(port);
  return out;
}

std::string Url::to_string() const {
  std::string out = scheme + "://" + host_header() + path;
  if (!query.empty()) out += "?" + query;
  return out;
}

Result<Url> parse_url(std::string_view text) {
  return parse(text, {"http", "https", "ws", "wss"}, "the scheme must be http, https, ws or wss");
}

Result<Url> parse_proxy_url(std::string_view text) {
  text = trimmed(text);
  const auto scheme_end = text.find("://");
  const auto begin = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
  const auto authority = text.substr(begin, text.substr(begin).find_first_of("/?#"));
  const auto at = authority.rfind('@');
  std::string without_user(text.substr(0, begin));
  without_user += text.substr(begin + (at == std::string_view::npos ? 0 : at + 1));
  auto url = parse(without_user, {"http", "https", "socks5", "socks5h"},
                   "the scheme must be http, https, socks5 or socks5h");
  if (!url || at == std::string_view::npos) return url;
  auto userinfo = encoded_userinfo(authority.substr(0, at));
  if (!userinfo) return std::unexpected(std::move(userinfo.error()));
  url->userinfo = std::move(*userinfo);
  return url;
}

std::string join_target(const Url& base, std::string_view path) {
  std::string_view prefix = base.path;
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  std::string target(prefix);
  target += path;
  if (target.empty()) target = "/";
  return target;
}

std::string query_string(const std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out += '&';
    out += percent_encode(name);
    out += '=';
    out += percent_encode(value);
  }
  return out;
}

std::string query_parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    std::string value(pair.substr(equals + 1));
    std::ranges::replace(value, '+', ' ');
    return percent_decode(value).value_or(std::string());
  }
  return {};
}

Result<std::pair<std::string, std::uint16_t>> parse_host_port(std::string_view text,
                                                              std::uint16_t default_port) {
  const bool bracketed = text.starts_with('[');
  std::string_view host;
  std::string_view after;
  if (bracketed) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) {
      return fail(ErrorCode::invalid_argument, "the IPv6 address lacks its closing bracket");
    }
    host = text.substr(1, close - 1);
    after = text.substr(close + 1);
  } else {
    const auto colon = text.find(':');
    host = text.substr(0, colon);
    if (colon != std::string_view::npos) after = text.substr(colon);
  }
  auto parsed_host = parse_host(host, bracketed);
  if (!parsed_host) return std::unexpected(parsed_host.error());
  std::uint16_t port = default_port;
  if (!after.empty()) {
    if (after.front() != ':')
      return fail(ErrorCode::invalid_argument, "text follows the IPv6 address");
    const auto parsed_port = parse_port(after.substr(1));
    if (!parsed_port) return std::unexpected(parsed_port.error());
    port = *parsed_port;
  }
  return std::pair{std::move(*parsed_host), port};
}

}  // namespace gitops::http
