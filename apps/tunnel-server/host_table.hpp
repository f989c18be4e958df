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

// Which client serves which host, as data: no connection, no clock. The error texts are those of
// frp's server where it has one for the case.
namespace gitops::tunnel_server {

// A host as it is compared: in lower case, without a port and a trailing dot. Empty when it is not a
// name (or an address) that a host can have.
[[nodiscard]] std::string canonical_host(std::string_view host);

// A proxy of type http that a client offers, checked, with the fields in canonical form.
struct Offer {
  std::string proxy;                 // its name
  std::vector<std::string> domains;  // without repetition
  std::vector<std::string> locations;
  std::string host_rewrite;  // Host for the upstream; empty: the user's
  std::string user;          // of Basic authentication; empty with an empty password: none
  Secret password;
  net::AddressList allowed;  // users; empty: all
};

// Reads what a client asks for. `subdomain_host` may be empty. Errors, in the words of frp where it
// has them: what this server does not serve, and names that are malformed or not the client's to ask
// for. Nothing that a client asks for is ignored when it protects something.
Result<Offer> read_offer(const tunnel::NewProxy& proxy, std::string_view subdomain_host);

using SessionId = std::uint64_t;

// Who offers it.
struct Owner {
  SessionId session = 0;
  std::string run_id;
  std::string replaces = {};  // the run id of the session in whose place it comes
  // What the sessions (links) of one client have in common; empty: this session is a client.
  std::string client = {};
  // The control plane or the list of runtimes has said that the host is this client's. It may then
  // take it over from whoever has it.
  bool is_confirmed = false;
};

// The way of requests to a host; of vhost_proxy.hpp.
struct Way;

// The hosts and the offers for each. The newest client of a host serves it by all of its sessions;
// older clients of the same runtime stay behind it and serve again when it goes, so that neither a
// client that is replaced nor two that take turns leave a gap. What a session costs to add and to
// remove does not depend on the size of the table. Loop thread only.
class HostTable {
 public:
  struct Entry {
    Owner owner;
    std::shared_ptr<const Offer> offer;
  };
  struct Host {
    std::string domain;
    std::string location;  // what paths begin with
    // Those of one client side by side; of the newest client last.
    std::vector<Entry> entries = {};
    std::shared_ptr<Way> way = {};
  };

  // Adds an offer. Returns the sessions that it makes superfluous: earlier ones of the same client,
  // and the oldest beyond kMaxEntries; their offers are the caller's to remove. Conflict, and nothing
  // is added, when the name of the proxy or one of its domains is somebody else's.
  Result<std::vector<SessionId>> add(const Owner& owner, std::shared_ptr<const Offer> offer);
  static constexpr std::size_t kMaxEntries = 8;
  // Removes a session's offer of that name, or all of them.
  void remove(SessionId session, std::string_view proxy);
  void remove(SessionId session);

  // The host that serves a request: the longest location that the path begins with. Null: none.
  // `host` as it stands in the request. Valid until the next change of the table.
  [[nodiscard]] const Host* find(std::string_view host, std::string_view path) const;
  // Whether the entry is of the newest client.
  static bool is_serving(const Host& host, const Entry& entry);
  // Domains that the session offers, sorted; those that its client serves, not a newer one.
  struct Domain {
    std::string name;
    bool is_serving = false;
  };
  [[nodiscard]] std::vector<Domain> domains_of(SessionId session) const;
  [[nodiscard]] std::size_t size() const { return size_; }

  // Called before add() and remove() return, with each host of which the entries changed; without
  // entries it is about to be destroyed.
  std::function<void(Host&)> changed = [](Host&) {};

 private:
  // The locations of a domain, longest first.
  using Hosts = std::vector<std::unique_ptr<Host>>;

  // What a session offers, to find it in domains_.
  struct Offered {
    Owner owner;
    std::map<std::string, std::set<std::string>, std::less<>> domains = {};  // by proxy
  };

  Result<void> check(const Owner& owner, const Offer& offer) const;
  Host& host_at(const std::string& domain, const std::string& location);
  // Removes the session's entries of a domain, or those of one proxy.
  void remove_from(const std::string& domain, SessionId session,
                   std::optional<std::string_view> proxy);
  void forget_name(const std::string& proxy, SessionId session);

  std::unordered_map<std::string, Hosts> domains_;
  std::unordered_map<SessionId, Offered> offered_;
  std::unordered_map<std::string, std::set<SessionId>> names_;  // of proxies
  std::size_t size_ = 0;                                        // hosts
};

}  // namespace gitops::tunnel_server
