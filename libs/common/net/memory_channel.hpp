#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "common/net/channel.hpp"

namespace gitops::net {

// One end of a connection in memory, with a bounded buffer in each direction. For tests that script
// both ends. Both ends belong to one loop.
class MemoryChannel : public Channel {
 public:
  using Ptr = std::unique_ptr<MemoryChannel>;
  // Returns the two ends. `capacity`: maximum unread bytes of each direction.
  static std::pair<Ptr, Ptr> pair(const Executor& executor, std::size_t capacity = 64 * 1024);
  ~MemoryChannel() override;

  [[nodiscard]] bool is_open() const override { return open_; }
  void shutdown_send() override;
  void close() override;
  void abort() override;
  Transfer try_read(std::span<char> room) override;
  Transfer try_write(std::span<const asio::const_buffer> buffers) override;

 private:
  // Bytes in transit to one end.
  struct Pipe {
    std::string bytes;
    bool ended = false;   // the sender has ended
    bool broken = false;  // the sender has aborted, or the receiver is closed
  };
  struct Ends;

  MemoryChannel(Reactor& reactor, std::shared_ptr<Ends> ends, std::size_t own);
  void leave();
  void notify_peer();
  [[nodiscard]] Pipe& incoming();
  [[nodiscard]] Pipe& outgoing();

  Readiness readiness_;
  std::shared_ptr<Ends> ends_;
  std::size_t own_;  // 0 or 1: index of this end
  bool open_ = true;
};

}  // namespace gitops::net
