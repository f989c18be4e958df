#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "common/core/async.hpp"
#include "support/process.hpp"

namespace gitops::test {

// The real event-reporter as a child process, on free ports, with everything it writes in a file.
class ReporterProcess {
 public:
  ReporterProcess(Environment environment, std::vector<std::string> arguments)
      : process_({.argv = command(std::move(arguments)),
                  .env = std::move(environment),
                  .log_file = folder_ / "log"}) {}

  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }

  // Waits, without holding up the loop, until the log holds `part`.
  Task<bool> wait_for_log(std::string part, std::size_t times = 1) {
    co_return co_await until([this, part = std::move(part), times] {
      const auto text = log();
      std::size_t found = 0;
      for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
      }
      return found >= times;
    });
  }
  // Waits until /readyz says so: "ready" or a part of the reason why not.
  Task<bool> wait_for_readyz(std::string part) {
    if (!co_await started()) co_return false;
    co_return co_await until([this, part = std::move(part)] {
      readyz_ = get("/readyz").body;
      return readyz_.contains(part);
    });
  }
  [[nodiscard]] const std::string& last_readyz() const { return readyz_; }

  // The admin port's answer; wait for started() before.
  [[nodiscard]] HttpReply get(const std::string& path) const {
    return http_call({.url = "http://127.0.0.1:" + admin_port_ + path});
  }
  // The main port's answer.
  [[nodiscard]] HttpReply get_main(const std::string& path) const {
    return http_call({.url = "http://127.0.0.1:" + number_in_log("\"port\":") + path});
  }
  Task<bool> started() {
    if (!admin_port_.empty()) co_return true;
    if (!co_await wait_for_log(R"("message":"started")")) co_return false;
    admin_port_ = number_in_log("\"admin_port\":");
    co_return true;
  }

  [[nodiscard]] std::string command_line() const {
    return read_file("/proc/" + std::to_string(process_.pid()) + "/cmdline");
  }
  // Ends it in order, while the doubles around it go on; its exit code, -1 when it does not end.
  Task<int> stop() {
    process_.signal(SIGTERM);
    co_await until([this] { return !process_.running(); });
    co_return process_.wait(std::chrono::milliseconds(1)).value_or(-1);
  }
  Process& process() { return process_; }

  static Task<bool> until(std::function<bool()> condition) {
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (!condition()) {
      if (Clock::now() >= deadline) co_return false;
      co_await sleep_for(std::chrono::milliseconds(20));
    }
    co_return true;
  }

 private:
  // The doubles' sockets are open in this process; a child that inherited one would keep its port
  // alive after the double stopped.
  static void keep_descriptors() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int descriptor = std::stoi(entry.path().filename());
      if (descriptor > 2) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
  }
  static std::vector<std::string> command(std::vector<std::string> arguments) {
    keep_descriptors();
    arguments.insert(arguments.begin(),
                     {std::string(GITOPS_BIN_DIR) + "/event-reporter", "--port=0",
                      "--listen-address=127.0.0.1", "--admin-port=0", "--admin-address=127.0.0.1"});
    return arguments;
  }
  [[nodiscard]] std::string number_in_log(const std::string& key) const {
    const auto text = log();
    const auto at = text.find(key);
    if (at == std::string::npos) return {};
    const auto begin = at + key.size();
    return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
  }

  TempDir folder_;
  std::string admin_port_;
  std::string readyz_;
  Process process_;
};

}  // namespace gitops::test
