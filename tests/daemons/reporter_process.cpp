#include "daemons/reporter_process.hpp"

#include <csignal>
#include <filesystem>
#include <utility>

#include <fcntl.h>

namespace gitops::test {
namespace {

// Sockets of doubles are open in this process; a child that inherited one would keep its port alive
// after the double stopped.
void keep_descriptors() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    if (descriptor > 2) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
}

ProcessOptions options(std::vector<std::string> argv, Environment environment,
                       std::filesystem::path log_file) {
  keep_descriptors();
  return {.argv = std::move(argv),
          .env = std::move(environment),
          .working_dir = {},
          .log_file = std::move(log_file)};
}

}  // namespace

ReporterProcess::ReporterProcess(std::vector<std::string> argv, Environment environment,
                                 Clock::duration patience)
    : patience_(patience),
      process_(options(std::move(argv), std::move(environment), folder_ / "log")) {}

Task<bool> ReporterProcess::wait_for_log(std::string part, std::size_t times) {
  co_return co_await until([this, part = std::move(part), times] {
    const auto text = log();
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found >= times;
  });
}

Task<bool> ReporterProcess::wait_for_readyz(std::string part) {
  if (!co_await started()) co_return false;
  co_return co_await until([this, part = std::move(part)] {
    readyz_ = get("/readyz").body;
    return readyz_.contains(part);
  });
}

Task<bool> ReporterProcess::started() {
  if (!admin_port_.empty()) co_return true;
  if (!co_await wait_for_log(R"("message":"started")")) co_return false;
  admin_port_ = number_in_log("\"admin_port\":");
  co_return true;
}

HttpReply ReporterProcess::get(const std::string& path) const {
  return http_call({.url = "http://127.0.0.1:" + admin_port_ + path});
}

HttpReply ReporterProcess::get_main(const std::string& path) const {
  return http_call({.url = "http://127.0.0.1:" + number_in_log("\"port\":") + path});
}

std::string ReporterProcess::command_line() const {
  return read_file("/proc/" + std::to_string(process_.pid()) + "/cmdline");
}

Task<int> ReporterProcess::stop() {
  process_.signal(SIGTERM);
  co_await until([this] { return !process_.running(); });
  co_return process_.wait(std::chrono::milliseconds(1)).value_or(-1);
}

Task<bool> ReporterProcess::until(std::function<bool()> condition) const {
  const auto deadline = deadline_after(patience_);
  while (!condition()) {
    if (Clock::now() >= deadline) co_return false;
    co_await sleep_for(std::chrono::milliseconds(20));
  }
  co_return true;
}

std::string ReporterProcess::number_in_log(const std::string& key) const {
  const auto text = log();
  const auto at = text.find(key);
  if (at == std::string::npos) return {};
  const auto begin = at + key.size();
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

}  // namespace gitops::test
