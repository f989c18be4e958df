#include "common/core/async.hpp"

#include <algorithm>

#include <boost/asio/redirect_error.hpp>

namespace gitops {

Task<> sleep_until(Deadline when) {
  Timer timer(co_await asio::this_coro::executor, when);
  co_await timer.async_wait(use_task);
}

Task<> sleep_for(Clock::duration wait) {
  return sleep_until(deadline_after(wait));
}

// A waiter, stored in the frame of wait(). Waiter and event unlink themselves on destruction, so a
// loop may be destroyed while coroutines wait.
struct Event::Waiter {
  Waiter(Event& event, Deadline deadline) : timer(event.executor_, deadline), event(&event) {
    event.waiters_.push_back(this);
  }
  ~Waiter() {
    if (event != nullptr) std::erase(event->waiters_, this);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Timer timer;
  Event* event;
  bool notified = false;
};

Event::~Event() {
  for (Waiter* waiter : waiters_) waiter->event = nullptr;
}

void Event::notify_all() {
  for (Waiter* waiter : waiters_) {
    waiter->notified = true;
    waiter->timer.cancel();
  }
}

Task<bool> Event::wait(Deadline deadline) {
  Waiter waiter(*this, deadline);
  boost::system::error_code error;
  co_await waiter.timer.async_wait(asio::redirect_error(use_task, error));
  if (waiter.notified) co_return true;
  if (error) throw boost::system::system_error(error);
  co_return false;
}

}  // namespace gitops
