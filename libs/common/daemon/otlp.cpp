#include "common/daemon/otlp.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ranges>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/text.hpp"
#include "common/http/json_answer.hpp"

namespace gitops {
namespace {

constexpr std::size_t kMaxReason = 200;  // bytes
constexpr int kStatusError = 2;          // OTLP's STATUS_CODE_ERROR

// Writes a list of attributes.
class AttributeWriter {
 public:
  explicit AttributeWriter(std::string& out) : out_(out) { out_ += '['; }
  void text(std::string_view key, std::string_view value) {
    begin(key);
    out_ += R"({"stringValue":)";
    append_json_string(out_, value);
    out_ += "}}";
  }
  // OTLP writes integers of 64 bits as text.
  void number(std::string_view key, std::int64_t value) {
    begin(key);
    out_ += R"({"intValue":")" + std::to_string(value) + "\"}}";
  }
  void end() { out_ += ']'; }

 private:
  void begin(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += R"({"key":)";
    append_json_string(out_, key);
    out_ += R"(,"value":)";
  }
  std::string& out_;
  bool first_ = true;
};

void append_span(std::string& out, const SpanRecord& span) {
  using std::chrono::nanoseconds;
  const auto began = span.began.time_since_epoch();
  const auto ended = began + std::chrono::duration_cast<nanoseconds>(span.took);
  ObjectWriter writer(out);
  writer.text("traceId", hex_encode(bytes_of(span.trace_id)));
  writer.text("spanId", hex_encode(bytes_of(span.span_id)));
  if (span.parent != SpanContext::SpanId{}) {
    writer.text("parentSpanId", hex_encode(bytes_of(span.parent)));
  }
  writer.text("name", span.name);
  writer.raw("kind", std::to_string(static_cast<int>(span.kind)));
  writer.text("startTimeUnixNano", std::to_string(began.count()));
  writer.text("endTimeUnixNano", std::to_string(ended.count()));
  AttributeWriter attributes(writer.begin("attributes"));
  for (const auto& [name, value] : span.texts) attributes.text(name, value);
  for (const auto& [name, value] : span.numbers) attributes.number(name, value);
  attributes.end();
  if (span.has_failed) {
    ObjectWriter status(writer.begin("status"));
    status.raw("code", std::to_string(kStatusError));
    if (!span.message.empty()) status.text("message", span.message);
    status.end();
  }
  writer.end();
}

bool may_be_sent_again(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

std::string otlp_request(const TraceResource& resource, std::span<const SpanRecord> spans) {
  std::string out = R"({"resourceSpans":[{"resource":{"attributes":)";
  AttributeWriter attributes(out);
  attributes.text("service.namespace", "gitops-runtime");
  attributes.text("service.name", resource.program);
  attributes.text("service.version", resource.version);
  attributes.text("service.instance.id", resource.instance);
  attributes.end();
  out += R"(},"scopeSpans":[{"scope":{"name":"gitops-runtime"},"spans":[)";
  bool first = true;
  for (const auto& span : spans) {
    if (!first) out += ',';
    first = false;
    append_span(out, span);
  }
  out += "]}]}]}";
  return out;
}

Result<http::Headers> read_otlp_headers(std::string_view text) {
  http::Headers headers;
  for (const auto part : text | std::views::split(',')) {
    const auto pair = trimmed(std::string_view(part.begin(), part.end()));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto name = trimmed(pair.substr(0, equals));
    if (equals == std::string_view::npos || !http::is_token(name)) {
      return fail(ErrorCode::invalid_argument, "expected name=value, separated by commas");
    }
    auto value = percent_decode(trimmed(pair.substr(equals + 1)));
    if (!value || !http::is_field_value(*value)) {
      return fail(ErrorCode::invalid_argument,
                  "the value of " + std::string(name) + " cannot be sent in a header");
    }
    headers.set(std::string(name), std::move(*value));
  }
  return headers;
}

OtlpVerdict otlp_verdict(const http::Response& response) {
  using Kind = OtlpVerdict::Kind;
  const auto status =
      std::to_string(response.status) + " " + std::string(http::reason_phrase(response.status));
  if (response.status < 200 || response.status > 299) {
    return {.kind = may_be_sent_again(response.status) ? Kind::retry : Kind::refused,
            .reason = status};
  }
  if (response.body.empty()) return {};
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (!http::may_be_json(response) || !json.is_object()) {
    return {.kind = Kind::refused, .reason = status + ", which is not JSON: no collector"};
  }
  const auto partial = json.find("partialSuccess");
  if (partial == json.end() || !partial->is_object()) return {};
  OtlpVerdict verdict;
  if (const auto rejected = partial->find("rejectedSpans"); rejected != partial->end()) {
    // A number of 64 bits is a text in OTLP; some collectors write a number.
    const auto digits =
        rejected->is_string() ? rejected->get_ref<const std::string&>() : rejected->dump();
    std::from_chars(digits.data(), digits.data() + digits.size(), verdict.rejected);
  }
  if (const auto message = partial->find("errorMessage");
      message != partial->end() && message->is_string()) {
    verdict.reason = shortened(message->get_ref<const std::string&>(), kMaxReason);
  }
  return verdict;
}

}  // namespace gitops
