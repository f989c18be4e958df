#include "common/daemon/daemon.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/redirect_error.hpp>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/idle_memory.hpp"
#include "common/core/json_text.hpp"
#include "common/core/process.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "common/core/worker_pool.hpp"
#include "common/daemon/loop_thread.hpp"
#include "common/daemon/trace_exporter.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/router.hpp"
#include "common/http/url.hpp"

namespace gitops {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kExitGood = 0;
constexpr int kExitFailed = 1;
constexpr int kExitWrongConfiguration = 2;
constexpr milliseconds kStopGrace = seconds(1);    // tolerance after the deadline of stop()
constexpr milliseconds kCancelGrace = seconds(2);  // for cancelled tasks

http::Response page(int status, std::string body) {
  auto response = http::text_response(status, std::move(body));
  response.headers.set("Cache-Control", "no-store");
  return response;
}

// Browsers send one of these with a request that a page of another site causes. Programs send none.
bool is_of_web_page(const http::Request& request) {
  return request.headers.find("Origin") || request.headers.find("Sec-Fetch-Site");
}

// The sources of the settings.
struct ConfigSources {
  std::vector<std::string> arguments;
  std::string file = {};         // empty: none
  std::string fingerprint = {};  // of the file, taken before the file was read again
  // The mistakes of the file since then, and its fingerprint with them.
  std::vector<std::string> mistakes = {};
  std::string fingerprint_with_mistakes = {};
  EmptyFileWatch empty = {};
};

// Runs one daemon from its valid configuration to its exit code. Lives on the loop thread.
class Frame {
 public:
  Frame(const DaemonSpec& spec, const DaemonConfig& config, ConfigSources sources,
        const std::map<std::string, std::string>& environment)
      : spec_(spec),
        config_(config),
        sources_(std::move(sources)),
        environment_(environment),
        log_("daemon"),
        admin_(loop_.get_executor(), admin_options(config),
               [this](http::Exchange& exchange) { return answer(exchange); }),
        signals_(loop_.get_executor()),
        changed_(loop_.get_executor()),
        frame_tasks_(
            loop_.get_executor(),
            [this](const std::string& task, const std::string& what) { fail(task + ": " + what); }),
        app_tasks_(loop_.get_executor(), [this](const std::string& task, const std::string& what) {
          fail(task + ": " + what);
        }) {
    metrics_
        .gauge("gitops_build_info", "1; labels tell the program and its version",
               {{"program", spec.name}, {"version", std::string(version())}})
        .Set(1);
    routes_ = admin_routes();
    if (config.otlp_endpoint) {
      tracer_.record(config.trace_ratio);
      exporter_.emplace(loop_.get_executor(), tracer_, metrics_, otlp_headers(config),
                        exporter_options(config, environment));
    }
  }

  int run() {
    asio::co_spawn(
        loop_.get_executor(), [this] { return live(); },
        [this](const std::exception_ptr& failure) {
          loop_.stop();
          if (failure) std::rethrow_exception(failure);
        });
    try {
      loop_.run();
    } catch (const std::exception& error) {
      log_.error("uncaught exception", {{"error", error.what()}});
      end_process(kExitFailed);
    }
    for (auto& more : more_loops_) more.stop();
    app_ = {};
    if (WorkerPool::left_behind() > 0) end_process(exit_code_);
    return exit_code_;
  }

 private:
  enum class Phase { starting, running, draining };

  static http::ServerOptions admin_options(const DaemonConfig& config) {
    http::ServerOptions options;
    options.address = config.admin_address;
    options.port = static_cast<std::uint16_t>(config.admin_port);
    options.max_connections = 100;
    // Reserves connections for these pages, however busy the port is with other pages.
    options.reserve = 8;
    options.reserved_for = [](const http::Request& request) {
      return request.target == "/healthz" || request.target == "/readyz";
    };
    return options;
  }

  static Credential otlp_headers(const DaemonConfig& config) {
    return config.otlp_headers_file.empty() ? Credential::fixed(config.otlp_headers)
                                            : Credential::file(config.otlp_headers_file);
  }

  [[nodiscard]] TraceExporter::Options exporter_options(
      const DaemonConfig& config, const std::map<std::string, std::string>& environment) const {
    TraceExporter::Options options{.collector = *config.otlp_endpoint};
    options.client.tls.ca_file = config.otlp_ca_file;
    options.client.proxy = http::proxy_settings(environment);
    options.resource = {
        .program = spec_.name, .version = std::string(version()), .instance = host_name()};
    return options;
  }

