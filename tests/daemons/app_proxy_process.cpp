#include "daemons/app_proxy_process.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "daemons/daemon_program.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

std::size_t number_behind(const std::string& text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string::npos) return 0;
  return static_cast<std::size_t>(std::atoll(text.c_str() + at + key.size()));
}

ProcessOptions options(Environment environment, std::vector<std::string> flags,
                       const std::filesystem::path& folder) {
  environment.insert({{"LISTEN_ADDRESS", "127.0.0.1"},
                      {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                      {"PORT", "0"},
                      {"ADMIN_PORT", "0"},
                      {"REPOS_DIR", (folder / "clones").string()}});
  std::vector<std::string> argv{daemon_program("app-proxy")};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return {.argv = std::move(argv), .env = std::move(environment), .log_file = folder / "log"};
}

}  // namespace

AppProxyProcess::AppProxyProcess(Environment environment, std::vector<std::string> flags)
    : process_(options(std::move(environment), std::move(flags), folder_.path())) {
  require_until([this] { return log().contains(R"("message":"started")") || !process_.running(); },
                std::chrono::seconds(20), "app-proxy to start");
  port_ = static_cast<std::uint16_t>(number_behind(log(), R"("message":"serving","port":)"));
  admin_port_ = static_cast<std::uint16_t>(number_behind(log(), R"("admin_port":)"));
  if (port_ == 0) throw std::runtime_error("app-proxy did not start:\n" + log());
}

HttpReply AppProxyProcess::admin(const std::string& path) const {
  return http_call({.url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
}

std::size_t AppProxyProcess::memory() const {
  return number_behind(read_file("/proc/" + std::to_string(process_.pid()) + "/status"), "VmRSS:");
}

}  // namespace gitops::test
