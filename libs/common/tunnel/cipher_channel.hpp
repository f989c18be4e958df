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

// The bytes of another channel, which it owns, under frp's cipher: the work streams of a proxy with
// use_encryption. Ends and failures are those of the channel below; a change of the bytes on the way
// is not noticed.
class CipherChannel : public net::Channel {
 public:
  // `key`: control_key(). `iv`: Aes128Cfb::kIvSize unpredictable bytes. `received`: came on the
  // channel before this object was made, encrypted.
  CipherChannel(std::unique_ptr<net::Channel> below, const Secret& key, std::string_view iv,
                std::string received);
  ~CipherChannel() override;

  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  void shutdown_send() override { below_->shutdown_send(); }
  void close() override { below_->close(); }
  void abort() override { below_->abort(); }
  net::Transfer try_read(std::span<char> room) override;
  // As with TLS, an attempt that is repeated after it would have blocked begins with the same bytes.
  net::Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  net::Transfer read_below(std::span<char> room);
  net::Transfer as_below(net::Transfer transfer);

  std::unique_ptr<net::Channel> below_;
  ControlEncryptor encryptor_;
  ControlDecryptor decryptor_;
  std::string received_;
  std::string sending_;           // encrypted and not sent
  std::size_t sending_size_ = 0;  // bytes of the write that they belong to
};

}  // namespace gitops::tunnel