  void fail(const std::string& why) {
    if (exit_code_ == kExitGood) log_.error("failed", {{"reason", why}});
    exit_code_ = kExitFailed;
    stop_requested_ = true;
    changed_.notify_all();
  }

  Task<> live() {
    if (listen()) {
      co_await start_app();
      if (phase_ == Phase::running) co_await until_stop_requested();
      co_await stop_app();
      co_await admin_.stop(deadline_after(kStopGrace));
    }
    frame_tasks_.cancel();
    co_await frame_tasks_.join();
    if (exporter_) co_await exporter_->flush(deadline_after(kStopGrace));
    log_.info("stopped", {{"exit_code", exit_code_}});
  }

  std::optional<std::vector<std::string>> read_again(const DaemonContext::Bind& bind) {
    if (sources_.file.empty()) return std::nullopt;
    auto fingerprint = file_fingerprint(sources_.file);
    if (fingerprint == sources_.fingerprint) {
      sources_.mistakes.clear();
      return std::nullopt;
    }
    // An empty file would set all its settings to their defaults.
    const auto text = read_small_file(sources_.file);
    const bool is_empty = text && trimmed(*text).empty();
    const bool stays_empty = sources_.empty.stays_empty(is_empty, fingerprint);
    if (is_empty && !stays_empty) return std::nullopt;
    DaemonConfig own;
    ConfigReader reader(spec_.name, spec_.summary);
    bind(reader);
    own.add_to(reader, spec_.admin_address_env);
    auto mistakes = reader.load(sources_.arguments, environment_).mistakes;
    if (mistakes.empty()) {
      sources_.fingerprint = std::move(fingerprint);
      sources_.mistakes.clear();
      return mistakes;
    }
    // A mistake may pass without another change of the file: the file could not be read, or a file
    // that it names comes later. It is read again each time, but the same mistakes are told once.
    if (mistakes == sources_.mistakes && fingerprint == sources_.fingerprint_with_mistakes) {
      return std::nullopt;
    }
    sources_.fingerprint_with_mistakes = std::move(fingerprint);
    sources_.mistakes = mistakes;
    return mistakes;
  }

  bool listen() {
    boost::system::error_code error;
    signals_.add(SIGTERM, error);
    signals_.add(SIGINT, error);
    frame_tasks_.spawn("signals", [this] { return handle_signals(); });
    frame_tasks_.spawn("memory", [] { return release_memory_when_quiet(); });
    if (exporter_) frame_tasks_.spawn("traces", [this] { return exporter_->run(); });
    if (const auto listening = admin_.listen(); !listening) {
      fail("admin port: " + listening.error().message);
      return false;
    }
    log_.debug("admin port is listening", {{"admin_port", admin_.port()}});
    return true;
  }

  Task<> handle_signals() {
    while (true) {
      const int number = co_await signals_.async_wait(use_task);
      if (stop_requested_ && signalled_) {
        log_.warning("second signal received; exiting immediately", {{"signal", number}});
        end_process(kExitFailed);
      }
      log_.info("stopping", {{"signal", number}});
      signalled_ = true;
      stop_requested_ = true;
      changed_.notify_all();
    }
  }

  static Task<> release_memory_when_quiet() {
    QuietWatch watch;
    while (true) {
      co_await sleep_for(QuietWatch::kPeriod);
      if (watch.is_quiet(process_cpu_time())) release_idle_memory();
    }
  }

  Task<> until_stop_requested() {
    while (!stop_requested_) co_await changed_.wait();
  }

  // Starts the App. The phase is `running` afterwards, unless the start failed or a signal came
  // first.
  Task<> start_app() {
    try {
      app_ = spec_.make({.executor = loop_.get_executor(),
                         .metrics = metrics_,
                         .tracer = tracer_,
                         .environment = environment_,
                         .add_loop = [this] { return more_loops_.emplace_back().executor(); },
                         .fail = [this](const std::string& why) { fail(why); },
                         .read_again = [this](const auto& bind) { return read_again(bind); }});
      routes_ = admin_routes();
    } catch (const std::exception& error) {
      fail(error.what());
      co_return;
    }
    std::optional<Result<void>> started;
    app_tasks_.spawn("start", [this, &started]() -> Task<> {
      started = co_await app_.start();
      changed_.notify_all();
    });
    while (!started && !stop_requested_) co_await changed_.wait();
    if (!started) {
      app_tasks_.cancel();
      co_await app_tasks_.join();
    } else if (!*started) {
      fail("start: " + started->error().message);
    } else if (!stop_requested_) {
      phase_ = Phase::running;
      const std::chrono::duration<double, std::milli> took = Clock::now() - began_;
      log_.info("started", {{"program", spec_.name},
                            {"version", version()},
                            {"admin_port", admin_.port()},
                            {"start_ms", static_cast<std::int64_t>(took.count())}});
    }
  }

