#include "common/http/wire_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "common/core/encoding.hpp"
#include "common/http/head.hpp"

namespace gitops::http {

void append_number(std::string& out, std::uint64_t number, int base) {
  std::array<char, 24> digits;
  const auto [end, ec] = std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
  out.append(digits.data(), end);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_field(std::string& out, std::string_view name, std::uint64_t value) {
  out.append(name).append(": ");
  append_number(out, value);
  out.append("\r\n");
}

std::string joined_values(const Headers& headers, std::string_view name) {
  std::string all;
  bool is_first = true;
  for (const auto& [field, value] : headers) {
    if (!equal_ignoring_case(field, name)) continue;
    if (!is_first) all.append(", ");
    all.append(value);
    is_first = false;
  }
  return all;
}

std::optional<std::chrono::seconds> keep_alive_timeout(std::string_view field) {
  std::optional<std::chrono::seconds> timeout;
  constexpr std::string_view kName = "timeout=";
  for_each_element(field, [&](std::string_view element) {
    if (!equal_ignoring_case(element.substr(0, kName.size()), kName)) return;
    std::uint32_t seconds = 0;
    const auto digits = element.substr(kName.size());
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), seconds);
    if (error == std::errc{} && end == digits.end()) timeout = std::chrono::seconds(seconds);
  });
  return timeout;
}

void append_target(std::string& out, std::string_view target) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  while (!target.empty()) {
    const auto plain =
        static_cast<std::size_t>(std::ranges::find_if_not(target, is_ascii) - target.begin());
    out.append(target.substr(0, plain));
    target.remove_prefix(plain);
    if (target.empty()) return;
    out.append(percent_encode(target.substr(0, 1)));
    target.remove_prefix(1);
  }
}

std::string_view DateField::now() {
  const std::time_t second = std::time(nullptr);
  if (second != second_) {
    std::tm parts{};
    ::gmtime_r(&second, &parts);
    std::array<char, 40> text;
    static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const int size = std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                   kDays.at(static_cast<std::size_t>(parts.tm_wday)), parts.tm_mday,
                                   kMonths.at(static_cast<std::size_t>(parts.tm_mon)),
                                   parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    text_.assign(text.data(), static_cast<std::size_t>(size));
    second_ = second;
  }
  return text_;
}

std::string host_port(const Url& url) {
  const std::string host = url.host.contains(':') ? "[" + url.host + "]" : url.host;
  return host + ":" + std::to_string(url.port);
}

Result<std::pair<std::string, std::string>> split_userinfo(const std::string& userinfo) {
  const auto colon = userinfo.find(':');
  auto user = percent_decode(userinfo.substr(0, colon));
  auto password = colon == std::string::npos ? Result<std::string>("")
                                             : percent_decode(userinfo.substr(colon + 1));
  if (!user || !password)
    return fail(ErrorCode::invalid_argument, "the proxy's user name or password is badly encoded");
  return std::pair(std::move(*user), std::move(*password));
}

Result<std::string> basic_credentials(const std::string& userinfo) {
  auto credentials = split_userinfo(userinfo);
  if (!credentials) return std::unexpected(credentials.error());
  return "Basic " + base64_encode(credentials->first + ":" + credentials->second);
}

}  // namespace gitops::http
