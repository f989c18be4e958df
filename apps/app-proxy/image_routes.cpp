#include "app-proxy/image_routes.hpp"

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

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
constexpr std::size_t kSuffixBytes = 5;

std::string event(const char* type, std::string data) {
  std::string out;
  (void)http::append_event(out, {.event = type, .data = std::move(data)});
  return out;
}

std::string error_event(std::string_view name, std::string_view message) {
  return event("error", to_text({{"name", name}, {"message", message}}));
}

Task<bool> start_events(http::Exchange& exchange) {
  const auto started = co_await exchange.start({.status = 200,
                                                .headers = {{"Content-Type", "text/event-stream"},
                                                            {"Cache-Control", "no-cache"},
                                                            {"X-Accel-Buffering", "no"}}});
  co_return started.has_value();
}

}  // namespace

Task<> ImageRoutes::serve(http::Exchange& exchange) {
  const auto entered = co_await door_.admit(exchange);
  if (!entered) co_return;
  if (exchange.query().empty()) {
    (void)co_await exchange.reply({.status = 200,
                                   .headers = {{"Content-Type", "application/json; charset=utf-8"},
                                               {"Cache-Control", "no-store"}},
                                   .body = image_report_catalogue()});
    co_return;
  }
  const auto begun = Clock::now();
  const auto credential = credential_of(exchange.request().headers);
  const auto report = parse_image_report(exchange.query());
  Result<std::string> workflow;
  if (credential.kind != RequestCredential::Kind::token) {
    // Another site's page could send a cookie.
    workflow = fail(ErrorCode::forbidden, "an API key is needed, not a session");
  } else if (!report) {
    workflow = std::unexpected(report.error());
  } else if (cluster_ == nullptr) {
    workflow = fail(ErrorCode::unavailable, "the runtime has no access to its cluster");
  } else {
    workflow = co_await begin(*report, credential.sent.value, deadline_after(kStartTimeout));
  }
  std::vector<std::pair<std::string_view, std::string>> subject;
  if (report) subject.emplace_back("image", report->image);
  if (workflow) subject.emplace_back("workflow", *workflow);
  audit_.write({.caller = entered->caller,
                .action = "image-report",
                .subject = std::move(subject),
                .result = workflow ? "ok" : to_string(workflow.error().code),
                .took = Clock::now() - begun});
  if (!co_await start_events(exchange)) co_return;
  if (!workflow) {
    (void)co_await exchange.write(
        error_event(to_string(workflow.error().code), workflow.error().message));
  } else {
    const auto end = co_await exchange.stream(follow(exchange, *workflow, report->warning));
    if (end == http::StreamEnd::client_left) co_return;
    if (end == http::StreamEnd::draining) {
      (void)co_await exchange.write(error_event(
          "unavailable", "the runtime restarts; Workflow " + *workflow + " goes on without it"));
    }
  }
  (void)co_await exchange.finish();
}

// The pods of the Workflow wait until its Secret is there.
Task<Result<std::string>> ImageRoutes::begin(const ImageReport& report, const Secret& api_key,
                                             Deadline deadline) {
  const std::string name = "image-report-" + hex_encode(random_bytes(kSuffixBytes));
  const auto& ns = options_.own_namespace;
  const auto created = co_await cluster_->create(
      k8s::resources::kWorkflows, ns, image_report_workflow(options_, report, name), deadline);
  if (!created) co_return fail("the report's Workflow", created.error());
  const auto uid = string_at(parse_json_object(*created), {"metadata", "uid"});
  const Secret secret = image_report_secret(options_, report, api_key, name, uid);
  const auto stored = co_await cluster_->create(k8s::resources::kSecrets, ns,
                                                std::string(secret.reveal()), deadline);
  if (!stored) {
    (void)co_await cluster_->remove(k8s::resources::kWorkflows, {ns, name},
                                    deadline_after(kReadTimeout));
    co_return fail("the report's Secret", stored.error());
  }
  log_.info("an image is reported", {{"image", report.image}, {"workflow", name}});
  co_return name;
}

Task<> ImageRoutes::follow(http::Exchange& exchange, std::string workflow, std::string warning) {
  const k8s::ObjectKey key{options_.own_namespace, workflow};
  std::string out = event("info", "Workflow " + workflow + " reports the image");
  if (!warning.empty()) out += event("warn", std::move(warning));
  std::string phase;
  auto beat = Clock::now();
  const auto deadline = Clock::now() + options_.longest + std::chrono::minutes(1);
  while (true) {
    const auto object =
        co_await cluster_->get(k8s::resources::kWorkflows, key, deadline_after(kReadTimeout));
    if (object) {
      const auto state = image_report_state(*object);
      if (state.is_success()) {
        out += event("end", "the image is reported");
        break;
      }
      if (state.is_over()) {
        out +=
            error_event(state.phase, state.message.empty() ? "Workflow " + workflow + " has failed"
                                                           : state.message);
        break;
      }
      if (state.phase != phase) {
        out += event("info", "Workflow " + workflow + ": " + state.phase +
                                 (state.message.empty() ? "" : ": " + state.message));
        phase = state.phase;
      }
    } else if (object.error().code == ErrorCode::not_found) {
      out += error_event("not_found", "Workflow " + workflow + " was deleted");
      break;
    }
    if (Clock::now() > deadline) {
      out += error_event("timeout", "Workflow " + workflow + " has not ended in time");
      break;
    }
    if (Clock::now() >= beat) {
      out += event("heartbeat", std::to_string(options_.heartbeat.count()));
      beat = Clock::now() + options_.heartbeat;
    }
    if (!out.empty() && !co_await exchange.write(out)) co_return;
    out.clear();
    co_await sleep_for(std::min<Clock::duration>(kPoll, options_.heartbeat));
  }
  (void)co_await exchange.write(out);
}

}  // namespace gitops::app_proxy
