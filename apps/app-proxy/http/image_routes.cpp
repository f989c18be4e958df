#include "app-proxy/http/image_routes.hpp"

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/sealing/tool_integration.hpp"
#include "app-proxy/users/credential.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/sse.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(30);
constexpr auto kReadTimeout = std::chrono::seconds(10);
constexpr auto kPoll = std::chrono::seconds(1);
constexpr auto kLastLines = std::chrono::seconds(3);  // for lines after the end of the Workflow
constexpr std::size_t kMaxWrite = 16 * 1024;
constexpr std::size_t kSuffixBytes = 5;

std::string event_of(const char* type, std::string data) {
  std::string out;
  (void)http::append_event(out, {.event = type, .data = std::move(data)});
  return out;
}

std::string error_event(std::string_view name, std::string_view message) {
  return event_of("error", to_text({{"name", name}, {"message", message}}));
}

// Returns an event in the form for the reporter.
std::string log_event(const LogEvent& event) {
  if (event.kind == LogEvent::Kind::error) return {};  // concerns the stream, not the report
  return event_of("workflow-log",
                  to_text({{"podName", event.line.pod}, {"content", event.line.content}}));
}

// Waits for lines until the deadline, and appends those that are available. Returns false at the
// end of the logs.
Task<bool> next_lines(LogFeed& logs, Deadline until, std::string& out) {
  auto event = co_await logs.next(until);
  while (event.kind == LogEvent::Kind::line || event.kind == LogEvent::Kind::error) {
    out += log_event(event);
    if (!logs.has_more() || out.size() >= kMaxWrite) co_return true;
    event = co_await logs.next(until);
  }
  co_return event.kind != LogEvent::Kind::end;
}

Task<bool> start_events(http::Exchange& exchange) {
  const auto started = co_await exchange.start({.status = 200,
                                                .headers = {{"Content-Type", "text/event-stream"},
                                                            {"Cache-Control", "no-cache"},
                                                            {"X-Accel-Buffering", "no"}}});
  co_return started.has_value();
}

}  // namespace

ImageRoutes::ImageRoutes(Dependencies dependencies, ImageReportOptions options)
    : dependencies_(std::move(dependencies)),
      options_(std::move(options)),
      own_{.user = std::make_shared<const User>(
               User{.name = "app-proxy", .is_admin = true, .is_runtime = true})} {}

Task<> ImageRoutes::serve(http::Exchange& exchange) {
  const auto admission = co_await dependencies_.gate.authenticate(exchange);
  if (!admission) co_return;
  if (exchange.query().empty()) {
    (void)co_await exchange.reply({.status = 200,
                                   .headers = {{"Content-Type", "application/json; charset=utf-8"},
                                               {"Cache-Control", "no-store"}},
                                   .body = image_report_catalogue()});
    co_return;
  }
  const auto begun = Clock::now();
  const auto deadline = deadline_after(kStartTimeout);
  const auto credential = credential_of(exchange.request().headers);
  auto report = parse_image_report(exchange.query());
  Result<std::string> workflow;
  if (credential.kind != RequestCredential::Kind::token) {
    // A page of another site could send a cookie.
    workflow = fail(ErrorCode::forbidden, "an API key is needed, not a session");
  } else if (!report) {
    workflow = std::unexpected(report.error());
  } else if (dependencies_.cluster == nullptr) {
    workflow = fail(ErrorCode::unavailable, "the runtime has no access to its cluster");
  } else if (auto admitted = admit(*admission->caller.user); !admitted) {
    workflow = std::unexpected(std::move(admitted.error()));
  } else if (auto completed = co_await complete(*report, *admission->caller.user, deadline);
             !completed) {
    workflow = std::unexpected(std::move(completed.error()));
  } else {
    workflow = co_await begin(*report, credential.sent.value, deadline);
  }
  std::vector<std::pair<std::string_view, std::string>> subject;
  if (report) {
    subject.emplace_back("image", report->image);
    for (const auto& [name, value] : {std::pair("registry", &report->registry_integration),
                                      std::pair("issues", &report->jira_integration),
                                      std::pair("git", &report->git_integration)}) {
      if (!value->empty()) subject.emplace_back(name, *value);
    }
  }
  if (workflow) subject.emplace_back("workflow", *workflow);
  dependencies_.audit.write({.caller = admission->caller,
                             .action = "image-report",
                             .subject = std::move(subject),
                             .result = workflow ? "ok" : to_string(workflow.error().code),
                             .took = Clock::now() - begun});
  if (!co_await start_events(exchange)) co_return;
  if (!workflow) {
    (void)co_await exchange.write(
        error_event(to_string(workflow.error().code), workflow.error().message));
  } else {
    const auto end =
        co_await exchange.stream(follow(exchange, *workflow, std::move(report->warnings)));
    if (end == http::StreamEnd::client_left) co_return;
    if (end == http::StreamEnd::draining) {
      (void)co_await exchange.write(error_event(
          "unavailable", "the runtime restarts; Workflow " + *workflow + " goes on without it"));
    }
  }
  (void)co_await exchange.finish();
}

