#pragma once

#include <thread>

#include <boost/asio/executor_work_guard.hpp>

#include "common/core/async.hpp"

namespace gitops {

// One more loop, on a thread of its own, for the programs that serve on several
// (docs/adr/0008-several-loops.md). An exception that escapes from it ends the process, as with the
// daemon's own loop. Owned and stopped on the thread that made it; the executor is for any thread.
class LoopThread {
 public:
  LoopThread();
  ~LoopThread() { stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  [[nodiscard]] Executor executor() { return loop_.get_executor(); }
  // Ends the thread after the handler that runs now. What lives on the loop was stopped before.
  void stop();

 private:
  void run();

  Loop loop_{1};
  asio::executor_work_guard<Executor> work_{loop_.get_executor()};
  std::jthread thread_;
};

}  // namespace gitops
