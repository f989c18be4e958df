#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  // The control plane or the list of runtimes has said that the host is this client's. It may then
  // take it over from whoever has it.
  bool is_confirmed = false;
};

// The way of requests to a host; of edge.hpp.
struct Way;

// The hosts and the offers for each. The newest offer of a host serves it; older ones of the same
// runtime stay behind it and serve again when it goes, so that neither a client that is replaced
// nor two that take turns leave a gap. Loop thread only.
class HostTable {
 public:
  struct Entry {
    Owner owner;
    std::shared_ptr<const Offer> offer;
  };
  struct Host {
    std::string domain;
    std::string location;             // what paths begin with
    std::vector<Entry> entries = {};  // newest last
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
  // Domains that the session offers, sorted; those that it serves, not one newer than it.
  struct Domain {
    std::string name;
    bool is_serving = false;
  };
  [[nodiscard]] std::vector<Domain> domains_of(SessionId session) const;
  [[nodiscard]] std::size_t size() const;

  // Called before add() and remove() return, with each host of which the entries changed; without
  // entries it is about to be destroyed.
  std::function<void(Host&)> changed = [](Host&) {};

 private:
  // The locations of a domain, longest first.
  using Hosts = std::vector<std::unique_ptr<Host>>;

  Result<void> check(const Owner& owner, const Offer& offer) const;
  Host& host_at(const std::string& domain, const std::string& location);
  template <class Condition>
  void remove_if(Condition condition);

  std::unordered_map<std::string, Hosts> domains_;
};

}  // namespace gitops::tunnel_server
