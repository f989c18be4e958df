#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/error.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

// Parts of HTTP/1.1 heads on the wire. The functions do not validate their arguments.
namespace gitops::http {

// Returns an ASCII letter in lower case, and any other character as it is.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

void append_number(std::string& out, std::uint64_t number, int base = 10);

// Appends "name: value" and the line end.
void append_field(std::string& out, std::string_view name, std::string_view value);
void append_field(std::string& out, std::string_view name, std::uint64_t value);

// Returns the values of all fields of that name in their order, joined by commas: the value of a
// list whose members several proxies have added as fields of their own.
std::string joined_values(const Headers& headers, std::string_view name);

// Returns the time for which the sender of a Keep-Alive field keeps an idle connection: "timeout=N"
// (RFC 2068 section 19.7.1.1).
std::optional<std::chrono::seconds> keep_alive_timeout(std::string_view field);

// Appends a request's target. Percent-encodes bytes beyond ASCII, since some clients send them raw.
void append_target(std::string& out, std::string_view target);

// Value of the Date field, formatted once per second.
class DateField {
 public:
  std::string_view now();

 private:
  std::time_t second_ = 0;
  std::string text_;
};

// Returns "host:port", with brackets around IPv6: the target of CONNECT, and the name of a peer in
// errors.
std::string host_port(const Url& url);

// Returns the decoded user name and password of a userinfo. Fails if it is malformed.
Result<std::pair<std::string, std::string>> split_userinfo(const std::string& userinfo);
// Returns the value of Proxy-Authorization for a proxy's userinfo. Fails if it is malformed.
Result<std::string> basic_credentials(const std::string& userinfo);

}  // namespace gitops::http
