#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/error.hpp"
#include "common/http/url.hpp"

// Pieces of HTTP/1.1 heads as they are written; nothing is checked here.
namespace gitops::http {

void append_number(std::string& out, std::uint64_t number, int base = 10);

// "name: value" and the line end.
void append_field(std::string& out, std::string_view name, std::string_view value);
void append_field(std::string& out, std::string_view name, std::uint64_t value);

// A request's target; what lies beyond ASCII is percent-encoded, since some clients send it raw.
void append_target(std::string& out, std::string_view target);

// The value of the Date field, made once per second.
class DateField {
 public:
  std::string_view now();

 private:
  std::time_t second_ = 0;
  std::string text_;
};

// "host:port", brackets around IPv6; the target of CONNECT, and how errors name a peer.
std::string host_port(const Url& url);

// User name and password of a userinfo, decoded; fails when it is badly encoded.
Result<std::pair<std::string, std::string>> split_userinfo(const std::string& userinfo);
// The value of Proxy-Authorization for a proxy's userinfo; fails when that is badly encoded.
Result<std::string> basic_credentials(const std::string& userinfo);

}  // namespace gitops::http
