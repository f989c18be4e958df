#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/core/trace.hpp"
#include "common/http/message.hpp"

// Traces in the OpenTelemetry protocol: OTLP 1 over HTTP with JSON,
// https://opentelemetry.io/docs/specs/otlp/#otlphttp. Pure.
namespace gitops {

// The program that sends spans: attributes of OTLP's resource, by OpenTelemetry's names.
struct TraceResource {
  std::string program;
  std::string version;
  std::string instance;  // the pod
};

// Returns the body of POST /v1/traces (ExportTraceServiceRequest).
[[nodiscard]] std::string otlp_request(const TraceResource& resource,
                                       std::span<const SpanRecord> spans);

// Reads OTEL_EXPORTER_OTLP_HEADERS: "key=value,key=value" with percent-encoded values. A mistake is
// invalid_argument and does not quote the values, which are secrets.
[[nodiscard]] Result<http::Headers> read_otlp_headers(std::string_view text);

// Meaning of an answer of the collector for the spans that were sent.
struct OtlpVerdict {
  enum class Kind : std::uint8_t {
    taken,
    retry,    // not taken, and may be sent again
    refused,  // not taken, and will not be
  } kind = Kind::taken;
  std::uint64_t rejected = 0;  // spans of a request that was taken in part
  std::string reason = {};     // unless all were taken
};
// A success that is not JSON comes from another server than a collector, and counts as refused.
[[nodiscard]] OtlpVerdict otlp_verdict(const http::Response& response);

}  // namespace gitops
