#include "app-proxy/http/log_routes.hpp"

#include <charconv>
#include <system_error>
#include <utility>

#include "app-proxy/http/routes.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/http/gzip.hpp"
#include "common/http/sse.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

constexpr auto kOpenTimeout = std::chrono::seconds(30);
constexpr auto kReadTimeout = std::chrono::seconds(60);  // of one container's log, for the archive
constexpr std::size_t kMaxWrite = 16 * 1024;
// Name for a client without a credential. The public command line sends none, ignores the status,
// and creates a file with the name from the response. With a missing folder in the name it fails,
// and shows the whole name to its user.
constexpr std::string_view kNoCredential =
    "attachment; filename=\"nothing was downloaded/the runtime's logs need a credential, which "
    "this command does not send: use curl with the header Authorization (docs of app-proxy, "
    "Logs)\"";

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

LogRoutes::LogRoutes(RequestGate& gate, LogStreams& logs, Options options)
    : gate_(gate), logs_(logs), options_(std::move(options)) {}

Task<> LogRoutes::serve(http::Exchange& exchange) {
  const auto accepted = exchange.request().headers.find("Accept").value_or("");
  if (accepted.contains("text/event-stream")) {
    co_await serve_events(exchange);
  } else {
    co_await serve_archive(exchange);
  }
}

// Opens the log, or the events of a pod, that the parameters of a request select.
Task<Result<LogStreams::Feed>> LogRoutes::open(http::Exchange& exchange, const Caller& caller) {
  const auto value = [&exchange](std::string_view name) {
    return http::query_parameter(exchange.query(), name);
  };
  for (const auto* name : {"tailLines", "sinceSeconds"}) {
    if (const auto text = value(name); !text.empty() && !number_of(text)) {
      co_return fail(ErrorCode::invalid_argument, std::string(name) + ": expected a whole number");
    }
  }
  LogChoice choice{.pod = value("podName"),
                   .container = value("container"),
                   .filter = value("filter"),
                   .follow = value("follow") == "true",
                   .previous = value("previous") == "true",
                   .tail_lines = number_of(value("tailLines")),
                   .since_seconds = number_of(value("sinceSeconds")),
                   .since_time = value("sinceTime"),
                   .until_time = value("untilTime")};
  const auto deadline = deadline_after(kOpenTimeout);
  const std::string application = value("applicationName");
  const std::string workflow = value("workflowName");
  const std::string component = value("componentName");
  if ((application.empty() ? 0 : 1) + (workflow.empty() ? 0 : 1) + (component.empty() ? 0 : 1) !=
      1) {
    co_return fail(ErrorCode::invalid_argument,
                   "name one of applicationName, workflowName and componentName");
  }
  argo::AppRef app{.name = application, .ns = value("appNamespace")};
  if (value("events") == "true") {
    argo::ResourceRef of{.group = value("group"),
                         .kind = value("kind"),
                         .ns = value("namespace"),
                         .name = value("resourceName")};
    if (!choice.pod.empty()) of = {.kind = "Pod", .ns = of.ns, .name = choice.pod};
    if (!component.empty() || of.name.empty()) {
      co_return fail(ErrorCode::invalid_argument,
                     "events are those of an object of an application or a workflow");
    }
    co_return co_await logs_.events(caller, {.app = std::move(app), .workflow = workflow},
                                    std::move(of), deadline);
  }
  if (!application.empty()) {
    co_return co_await logs_.application(caller, std::move(app),
                                         {.group = value("group"),
                                          .kind = value("kind"),
                                          .ns = value("namespace"),
                                          .name = value("resourceName")},
                                         std::move(choice), deadline);
  }
  if (!workflow.empty()) {
    co_return co_await logs_.workflow(caller, value("namespace"), workflow, std::move(choice),
                                      deadline);
  }
  co_return co_await logs_.component(caller, component, std::move(choice), deadline);
}

Task<> LogRoutes::serve_events(http::Exchange& exchange) {
  auto admission = co_await gate_.authenticate(exchange);
  if (!admission) co_return;
  auto opened = co_await open(exchange, admission->caller);
  if (!opened) {
    (void)co_await exchange.reply(refusal_response(opened.error()));
    co_return;
  }
  // Tells proxies to pass each event on at once.
  auto started = co_await exchange.start({.status = 200,
                                          .headers = {{"Content-Type", "text/event-stream"},
                                                      {"Cache-Control", "no-cache"},
                                                      {"X-Accel-Buffering", "no"}}});
  if (!started) co_return;
  const auto end = co_await exchange.stream(follow(exchange, admission->caller, **opened));
  if (end == http::StreamEnd::client_left) co_return;
  if (end == http::StreamEnd::draining) {
    (void)co_await exchange.write(
        server_sent({.kind = LogEvent::Kind::error, .error = "the runtime restarts"}) +
        server_sent({}));
  }
  (void)co_await exchange.finish();
}

