#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/async.hpp"
#include "common/net/resolve.hpp"

namespace gitops::router {

// The addresses of proxies that are known by name, such as the pods behind a headless Service. Loop
// thread only.
class NamedProxies {
 public:
  // `names` outlives it; its cache is not used.
  explicit NamedProxies(net::Resolver& names) : names_(names) {}

  // Looks the names up, each within a second; whether any address has come or gone. A name that does not
  // exist has no address. One that cannot be looked up keeps those that it had. One call at a time.
  Task<bool> look_up(std::vector<std::string> names);
  // All of them, as text.
  [[nodiscard]] std::vector<std::string> addresses() const;

 private:
  net::Resolver& names_;
  std::map<std::string, std::set<asio::ip::address>> found_;
};

}  // namespace gitops::router
