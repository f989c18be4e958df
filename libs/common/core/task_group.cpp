#include "common/core/task_group.hpp"

#include <exception>

#include <boost/asio/bind_cancellation_slot.hpp>

#include "common/core/log.hpp"

namespace gitops {

namespace {

const Log& log() {
  static const Log kLog("task");
  return kLog;
}

struct Ending {
  bool aborted = false;
  std::string what;
};

Ending describe(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return {error.code() == asio::error::operation_aborted, error.what()};
  } catch (const std::exception& error) {
    return {false, error.what()};
  } catch (...) {
    return {false, "an exception of an unknown type"};
  }
}

}  // namespace

TaskGroup::TaskGroup(const Executor& executor, OnFailure on_failure)
    : executor_(executor), on_failure_(std::move(on_failure)), ended_(executor) {}

TaskGroup::~TaskGroup() {
  for (const auto& child : children_) {
    log().error("task outlives its group", {{"task", child->name}});
  }
}

void TaskGroup::spawn(std::string name, std::function<Task<>()> task) {
  if (cancelled_) return;
  const auto child = std::make_shared<Child>(std::move(name), std::move(task));
  const auto position = children_.insert(children_.end(), child);
  asio::co_spawn(
      executor_, [child] { return run(child); },
      asio::bind_cancellation_slot(child->signal.slot(),
                                   [this, child, position](const std::exception_ptr& failure) {
                                     children_.erase(position);
                                     if (failure) report(child->name, failure);
                                     if (children_.empty()) ended_.notify_all();
                                   }));
}

// Runs a child. Asio 1.81 lets operation_aborted escape from the loop when a spawned coroutine is
// cancelled and ends without ever having waited; so every child waits once.
Task<> TaskGroup::run(std::shared_ptr<Child> child) {
  co_await asio::post(co_await asio::this_coro::executor, use_task);
  co_await child->task();
}

void TaskGroup::report(const std::string& task, const std::exception_ptr& failure) {
  const Ending ending = describe(failure);
  if (ending.aborted && cancelled_) return;
  log().error("task failed", {{"task", task}, {"error", ending.what}});
  if (const OnFailure on_failure = std::exchange(on_failure_, {})) on_failure(task, ending.what);
}

void TaskGroup::cancel() {
  cancelled_ = true;
  const auto children = children_;  // a child may end during the iteration
  for (const auto& child : children) child->signal.emit(asio::cancellation_type::terminal);
}

Task<> TaskGroup::join() {
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!children_.empty()) {
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none && !cancelled_) cancel();
    try {
      co_await ended_.wait();
    } catch (const boost::system::system_error&) {
      // The waiting coroutine was cancelled: cancel the children and continue to wait for them.
    }
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
}

}  // namespace gitops
