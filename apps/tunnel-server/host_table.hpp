#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/error.hpp"
#include "common/net/address_list.hpp"
#include "common/tunnel/message.hpp"

// Table of hosts and the clients that serve them, as data: no connections, no clock. Error texts
// are those of frp's server where it has one for the case.
namespace gitops::tunnel_server {

// Returns the canonical form of a host for comparisons: lower case, no port, no trailing dot. Empty
// if it is not a valid host name or address.
[[nodiscard]] std::string canonical_host(std::string_view host);

// Offer of a client: a validated proxy of type http, with its fields in canonical form.
struct Offer {
  std::string proxy;                 // its name
  std::vector<std::string> domains;  // without duplicates
  std::vector<std::string> locations;
  std::string host_rewrite;  // Host header for the upstream; empty: the user's
  std::string user;          // for Basic authentication; empty with an empty password: none
  Secret password;
  net::AddressList allowed;  // addresses of users; empty: all
};

// Validates a client's request for a proxy. `subdomain_host` may be empty. Errors, in frp's words
// where it has them: features that this server does not support, and names that are malformed or
// that a client may not request. A request for an unsupported protection is refused, never ignored.
Result<Offer> read_offer(const tunnel::NewProxy& proxy, std::string_view subdomain_host);

using SessionId = std::uint64_t;

// Owner of an offer.
struct Owner {
  SessionId session = 0;
  std::string run_id;
  std::string replaces = {};  // run id of the session that this one replaces
  // Id that the sessions (links) of one client share; empty: the session is a client of its own.
  std::string client = {};
  // The control plane or the list of runtimes has confirmed that the host belongs to this client.
  // The client may then take the host over from its present owner.
  bool is_confirmed = false;
};

// Route to a host; see vhost_proxy.hpp.
struct Way;

// Table of the hosts and of the offers for each. All sessions of a host's newest client serve it.
// Older clients of the same runtime are the failover: they serve again when the newest one
// disconnects, so that replaced or alternating clients leave no gap. The cost of adding or removing
// a session does not depend on the size of the table. Loop thread only.
class HostTable {
 public:
  struct Entry {
    Owner owner;
    std::shared_ptr<const Offer> offer;
  };
  struct Host {
    std::string domain;
    std::string location;  // prefix of the request's path
    // Entries of one client are adjacent; those of the newest client are last.
    std::vector<Entry> entries = {};
    std::shared_ptr<Way> way = {};
  };

  // Adds an offer. Returns the sessions that it makes superfluous: earlier ones of the same client,
  // and the oldest beyond kMaxEntries. The caller removes their offers. Error: conflict, when the
  // proxy's name or one of its domains belongs to another client; nothing is added then.
  Result<std::vector<SessionId>> add(const Owner& owner, std::shared_ptr<const Offer> offer);
  static constexpr std::size_t kMaxEntries = 8;
  // Removes the session's offer of that name, or all its offers.
  void remove(SessionId session, std::string_view proxy);
  void remove(SessionId session);

  // Returns the host for a request: the one with the longest location that is a prefix of the path;
  // null if there is none. `host` is the value in the request. The pointer is valid until the next
  // change of the table.
  [[nodiscard]] const Host* find(std::string_view host, std::string_view path) const;
  // Returns whether the entry belongs to the newest client.
  static bool is_serving(const Host& host, const Entry& entry);
  // Domain that a session offers. `is_serving`: its client is the newest one.
  struct Domain {
    std::string name;
    bool is_serving = false;
  };
  // The session's domains, sorted by name.
  [[nodiscard]] std::vector<Domain> domains_of(SessionId session) const;
  [[nodiscard]] std::size_t size() const { return size_; }

  // Called for each host whose entries changed, before add() and remove() return. A host without
  // entries is destroyed afterwards.
  std::function<void(Host&)> changed = [](Host&) {};

 private:
  // Locations of a domain, longest first.
  using Hosts = std::vector<std::unique_ptr<Host>>;

  // Index of a session's offers in domains_.
  struct Offered {
    Owner owner;
    std::map<std::string, std::set<std::string>, std::less<>> domains = {};  // by proxy
  };

  Result<void> check(const Owner& owner, const Offer& offer) const;
  Host& host_at(const std::string& domain, const std::string& location);
  // Removes the session's entries of a domain: all, or those of one proxy.
  void remove_from(const std::string& domain, SessionId session,
                   std::optional<std::string_view> proxy);
  void forget_name(const std::string& proxy, SessionId session);

  std::unordered_map<std::string, Hosts> domains_;
  std::unordered_map<SessionId, Offered> offered_;
  std::unordered_map<std::string, std::set<SessionId>> names_;  // of proxies
  std::size_t size_ = 0;                                        // hosts
};

}  // namespace gitops::tunnel_server