  Task<> stop_app() {
    const bool was_running = phase_ == Phase::running;
    phase_ = Phase::draining;
    if (was_running && exit_code_ == kExitGood && config_.drain_delay > milliseconds::zero()) {
      co_await sleep_for(config_.drain_delay);
    }
    if (!app_.stop) co_return;
    const Deadline deadline = deadline_after(config_.drain_timeout);
    bool stopped = false;
    TaskGroup stopping(
        loop_.get_executor(),
        [this](const std::string& task, const std::string& what) { fail(task + ": " + what); });
    stopping.spawn("stop", [this, deadline, &stopped]() -> Task<> {
      co_await app_.stop(deadline);
      stopped = true;
    });
    // Cancels tasks that outlast the deadline; ends the process when a task ignores cancellation.
    TaskGroup watchdog(loop_.get_executor());
    watchdog.spawn("watchdog", [this, deadline, &stopping]() -> Task<> {
      co_await sleep_until(deadline + kStopGrace);
      log_.error("stop exceeded its deadline; cancelling its tasks");
      exit_code_ = kExitFailed;
      stopping.cancel();
      co_await sleep_for(kCancelGrace);
      log_.error("cancelled tasks did not end; ending the process");
      end_process(kExitFailed);
    });
    co_await stopping.join();
    watchdog.cancel();
    co_await watchdog.join();
    if (!stopped) exit_code_ = kExitFailed;
  }

  struct NotReady {
    std::string check;
    std::string reason;
  };

  // Returns the failing checks; empty when ready.
  [[nodiscard]] std::vector<NotReady> failing_checks() const {
    if (phase_ == Phase::starting) return {{.check = "daemon", .reason = "starting"}};
    if (phase_ == Phase::draining || stop_requested_) {
      return {{.check = "daemon", .reason = "stopping"}};
    }
    std::vector<NotReady> failing;
    for (const ReadyCheck& check : app_.ready_checks) {
      if (auto why = check.not_ready_because(); !why.empty()) {
        failing.push_back({.check = check.name, .reason = std::move(why)});
      }
    }
    return failing;
  }

  // Returns the reasons for not being ready, one a line; empty when ready.
  [[nodiscard]] std::string not_ready_because() const {
    std::string reasons;
    for (const auto& [check, reason] : failing_checks()) reasons += check + ": " + reason + '\n';
    return reasons;
  }

  [[nodiscard]] StatusReport report() const {
    return phase_ == Phase::running && app_.report ? app_.report() : StatusReport();
  }

  [[nodiscard]] std::string report_as_text() const {
    const auto uptime = std::chrono::duration_cast<seconds>(Clock::now() - began_);
    std::string text =
        spec_.name + " " + std::string(version()) + "\nup " + format_duration(uptime) + "\n";
    const std::string reasons = not_ready_because();
    text += reasons.empty() ? "ready\n" : "not ready:\n" + reasons;
    if (const auto entries = report(); !entries.empty()) text += '\n' + status_text(entries);
    return text;
  }

  [[nodiscard]] std::string report_as_json() const {
    const auto uptime = std::chrono::duration_cast<milliseconds>(Clock::now() - began_);
    const auto failing = failing_checks();
    std::string text;
    ObjectWriter writer(text);
    writer.text("program", spec_.name);
    writer.text("version", version());
    writer.raw("uptime_ms", std::to_string(uptime.count()));
    writer.raw("ready", failing.empty() ? "true" : "false");
    auto& list = writer.begin("not_ready") += '[';
    for (const auto& [check, reason] : failing) {
      if (!list.ends_with('[')) list += ',';
      ObjectWriter item(list);
      item.text("check", check);
      item.text("reason", reason);
      item.end();
    }
    list += ']';
    writer.raw("entries", status_json(report()));
    writer.end();
    text += '\n';
    return text;
  }

  [[nodiscard]] http::Response status_page(std::string_view query) const {
    const auto format = http::query_parameter(query, "format");
    if (format == "json") {
      auto response = page(200, report_as_json());
      response.headers.set("Content-Type", "application/json");
      return response;
    }
    if (!format.empty() && format != "text") return page(400, "format must be text or json\n");
    return page(200, report_as_text());
  }

