#include "common/core/wakeup.hpp"

#include <boost/asio/redirect_error.hpp>

namespace gitops {

bool Wakeup::ring() {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  // There is a loop to post to for as long as the frame of wait() exists.
  if (timer_ != nullptr) {
    asio::post(executor_, [self = shared_from_this()] {
      if (self->timer_ != nullptr) self->timer_->cancel();
    });
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
