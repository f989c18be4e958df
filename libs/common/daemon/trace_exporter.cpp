#include "common/daemon/trace_exporter.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/backoff.hpp"

namespace gitops {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{64} << 10;
constexpr auto kLook = std::chrono::milliseconds(200);  // between looks whether a batch waits

Counter& spans_counter(Metrics& metrics, const char* result) {
  return metrics.counter("gitops_trace_spans_total",
                         "Spans of traces: sent to the collector, refused by it, or dropped since "
                         "it did not take them in time",
                         {{"result", result}});
}

std::string traces_path(const std::string& base) {
  return (base.ends_with('/') ? base.substr(0, base.size() - 1) : base) + "/v1/traces";
}

}  // namespace

TraceExporter::TraceExporter(const Executor& executor, Tracer& tracer, Metrics& metrics,
                             Credential headers, Options options)
    : tracer_(tracer),
      options_(std::move(options)),
      headers_(std::move(headers)),
      resolver_(metrics, {.name = "trace_lookup", .threads = 1}),
      client_(executor, resolver_, options_.client),
      sent_(spans_counter(metrics, "sent")),
      refused_(spans_counter(metrics, "refused")),
      dropped_spans_(spans_counter(metrics, "dropped")) {}

Task<> TraceExporter::run() {
  Backoff backoff({.initial = std::chrono::seconds(1)}, random_seed());
  while (true) {
    const auto until = deadline_after(options_.pause);
    while (Clock::now() < until && tracer_.waiting() < options_.batch) co_await sleep_for(kLook);
    count_dropped();
    if (co_await send(deadline_after(options_.timeout))) {
      backoff.reset();
    } else {
      co_await sleep_for(backoff.next(retry_after_));
    }
  }
}

Task<> TraceExporter::flush(Deadline deadline) {
  while ((!batch_.empty() || tracer_.waiting() > 0) && Clock::now() < deadline) {
    if (!co_await send(deadline)) break;
  }
}

Task<bool> TraceExporter::send(Deadline deadline) {
  if (batch_.empty()) batch_ = tracer_.take(options_.batch);
  if (batch_.empty()) co_return true;
  auto headers = read_otlp_headers(headers_.current().reveal());
  if (!headers) {
    note_failure("OTEL_EXPORTER_OTLP_HEADERS: " + headers.error().message);
    co_return false;
  }
  http::Request request{.method = "POST",
                        .target = traces_path(options_.collector.path),
                        .headers = std::move(*headers)};
  request.headers.set("Content-Type", "application/json");
  request.body = otlp_request(options_.resource, batch_);
  const auto response =
      co_await client_.send(options_.collector, std::move(request), deadline, kMaxAnswer);
  retry_after_ = {};
  if (!response) {
    note_failure(response.error().message);
    co_return false;
  }
  const auto verdict = otlp_verdict(*response);
  if (verdict.kind == OtlpVerdict::Kind::retry) {
    retry_after_ =
        parse_retry_after(response->headers.find("Retry-After").value_or(""), wall_now());
    note_failure(verdict.reason);
    co_return false;
  }
  const auto spans = std::exchange(batch_, {}).size();
  const auto rejected = verdict.kind == OtlpVerdict::Kind::refused
                            ? spans
                            : std::min<std::size_t>(spans, verdict.rejected);
  if (rejected > 0) note_failure(verdict.reason);
  refused_.Increment(static_cast<double>(rejected));
  sent_.Increment(static_cast<double>(spans - rejected));
  co_return true;
}

void TraceExporter::note_failure(const std::string& reason) {
  if (!repeated_.check(reason, Clock::now()).pass) return;
  log_.warning("the collector of traces takes no spans",
               {{"collector", options_.collector.to_string()}, {"reason", reason}});
}

void TraceExporter::count_dropped() {
  const auto dropped = tracer_.dropped();
  dropped_spans_.Increment(static_cast<double>(dropped - std::exchange(dropped_, dropped)));
}

}  // namespace gitops