  // Returns the App's response; 503 while the App does not run.
  http::Response answer_of(const std::function<AdminPage()>& make) {
    if (phase_ != Phase::running) return page(503, not_ready_because());
    AdminPage content = make();
    auto response = page(200, {});
    response.body = std::move(content.body);
    response.headers.set("Content-Type", std::move(content.content_type));
    return response;
  }

  // Returns the frame's own pages and, once there is an App, its pages; the frame's come first.
  [[nodiscard]] std::shared_ptr<const http::Router> admin_routes() {
    std::vector<http::Route> routes;
    const auto add = [&routes](const std::string& path, std::function<http::Response()> make) {
      routes.push_back({"GET", path, http::open_to_all(),
                        http::answer_with([make = std::move(make)](const auto&, const auto&) {
                          return make();
                        })});
    };
    add("/healthz", [] { return page(200, "ok"); });
    routes.push_back({"GET", "/statusz", http::open_to_all(),
                      http::answer_with([this](const http::Exchange& exchange, const auto&) {
                        return status_page(exchange.query());
                      })});
    add("/metrics", [this] {
      lost_lines_.Increment(static_cast<double>(log_lines_dropped()) - lost_lines_.Value());
      auto response = page(200, metrics_.expose());
      response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
      return response;
    });
    add("/readyz", [this] {
      const std::string reasons = not_ready_because();
      return reasons.empty() ? page(200, "ready\n") : page(503, reasons);
    });
    const std::size_t own = routes.size();
    for (const auto& [path, make] : app_.pages) {
      if (std::any_of(routes.begin(), routes.begin() + static_cast<std::ptrdiff_t>(own),
                      [&path](const http::Route& route) { return route.pattern == path; })) {
        continue;
      }
      routes.push_back(
          {"GET", path, http::open_to_all(),
           http::answer_with([this, make](const http::Exchange& exchange, const auto&) {
             return answer_of([&] { return make(exchange.query()); });
           })});
    }
    for (const auto& [path, run] : app_.commands) {
      routes.push_back({"POST", path, http::open_to_all(),
                        http::answer_with([this, run](const http::Exchange& exchange, const auto&) {
                          if (is_of_web_page(exchange.request())) {
                            return page(403, "commands are not for web pages\n");
                          }
                          return answer_of([&] { return run(exchange.query()); });
                        })});
    }
    return std::make_shared<http::Router>(std::move(routes),
                                          [](int status, std::string_view message) {
                                            return page(status, std::string(message) + "\n");
                                          });
  }

  Task<> answer(http::Exchange& exchange) {
    const auto routes = routes_;  // they may be replaced meanwhile
    co_await routes->serve(exchange);
  }

  const Clock::time_point began_ = Clock::now();
  const DaemonSpec& spec_;
  const DaemonConfig& config_;
  ConfigSources sources_;
  const std::map<std::string, std::string>& environment_;
  Log log_;
  Tracer tracer_;
  Loop loop_{1};
  std::list<LoopThread> more_loops_;
  Metrics metrics_;
  Counter& lost_lines_ = metrics_.counter("gitops_log_lines_dropped_total",
                                          "Log lines that standard error did not take");
  std::shared_ptr<const http::Router> routes_;  // routes of the admin port
  http::Server admin_;
  asio::basic_signal_set<Executor> signals_;
  Event changed_;
  std::optional<TraceExporter> exporter_;  // none: traces are not recorded
  TaskGroup frame_tasks_;
  TaskGroup app_tasks_;
  DaemonApp app_;
  Phase phase_ = Phase::starting;
  bool stop_requested_ = false;
  bool signalled_ = false;
  int exit_code_ = kExitGood;
};

int print_mistakes(const std::string& program, const std::vector<std::string>& mistakes) {
  std::string text = program + ": the configuration has " + std::to_string(mistakes.size()) +
                     (mistakes.size() == 1 ? " mistake:\n" : " mistakes:\n");
  for (const std::string& mistake : mistakes) text += "  " + mistake + '\n';
  std::fputs(text.c_str(), stderr);
  return kExitWrongConfiguration;
}

int print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? kExitGood
                                                                           : kExitFailed;
}

}  // namespace

