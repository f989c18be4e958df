#pragma once

#include <string_view>

#include "common/core/trace.hpp"
#include "common/http/message.hpp"

// Spans of requests: W3C's traceparent field in both directions.
namespace gitops::http {

// Begins the span of a request to a peer, and names it in the request's fields when there is a trace.
[[nodiscard]] Span client_span(const SpanContext& trace, Headers& headers, std::string_view name);
// Begins the span of a received request; an empty one without a tracer.
[[nodiscard]] Span server_span(Tracer* tracer, const Headers& headers, std::string_view name);

}  // namespace gitops::http
