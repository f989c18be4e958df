#include "common/proxy/connection.hpp"

#include "common/net/address_list.hpp"
#include "common/proxy/exchange.hpp"

namespace gitops::proxy {

ProxyConnection::ProxyConnection(ProxyServer& server, int descriptor,
                                 const asio::ip::address& client)
    : server_(server),
      client_(descriptor, server.loop_.poller, server.loop_.wheel),
      in_(server.loop_.blocks, BlockPool::kSmall) {
  peer_.address = net::plain_address(client);
  address_ = peer_.address.to_string();
  peer_.text = address_;
  peer_.tls = server.tls_.has_value();
  ++server_.options_.totals->connections;
  place_ = server_.connections_.insert(server_.connections_.end(), this);
}

ProxyConnection::~ProxyConnection() {
  if (exchange_) server_.take_back(std::move(exchange_));
  server_.connections_.erase(place_);
  --server_.options_.totals->connections;
  server_.ended_.notify_all();
}

Task<> ProxyConnection::run() {
  const auto self = shared_from_this();
  if (server_.tls_) {
    auto context = server_.tls_->get(Clock::now());
    if (!context) co_return;  // listen() has checked it; later only good ones are taken over
    client_.set_read_deadline(server_.loop_.poller.now() + server_.options_.head_timeout);
    if (!co_await client_.handshake_server(std::move(*context))) co_return;
  }
  bool again = true;
  while (again) {
    if (in_.empty()) {
      if (server_.draining_) break;
      client_.set_read_deadline(server_.loop_.poller.now() + server_.options_.idle_timeout);
      idle_ = true;
      auto read = client_.read_now(in_);
      while (read.what == WireRead::nothing) {
        co_await client_.readable();
        read = client_.read_now(in_);
      }
      idle_ = false;
      if (read.what != WireRead::data) break;
    }
    exchange_ = server_.lend_exchange(*this);
    again = co_await exchange_->run();
    if (again) server_.take_back(std::move(exchange_));
    in_.release();
  }
  client_.close();
}

void ProxyConnection::check_client() {
  if (exchange_) exchange_->check_client();
}

}  // namespace gitops::proxy
