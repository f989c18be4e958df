#include "daemons/reporter_process.hpp"

#include <csignal>
#include <utility>

#include "daemons/daemon_program.hpp"
#include "support/wait.hpp"

namespace gitops::test {
std::vector<std::string> ReporterProcess::command(std::vector<std::string> flags) {
  std::vector<std::string> argv{daemon_program("event-reporter"), "--port=0",
                                "--listen-address=127.0.0.1", "--admin-port=0",
                                "--admin-address=127.0.0.1"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return argv;
}

ReporterProcess::ReporterProcess(std::vector<std::string> argv, Environment environment,
                                 Clock::duration time_limit)
    : time_limit_(time_limit),
      process_({.argv = std::move(argv),
                .env = std::move(environment),
                .working_dir = {},
                .log_file = folder_ / "log"}) {}

Task<bool> ReporterProcess::wait_for_log(std::string part, std::size_t times) {
  const auto is_logged = [this, &part, times] {
    const auto text = log();
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found >= times;
  };
  co_return co_await eventually(is_logged, "in the log: " + part, time_limit_);
}

Task<bool> ReporterProcess::wait_for_readyz(std::string part) {
  if (!co_await started()) co_return false;
  const auto is_told = [this, &part] {
    readyz_ = get("/readyz").body;
    return readyz_.contains(part);
  };
  co_return co_await eventually(is_told, "in /readyz: " + part, time_limit_);
}

Task<bool> ReporterProcess::wait_until_caught_up() {
  if (!co_await started()) co_return false;
  co_return co_await eventually(
      [this] {
        const auto page = status();
        return !page.empty() && !page.has("taken over");
      },
      "the end of the take-over", time_limit_);
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

HttpReply ReporterProcess::post(const std::string& path) const {
  return http_call({.method = "POST", .url = "http://127.0.0.1:" + admin_port_ + path});
}

HttpReply ReporterProcess::get_main(const std::string& path) const {
  return http_call({.url = "http://127.0.0.1:" + number_in_log("\"port\":") + path});
}

std::string ReporterProcess::command_line() const {
  return read_file("/proc/" + std::to_string(process_.pid()) + "/cmdline");
}

Task<int> ReporterProcess::stop() {
  process_.signal(SIGTERM);
  (void)co_await eventually([this] { return !process_.running(); }, "the end of the process",
                            time_limit_);
  co_return process_.wait(std::chrono::milliseconds(1)).value_or(-1);
}

std::string ReporterProcess::number_in_log(const std::string& key) const {
  const auto text = log();
  const auto at = text.find(key);
  if (at == std::string::npos) return {};
  const auto begin = at + key.size();
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

}  // namespace gitops::test
