// Spans as a collector reads them, and what its answers mean.
#include "common/daemon/otlp.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops {
namespace {

using Kind = OtlpVerdict::Kind;

SpanRecord sample_span() {
  SpanRecord span;
  span.trace_id = {0x4b, 0xf9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  span.span_id = {1, 2, 3, 4, 5, 6, 7, 0xab};
  span.kind = SpanKind::client;
  span.name = "POST \"event\"";
  span.began = std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::nanoseconds(1'772'615'727'412'000'001));
  span.took = std::chrono::microseconds(1'500);
  span.texts = {{"http.request.method", "POST"}};
  span.numbers = {{"http.response.status_code", 503}};
  return span;
}

TEST(OtlpRequest, HasTheFormOfTheSpecification) {
  auto failed = sample_span();
  failed.parent = {9, 9, 9, 9, 9, 9, 9, 9};
  failed.has_failed = true;
  failed.message = "away";
  const std::vector<SpanRecord> spans{sample_span(), failed};
  const auto body = nlohmann::json::parse(
      otlp_request({.program = "event-reporter", .version = "0.1.0", .instance = "pod-0"}, spans));
  const auto expected = nlohmann::json::parse(R"({"resourceSpans":[{
    "resource":{"attributes":[
      {"key":"service.namespace","value":{"stringValue":"gitops-runtime"}},
      {"key":"service.name","value":{"stringValue":"event-reporter"}},
      {"key":"service.version","value":{"stringValue":"0.1.0"}},
      {"key":"service.instance.id","value":{"stringValue":"pod-0"}}]},
    "scopeSpans":[{"scope":{"name":"gitops-runtime"},"spans":[
      {"traceId":"4bf90000000000000000000000000001","spanId":"01020304050607ab",
       "name":"POST \"event\"","kind":3,
       "startTimeUnixNano":"1772615727412000001","endTimeUnixNano":"1772615727413500001",
       "attributes":[{"key":"http.request.method","value":{"stringValue":"POST"}},
                     {"key":"http.response.status_code","value":{"intValue":"503"}}]},
      {"traceId":"4bf90000000000000000000000000001","spanId":"01020304050607ab",
       "parentSpanId":"0909090909090909",
       "name":"POST \"event\"","kind":3,
       "startTimeUnixNano":"1772615727412000001","endTimeUnixNano":"1772615727413500001",
       "attributes":[{"key":"http.request.method","value":{"stringValue":"POST"}},
                     {"key":"http.response.status_code","value":{"intValue":"503"}}],
       "status":{"code":2,"message":"away"}}]}]}]})");
  EXPECT_EQ(body, expected);
}

TEST(OtlpHeaders, AreReadAsTheEnvironmentHasThem) {
  const auto headers = read_otlp_headers(" api-key = s%20ecret , X-Scope-OrgID=team,");
  ASSERT_TRUE(headers);
  EXPECT_EQ(headers->find("api-key"), "s ecret");
  EXPECT_EQ(headers->find("X-Scope-OrgID"), "team");
  EXPECT_EQ(read_otlp_headers("")->size(), 0U);
}

TEST(OtlpHeaders, AreRefusedWithoutTheirValues) {
  for (const char* text : {"canary", "bad name=canary", "a=canary%0d%0aHost: x", "a=canary%"}) {
    const auto headers = read_otlp_headers(text);
    ASSERT_FALSE(headers) << text;
    EXPECT_EQ(headers.error().message.find("canary"), std::string::npos) << headers.error().message;
  }
}

TEST(OtlpAnswer, IsLookedAtBeforeItIsBelieved) {
  const auto verdict = [](int status, std::string body, std::string type = "application/json") {
    return otlp_verdict(
        {.status = status, .headers = {{"Content-Type", type}}, .body = std::move(body)});
  };
  EXPECT_EQ(verdict(200, "{}").kind, Kind::taken);
  EXPECT_EQ(verdict(200, "").kind, Kind::taken);
  EXPECT_EQ(verdict(200, R"({"partialSuccess":{}})").rejected, 0U);
  const auto partial =
      verdict(200, R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}})");
  EXPECT_EQ(partial.kind, Kind::taken);
  EXPECT_EQ(partial.rejected, 3U);
  EXPECT_EQ(partial.reason, "too old");
  EXPECT_EQ(verdict(200, R"({"partialSuccess":{"rejectedSpans":3}})").rejected, 3U);
  // A login page in front of the collector.
  EXPECT_EQ(verdict(200, "<html>", "text/html").kind, Kind::refused);
  EXPECT_EQ(verdict(200, "{}", "text/html").kind, Kind::refused);
  EXPECT_EQ(verdict(200, "[]").kind, Kind::refused);
  for (const int status : {429, 502, 503, 504}) EXPECT_EQ(verdict(status, "").kind, Kind::retry);
  for (const int status : {301, 400, 401, 404, 413, 415, 500}) {
    EXPECT_EQ(verdict(status, "").kind, Kind::refused) << status;
  }
}

}  // namespace
}  // namespace gitops
