#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/http/url.hpp"
#include "e2e/app_proxy_harness.hpp"

namespace gitops::test {

// A browser that reaches app-proxy by its public address, as far as a login at a Git host needs one:
// it sends a form, keeps the cookie and goes where pages lead it.
class LoginBrowser {
 public:
  using Answer = AppProxyHarness::Answer;
  using Fields = std::vector<std::pair<std::string_view, std::string_view>>;
  static constexpr const char* kAddress = "https://runtime.example.test";

  explicit LoginBrowser(AppProxyHarness& harness) : world_(harness) {}

  // A path, or an address of the runtime.
  Task<Answer> open(std::string address, http::Headers headers = {}) {
    if (address.starts_with(kAddress)) address.erase(0, std::string_view(kAddress).size());
    if (!cookie.empty()) headers.add("Cookie", "theme=dark; " + cookie);
    auto answer =
        co_await world_.send({.target = std::move(address), .headers = std::move(headers)});
    keep(answer);
    co_return answer;
  }
  // The form of the page at that path, as the page itself sends it.
  Task<Answer> submit(std::string path, Fields fields) {
    http::Headers headers;
    headers.add("Origin", kAddress);
    co_return co_await submit_with(std::move(path), std::move(fields), std::move(headers));
  }
  Task<Answer> submit_with(std::string path, Fields fields, http::Headers headers) {
    headers.add("Content-Type", "application/x-www-form-urlencoded");
    http::Request request{.method = "POST",
                          .target = std::move(path),
                          .headers = std::move(headers),
                          .body = http::query_string(fields)};
    auto answer = co_await world_.send(std::move(request));
    keep(answer);
    co_return answer;
  }
  // Where a page leads on to; empty when it does not.
  static std::string onward(const Answer& answer) {
    constexpr std::string_view kBegin = "content=\"0;url=";
    const auto begin = answer.body.find(kBegin);
    if (begin == std::string::npos) return {};
    const auto start = begin + kBegin.size();
    std::string address = answer.body.substr(start, answer.body.find('"', start) - start);
    constexpr std::string_view kAnd = "&amp;";
    for (auto at = address.find(kAnd); at != std::string::npos; at = address.find(kAnd)) {
      address.replace(at, kAnd.size(), "&");
    }
    return address;
  }

  std::string cookie;      // "name=value"; the one that was set last
  std::string set_cookie;  // the whole field of it

 private:
  void keep(const Answer& answer) {
    const auto set = answer.headers.find("Set-Cookie");
    if (!set) return;
    set_cookie = *set;
    cookie = set->substr(0, set->find(';'));
  }

  AppProxyHarness& world_;
};

}  // namespace gitops::test
