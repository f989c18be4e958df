#pragma once

#include <list>
#include <memory>
#include <string>

#include "common/proxy/server.hpp"

namespace gitops::proxy {

class ProxyExchange;

// One accepted connection of a ProxyServer; internal to the proxy core. While no request is under
// way it holds no more than its socket: what a request needs is lent to it by the server. Kept
// alive by the coroutines that run on it: its own, and a second one while a body is sent up or a
// tunnel is open.
class ProxyConnection : public std::enable_shared_from_this<ProxyConnection> {
 public:
  ProxyConnection(ProxyServer& server, int descriptor, const asio::ip::address& client);
  ~ProxyConnection();
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;

  Task<> run();
  // No request is under way: may be closed at any time.
  [[nodiscard]] bool idle() const { return idle_; }
  void close() { client_.close(); }
  // Looks whether the client has gone while its request waits for the upstream.
  void check_client();

 private:
  friend class ProxyExchange;

  ProxyServer& server_;
  Wire client_;
  ProxyBuffer in_;
  bool idle_ = true;
  std::unique_ptr<ProxyExchange> exchange_;
  std::string address_;
  PeerInfo peer_;
  std::list<ProxyConnection*>::iterator place_;
};

}  // namespace gitops::proxy
