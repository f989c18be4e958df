// What the tunnel-server reads apart from frp's messages: hosts of users, offers of clients, the list
// of runtimes, answers of a plugin. A host and an offer are read into one canonical form, so that two
// spellings never are two hosts; an offer never reaches beyond what its names say.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tunnel-server/authorizer.hpp"
#include "tunnel-server/host_table.hpp"

namespace {

using namespace gitops;
using namespace gitops::tunnel_server;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_host(std::string_view text) {
  const auto host = canonical_host(text);
  if (host.empty()) return;
  require(canonical_host(host) == host);
  require(canonical_host(host + ".:443") == host);
  require(host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos);
}

void check_offer(std::string_view name, std::string_view domain, std::string_view location) {
  const tunnel::NewProxy proxy{.proxy_name = "p",
                               .proxy_type = "http",
                               .custom_domains = {std::string(domain)},
                               .subdomain = std::string(name),
                               .locations = {std::string(location)}};
  const auto offer = read_offer(proxy, "example.test");
  if (!offer) return;
  HostTable table;
  require(
      table.add({.session = 1, .run_id = "a"}, std::make_shared<const Offer>(*offer)).has_value());
  std::size_t below = 0;
  for (const auto& offered : offer->domains) {
    require(canonical_host(offered) == offered);
    require(table.find(offered, location.empty() ? "/" : location) != nullptr);
    if (offered.ends_with(".example.test")) ++below;
    // Nobody else gets it, or a part of it.
    auto other = *offer;
    other.proxy = "q";
    other.domains = {offered};
    other.locations = {"/other"};
    require(!table.add({.session = 2, .run_id = "b"}, std::make_shared<const Offer>(other))
                 .has_value());
  }
  require(below == (name.empty() ? 0U : 1U));
  require(table.find("example.test", "/") == nullptr);
  table.remove(1);
  require(table.size() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  // Lines: a subdomain, a custom domain, a location; then the rest.
  const auto first = all.substr(0, all.find('\n'));
  auto rest = all.substr(std::min(all.size(), first.size() + 1));
  const auto second = rest.substr(0, rest.find('\n'));
  const auto third = rest.substr(std::min(rest.size(), second.size() + 1));
  check_host(first);
  check_host(second);
  check_offer(first, second, third.substr(0, third.find('\n')));
  if (const auto list = RuntimeList::parse(all)) {
    const auto refused = list->admit({.proxy_name = "p", .subdomain = "x"});
    require(!refused);
  }
  if (const auto answer = read_plugin_answer(all); answer && !answer->content.empty()) {
    require(answer->content.starts_with("{") && answer->content != "{}");
  }
  return 0;
}
