#include "common/http/wire_text.hpp"

#include <array>
#include <charconv>

#include "common/core/encoding.hpp"

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

std::string host_port(const Url& url) {
  const std::string host = url.host.contains(':') ? "[" + url.host + "]" : url.host;
  return host + ":" + std::to_string(url.port);
}

Result<std::string> basic_credentials(const std::string& userinfo) {
  const auto colon = userinfo.find(':');
  auto user = percent_decode(userinfo.substr(0, colon));
  auto password = colon == std::string::npos ? Result<std::string>("")
                                             : percent_decode(userinfo.substr(colon + 1));
  if (!user || !password)
    return fail(ErrorCode::invalid_argument, "the proxy's user name or password is badly encoded");
  return "Basic " + base64_encode(*user + ":" + *password);
}

}  // namespace gitops::http
