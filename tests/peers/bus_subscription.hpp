#pragma once

#include <memory>
#include <string>

#include "common/core/async.hpp"

namespace gitops::test {

/// A subscription to a NATS server with TLS on 127.0.0.1, by the client protocol of the NATS
/// documentation (INFO, CONNECT, SUB, MSG, PING). Accepts any certificate. Runs on the loop of the
/// executor and must outlive its tasks. Throws when the connection fails.
class BusSubscription {
 public:
  struct Message {
    std::string subject;
    std::string payload;
  };

  explicit BusSubscription(const Executor& executor);
  ~BusSubscription();

  /// Connects and subscribes. Messages published after the return arrive. A subject may end
  /// in ">". ErrorCode::timeout at the deadline.
  Task<Result<void>> open(int port, std::string subject, Deadline deadline);

  /// The next message. ErrorCode::timeout at the deadline, which ends the subscription.
  Task<Result<Message>> next(Deadline deadline);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace gitops::test
