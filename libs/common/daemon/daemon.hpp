#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/config_reader.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/secret.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "common/core/trace.hpp"
#include "common/http/server.hpp"
#include "common/http/url.hpp"

namespace gitops {

// Settings that every daemon has; bound into its ConfigReader by add_to().
struct DaemonConfig {
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::json;
  std::string admin_address = "::";
  std::int64_t admin_port = 8087;                   // 0: any free port, which is logged
  std::chrono::milliseconds drain_delay{0};         // time from not ready to the end of accepting
  std::chrono::milliseconds drain_timeout{20'000};  // for requests in flight
  std::optional<http::Url> otlp_endpoint = {};      // base address of a collector; none: no traces
  Secret otlp_headers = {};
  std::string otlp_headers_file = {};
  std::string otlp_ca_file = {};
  double trace_ratio = 0.01;  // part of all traces that is recorded
  void add_to(ConfigReader& reader, std::string_view admin_address_env);
};

// The objects of the frame that an App uses. All of them outlive the App.
struct DaemonContext {
  Executor executor;
  Metrics& metrics;
  // Records the spans of this process, where the settings name a collector.
  Tracer& tracer;
  // The environment of the process, read once at start.
  const std::map<std::string, std::string>& environment;
  // Starts another loop on its own thread. The loop runs until the App has stopped.
  std::function<Executor()> add_loop;
  // Stops the daemon in order, with exit code 1, when an essential task fails.
  std::function<void(const std::string& why)> fail;
  // Reads flags, environment and configuration file again, if the file has changed since it was last
  // read, into the settings that `bind` adds. Returns the mistakes; nothing when there is no file or it
  // is unchanged. Lets an App take over settings while it runs.
  using Bind = std::function<void(ConfigReader&)>;
  std::function<std::optional<std::vector<std::string>>(const Bind& bind)> read_again = {};
};

// One check behind /readyz: its name, and the reason for not being ready (empty when ready).
struct ReadyCheck {
  std::string name;
  std::function<std::string()> not_ready_because;
};

// A page of the admin port.
struct AdminPage {
  std::string content_type = "application/json";
  std::string body;
};

// The interface between a daemon's App and run_daemon.
struct DaemonApp {
  // Spawns tasks and opens ports. An error ends the daemon with exit code 1.
  std::function<Task<Result<void>>()> start;
  // Stops accepting work, then finishes it or hands it over. No task of the App runs afterwards.
  // Also called when start() failed or a signal cancelled it. The frame cancels a stop that exceeds
  // its deadline by more than a second.
  std::function<Task<>(Deadline)> stop;
  std::vector<ReadyCheck> ready_checks;
  // Returns the entries of /statusz; may be empty.
  std::function<StatusReport()> report = {};
  // Further pages of the admin port, by path ("/journal"). The argument is the raw query. They are
  // served while the App runs, for GET and HEAD, without authentication.
  std::map<std::string, std::function<AdminPage(std::string_view query)>> pages = {};
  // Commands of the admin port, by path ("/refused/retry"): run by POST, without a body and without
  // authentication, so they must be harmless. The argument is the raw query. Requests that a web
  // page makes a browser send are refused: a forwarded admin port is open to every page.
  std::map<std::string, std::function<AdminPage(std::string_view query)>> commands = {};
};

// The description of one daemon.
struct DaemonSpec {
  std::string name;                         // "event-reporter"
  std::string summary;                      // one sentence for --help
  std::string admin_address_env;            // e.g. METRICS_LISTEN_ADDRESS
  std::function<void(ConfigReader&)> bind;  // adds the program's own settings
  // Builds the App on the loop thread; owned by the returned functions.
  std::function<DaemonApp(DaemonContext)> make;
};

// Describes a daemon of which a Config holds all settings: `bind(reader, config)` adds their rows.
template <class Config>
DaemonSpec daemon_spec(
    std::string name, std::string summary,
    std::function<DaemonApp(const DaemonContext&, std::shared_ptr<Config>)> make) {
  const auto config = std::make_shared<Config>();
  return {.name = std::move(name),
          .summary = std::move(summary),
          .admin_address_env = "METRICS_LISTEN_ADDRESS",
          .bind = [config](ConfigReader& reader) { bind(reader, *config); },
          .make = [config, make = std::move(make)](
                      const DaemonContext& context) { return make(context, config); }};
}

// Returns the functions of an app with start(), stop(deadline) and status(). They own the app and
// its configuration.
template <class App, class Config>
DaemonApp daemon_app(const std::shared_ptr<App>& app, std::shared_ptr<Config> config) {
  return {.start = [app, config = std::move(config)] { return app->start(); },
          .stop = [app](Deadline deadline) { return app->stop(deadline); },
          .ready_checks = {},
          .report = [app] { return app->status(); }};
}

// The frame of every daemon: flags, configuration, logging, the loop, the admin port
// (/healthz /readyz /metrics /statusz and the App's own pages), signals and graceful shutdown.
//
// Exit codes: 0 stopped by SIGTERM or SIGINT (or --help, --version, a valid --check-config),
// 1 failed while starting or running, 2 invalid configuration (every mistake on standard error).
// A second signal ends the process immediately, with exit code 1. SIGTERM: not ready, drain_delay,
// DaemonApp::stop with drain_timeout, cancellation, exit. SIGHUP is ignored: certificates, tokens and
// other files that may change are read again without it. Core files are disabled: they would contain
// secrets.
int run_daemon(const DaemonSpec& spec, int argc, char** argv);

}  // namespace gitops
