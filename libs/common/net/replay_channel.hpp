#pragma once

#include <memory>
#include <string>

#include "common/net/channel.hpp"

namespace gitops::net {

// A channel of which somebody has read the first bytes to find out what it carries, with those bytes
// put back in front. Owns the channel below; everything else is passed on to it.
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
