#pragma once

#include <memory>
#include <string>

#include "common/net/channel.hpp"

namespace gitops::net {

// Channel whose first bytes were already read, to detect its protocol, and are read again from
// `received`. Owns the channel below and forwards everything else to it.
class ReplayChannel : public Channel {
 public:
  ReplayChannel(std::unique_ptr<Channel> below, std::string received);

  [[nodiscard]] bool is_open() const override { return below_->is_open(); }
  void shutdown_send() override { below_->shutdown_send(); }
  void close() override { below_->close(); }
  void abort() override { below_->abort(); }
  Transfer try_read(std::span<char> room) override;
  Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  std::unique_ptr<Channel> below_;
  std::string received_;
};

}  // namespace gitops::net
