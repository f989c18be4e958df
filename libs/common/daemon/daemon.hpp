#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/config_reader.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/server.hpp"

namespace gitops {

// Settings that every daemon has; bound into its ConfigReader by add_to().
struct DaemonConfig {
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::json;
  std::string admin_address = "::";
  std::int64_t admin_port = 8087;                   // 0: any free port, see the log
  std::chrono::milliseconds drain_delay{0};         // not ready -> stop accepting
  std::chrono::milliseconds drain_timeout{20'000};  // for work in flight
  void add_to(ConfigReader& reader, std::string_view admin_address_env);
};

// What run_daemon gives the App. Everything here outlives the App.
struct DaemonContext {
  Executor executor;
  asio::thread_pool& pool;
  Metrics& metrics;
  // Environment of the process, read once at start.
  const std::map<std::string, std::string>& environment;
  // Starts one more loop, on a thread of its own; it runs until the App has stopped.
  std::function<Executor()> add_loop;
  // Ends the daemon with exit code 1 after an orderly stop; for essential tasks that failed.
  std::function<void(const std::string& why)> fail;
};

// One check behind /readyz: its name, and an empty string or why it is not ready.
struct ReadyCheck {
  std::string name;
  std::function<std::string()> not_ready_because;
};

// A read-only page of the admin port.
struct AdminPage {
  std::string content_type = "application/json";
  std::string body;
};

// The shape every daemon's App has; run_daemon is written once, in terms of it.
struct DaemonApp {
  // Starts the parts (spawns tasks, listens). An error ends the daemon with exit code 1.
  std::function<Task<Result<void>>()> start;
  // Stops accepting, finishes or hands over work; after it nothing of the App runs any more. Also
  // called when start() failed or was cancelled by a signal. One that takes a second longer than
  // its deadline is cancelled.
  std::function<Task<>(Deadline)> stop;
  std::vector<ReadyCheck> ready_checks;
  // A text for people, for /statusz; may be empty.
  std::function<std::string()> status;
  // Further pages of the admin port by path ("/journal"), made from the query as it was sent. They
  // are there while the App runs, for GET and HEAD, and for anybody who reaches the port.
  std::map<std::string, std::function<AdminPage(std::string_view query)>> pages = {};
};

// What differs between daemons, for the frame.
struct DaemonSpec {
  std::string name;                         // "event-reporter"
  std::string summary;                      // one sentence for --help
  std::string admin_address_env;            // e.g. METRICS_LISTEN_ADDRESS
  std::function<void(ConfigReader&)> bind;  // adds the program's own rows
  // Builds the App on the loop thread; owned by the returned functions.
  std::function<DaemonApp(DaemonContext)> make;
};

// The frame of every daemon: flags, configuration, logging, the loop, the admin port
// (/healthz /readyz /metrics /statusz and the App's own pages), signals and the orderly end.
//
// Exit codes: 0 stopped by SIGTERM or SIGINT (or --help, --version, a good --check-config),
// 1 failed while running or starting, 2 wrong configuration (every mistake on standard error).
// A second signal ends the process at once, with exit code 1. SIGTERM: not ready -> drain_delay ->
// App::stop with drain_timeout -> cancel -> exit. Core files are switched off: they would hold
// secrets.
int run_daemon(const DaemonSpec& spec, int argc, char** argv);

}  // namespace gitops
