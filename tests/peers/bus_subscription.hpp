#pragma once

#include <memory>
#include <string>

#include "common/core/async.hpp"

namespace gitops::test {

/// Listens on a NATS server that wants TLS, on 127.0.0.1, by the client protocol that the NATS
/// documentation describes (INFO, CONNECT, SUB, MSG, PING); it believes any certificate. On the
/// loop of the executor; must outlive the tasks it gave. A connection that fails throws.
class BusSubscription {
 public:
  struct Message {
    std::string subject;
    std::string payload;
  };

  explicit BusSubscription(const Executor& executor);
  ~BusSubscription();

  /// Connects and subscribes; messages published after it has returned arrive. A subject may end
  /// in ">". ErrorCode::timeout at the deadline.
  Task<Result<void>> open(int port, std::string subject, Deadline deadline);

  /// The next message. ErrorCode::timeout at the deadline, which ends the subscription.
  Task<Result<Message>> next(Deadline deadline);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace gitops::test
