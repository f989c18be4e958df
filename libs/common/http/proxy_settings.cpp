#include "common/http/proxy_settings.hpp"

#include <charconv>
#include <system_error>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include "common/core/text.hpp"
#include "common/net/address_list.hpp"

namespace gitops::http {
namespace {

namespace ip = boost::asio::ip;

std::optional<ip::address> parse_address(std::string_view text) {
  boost::system::error_code ec;
  const auto address = ip::make_address(std::string(text), ec);
  if (ec) return std::nullopt;
  return net::plain_address(address);
}

bool in_network(std::string_view cidr, const ip::address& address) {
  boost::system::error_code ec;
  if (address.is_v4()) {
    const auto network = ip::make_network_v4(std::string(cidr), ec);
    return !ec && network.canonical() ==
                      ip::network_v4(address.to_v4(), network.prefix_length()).canonical();
  }
  const auto network = ip::make_network_v6(std::string(cidr), ec);
  return !ec && network.canonical() ==
                    ip::network_v6(address.to_v6(), network.prefix_length()).canonical();
}

std::string lower_trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  std::string out(text.substr(first, text.find_last_not_of(" \t") - first + 1));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

// Splits ":port" off a NO_PROXY entry; `port` stays 0 if there is none.
std::string_view split_port(std::string_view entry, std::uint16_t& port) {
  const bool bracketed = entry.starts_with('[') && entry.contains(']');
  const auto colon = entry.rfind(':');
  const bool has_port = colon != std::string_view::npos &&
                        (bracketed ? entry.find(']') + 1 == colon : entry.find(':') == colon);
  if (has_port) {
    const auto digits = entry.substr(colon + 1);
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (ec != std::errc{} || end != digits.data() + digits.size()) port = 0;
    entry = entry.substr(0, colon);
  }
  if (bracketed) entry = entry.substr(1, entry.find(']') - 1);
  return entry;
}

bool entry_matches(std::string_view raw_entry, std::string_view host,
                   const std::optional<ip::address>& address, std::uint16_t port) {
  const std::string text = lower_trimmed(raw_entry);
  if (text.empty()) return false;
  if (text == "*") return true;
  if (text.contains('/')) return address && in_network(text, *address);
  std::uint16_t entry_port = 0;
  std::string_view name = split_port(text, entry_port);
  if (entry_port != 0 && entry_port != port) return false;
  if (const auto entry_address = parse_address(name)) return address && *entry_address == *address;
  if (address) return false;
  if (name.starts_with("*.")) name.remove_prefix(1);
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) return false;
  const bool only_subdomains = name.starts_with('.');
  if (only_subdomains) return host.size() > name.size() && host.ends_with(name);
  return host == name || (host.size() > name.size() && host.ends_with(name) &&
                          host[host.size() - name.size() - 1] == '.');
}

}  // namespace

Result<const Url*> ProxySettings::proxy_for(const Url& target) const {
  const std::optional<Url>& proxy = target.is_tls() ? https : http;
  const std::optional<Error>& mistake = target.is_tls() ? https_mistake : http_mistake;
  if (!proxy && !mistake) return nullptr;
  std::string_view host = target.host;
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host == "localhost" && !proxies_loopback) return nullptr;
  const auto address = parse_address(host);
  if (address && address->is_loopback() && !proxies_loopback) return nullptr;
  for (const std::string& entry : no_proxy) {
    if (entry_matches(entry, host, address, target.port)) return nullptr;
  }
  if (mistake) return std::unexpected(*mistake);
  return &*proxy;
}

ProxySettings proxy_settings(const std::map<std::string, std::string>& environment) {
  const auto value_of = [&](const std::string& lower, const std::string& upper) {
    for (const std::string& name : {lower, upper}) {
      const auto it = environment.find(name);
      if (it != environment.end() && !it->second.empty()) return std::pair{name, it->second};
    }
    return std::pair{std::string(), std::string()};
  };
  const auto read = [&](const std::string& lower, const std::string& upper, std::optional<Url>& out,
                        std::optional<Error>& mistake) {
    const auto [name, value] = value_of(lower, upper);
    if (trimmed(value).empty()) return;
    auto url = parse_proxy_url(value.contains("://") ? value : "http://" + value);
    // Reported as an outage of the peers behind the proxy until the variable is corrected.
    if (!url) {
      mistake = Error{.code = ErrorCode::unavailable, .message = name + ": " + url.error().message};
    } else {
      out = std::move(*url);
    }
  };
  ProxySettings settings;
  read("http_proxy", "HTTP_PROXY", settings.http, settings.http_mistake);
  read("https_proxy", "HTTPS_PROXY", settings.https, settings.https_mistake);
  std::string_view list;
  const auto [name, value] = value_of("no_proxy", "NO_PROXY");
  list = value;
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (auto entry = lower_trimmed(list.substr(0, comma)); !entry.empty()) {
      settings.no_proxy.push_back(std::move(entry));
    }
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return settings;
}

}  // namespace gitops::http