Task<> LogRoutes::follow(http::Exchange& exchange, Caller& caller, LogFeed& feed) {
  auto checked = Clock::now();
  for (bool is_over = false; !is_over;) {
    std::string out;
    LogEvent event = co_await feed.next(deadline_after(options_.heartbeat));
    if (event.kind == LogEvent::Kind::nothing_yet) {
      out = http::kServerSentHeartbeat;
    } else if (Clock::now() - checked >= std::chrono::seconds(30)) {
      if (auto known = co_await gate_.reauthenticate(exchange, caller); !known) {
        const bool is_refused = known.error().code == ErrorCode::unauthenticated;
        event = {.kind = LogEvent::Kind::error,
                 .error = is_refused ? std::string("Unauthorized") : known.error().message};
        is_over = true;
      }
      checked = Clock::now();
    }
    while (event.kind != LogEvent::Kind::nothing_yet) {
      out += server_sent(event);
      is_over = is_over || event.kind == LogEvent::Kind::end;
      if (is_over || !feed.has_more() || out.size() >= kMaxWrite) break;
      event = co_await feed.next();
    }
    if (is_over && event.kind != LogEvent::Kind::end) out += server_sent({});
    if (!co_await exchange.write(out)) co_return;
  }
}

Task<> LogRoutes::serve_archive(http::Exchange& exchange) {
  if (!options_.anonymous_archive) {
    const auto admission = co_await gate_.authenticate(
        exchange, {{"Content-Disposition", std::string(kNoCredential)}});
    if (!admission) co_return;
    if (!admission->caller.user->is_admin && !admission->caller.user->is_runtime) {
      (void)co_await exchange.reply(
          rest_error(403, "only an administrator of the account may read the runtime's own logs"));
      co_return;
    }
  }
  if (archives_ >= options_.max_archives) {
    (void)co_await exchange.reply(refusal_response({.code = ErrorCode::too_many_requests,
                                                    .message = "others download the logs now",
                                                    .retry_after = std::chrono::seconds(5),
                                                    .http_status = 429}));
    co_return;
  }
  ++archives_;
  const std::unique_ptr<std::size_t, void (*)(std::size_t*)> place(&archives_,
                                                                   [](auto* count) { --*count; });
  const auto parts = co_await logs_.parts(deadline_after(kOpenTimeout));
  if (!parts) {
    (void)co_await exchange.reply(refusal_response(parts.error()));
    co_return;
  }
  const std::string name = (options_.runtime.empty() ? "runtime" : options_.runtime) + ".tar.gz";
  auto started = co_await exchange.start(
      {.status = 200,
       .headers = {{"Content-Type", "application/gzip"},
                   {"Content-Disposition", "attachment; filename=\"" + name + "\""},
                   {"Cache-Control", "no-store"}}});
  if (!started) co_return;
  // The client detects an incomplete archive by the missing end of the body.
  if (co_await write_archive(exchange, *parts)) (void)co_await exchange.finish();
}

// Writes one component after the other, so that at most one log is in memory.
Task<Result<void>> LogRoutes::write_archive(http::Exchange& exchange,
                                            const std::vector<LogStreams::Part>& parts) {
  http::Deflater deflater(6);
  const auto now = wall_now();
  const auto send = [&](std::string_view bytes, http::Deflater::Flush flush) -> Task<Result<void>> {
    while (true) {
      const auto some = bytes.substr(0, 64 * 1024);
      bytes.remove_prefix(some.size());
      std::string out;
      deflater.feed(some, bytes.empty() ? flush : http::Deflater::Flush::none, out);
      if (!out.empty()) {
        if (auto sent = co_await exchange.write(out); !sent) co_return sent;
      }
      if (bytes.empty()) co_return Result<void>();
    }
  };
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i;
    while (end < parts.size() && parts[end].component == parts[i].component) ++end;
    const std::size_t share = options_.max_file / (end - i);
    std::string text;
    for (std::size_t j = i; j < end; ++j) {
      text += "==> " + parts[j].pod + "/" + parts[j].container + " <==\n";
      auto log = co_await logs_.last_lines(parts[j], share, deadline_after(kReadTimeout));
      text += log ? *log : "(no log: " + log.error().message + ")\n";
      if (!text.ends_with('\n')) text += '\n';
    }
    text =
        tar_header(parts[i].component + ".log", text.size(), now) + text + tar_padding(text.size());
    if (auto sent = co_await send(text, http::Deflater::Flush::none); !sent) co_return sent;
    i = end;
  }
  co_return co_await send(std::string(kTarEnd, '\0'), http::Deflater::Flush::finish);
}

std::string server_sent(const LogEvent& event) {
  http::ServerSentEvent sent;
  if (event.kind == LogEvent::Kind::line) {
    sent.event = "log";
    ObjectWriter writer(sent.data);
    writer.text("podName", event.line.pod);
    if (!event.line.container.empty()) writer.text("containerName", event.line.container);
    if (!event.line.timestamp.empty()) writer.text("timestamp", event.line.timestamp);
    writer.text("content", event.line.content);
    if (!event.line.reason.empty()) writer.text("reason", event.line.reason);
    if (!event.line.type.empty()) writer.text("type", event.line.type);
    writer.end();
  } else if (event.kind == LogEvent::Kind::error) {
    sent.event = "trouble";
    sent.data = event.error;
  } else {
    sent.event = "end";
    sent.data = "{}";
  }
  std::string out;
  (void)http::append_event(out, sent);
  return out;
}

}  // namespace gitops::app_proxy
