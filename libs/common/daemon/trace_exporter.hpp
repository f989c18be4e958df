#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/trace.hpp"
#include "common/daemon/otlp.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"

namespace gitops {

// Sends the spans of a tracer to a collector. While the collector does not take them, the tracer
// keeps the newest ones within its limit; nothing else waits for it. Loop thread only; the tracer
// and the metrics outlive it.
class TraceExporter {
 public:
  struct Options {
    http::Url collector;  // OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is appended to its path
    http::ClientOptions client = {};
    TraceResource resource = {};
    std::chrono::milliseconds pause{2'000};  // between requests, unless a whole batch waits
    std::chrono::milliseconds timeout{10'000};
    std::size_t batch = 512;  // spans of a request
  };
  // `headers` is read before each request: OTEL_EXPORTER_OTLP_HEADERS.
  TraceExporter(const Executor& executor, Tracer& tracer, Metrics& metrics, Credential headers,
                Options options);

  // Sends until it is cancelled.
  Task<> run();
  // Sends what waits, once, until the deadline; for the end of the process, after run().
  Task<> flush(Deadline deadline);

 private:
  // Sends a batch; returns false when it was kept for another attempt.
  Task<bool> send(Deadline deadline);
  void note_failure(const std::string& reason);
  void count_dropped();

  Tracer& tracer_;
  Options options_;
  Credential headers_;
  net::Resolver resolver_;
  http::Client client_;
  std::vector<SpanRecord> batch_;  // taken from the tracer and not sent yet
  std::chrono::milliseconds retry_after_{0};
  std::uint64_t dropped_ = 0;  // as counted
  Log log_{"traces"};
  RepeatFilter repeated_{std::chrono::minutes(10)};
  Counter& sent_;
  Counter& refused_;
  Counter& dropped_spans_;
};

}  // namespace gitops
