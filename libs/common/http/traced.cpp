#include "common/http/traced.hpp"

#include <string>
#include <utility>

namespace gitops::http {
namespace {

constexpr const char* kTraceparent = "traceparent";

}  // namespace

Span client_span(const SpanContext& trace, Headers& headers, std::string_view name) {
  auto span = trace.start(name, SpanKind::client);
  if (auto parent = span.context().traceparent(); !parent.empty()) {
    headers.set(kTraceparent, std::move(parent));
  }
  return span;
}

Span server_span(Tracer* tracer, const Headers& headers, std::string_view name) {
  if (tracer == nullptr) return {};
  return tracer->serve(headers.find(kTraceparent).value_or(""), name);
}

}  // namespace gitops::http
