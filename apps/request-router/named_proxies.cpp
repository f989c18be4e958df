#include "request-router/named_proxies.hpp"

#include <chrono>
#include <utility>

namespace gitops::router {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds(1);

}  // namespace

Task<bool> NamedProxies::look_up(std::vector<std::string> names) {
  std::map<std::string, std::set<asio::ip::address>> found;
  for (const auto& name : names) {
    names_.look_again(name);
    const auto answer = co_await names_.resolve(name, 0, deadline_after(kTimeLimit));
    auto& addresses = found[name];
    if (answer) {
      for (const auto& endpoint : *answer) addresses.insert(endpoint.address());
    } else if (answer.error().code != ErrorCode::not_found && found_.contains(name)) {
      addresses = found_.at(name);
    }
  }
  co_return std::exchange(found_, found) != found;
}

std::vector<asio::ip::address> NamedProxies::addresses() const {
  std::vector<asio::ip::address> all;
  for (const auto& [name, addresses] : found_) {
    all.insert(all.end(), addresses.begin(), addresses.end());
  }
  return all;
}

}  // namespace gitops::router
