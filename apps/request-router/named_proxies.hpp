#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/core/async.hpp"
#include "common/net/resolve.hpp"

namespace gitops::router {

// Addresses of proxies that are configured by name, such as the pods of a headless Service. Loop
// thread only.
class NamedProxies {
 public:
  // `names` must outlive it; its cache is bypassed.
  explicit NamedProxies(net::Resolver& names) : names_(names) {}

  // Looks up the names, each within a second. Returns whether any address was added or removed. A
  // name that does not exist has no address. A name whose lookup fails keeps its addresses. One
  // call at a time.
  Task<bool> look_up(std::vector<std::string> names);
  [[nodiscard]] std::vector<asio::ip::address> addresses() const;

 private:
  net::Resolver& names_;
  std::map<std::string, std::set<asio::ip::address>> found_;
};

}  // namespace gitops::router