namespace {

Result<std::optional<http::Url>> read_collector(const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto url = http::parse_url(text);
  if (!url) return std::unexpected(std::move(url.error()));
  if (url->scheme != "http" && url->scheme != "https") {
    return gitops::fail(ErrorCode::invalid_argument, "must be an http:// or https:// address");
  }
  if (!url->query.empty() || !url->userinfo.empty()) {
    return gitops::fail(ErrorCode::invalid_argument, "must have neither a query nor a password");
  }
  return std::move(*url);
}

bool read_ratio(const std::string& text, double& ratio) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || read != end || !(value >= 0 && value <= 1)) return false;
  ratio = value;
  return true;
}

}  // namespace

void DaemonConfig::add_to(ConfigReader& reader, std::string_view admin_address_env) {
  reader.group("Daemon");
  reader.add({"log-level", {"LOG_LEVEL"}, "Lowest level of log lines to write"},
             "debug|info|warn|error", "info", [this](const std::string& text) -> std::string {
               const auto level = parse_log_level(text);
               if (!level) return level.error().message;
               log_level = *level;
               return {};
             });
  reader.add_choice({"log-format", {"LOG_FORMAT"}, "json for log collectors, text for terminals"},
                    log_format, {"json", "text"});
  std::vector<std::string_view> address_env;
  if (!admin_address_env.empty()) address_env.push_back(admin_address_env);
  reader.add({"admin-address", address_env,
              "Address that serves /healthz, /readyz, /metrics and /statusz; :: is IPv6 and IPv4, "
              "or IPv4 where there is no IPv6"},
             admin_address);
  reader.add({"admin-port", {"ADMIN_PORT"}, "Admin port; 0 takes a free one and logs it"},
             admin_port, 0, 65535);
  reader.add({"drain-delay",
              {"DRAIN_DELAY"},
              "Time between SIGTERM, when /readyz fails, and the end of accepting requests"},
             drain_delay, milliseconds(0), std::chrono::minutes(10));
  reader.add(
      {"drain-timeout", {"DRAIN_TIMEOUT"}, "Time limit for requests in flight during a stop"},
      drain_timeout, milliseconds(0), std::chrono::hours(1));
  reader.group("Traces");
  reader.add_parsed({"otlp-endpoint",
                     {"OTEL_EXPORTER_OTLP_ENDPOINT"},
                     "Base address of an OpenTelemetry collector (OTLP over HTTP, JSON), for "
                     "example http://collector:4318; empty records no traces"},
                    otlp_endpoint, "", read_collector);
  reader.add_secret({"otlp-headers",
                     {"OTEL_EXPORTER_OTLP_HEADERS"},
                     "Headers for the collector: name=value, separated by commas, values "
                     "percent-encoded"},
                    otlp_headers, &otlp_headers_file);
  reader.add({"otlp-ca-file",
              {"OTEL_EXPORTER_OTLP_CERTIFICATE"},
              "PEM file of authorities for the collector instead of the system's"},
             otlp_ca_file);
  reader.add({"trace-ratio",
              {"OTEL_TRACES_SAMPLER_ARG"},
              "Part of the traces to record, from 0 to 1, chosen by trace id; traces that the "
              "caller records are recorded besides, at most 20 a second"},
             "NUMBER", "0.01", [this](const std::string& text) -> std::string {
               return read_ratio(text, trace_ratio)
                          ? ""
                          : "must be a number from 0 to 1, for example 0.05";
             });
}

int run_daemon(const DaemonSpec& spec, int argc, char** argv) {
  prepare_process();
  std::signal(SIGHUP, SIG_IGN);
  const auto environment = process_environment();
  DaemonConfig config;
  ConfigReader reader(spec.name, spec.summary);
  if (spec.bind) spec.bind(reader);
  config.add_to(reader, spec.admin_address_env);
  using Action = ConfigReader::Outcome::Action;
  ConfigSources sources{.arguments = {argv + std::min(argc, 1), argv + argc}};
  const auto outcome = reader.load(sources.arguments, environment);
  switch (outcome.action) {
    case Action::help:
      return print(reader.help());
    case Action::version:
      return print(spec.name + " " + std::string(version()) + "\n");
    case Action::table:
      return print(reader.markdown_table());
    case Action::check:
    case Action::run:
      break;
  }
  if (!outcome.mistakes.empty()) return print_mistakes(spec.name, outcome.mistakes);
  if (outcome.action == Action::check) return print("configuration is valid\n");
  configure_logging(config.log_level, config.log_format);
  sources.file = outcome.file;
  return Frame(spec, config, std::move(sources), environment).run();
}

}  // namespace gitops
