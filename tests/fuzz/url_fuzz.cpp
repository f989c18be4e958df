// URLs, host:port pairs and NO_PROXY lists from anywhere. What is accepted must read back as the
// same, and must not hold anything that could mean another host or another header.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/core/encoding.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/url.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::http;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto url = parse_url(text)) {
    require(url->port != 0);
    require(!url->host.empty() && url->host.size() <= 254);
    require(url->host.find_first_of(" \t\r\n/?#@\\%[]\"<>,") == std::string::npos);
    require(url->path.empty() || url->path.front() == '/');
    require((url->path + url->query + url->userinfo).find_first_of(" \t\r\n#\\") ==
            std::string::npos);
    const auto again = parse_url(url->to_string());
    require(again.has_value());
    require(again->to_string() == url->to_string());
    require(again->host == url->host && again->port == url->port && again->scheme == url->scheme);
    require(again->path == url->path && again->query == url->query && again->userinfo.empty());
    require(join_target(*url, "/x").front() == '/');

    const auto split = text.find('/');
    ProxySettings settings;
    settings.http = settings.https = *url;
    settings.no_proxy = {text, text.substr(0, split), url->host};
    require(settings.proxy_for(*url).value() == nullptr);
  }
  if (const auto url = parse_proxy_url(text)) {
    require(url->host.find_first_of(" \t\r\n/?#@\\%[]\"<>,") == std::string::npos);
    require(url->userinfo.find_first_of(" \t\r\n#\\@/?") == std::string::npos);
    require(gitops::percent_decode(url->userinfo).has_value());
    require(parse_proxy_url(url->to_string())->host == url->host);
  }
  if (const auto pair = parse_host_port(text, 80)) {
    require(pair->second != 0 && !pair->first.empty());
    require(pair->first.find_first_of(" \t\r\n/?#@\\%") == std::string::npos);
  }
  (void)proxy_settings({{"http_proxy", text}, {"no_proxy", text}});
  return 0;
}