Result<void> ImageRoutes::admit(const User& user) {
  const auto& key = user.id.empty() ? user.name : user.id;
  const auto wait = reports_.wait_of(key, Clock::now());
  if (wait > Clock::duration::zero()) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    return fail(ErrorCode::too_many_requests,
                "too many reports of one user; repeat this in " + std::to_string(seconds) + " s");
  }
  reports_.spend(key, Clock::now());
  return {};
}

Task<Result<void>> ImageRoutes::complete(ImageReport& report, const User& user, Deadline deadline) {
  if (const auto& name = report.registry_integration; !name.empty()) {
    const auto stored = co_await integration(name, deadline);
    if (!stored) co_return std::unexpected(stored.error());
    if (auto used = use_registry(report, *stored); !used) co_return used;
  }
  if (const auto& name = report.jira_integration; !name.empty()) {
    const auto stored = co_await integration(name, deadline);
    if (stored) {
      if (auto used = use_issue_tracker(report, *stored); !used) co_return used;
    } else if (stored.error().code == ErrorCode::not_found) {
      use_issue_tracker_of_control_plane(report, name);
    } else {
      co_return std::unexpected(stored.error());
    }
  }
  co_return co_await add_git_host(report, user, deadline);
}

// Reads an integration as applyIntegration has stored it, after Argo CD and Sealed Secrets have
// applied it.
Task<Result<StoredIntegration>> ImageRoutes::integration(std::string name, Deadline deadline) {
  if (auto checked = check_entity_name(name); !checked) {
    co_return fail("name of an integration", std::move(checked.error()));
  }
  const k8s::ObjectKey key{options_.own_namespace, integration_object_name(name)};
  const auto info = co_await dependencies_.cluster->get(k8s::resources::kConfigMaps, key, deadline);
  if (!info && info.error().code == ErrorCode::not_found) {
    co_return fail(ErrorCode::not_found, "this runtime has no integration " + name);
  }
  if (!info) co_return fail("the integration " + name, info.error());
  const auto secret = co_await dependencies_.cluster->get(k8s::resources::kSecrets, key, deadline);
  if (!secret && secret.error().code != ErrorCode::not_found) {
    co_return fail("the credentials of the integration " + name, secret.error());
  }
  co_return stored_integration(name, *info, secret ? *secret : std::string());
}

Task<Result<void>> ImageRoutes::add_git_host(ImageReport& report, const User& user,
                                             Deadline deadline) {
  const bool is_named = !report.git_integration.empty();
  if (!report.has_git || (!is_named && has_git_credentials(report))) co_return Result<void>();
  auto host = co_await dependencies_.git_hosts->access(user, report.git_integration, deadline);
  auto used =
      host ? use_git_host(report, *host) : Result<void>(std::unexpected(std::move(host.error())));
  if (used || is_named) co_return used;
  // The image can be reported without its commits.
  report.has_git = false;
  report.warnings.push_back("no commits are added: " + used.error().message);
  co_return Result<void>();
}

