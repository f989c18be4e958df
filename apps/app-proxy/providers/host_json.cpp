#include "app-proxy/providers/host_json.hpp"

#include <algorithm>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/time.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxText = 64UL * 1024;
constexpr std::size_t kMaxUrl = 4UL * 1024;

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

}  // namespace

Result<HostJson> HostJson::parse(std::string_view text, Expect expect) {
  HostJson out;
  const auto root = out.parser_.parse(text, "answer");
  if (!root) return fail(ErrorCode::invalid_data, "no JSON");
  const bool fits = expect == Expect::object ? root->is_object() : root->is_array();
  if (!fits) {
    return fail(ErrorCode::invalid_data,
                expect == Expect::object ? "no JSON object" : "no JSON array");
  }
  out.root_ = *root;
  return out;
}

std::string host_text(JsonView value) {
  auto text = value.text();
  if (text.size() > kMaxText) {
    text = text.substr(0, kMaxText);
    // Keeps UTF-8 characters whole.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
      text.remove_suffix(1);
    }
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.remove_suffix(1);
  }
  return std::string(text);
}

std::string host_id(JsonView value) {
  if (!value.text().empty()) return host_text(value);
  if (value.is_integer()) return std::to_string(value.number());
  return {};
}

std::string host_url(JsonView value) {
  const auto text = value.text();
  if (text.empty() || text.size() > kMaxUrl) return {};
  auto url = http::parse_url(text);
  if (!url || (url->scheme != "https" && url->scheme != "http")) return {};
  return url->to_string();
}

std::string host_ssh_url(JsonView value) {
  const auto text = value.text();
  if (text.empty() || text.size() > kMaxUrl || !is_printable(text) || text.starts_with('-')) {
    return {};
  }
  const bool is_ssh = text.starts_with("ssh://");
  const auto at = text.find('@');
  const auto colon = text.find(':');
  const bool is_scp = !text.contains("://") && at != std::string_view::npos && at > 0 &&
                      colon != std::string_view::npos && at < colon;
  return is_ssh || is_scp ? std::string(text) : std::string();
}

std::string host_time(JsonView value) {
  if (const auto text = value.text(); !text.empty()) {
    return parse_rfc3339(text) ? std::string(text) : std::string();
  }
  const auto millis = value.number();
  if (millis <= 0 || millis > 253'402'300'799'000) return {};  // after the year 9999
  return format_rfc3339(WallTime(std::chrono::milliseconds(millis)));
}

std::string host_mail(JsonView value) {
  const auto text = value.text();
  const auto at = text.find('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size() || text.size() > 254) {
    return {};
  }
  if (!is_printable(text) || text.contains('<') || text.contains('>')) return {};
  return std::string(text);
}

std::string no_reply_mail(std::string_view id, std::string_view login, std::string_view host) {
  std::string out(id);
  if (!out.empty()) out += '+';
  for (const char c : login) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) out += c;
  }
  if (out.empty()) out = "user";
  return out + "@users.noreply." + std::string(host);
}

std::string blob_id(std::string_view content) {
  std::string object = "blob " + std::to_string(content.size());
  object += '\0';
  object += content;
  return hex_encode(bytes_of(sha1(object)));
}

std::string encode_path(std::string_view path) {
  std::string out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (begin > 0) out += '/';
    out += percent_encode(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace gitops::app_proxy
