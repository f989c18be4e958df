#include "common/core/wakeup.hpp"

#include <boost/asio/redirect_error.hpp>

namespace gitops {

struct LoopGateState {
  std::mutex mutex;
  bool open = true;
};

namespace {

// Closes the gate when its loop is destroyed. Asio shuts a loop's services down before it empties
// the queue of posted work, and it empties that queue without a lock: a later post from another
// thread would be a data race.
class LoopGate : public asio::execution_context::service {
 public:
  static inline asio::execution_context::id id;

  explicit LoopGate(asio::execution_context& loop) : asio::execution_context::service(loop) {}

  const std::shared_ptr<LoopGateState> state = std::make_shared<LoopGateState>();

 private:
  void shutdown() override {
    const std::lock_guard lock(state->mutex);
    state->open = false;
  }
};

}  // namespace

Wakeup::Wakeup(const Executor& executor)
    : executor_(executor), gate_(asio::use_service<LoopGate>(executor.context()).state) {}

bool Wakeup::ring() {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  if (timer_ != nullptr) {
    const std::lock_guard gate_lock(gate_->mutex);
    if (gate_->open) {
      asio::post(executor_, [self = shared_from_this()] {
        if (self->timer_ != nullptr) self->timer_->cancel();
      });
    }
  }
  return !left_;
}

Task<bool> Wakeup::wait(Deadline deadline) {
  Timer timer(executor_, deadline);
  struct Leave {
    explicit Leave(Wakeup& w) : wakeup(w) {}
    ~Leave() {
      const std::lock_guard lock(wakeup.mutex_);
      wakeup.timer_ = nullptr;
      wakeup.left_ = true;
    }
    Leave(const Leave&) = delete;
    Leave& operator=(const Leave&) = delete;
    Wakeup& wakeup;
  };
  const Leave leave(*this);
  const auto is_rung = [this] {
    const std::lock_guard lock(mutex_);
    return rung_;
  };
  {
    const std::lock_guard lock(mutex_);
    if (!rung_) timer_ = &timer;
  }
  if (timer_ == nullptr) co_return true;
  boost::system::error_code error;
  co_await timer.async_wait(asio::redirect_error(use_task, error));
  if (is_rung()) co_return true;
  if (error) throw boost::system::system_error(error);
  co_return false;
}

}  // namespace gitops
