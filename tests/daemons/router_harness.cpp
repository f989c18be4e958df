#include "daemons/router_harness.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "daemons/daemon_program.hpp"
#include "support/preload.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

// The number after `key` in a log; 0 when the key is absent.
std::uint16_t number_behind(const std::string& log, std::string_view key) {
  const auto at = log.find(key);
  if (at == std::string::npos) return 0;
  return static_cast<std::uint16_t>(std::atoi(log.c_str() + at + key.size()));
}

std::string url(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

}  // namespace

std::optional<std::string> find_hosts_library() {
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib")) {
    const auto path = entry.path() / "libnss_wrapper.so";
    std::error_code ec;
    if (std::filesystem::exists(path, ec)) return path.string();
  }
  return std::nullopt;
}

std::string hosts_library() {
  if (auto path = find_hosts_library()) return *path;
  throw std::runtime_error("libnss_wrapper.so is missing (Debian: libnss-wrapper)");
}

std::string hosts_and_silent_names() {
  return preload(GITOPS_SILENT_NAMES_LIBRARY) + ":" + hosts_library();
}

RouterProcess::RouterProcess(std::vector<std::string> argv, Environment environment,
                             const std::string& hosts)
    : process_(options(std::move(argv), std::move(environment), hosts)) {
  require_until([this] { return log().contains(R"("message":"started")") || !process_.running(); },
                std::chrono::seconds(20), "the router to start");
  port_ = number_behind(log(), R"("message":"routing","port":)");
  admin_port_ = number_behind(log(), R"("admin_port":)");
  if (port_ == 0) throw std::runtime_error("the router did not start:\n" + log());
}

ProcessOptions RouterProcess::options(std::vector<std::string> argv, Environment environment,
                                      const std::string& hosts) {
  set_hosts(hosts);
  environment.insert({{"LISTEN_ADDRESS", "127.0.0.1"},
                      {"LISTEN_PORT", "0"},
                      {"ADMIN_PORT", "0"},
                      {"LD_PRELOAD", hosts_library()},
                      {"NSS_WRAPPER_HOSTS", (folder_ / "hosts").string()},
                      {"NSS_WRAPPER_DISABLE_DEEPBIND", "1"}});  // which sanitizers refuse
  return {.argv = std::move(argv),
          .env = std::move(environment),
          .working_dir = {},
          .log_file = folder_ / "log"};
}

void RouterProcess::set_hosts(const std::string& lines) {
  write_file(folder_ / "hosts", lines);
  // nss_wrapper compares whole seconds.
  std::filesystem::last_write_time(
      folder_ / "hosts",
      std::filesystem::file_time_type::clock::now() + ++hosts_written_ * std::chrono::seconds(2));
}

RouterHarness::RouterHarness(Options from)
    : app_proxy_(std::make_unique<RecordingUpstream>("app-proxy", from.app_proxy)),
      workflows_(std::make_unique<RecordingUpstream>("workflows", from.workflows)),
      events_(std::make_unique<RecordingUpstream>("events", from.events)),
      router_(start(from)) {}

RouterProcess RouterHarness::start(Options& from) {
  Environment environment{{"APP_PROXY_URL", url(app_proxy_->port())},
                          {"WORKFLOWS_URL", url(workflows_->port())},
                          {"WEBHOOK_PORT", std::to_string(events_->port())},
                          {"WEBHOOK_ALLOWED_NAMESPACES", "argo,my-runtime"},
                          {"UPSTREAM_ALLOWED_ADDRESSES", "127.0.0.0/8"},
                          {"POD_NAMESPACE", "argo"}};
  for (const auto& [name, value] : from.environment) environment[name] = value;
  if (from.app_proxy_down) app_proxy_.reset();
  if (from.workflows_down) workflows_.reset();
  std::vector<std::string> argv{daemon_program("request-router")};
  if (!from.standard_output.empty()) {
    argv.insert(argv.begin(), {"sh", "-c", "exec \"$1\" >\"$0\"", from.standard_output.string()});
  }
  if (from.log_reader != nullptr) argv = from.log_reader->command(argv);
  return {std::move(argv), std::move(environment),
          "127.0.0.1 github-eventsource-svc.argo.svc.cluster.local\n"
          "127.0.0.1 github-eventsource-svc.my-runtime.svc.cluster.local\n"
          "127.0.0.1 victim-eventsource-svc.kube-system.svc.cluster.local\n"};
}

std::size_t RouterHarness::forwarded() const {
  std::size_t count = 0;
  for (const auto* upstream : {app_proxy_.get(), workflows_.get(), events_.get()}) {
    if (upstream != nullptr) count += upstream->requests().size();
  }
  return count;
}

void RouterHarness::forget() {
  for (auto* upstream : {app_proxy_.get(), workflows_.get(), events_.get()}) {
    if (upstream != nullptr) upstream->forget();
  }
}

std::size_t RouterHarness::status_number(std::string_view key) const {
  const auto status = read_file("/proc/" + std::to_string(router_.pid()) + "/status");
  const auto at = status.find(key);
  if (at == std::string::npos)
    throw std::runtime_error("no " + std::string(key) + " of the router");
  return std::strtoull(status.c_str() + at + key.size(), nullptr, 10);
}

std::size_t RouterHarness::descriptors() const {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(router_.pid()) + "/fd")) {
    ++count;
  }
  return count;
}

std::string RouterHarness::request(const std::string& method, const std::string& target,
                                   const std::string& more, const std::string& body) {
  std::string bytes = method + " " + target + " HTTP/1.1\r\nHost: router.example\r\n" + more;
  if (!body.empty()) bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return bytes + "\r\n" + body;
}

}  // namespace gitops::test
