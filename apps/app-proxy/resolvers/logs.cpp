#include "app-proxy/resolvers/logs.hpp"

#include <utility>

#include "app-proxy/resolvers/arguments.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;
using graphql::Json;
using graphql::Stream;

std::optional<std::int64_t> number_of(InputView value) {
  if (!value.exists()) return std::nullopt;
  return value.integer();
}

LogChoice choice_of(Call& call) {
  const InputView options = call["options"];
  return {.pod = text_of(call["podName"]),
          .container = text_of(call["container"]),
          .filter = text_of(options["filter"]),
          .follow = options["follow"].is_true(),
          .tail_lines = number_of(call["tailLines"]),
          .since_seconds = number_of(options["sinceSeconds"]),
          .since_time = text_of(options["sinceTime"]),
          .until_time = text_of(options["untilTime"])};
}

// Returns the events of a feed: {"data"}, {"error"}, at last {"done":true}.
Result<Stream> stream_of(Result<LogStreams::Feed> opened, LogShape shape,
                         std::string component = {}) {
  if (!opened) return std::unexpected(std::move(opened.error()));
  // std::function requires a copyable object.
  std::shared_ptr<LogFeed> feed = std::move(*opened);
  return Stream::from([feed, shape, component = std::move(component),
                       is_over = false]() mutable -> Task<Result<std::optional<Json>>> {
    if (is_over) co_return std::optional<Json>();
    const LogEvent event = co_await feed->next();
    std::string out;
    ObjectWriter writer(out);
    if (event.kind == LogEvent::Kind::line) {
      writer.raw("data", render_line(shape, event.line, component));
    } else if (event.kind == LogEvent::Kind::error) {
      writer.text("error", event.error);
    } else {
      is_over = true;
      writer.raw("done", "true");
    }
    writer.end();
    co_return std::optional<Json>(Json::trusted(std::move(out)));
  });
}

}  // namespace

Task<Result<Stream>> application_logs(LogStreams& logs, Call& call) {
  argo::AppRef app{.name = text_of(call["applicationName"]), .ns = text_of(call["appNamespace"])};
  argo::ResourceRef of{.group = text_of(call["group"]),
                       .kind = text_of(call["kind"]),
                       .ns = text_of(call["namespace"]),
                       .name = text_of(call["resourceName"])};
  co_return stream_of(co_await logs.application(call.context<Caller>(), std::move(app),
                                                std::move(of), choice_of(call), call.deadline()),
                      LogShape::application);
}

Task<Result<Stream>> workflow_logs(LogStreams& logs, Call& call) {
  co_return stream_of(
      co_await logs.workflow(call.context<Caller>(), text_of(call["namespace"]),
                             text_of(call["workflowName"]), choice_of(call), call.deadline()),
      LogShape::workflow);
}

Task<Result<Stream>> component_logs(LogStreams& logs, Call& call) {
  const std::string component = text_of(call["componentName"]);
  co_return stream_of(
      co_await logs.component(call.context<Caller>(), component, choice_of(call), call.deadline()),
      LogShape::component, component);
}

Task<Result<Stream>> pod_events(LogStreams& logs, Call& call) {
  LogStreams::EventsOwner owner{
      .app = {.name = text_of(call["applicationName"]), .ns = text_of(call["appNamespace"])},
      .workflow = text_of(call["workflowName"])};
  if (owner.app.name.empty() == owner.workflow.empty()) {
    co_return fail(ErrorCode::invalid_argument, "name either applicationName or workflowName");
  }
  co_return stream_of(
      co_await logs.events(
          call.context<Caller>(), std::move(owner),
          {.kind = "Pod", .ns = text_of(call["namespace"]), .name = text_of(call["podName"])},
          call.deadline()),
      LogShape::pod_events);
}

std::string render_line(LogShape shape, const LogLine& line, std::string_view component) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("podName", line.pod);
  if (shape == LogShape::application || shape == LogShape::pod_events || !line.timestamp.empty()) {
    writer.text("timestamp", line.timestamp);
  }
  if (shape == LogShape::pod_events) {
    writer.text("message", line.content);
    writer.text("reason", line.reason);
    writer.text("type", line.type);
  } else {
    writer.text("content", line.content);
  }
  if (shape == LogShape::component) {
    writer.text("componentName", component);
    writer.text("containerName", line.container);
  }
  writer.end();
  return out;
}

void add_log_types(graphql::Resolvers& to) {
  for (const char* type : {"ApplicationLogEntry", "ApplicationLogsResponse", "WorkflowLogEntry",
                           "WorkflowLogsResponse", "ComponentLogEntry", "ComponentLogResponse",
                           "PodEventsEntry", "PodEventsResponse"}) {
    to.json(type);
  }
}

}  // namespace gitops::app_proxy
