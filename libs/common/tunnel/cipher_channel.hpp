#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/core/secret.hpp"
#include "common/net/channel.hpp"
#include "common/tunnel/control_cipher.hpp"

namespace gitops::tunnel {

// Channel that encrypts another channel, which it owns, with frp's cipher: the work streams of a
// proxy with use_encryption. Reports the ends and failures of the channel below. The cipher does
// not detect modified bytes.
class CipherChannel : public net::Channel {
 public:
  // `key`: control_key(). `iv`: Aes128Cfb::kIvSize unpredictable bytes. `received`: encrypted bytes
  // already read from the channel.
  CipherChannel(std::unique_ptr<net::Channel> below, const Secret& key, std::string_view iv,
                std::string received);
  ~CipherChannel() override;

  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  void shutdown_send() override { below_->shutdown_send(); }
  void close() override { below_->close(); }
  void abort() override { below_->abort(); }
  net::Transfer try_read(std::span<char> room) override;
  // Writes as TLS does: a retry after a write that would have blocked must begin with the same
  // bytes.
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  net::Transfer read_below(std::span<char> room);
  net::Transfer as_below(net::Transfer transfer);

  std::unique_ptr<net::Channel> below_;
  ControlEncryptor encryptor_;
  ControlDecryptor decryptor_;
  std::string received_;
  std::string sending_;           // encrypted and not sent
  std::size_t sending_size_ = 0;  // size of the write that sending_ belongs to
};

}  // namespace gitops::tunnel
