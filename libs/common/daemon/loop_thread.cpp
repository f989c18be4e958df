#include "common/daemon/loop_thread.hpp"

#include <cstdlib>
#include <exception>

#include "common/core/log.hpp"
#include "common/core/process.hpp"

namespace gitops {

LoopThread::LoopThread() : thread_([this] { run(); }) {}

void LoopThread::run() {
  try {
    loop_.run();
  } catch (const std::exception& error) {
    Log("daemon").error("uncaught exception", {{"error", error.what()}});
    end_process(EXIT_FAILURE);
  }
}

void LoopThread::stop() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace gitops
