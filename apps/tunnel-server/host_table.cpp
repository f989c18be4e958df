#include "tunnel-server/host_table.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

namespace gitops::tunnel_server {
namespace {

constexpr std::size_t kMaxHost = 253;
constexpr std::size_t kMaxLabel = 63;
// Maximum number of domains of one offer, so that a client cannot fill the table.
constexpr std::size_t kMaxDomains = 16;
constexpr std::size_t kMaxLocations = 16;
constexpr std::size_t kMaxLocation = 256;
constexpr std::size_t kMaxProxyName = 128;

bool is_label(std::string_view label) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
         label.back() != '-' && std::ranges::all_of(label, is_good);
}

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > kMaxHost) return false;
  return std::ranges::all_of(std::views::split(host, '.'), [](const auto& label) {
    return is_label(std::string_view(label.begin(), label.end()));
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// Returns the first requested feature that this server does not support; empty if it supports all.
std::string unsupported(const tunnel::NewProxy& proxy) {
  if (proxy.proxy_type != "http") {
    return "proxy type [" + (proxy.proxy_type.empty() ? "tcp" : proxy.proxy_type) +
           "] is not supported, only http is";
  }
  if (!proxy.group.empty()) return "groups are not supported";
  if (!proxy.route_by_http_user.empty()) return "route_by_http_user is not supported";
  if (!proxy.headers.empty() || !proxy.response_headers.empty()) {
    return "setting headers is not supported";
  }
  return {};
}

Result<void> read_domains(const tunnel::NewProxy& proxy, std::string_view subdomain_host,
                          std::vector<std::string>& domains) {
  const std::string below = "." + std::string(subdomain_host);
  for (const auto& domain : proxy.custom_domains) {
    const auto host = lower(domain);
    if (!is_host(host)) return refuse("custom domain [" + domain + "] is not a host name");
    if (!subdomain_host.empty() && (host == subdomain_host || host.ends_with(below))) {
      return refuse("custom domain [" + domain + "] should not belong to subdomain host [" +
                    std::string(subdomain_host) + "]");
    }
    domains.push_back(host);
  }
  if (!proxy.subdomain.empty()) {
    if (subdomain_host.empty()) {
      return refuse(
          "subdomain is not supported because this feature is not enabled in remote server");
    }
    if (proxy.subdomain.find_first_of(".*") != std::string::npos) {
      return refuse("'.' and '*' are not supported in subdomain");
    }
    const auto host = lower(proxy.subdomain) + below;
    if (!is_host(host)) return refuse("subdomain [" + proxy.subdomain + "] is not a host name");
    domains.push_back(host);
  }
  if (domains.empty()) return refuse("custom domain and subdomain should set at least one of them");
  if (domains.size() > kMaxDomains) return refuse("too many custom domains");
  std::ranges::sort(domains);
  domains.erase(std::ranges::unique(domains).begin(), domains.end());
  return {};
}

Result<void> read_locations(const tunnel::NewProxy& proxy, std::vector<std::string>& locations) {
  locations = proxy.locations;
  if (locations.empty()) locations.emplace_back();
  if (locations.size() > kMaxLocations) return refuse("too many locations");
  for (auto& location : locations) {
    if (location == "/") location.clear();  // a prefix of every path
    if (!location.empty() && !location.starts_with('/')) {
      return refuse("location [" + location + "] does not begin with a slash");
    }
    if (location.size() > kMaxLocation) return refuse("a location is too long");
  }
  std::ranges::sort(locations);
  locations.erase(std::ranges::unique(locations).begin(), locations.end());
  return {};
}

// Returns whether the newcomer may take over the holder's host.
bool may_take(const Owner& newcomer, const Owner& holder) {
  return newcomer.session == holder.session || newcomer.is_confirmed ||
         (!newcomer.replaces.empty() && newcomer.replaces == holder.run_id);
}

bool are_one_client(const Owner& a, const Owner& b) {
  return a.session == b.session || (!a.client.empty() && a.client == b.client);
}

}  // namespace

std::string canonical_host(std::string_view host) {
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos) {
    host = host.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  auto name = lower(host);
  return is_host(name) ? name : std::string();
}

Result<Offer> read_offer(const tunnel::NewProxy& proxy, std::string_view subdomain_host) {
  if (proxy.proxy_name.empty()) return refuse("a proxy needs a name");
  if (proxy.proxy_name.size() > kMaxProxyName) return refuse("the name of the proxy is too long");
  if (auto reason = unsupported(proxy); !reason.empty()) return refuse(std::move(reason));
  Offer offer;
  offer.proxy = proxy.proxy_name;
  offer.host_rewrite = proxy.host_header_rewrite;
  offer.user = proxy.http_user;
  offer.password = proxy.http_pwd;
  if (auto read = read_domains(proxy, subdomain_host, offer.domains); !read) {
    return std::unexpected(read.error());
  }
  if (auto read = read_locations(proxy, offer.locations); !read) {
    return std::unexpected(read.error());
  }
  if (!offer.host_rewrite.empty() && canonical_host(offer.host_rewrite).empty()) {
    return refuse("host_header_rewrite [" + offer.host_rewrite + "] is not a host name");
  }
  auto allowed = net::AddressList::parse(proxy.ips_allow_list);
  if (!allowed) return refuse("ips_allow_list: " + allowed.error().message);
  offer.allowed = std::move(*allowed);
  return offer;
}

// -- the table --

Result<void> HostTable::check(const Owner& owner, const Offer& offer) const {
  const auto is_foreign = [&owner](const Entry& entry) { return !may_take(owner, entry.owner); };
  for (const auto& domain : offer.domains) {
    const auto found = domains_.find(domain);
    if (found == domains_.end()) continue;
    // Checks all locations: the owner of one location of a domain owns the domain.
    for (const auto& host : found->second) {
      if (std::ranges::any_of(host->entries, is_foreign)) {
        const bool same_name = std::ranges::any_of(
            host->entries, [&](const Entry& entry) { return entry.offer->proxy == offer.proxy; });
        return fail(ErrorCode::conflict, same_name
                                             ? "proxy name [" + offer.proxy + "] is already in use"
                                             : "router config conflict");
      }
    }
  }
  if (owner.is_confirmed) return {};
  const auto named = names_.find(offer.proxy);
  if (named == names_.end()) return {};
  for (const auto session : named->second) {
    if (!may_take(owner, offered_.at(session).owner)) {
      return fail(ErrorCode::conflict, "proxy name [" + offer.proxy + "] is already in use");
    }
  }
  return {};
}

HostTable::Host& HostTable::host_at(const std::string& domain, const std::string& location) {
  auto& hosts = domains_[domain];
  const auto place = std::ranges::find_if(
      hosts, [&](const auto& host) { return host->location.size() <= location.size(); });
  for (auto it = place; it != hosts.end() && (*it)->location.size() == location.size(); ++it) {
    if ((*it)->location == location) return **it;
  }
  ++size_;
  return **hosts.insert(place,
                        std::make_unique<Host>(Host{.domain = domain, .location = location}));
}

bool HostTable::is_serving(const Host& host, const Entry& entry) {
  return are_one_client(entry.owner, host.entries.back().owner);
}

Result<std::vector<SessionId>> HostTable::add(const Owner& owner,
                                              std::shared_ptr<const Offer> offer) {
  if (auto checked = check(owner, *offer); !checked) return std::unexpected(checked.error());
  auto& offered = offered_[owner.session];
  offered.owner = owner;
  names_[offer->proxy].insert(owner.session);
  std::set<SessionId> superfluous;
  for (const auto& domain : offer->domains) {
    offered.domains[offer->proxy].insert(domain);
    for (const auto& location : offer->locations) {
      auto& host = host_at(domain, location);
      auto& entries = host.entries;
      std::erase_if(entries,
                    [&](const Entry& entry) { return entry.owner.session == owner.session; });
      // Another link of a client does not make that client newer.
      const auto last_of_client = std::ranges::find_if(
          entries.rbegin(), entries.rend(),
          [&](const Entry& entry) { return are_one_client(entry.owner, owner); });
      const auto place = last_of_client == entries.rend() ? entries.end() : last_of_client.base();
      entries.insert(place, {.owner = owner, .offer = offer});
      for (const auto& entry : entries) {
        const bool is_replaced = entry.owner.session != owner.session && !owner.replaces.empty() &&
                                 entry.owner.run_id == owner.replaces;
        if (is_replaced) superfluous.insert(entry.owner.session);
      }
      if (entries.size() > kMaxEntries) {
        const bool is_first = entries.front().owner.session == owner.session;
        superfluous.insert(entries[is_first ? 1 : 0].owner.session);
      }
      changed(host);
    }
  }
  return std::vector<SessionId>(superfluous.begin(), superfluous.end());
}

void HostTable::remove_from(const std::string& domain, SessionId session,
                            std::optional<std::string_view> proxy) {
  const auto found = domains_.find(domain);
  if (found == domains_.end()) return;
  std::erase_if(found->second, [&](const auto& host) {
    const auto removed = std::erase_if(host->entries, [&](const Entry& entry) {
      return entry.owner.session == session && (!proxy || entry.offer->proxy == *proxy);
    });
    if (removed > 0) changed(*host);
    if (!host->entries.empty()) return false;
    --size_;
    return true;
  });
  if (found->second.empty()) domains_.erase(found);
}

void HostTable::forget_name(const std::string& proxy, SessionId session) {
  const auto found = names_.find(proxy);
  if (found == names_.end()) return;
  found->second.erase(session);
  if (found->second.empty()) names_.erase(found);
}

void HostTable::remove(SessionId session, std::string_view proxy) {
  const auto found = offered_.find(session);
  if (found == offered_.end()) return;
  const auto of_proxy = found->second.domains.find(proxy);
  if (of_proxy == found->second.domains.end()) return;
  for (const auto& domain : of_proxy->second) remove_from(domain, session, proxy);
  forget_name(of_proxy->first, session);
  found->second.domains.erase(of_proxy);
  if (found->second.domains.empty()) offered_.erase(found);
}

void HostTable::remove(SessionId session) {
  const auto found = offered_.find(session);
  if (found == offered_.end()) return;
  for (const auto& [proxy, domains] : found->second.domains) {
    for (const auto& domain : domains) remove_from(domain, session, std::nullopt);
    forget_name(proxy, session);
  }
  offered_.erase(found);
}

const HostTable::Host* HostTable::find(std::string_view host, std::string_view path) const {
  const auto found = domains_.find(canonical_host(host));
  if (found == domains_.end()) return nullptr;
  for (const auto& candidate : found->second) {
    if (path.starts_with(candidate->location)) return candidate.get();
  }
  return nullptr;
}

std::vector<HostTable::Domain> HostTable::domains_of(SessionId session) const {
  const auto offered = offered_.find(session);
  if (offered == offered_.end()) return {};
  std::set<std::string> names;
  for (const auto& [proxy, of_proxy] : offered->second.domains) {
    names.insert(of_proxy.begin(), of_proxy.end());
  }
  std::vector<Domain> domains;
  for (const auto& name : names) {
    const auto found = domains_.find(name);
    if (found == domains_.end()) continue;
    bool is_offered = false;
    bool serves = false;
    for (const auto& host : found->second) {
      for (const auto& entry : host->entries) {
        if (entry.owner.session != session) continue;
        is_offered = true;
        serves = serves || is_serving(*host, entry);
      }
    }
    if (is_offered) domains.push_back({.name = name, .is_serving = serves});
  }
  return domains;
}

}  // namespace gitops::tunnel_server
