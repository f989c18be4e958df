#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include <boost/asio/cancellation_signal.hpp>

#include "common/core/async.hpp"

namespace gitops {

// Owns child coroutines: every background task of an object belongs to one group, and the object is
// destroyed only after the group was joined. Lives on the loop thread.
//
// A child that ends with an exception is logged with its name; `on_failure`, when given, is then
// called once (the daemon uses it to stop with a failure). operation_aborted is a failure only
// before cancel().
class TaskGroup {
 public:
  using OnFailure = std::function<void(const std::string& task, const std::string& what)>;

  explicit TaskGroup(const Executor& executor, OnFailure on_failure = {});
  // Requires that all children have ended: call cancel() and join() first.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts `task` on the loop, after this call has returned. The callable is kept until its
  // coroutine has ended, so the coroutine may use its captures. Spawning into a cancelled group
  // starts nothing.
  void spawn(std::string name, std::function<Task<>()> task);

  // Cancels every child: its current and every later await throws operation_aborted.
  void cancel();
  // Waits until no child is left. New children may be spawned meanwhile. When the waiting coroutine
  // is cancelled, the children are cancelled and still waited for; its next await then throws.
  Task<> join();

  [[nodiscard]] std::size_t size() const { return children_.size(); }

 private:
  struct Child {
    Child(std::string n, std::function<Task<>()> t) : name(std::move(n)), task(std::move(t)) {}
    std::string name;
    std::function<Task<>()> task;
    asio::cancellation_signal signal;
  };
  static Task<> run(std::shared_ptr<Child> child);
  void report(const std::string& task, const std::exception_ptr& failure);

  Executor executor_;
  OnFailure on_failure_;
  std::list<std::shared_ptr<Child>> children_;
  Event ended_;
  bool cancelled_ = false;
};

}  // namespace gitops