// Creates the Workflow, then its Secret. The Workflow's pods wait for the Secret.
Task<Result<std::string>> ImageRoutes::begin(const ImageReport& report, const Secret& api_key,
                                             Deadline deadline) {
  const std::string name = "image-report-" + hex_encode(random_bytes(kSuffixBytes));
  const auto& ns = options_.own_namespace;
  const auto created = co_await dependencies_.cluster->create(
      k8s::resources::kWorkflows, ns, image_report_workflow(options_, report, name), deadline);
  if (!created) {
    // One whose answer was lost would wait for its Secret for ever.
    const int status = created.error().http_status;
    if (status == 0 || status >= 500) {
      (void)co_await dependencies_.cluster->remove(k8s::resources::kWorkflows, {ns, name},
                                                   deadline_after(kReadTimeout));
    }
    co_return fail("the report's Workflow", created.error());
  }
  const auto uid = string_at(parse_json_object(*created), {"metadata", "uid"});
  const Secret secret = image_report_secret(options_, report, api_key, name, uid);
  const auto stored = co_await dependencies_.cluster->create(
      k8s::resources::kSecrets, ns, std::string(secret.reveal()), deadline);
  if (!stored) {
    (void)co_await dependencies_.cluster->remove(k8s::resources::kWorkflows, {ns, name},
                                                 deadline_after(kReadTimeout));
    co_return fail("the report's Secret", stored.error());
  }
  log_.info("an image is reported", {{"image", report.image}, {"workflow", name}});
  co_return name;
}

Task<> ImageRoutes::look(const std::string& workflow, Seen& seen) {
  const auto object = co_await dependencies_.cluster->get(
      k8s::resources::kWorkflows, {options_.own_namespace, workflow}, deadline_after(kReadTimeout));
  if (!object) {
    if (object.error().code == ErrorCode::not_found) {
      seen.events = error_event("not_found", "Workflow " + workflow + " was deleted");
      seen.is_over = true;
    }
    co_return;  // the state is unknown now
  }
  const auto state = image_report_state(*object);
  if (state.is_success()) {
    seen.events = event_of("end", "the image is reported");
  } else if (state.is_over()) {
    seen.events =
        error_event(state.phase,
                    state.message.empty() ? "Workflow " + workflow + " has failed" : state.message);
  } else if (state.phase != seen.phase) {
    seen.events = event_of("info", "Workflow " + workflow + ": " + state.phase +
                                       (state.message.empty() ? "" : ": " + state.message));
  }
  seen.phase = state.phase;
  seen.is_over = state.is_over();
}

Task<LogStreams::Feed> ImageRoutes::open_logs(std::string workflow, std::string& out) {
  auto feed = co_await dependencies_.logs.workflow(
      own_, options_.own_namespace, std::move(workflow), {.container = "main", .follow = true},
      deadline_after(kReadTimeout));
  if (feed) co_return std::move(*feed);
  out += event_of("info", "the logs of the tasks are not shown: " + feed.error().message);
  co_return LogStreams::Feed();
}

Task<> ImageRoutes::follow(http::Exchange& exchange, std::string workflow,
                           std::vector<std::string> warnings) {
  std::string out = event_of("info", "Workflow " + workflow + " reports the image");
  for (std::string& warning : warnings) out += event_of("warn", std::move(warning));
  const auto deadline = Clock::now() + options_.longest + std::chrono::minutes(1);
  auto beat = Clock::now();
  auto next_look = Clock::now();
  Seen seen;
  LogStreams::Feed logs;
  bool asked_for_logs = false;
  while (true) {
    if (Clock::now() >= next_look) {
      co_await look(workflow, seen);
      if (seen.is_over) break;
      out += std::exchange(seen.events, {});
      if (Clock::now() > deadline) {
        seen.events = error_event("timeout", "Workflow " + workflow + " has not ended in time");
        break;
      }
      if (seen.phase == "Running" && !std::exchange(asked_for_logs, true)) {
        logs = co_await open_logs(workflow, out);
      }
      next_look = Clock::now() + std::min<Clock::duration>(kPoll, options_.heartbeat);
    }
    if (Clock::now() >= beat) {
      out += event_of("heartbeat", std::to_string(options_.heartbeat.count()));
      beat = Clock::now() + options_.heartbeat;
    }
    if (!out.empty() && !co_await exchange.write(std::exchange(out, {}))) co_return;
    if (logs) {
      if (!co_await next_lines(*logs, next_look, out)) logs.reset();
    } else {
      co_await sleep_until(next_look);
    }
  }
  // Lines that the last task has written.
  for (const auto end = Clock::now() + kLastLines; logs && Clock::now() < end;) {
    const bool is_open = co_await next_lines(*logs, end, out);
    if (!out.empty() && !co_await exchange.write(std::exchange(out, {}))) co_return;
    if (!is_open) logs.reset();
  }
  (void)co_await exchange.write(out + seen.events);
}

}  // namespace gitops::app_proxy
