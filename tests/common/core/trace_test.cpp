// Traces: the wire form of W3C, which traces are recorded, and what a span keeps.
#include "common/core/trace.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace gitops {
namespace {

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr const char* kUnsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

TEST(Traceparent, IsReadAndWrittenAsW3cHasIt) {
  const auto context = SpanContext::parse(kSampled);
  EXPECT_FALSE(context.empty());
  EXPECT_TRUE(context.is_sampled());
  EXPECT_EQ(context.trace_id(), kTrace);
  EXPECT_EQ(context.traceparent(), kSampled);
  EXPECT_FALSE(SpanContext::parse(kUnsampled).is_sampled());
  EXPECT_EQ(SpanContext::parse(kUnsampled).traceparent(), kUnsampled);
  // Other flags are not ours to pass on.
  EXPECT_EQ(
      SpanContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03").traceparent(),
      kSampled);
  // A later version may have more fields.
  EXPECT_EQ(SpanContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what")
                .traceparent(),
            kSampled);
}

TEST(Traceparent, OfANewTraceLeavesTheChoiceToOthers) {
  const auto one = SpanContext::unsampled().traceparent();
  EXPECT_EQ(SpanContext::parse(one).traceparent(), one);
  EXPECT_TRUE(one.ends_with("-00"));
  EXPECT_NE(SpanContext::unsampled().traceparent(), one);
}

TEST(Traceparent, IsIgnoredWhenItIsInvalid) {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01"}) {
    EXPECT_TRUE(SpanContext::parse(text).empty()) << text;
    EXPECT_EQ(SpanContext::parse(text).traceparent(), "") << text;
  }
}

TEST(Tracer, PassesContextsOnWhileItRecordsNothing) {
  Tracer tracer;
  auto span = tracer.serve(kSampled, "GET app-proxy");
  EXPECT_FALSE(span.is_recorded());
  EXPECT_EQ(span.context().traceparent(), kSampled);
  EXPECT_EQ(span.context().start("inner").context().traceparent(), kSampled);
  EXPECT_EQ(tracer.begin("work").context().traceparent(), "");
  span.end();
  EXPECT_EQ(tracer.waiting(), 0U);
}

TEST(Tracer, RecordsSpansOfOneTrace) {
  Tracer tracer;
  tracer.record(1);
  {
    auto request = tracer.serve(kUnsampled, "POST graphql");
    ASSERT_TRUE(request.is_recorded());
    request.set("graphql.root_field", "syncApplication");
    request.set("http.response.status_code", 200);
    auto call = request.context().start("POST argocd-server", SpanKind::client);
    call.fail("it is away");
  }
  const auto spans = tracer.take(10);
  ASSERT_EQ(spans.size(), 2U);
  const auto& call = spans[0];
  const auto& request = spans[1];
  EXPECT_EQ(call.name, "POST argocd-server");
  EXPECT_EQ(call.kind, SpanKind::client);
  EXPECT_EQ(call.trace_id, request.trace_id);
  EXPECT_EQ(call.parent, request.span_id);
  EXPECT_TRUE(call.has_failed);
  EXPECT_EQ(call.message, "it is away");
  EXPECT_EQ(request.kind, SpanKind::server);
  EXPECT_NE(request.parent, SpanContext::SpanId{});
  EXPECT_NE(request.span_id, call.span_id);
  EXPECT_FALSE(request.has_failed);
  EXPECT_EQ(request.texts.at(0).second, "syncApplication");
  EXPECT_EQ(request.numbers.at(0).second, 200);
  EXPECT_LE(request.began, call.began);
}

TEST(Tracer, MarksWhatItRecordsForOthers) {
  Tracer tracer;
  tracer.record(1);
  const auto span = tracer.serve(kUnsampled, "GET");
  const auto parent = span.context().traceparent();
  EXPECT_TRUE(parent.ends_with("-01")) << parent;
  EXPECT_EQ(parent.substr(3, 32), kTrace);
  EXPECT_NE(parent.substr(36, 16), "00f067aa0ba902b7");
}

TEST(Tracer, BeginsTracesOfItsOwn) {
  Tracer tracer;
  tracer.record(1);
  const auto one = tracer.begin("report application");
  const auto other = tracer.serve("nonsense", "GET");
  EXPECT_EQ(one.context().trace_id().size(), 32U);
  EXPECT_NE(one.context().trace_id(), other.context().trace_id());
}

// All programs decide alike about a trace, so a recorded one is whole.
TEST(Tracer, ChoosesByTheTraceId) {
  Tracer small;
  small.record(0.25);
  Tracer large;
  large.record(0.5);
  int in_small = 0;
  int in_large = 0;
  for (int i = 0; i < 256; ++i) {
    // The last 56 bits of the id, in even steps.
    const char* digits = "0123456789abcdef";
    std::string id = "4bf92f3577b34da6a3";
    id += digits[i / 16];
    id += digits[i % 16];
    id += "929d0e0e4736";
    const auto parent = "00-" + id + "-00f067aa0ba902b7-00";
    const bool by_small = small.serve(parent, "GET").is_recorded();
    const bool by_large = large.serve(parent, "GET").is_recorded();
    EXPECT_TRUE(by_large || !by_small) << parent;
    in_small += by_small ? 1 : 0;
    in_large += by_large ? 1 : 0;
  }
  EXPECT_EQ(in_small, 64);
  EXPECT_EQ(in_large, 128);
}

// A caller may ask for a record, but a stranger must not fill the collector.
TEST(Tracer, FollowsCallersWithinALimit) {
  Tracer tracer;
  tracer.record(0);
  EXPECT_FALSE(tracer.serve(kUnsampled, "GET").is_recorded());
  unsigned recorded = 0;
  for (unsigned i = 0; i < 3 * Tracer::kMaxRequested; ++i) {
    recorded += tracer.serve(kSampled, "GET").is_recorded() ? 1 : 0;
  }
  EXPECT_GE(recorded, Tracer::kMaxRequested);
  EXPECT_LE(recorded, 2 * Tracer::kMaxRequested);  // the second may have ended meanwhile
}

TEST(Tracer, DropsWhatNobodyTakes) {
  Tracer tracer;
  tracer.record(1);
  for (std::size_t i = 0; i < Tracer::kMaxSpans + 3; ++i) tracer.begin("work").end();
  EXPECT_EQ(tracer.waiting(), Tracer::kMaxSpans);
  EXPECT_EQ(tracer.dropped(), 3U);
  EXPECT_EQ(tracer.take(100).size(), 100U);
  EXPECT_EQ(tracer.waiting(), Tracer::kMaxSpans - 100);
}

TEST(Span, KeepsShortTextsAndAnEarlierBeginning) {
  Tracer tracer;
  tracer.record(1);
  {
    auto span = tracer.begin("report application");
    span.began_at(Clock::now() - std::chrono::seconds(3));
    span.set("k8s.object", std::string(5'000, 'x'));
    Span moved = std::move(span);
    moved = Span();  // ends it
    EXPECT_EQ(tracer.waiting(), 1U);
  }
  const auto spans = tracer.take(10);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_LE(spans[0].texts.at(0).second.size(), 300U);
  EXPECT_GE(spans[0].took, std::chrono::seconds(3));
  EXPECT_LT(spans[0].began, wall_now() - std::chrono::seconds(2));
}

}  // namespace
}  // namespace gitops
