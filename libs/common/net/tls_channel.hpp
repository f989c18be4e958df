#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/net/channel.hpp"

namespace boost::asio::ssl {
class context;
}

namespace gitops::net {

// TLS over any other channel, which it owns. The handshake comes first and ends within the
// deadlines of this channel; a failed handshake closes the channel.
//
// A connection that ends without close_notify is `lost`: it may have been truncated by an attacker.
// Sends its own close_notify only if the channel below accepts it at once. Small parts of a write
// share a record.
class TlsChannel : public Channel {
 public:
  // Keeps the context alive.
  TlsChannel(std::unique_ptr<Channel> below, std::shared_ptr<asio::ssl::context> context);
  ~TlsChannel() override;

  // Performs the handshake. The client checks `verify_name` against the certificate and sends it as
  // SNI (not for IP addresses), unless it is empty or the context does not verify. Errors: tls,
  // timeout, unavailable.
  Task<Result<void>> handshake_client(const std::string& verify_name);
  Task<Result<void>> handshake_server();

  [[nodiscard]] Channel& below() { return *below_; }
  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  void shutdown_send() override;
  void close() override;
  void abort() override;
  Transfer try_read(std::span<char> room) override;
  Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  struct Engine;

  Task<Result<void>> handshake();
  Transfer failed(int returned);
  void send_close_notify();

  std::unique_ptr<Channel> below_;
  std::unique_ptr<Engine> engine_;
};

// Adds TLS to a connected channel and performs a client's handshake within the deadline.
Task<Result<std::unique_ptr<Channel>>> start_tls(std::unique_ptr<Channel> channel,
                                                 std::shared_ptr<asio::ssl::context> context,
                                                 const std::string& verify_name, Deadline deadline);

}  // namespace gitops::net
